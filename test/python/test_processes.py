# SPDX-License-Identifier: GPL-3.0-or-later
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
from subprocess import PIPE
from typing import Any

import psutil
import pytest

from conftest import CliOf, ServeAlone, until
from fake_cli import BOUND
from gemini_companion_epc import system
from gemini_companion_epc.clients import client_named
from gemini_companion_epc.processes import ancestors, has_exited, process_of
from gemini_companion_epc.types import Process

HERE = Process(os.getpid(), os.getcwd())


@pytest.fixture(params=["by the kernel", "by a search"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Know connections as Linux does, then as other systems do."""
    if request.param == "by a search":
        search(monkeypatch)


def search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Search for processes, among few: looking at one takes milliseconds."""
    monkeypatch.delattr(socket, "AF_NETLINK", raising=False)

    def pids() -> list[int]:
        return [1, os.getppid(), *system.tree(os.getpid())]

    monkeypatch.setattr(psutil, "pids", pids)


def _accepted(server: socket.socket) -> tuple[str, int]:
    """Return the address of the next connection, which is closed here."""
    server.settimeout(BOUND)
    connection, (host, port) = server.accept()
    connection.close()
    return host, port


def _process_of(peer: tuple[str, int], port: int) -> Process | None:
    process = process_of(peer, port, 1)
    assert system.is_own_peer(peer, port, ()) == (process is not None)
    return process


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_process_of_a_connection_is_found(family: socket.AddressFamily) -> None:
    to = "127.0.0.1" if family == socket.AF_INET else "::ffff:127.0.0.1"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.socket(family) as client:
            client.connect((to, port))
            host, own = _accepted(server)
            assert _process_of((host, own), port) == HERE
            assert _process_of((host, own), port + 1) is None
            assert _process_of((host, port), own) is None
            # Another user may have this port at another address.
            assert _process_of(("127.0.0.2", own), port) is None
        assert _process_of((host, own), port) is None


@pytest.mark.usefixtures("way")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_connection_of_another_user_is_not_own_even_when_it_is_closed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        program = "import encodings.idna, os, socket; os.setuid(65534)" + CONNECT
        command = [sys.executable, "-c", program, str(port)]
        with subprocess.Popen(command, stdin=PIPE, stdout=PIPE) as other:
            assert other.stdin
            assert other.stdout
            peer = _accepted(server)
            assert not system.is_own_peer(peer, port, [other.pid])
            assert process_of(peer, port, os.getpid()) is None
            os.write(other.stdin.fileno(), b"\n")
            other.stdout.readline()
            assert not system.is_own_peer(peer, port, [other.pid])


CONNECT = """
import socket, sys
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))):
    input()
print(flush=True)
input()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems need a search")
def test_neither_a_request_nor_a_cli_of_this_emacs_costs_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(psutil, "pids")
    command = [sys.executable, "-c", CONNECT]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        shell = ["sh", "-c", '"$@"; true', "sh", *command, str(port)]
        with subprocess.Popen(shell, stdin=PIPE, stdout=PIPE) as started:
            peer = _accepted(server)
            assert system.is_own_peer(peer, port, ())
            process = process_of(peer, port, os.getpid())
            assert process
            assert psutil.Process(process.pid).ppid() == started.pid
            started.communicate(b"\n\n")


def test_a_process_is_found_whatever_can_be_known_of_its_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_denied(process: psutil.Process, kind: str) -> list[Any]:
        if process.pid != os.getpid():
            raise psutil.AccessDenied(process.pid)
        return connections(process, kind)

    connections = psutil.Process.net_connections
    monkeypatch.setattr(psutil.Process, "net_connections", is_denied)
    search(monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address, BOUND) as client:
            assert process_of(client.getsockname(), address[1], 1) == HERE


@pytest.mark.usefixtures("way")
def test_a_process_is_not_taken_for_one_that_it_has_just_started() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address, BOUND) as client:
            # As between fork and exec.
            client.set_inheritable(True)
            command = [sys.executable, "-c", "input()"]
            with subprocess.Popen(command, stdin=PIPE, close_fds=False) as started:
                process = process_of(client.getsockname(), address[1], os.getpid())
                started.communicate(b"\n")
    assert process == HERE


def test_a_long_search_delays_no_client(serve_alone: ServeAlone, cli_of: CliOf) -> None:
    alone = serve_alone(list_limit=0.01)
    searched = threading.Event()
    searches = []

    def find(peer: tuple[str, int]) -> Process:
        searches.append(peer)
        assert searched.wait(BOUND)
        return Process(7, "/project")

    alone.find_process = find
    cli = cli_of(alone)
    cli.connect()
    assert len(cli.ask("tools/list", {})["result"]["tools"]) == 2
    cli.open_diff("/a", "x")
    assert "pid" not in alone.emacs.facts
    searched.set()
    until(lambda: len(alone.emacs.sessions) == 2)
    cli.open_diff("/b", "x")
    assert alone.emacs.facts["pid"] == 7
    assert alone.emacs.facts["directory"] == "/project"
    assert len(searches) == 1


PARENT = """
import subprocess
print(subprocess.Popen(["sleep", "1000"]).pid, flush=True)
input()
"""


def test_the_exit_of_a_process_is_seen_before_its_parent_asks_for_it() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE) as parent:
        assert parent.stdout
        pid = int(parent.stdout.readline())
        assert not has_exited(pid)
        os.kill(pid, signal.SIGKILL)
        until(lambda: has_exited(pid))
    assert has_exited(parent.pid)


@pytest.mark.skipif(os.name == "nt", reason="needs exec -a of bash")
def test_a_cli_that_another_one_has_started_is_not_taken_for_it() -> None:
    # Gemini CLI runs itself again, and runs Qwen Code by its shell tool, whose hook is
    # started by a shell.
    hook = "read"
    chain = ("/bin/gemini", "/bin/gemini", "bash", "/bin/qwen", "bash")
    with Chain(*chain, command=hook) as pids:
        outer, inner, shell, qwen, of_hook = pids
        mine = [of_hook, qwen]
        assert ancestors(of_hook, client_named("qwen")) == mine
        assert ancestors(of_hook, client_named("gemini")) == []
        # What its own shell tool runs is of Gemini CLI, with both of its processes.
        assert ancestors(shell, client_named("gemini")) == [shell, inner, outer]
        # A program that is no known CLI may be one under another name.
        assert os.getpid() in ancestors(os.getpid(), client_named("qwen"))


class Chain:
    """Processes of Bash with ``names``, each the parent of the next."""

    def __init__(self, *names: str, command: str) -> None:
        for name in reversed(names):
            # The last command of a shell would replace it.
            quoted = shlex.quote(f"echo $$; {command}; true")
            command = f"(exec -a {name} bash -c {quoted}); true"
        self._count = len(names)
        self._process = subprocess.Popen(
            ["bash", "-c", command], stdin=PIPE, stdout=PIPE, text=True
        )

    def __enter__(self) -> list[int]:
        assert self._process.stdout
        return [int(self._process.stdout.readline()) for _ in range(self._count)]

    def __exit__(self, *_: object) -> None:
        self._process.communicate("\n", timeout=BOUND)
