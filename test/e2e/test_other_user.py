# SPDX-License-Identifier: GPL-3.0-or-later
"""Another user of the machine gets no data, and cannot replace the server."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from harness.remote import Host
from harness.remote import why_not as why_no_host
from harness.scratch import Scratch
from harness.wait import eventually
from harness.world import World
from test_restart import has_followed, hold_next

NOBODY = "65534"
PYTHON = os.path.realpath(sys.executable)
NOBODYS = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
AS_NOBODY = (*NOBODYS, PYTHON, "-I", "-c")

# Linux lets a socket share a port only with sockets of the same user.
BIND = """
import socket, sys
for host in ("127.0.0.1", "0.0.0.0"):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            one.bind((host, int(sys.argv[1])))
            one.listen()
            print("bound", host)
        except OSError as error:
            print(error.strerror)
"""

SQUAT = """
import socket, sys, time
print("up", flush=True)
while True:
    try:
        one = socket.create_server(("127.0.0.1", int(sys.argv[1])))
        break
    except OSError:
        time.sleep(0.001)  # until the port is free
while True:
    peer, _ = one.accept()
    for line in peer.recv(65536).decode().splitlines():
        if line.lower().startswith("authorization:"):
            print(line.split()[-1], flush=True)
            if sys.argv[2] == "leaves":
                sys.exit()
    peer.close()
"""

ASK = """
import http.client, sys
port, token = int(sys.argv[1]), sys.argv[2]
connection = http.client.HTTPConnection("127.0.0.1", port)
connection.request("GET", "/mcp", headers={"Authorization": "Bearer " + token})
print(connection.getresponse().status)
"""


def as_nobody(code: str, *arguments: object) -> bytes:
    return subprocess.run(
        [*AS_NOBODY, code, *map(str, arguments)], capture_output=True, check=True
    ).stdout


def read_by_nobody(*paths: Path) -> bytes:
    """Return what another user can read of the files below ``paths``."""
    command = [*NOBODYS, "find", *paths, "-type", "f", "-exec", "cat", "{}", "+"]
    return subprocess.run(command, check=False, capture_output=True).stdout


def why_not() -> str:
    """Return why no program can run as another user, or an empty string."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "only root on Linux can run a program as another user"
    if shutil.which("setpriv") is None:
        return "setpriv is not installed"
    if subprocess.run([*AS_NOBODY, ""], check=False, capture_output=True).returncode:
        return f"another user cannot run {PYTHON}"
    return ""


REASON = why_not()
pytestmark = [
    pytest.mark.skipif(bool(REASON), reason=REASON),
    pytest.mark.shared("other-user"),
]


@pytest.fixture(autouse=True)
def public_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the world in a directory that other users can read."""
    monkeypatch.setattr(tempfile, "tempdir", "/tmp")


def discovered(scratch: Scratch) -> dict[str, Any]:
    eventually(lambda: len(scratch.discovery_files()) == 1, "a server is named")
    facts: dict[str, Any] = json.loads(scratch.discovery_files()[0].read_text())
    return facts


def let_others_in(scratch: Scratch) -> None:
    """Give the directories of ``scratch`` the usual modes."""
    scratch.root.chmod(0o755)
    scratch.home.chmod(0o755)
    scratch.tmp.chmod(0o1777)


def test_token_log_and_port_are_private(world: World) -> None:
    let_others_in(world.scratch)
    world.pair(world.file("a.txt"))
    paths_read = [world.home, world.scratch.tmp]
    for process in world.scratch.processes():
        proc = Path(f"/proc/{process.pid}")
        paths_read += [proc / "cmdline", proc / "environ"]
    (world.scratch.tmp / "public").write_text("readable by all")

    printed = read_by_nobody(*paths_read)
    log = next(world.home.rglob("server.log")).read_text()
    bound = as_nobody(BIND, discovered(world.scratch)["port"]).decode()

    assert bound.splitlines() == ["Address already in use"] * 2
    assert b"readable by all" in printed
    assert b"gemini_companion_epc" in printed  # the command lines are public
    assert discovered(world.scratch)["authToken"].encode() not in printed
    assert b"GEMINI_CLI_IDE_PID" not in printed
    assert log.splitlines()[0].encode() not in printed


@pytest.mark.fresh
def test_an_outpost_answers_its_user_only(world: World) -> None:
    if reason := why_no_host():
        pytest.skip(reason)
    far = Host(world.scratch, "far")
    emacs = world.emacs(extra=far.init)
    far.visit(emacs, far.file("a.txt"))
    far.connect(emacs)
    (file,) = far.discovery_files("gemini")
    facts = json.loads(file.read_text())
    let_others_in(world.scratch)
    for directory in (far.root, far.home):
        directory.chmod(0o755)
    far.tmp.chmod(0o1777)
    (far.tmp / "public").write_text("readable by all")
    (outpost,) = world.scratch.processes("Buffer.from(process.argv[1]")
    proc = Path(f"/proc/{outpost.pid}")

    printed = read_by_nobody(far.home, far.tmp, proc / "cmdline", proc / "environ")
    bound = as_nobody(BIND, facts["port"]).decode()
    # The token of this host is worth nothing there.
    token = discovered(world.scratch)["authToken"]
    status = as_nobody(ASK, facts["port"], token).decode().strip()
    emacs.quit()
    far.close()

    assert b"readable by all" in printed
    assert facts["authToken"].encode() not in printed
    assert bound.splitlines() == ["Address already in use"] * 2
    assert status == "401"


@pytest.mark.parametrize("then", ["stays", "leaves"])
def test_token_sent_to_a_lost_port_is_worthless(world: World, then: str) -> None:
    emacs, _, cli = world.pair(world.file("a.txt"))
    lost = discovered(world.scratch)
    go = world.scratch.root / "go"
    go.unlink(missing_ok=True)
    hold_next(emacs, go)
    (server,) = world.scratch.servers()

    with subprocess.Popen(
        [*AS_NOBODY, SQUAT, str(lost["port"]), then], stdout=subprocess.PIPE
    ) as squatter:
        try:
            # The CLI sends its token again only for 2.5 seconds.
            assert squatter.stdout is not None
            assert squatter.stdout.readline() == b"up\n"
            os.kill(server.pid, signal.SIGKILL)
            stolen = squatter.stdout.readline().decode().strip()
            if then == "leaves":
                squatter.wait()
            go.touch()
            has_followed(server, emacs, world.scratch)
            facts = discovered(world.scratch)
            status = as_nobody(ASK, facts["port"], stolen).decode().strip()
            cli.enable()
        finally:
            squatter.kill()

    assert stolen == lost["authToken"]
    assert status == "401"
    assert (facts["port"] == lost["port"]) == (then == "leaves")
