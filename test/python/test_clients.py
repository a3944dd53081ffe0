# SPDX-License-Identifier: GPL-3.0-or-later
import os
from pathlib import Path

import pytest

from gemini_companion_epc.client import Client
from gemini_companion_epc.clients import CLIENTS, client_of

GEMINI, QWEN, COPILOT, PI = CLIENTS


@pytest.mark.parametrize(
    ("client", "environ", "expected"),
    [
        (GEMINI, {}, "/tmp/gemini/ide"),
        (GEMINI, {"TMPDIR": "/a/", "TMP": "/b", "TEMP": "/c"}, "/a/gemini/ide"),
        (GEMINI, {"TMPDIR": "", "TMP": "/b", "TEMP": "/c"}, "/b/gemini/ide"),
        (GEMINI, {"TEMP": "/c"}, "/c/gemini/ide"),
        (QWEN, {}, "/home/me/.qwen/ide"),
        (QWEN, {"QWEN_HOME": "~/q"}, "/home/me/q/ide"),
        (QWEN, {"HOME": "/other", "QWEN_HOME": ""}, "/other/.qwen/ide"),
        (COPILOT, {"COPILOT_HOME": "/c"}, "/c/ide"),
        (COPILOT, {}, "/home/me/.copilot/ide"),
        (PI, {"PI_CODING_AGENT_DIR": "~/p"}, "/home/me/p/ide"),
        (PI, {}, "/home/me/.pi/agent/ide"),
    ],
)
def test_the_directory_is_the_one_that_the_client_reads(
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
    environ: dict[str, str],
    expected: str,
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert client.directory(environ) == Path(expected)


def test_emacs_has_the_same_clients() -> None:
    names = " ".join(f'"{client.name}"' for client in CLIENTS)
    assert f"gemini-companion-clients '({names})" in lisp("clients")
    for client in CLIENTS:
        adapter = lisp(f"client-{client.name}")
        assert f'"{client.title}"' in adapter
        home = client.home_variable or "TMPDIR"
        assert f'"{home}"' in adapter
        assert ("-reconnect-command" in adapter) == bool(client.reconnect)
        for event in getattr(client.hooks, "events", ()):
            assert f"({event})" in adapter


def lisp(name: str) -> str:
    """Return the text of a file of the Lisp package."""
    root = Path(__file__).parents[2]
    (file,) = root.glob(f"lisp/*/gemini-companion-{name}.el")
    return file.read_text(encoding="utf-8")


def test_a_root_with_a_separator_is_sent_where_that_is_read() -> None:
    odd = f"/a{os.pathsep}b"
    gemini, qwen, copilot, pi = (
        client.discovery(1, "token", [odd, "/c"]) for client in CLIENTS
    )
    assert copilot["workspaceFolders"] == [odd, "/c"]
    assert gemini["workspacePath"] == "/c"
    assert pi["workspacePath"] == f'["{odd}", "/c"]'
    assert qwen["workspacePath"] == f'["{odd}", "/c"]'


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (["node /usr/bin/gemini", "gemini --acp"], GEMINI),
        (["/opt/node -a --b=1 /my_bin/gemini -p a"], GEMINI),
        (["node /x/@google/gemini-cli/bundle/gemini.js"], GEMINI),
        (["qwen", "node /usr/local/bin/qwen"], QWEN),
        (["/x/node --expose-gc /x/@qwen-code/qwen-code/cli.js"], QWEN),
        (["node /x/@qwen-code/qwen-code/dist/cli.js --acp"], QWEN),
        (["/usr/bin/node /usr/bin/gemini --version"], None),
        (["node /x/@qwen-code/qwen-code/cli.js --version"], None),
        (["node /x/gemini-mcp/server.js", "node cli.js", "npm exec gemini", ""], None),
        (["emacs gemini", "bash -c gemini", "vi qwen", "vi gemini.js"], None),
    ],
)
def test_a_client_is_known_by_its_command(
    commands: list[str], expected: Client | None
) -> None:
    lists = [[word.replace("_", " ") for word in words.split()] for words in commands]
    assert {client_of(command) for command in lists} == {expected}
