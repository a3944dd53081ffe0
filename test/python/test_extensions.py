# SPDX-License-Identifier: GPL-3.0-or-later
"""What an extension of this package does before it sends anything to a server."""

import json
import os
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from gemini_companion_epc import common

ROOT = Path(__file__).resolve().parents[2]
COMPANION = ROOT / "python/gemini_companion_epc/extensions/companion.mjs"

pytestmark = pytest.mark.skipif(not shutil.which("node"), reason="needs Node.js")

# The server that is found in a directory; and the error of a request to a port.
FIND = """
import { find } from "%s";
const [directory, cwd] = process.argv.slice(1);
console.log((await find(directory, cwd))?.port ?? "none");
"""
ASK = """
import { Companion } from "%s";
const companion = new Companion({});
await companion.initialize({ port: Number(process.argv[1]), token: "t" }).then(
  () => console.log("asked"),
  (error) => console.log(error.message),
);
"""
# The text of a file with the line ends of another one, as JSON.
ENDS = """
import { withLineEnds } from "%s";
const [text, whole] = process.argv.slice(1).map((text) => JSON.parse(text));
console.log(JSON.stringify(withLineEnds(text, whole)));
"""
# A server of another user: it prints its port, and then all that it gets.
SERVE = """
import os, socket, sys
os.setuid(65534)
server = socket.create_server((sys.argv[1], 0))
print(server.getsockname()[1], flush=True)
peer, _ = server.accept()
print(peer.recv(65536), flush=True)
"""


def node(program: str, *arguments: object) -> str:
    code = program % COMPANION.as_uri()
    command = ["node", "--input-type=module", "-e", code, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, check=True, text=True, timeout=60
    ).stdout.strip()


def write(directory: Path, name: str, **changes: object) -> None:
    content = {
        "port": 1,
        "workspacePath": str(directory),
        "authToken": "t",
        "ideInfo": {"name": "emacs"},
        "ppid": os.getpid(),
        "host": common.this_host(),
        **changes,
    }
    (directory / name).write_text(json.dumps(content))


def test_a_server_is_found_for_its_directory_while_its_emacs_runs(
    tmp_path: Path,
) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    write(tmp_path, "ended.json", ppid=ended.pid)
    write(tmp_path, "another.json", ideInfo={"name": "vscode"})
    write(tmp_path, "elsewhere.json", workspacePath="/nowhere")
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "link.json").symlink_to(tmp_path / "live.json")
    assert node(FIND, tmp_path, tmp_path) == "none"
    # The process may be one of the other host.
    write(tmp_path, "host.json", ppid=ended.pid, host="another", port=2)
    assert node(FIND, tmp_path, tmp_path) == "2"
    write(tmp_path, "host.json", workspacePath="/nowhere")
    write(tmp_path, "live.json", port=3)
    assert node(FIND, tmp_path, tmp_path) == "3"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("a\nB\nc\nD\n", "a\r\nB\nc\r\nD\n"),
        ("a\nx\nb\nc\nd\n", "a\r\nx\r\nb\nc\r\nd\n"),
        ("x\na\nb\nc\nd\nz", "x\r\na\r\nb\nc\r\nd\nz"),
        ("c\nd\n", "c\r\nd\n"),
        ("", ""),
    ],
)
def test_each_line_keeps_its_end(text: str, written: str) -> None:
    whole = "a\r\nb\nc\r\nd\n"
    assert json.loads(node(ENDS, json.dumps(text), json.dumps(whole))) == written


def test_no_proxy_gets_what_is_for_emacs(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor() as pool:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv("NODE_USE_ENV_PROXY", "1")
        asking = pool.submit(node, ASK, server.getsockname()[1])
        with server.accept()[0] as peer:
            assert peer.recv(65536).startswith(b"POST /mcp HTTP/1.1\r\n")
        assert asking.result() == "socket hang up"


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs Linux and root"
)
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_another_user_gets_neither_token_nor_text(address: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVE, address], stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout
        port = int(server.stdout.readline())
        assert node(ASK, port) == "Another user listens there"
        assert server.stdout.readline() == "b''\n"
