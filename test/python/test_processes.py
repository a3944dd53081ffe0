# SPDX-License-Identifier: GPL-3.0-or-later
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE
from typing import Any

import psutil
import pytest

from conftest import CliOf, ServeAlone, until
from gemini_companion_epc import system
from gemini_companion_epc.processes import has_exited, process_of
from gemini_companion_epc.types import Process

BOUND = 120.0


def test_the_process_of_a_connection_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), BOUND) as client:
            host, own = client.getsockname()
            assert process_of((host, own), port) == Process(os.getpid(), os.getcwd())
            assert process_of((host, own), port + 1) is None
            assert process_of((host, port), own) is None
            # Another user may have this port at another address.
            assert process_of(("127.0.0.2", own), port) is None
        assert process_of((host, own), port) is None


def test_a_process_is_found_whatever_can_be_known_of_its_parents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def is_denied(process: psutil.Process, kind: str) -> list[Any]:
        if process.pid != os.getpid():
            raise psutil.AccessDenied(process.pid)
        return connections(process, kind)

    connections = psutil.Process.net_connections
    monkeypatch.setattr(psutil.Process, "net_connections", is_denied)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address, BOUND) as client:
            found = system.peer_process(client.getsockname(), address[1])
            assert found == psutil.Process()


def test_a_process_is_not_taken_for_one_that_it_has_just_started() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address, BOUND) as client:
            # As between fork and exec.
            client.set_inheritable(True)
            command = [sys.executable, "-c", "input()"]
            with subprocess.Popen(command, stdin=PIPE, close_fds=False) as started:
                found = process_of(client.getsockname(), address[1])
                started.communicate(b"\n")
    assert found == Process(os.getpid(), os.getcwd())


def test_a_long_search_delays_no_client(serve_alone: ServeAlone, cli_of: CliOf) -> None:
    alone = serve_alone(list_limit=0.01)
    searched = alone.slow_search()
    cli = cli_of(alone)
    cli.connect()
    assert len(cli.ask("tools/list", {})["result"]["tools"]) == 2
    cli.open_diff("/a", "x")
    assert "pid" not in alone.emacs.facts
    searched.set()
    alone.emacs.until(lambda emacs: len(emacs.sessions) == 2)
    cli.open_diff("/b", "x")
    assert alone.emacs.facts["pid"] == 7
    assert alone.emacs.facts["directory"] == "/project"
    assert alone.searches == 1


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


CLIENT = """
import sys
from fake_cli import FakeCli
cli = FakeCli(int(sys.argv[1]), sys.argv[2])
cli.connect()
# Wait until its process is found.
tools = cli.ask("tools/list", {})["result"]["tools"]
cli.open_diff("/a", "x")
print(len(tools), flush=True)
input()
"""


@pytest.mark.parametrize(("options", "tools"), [([], 2), (["--acp"], 0)])
def test_the_process_of_a_cli_decides_on_its_tools_and_its_reviews(
    serve_alone: ServeAlone, options: list[str], tools: int
) -> None:
    alone = serve_alone(finds_processes=True, session_grace=BOUND, list_limit=BOUND)
    with subprocess.Popen(
        [sys.executable, "-c", CLIENT, str(alone.port), alone.token, *options],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdin=PIPE,
        stdout=PIPE,
    ) as cli:
        assert cli.stdout is not None
        assert int(cli.stdout.readline()) == tools
        assert "pid" in alone.emacs.facts
        cli.kill()
        alone.emacs.until(lambda emacs: [why for _, why in emacs.closed] == ["exited"])
