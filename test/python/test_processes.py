# SPDX-License-Identifier: GPL-3.0-or-later
import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import PIPE
from typing import Any

import psutil
import pytest

from conftest import Alone
from gemini_companion_epc import system
from gemini_companion_epc.processes import is_acp, on_exit, process_of
from gemini_companion_epc.system import is_own_peer
from gemini_companion_epc.types import Process

pytestmark = pytest.mark.system

BOUND = 120.0
IS_PORTABLE = sys.platform != "linux" or os.environ.get("GC_SYSTEM") == "portable"
CLIENT = """
import sys
from fake_cli import FakeCli
cli = FakeCli(int(sys.argv[1]), sys.argv[2])
cli.connect()
print(len(cli.ask("tools/list", {})["result"]["tools"]), flush=True)
cli.close()
"""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("node gemini --acp", True),
        ("node gemini --experimental-acp", True),
        ("node gemini --acp=true -m x", True),
        ("node gemini", False),
        ("node gemini --acpx acp", False),
        ("", False),
    ],
)
def test_an_acp_client_is_known_by_its_option(command: str, expected: bool) -> None:
    assert is_acp(command.split()) is expected


def test_the_process_of_a_connection_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), BOUND) as client:
            own = client.getsockname()[1]
            assert process_of(own, port) == Process(os.getpid(), os.getcwd())
            assert process_of(own, port + 1) is None
            assert process_of(port, own) is None
            assert is_own_peer(own, port)
        # Nothing shows whose it was.
        assert not is_own_peer(own, port)


def test_a_process_is_not_taken_for_one_that_it_has_just_started() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with socket.create_connection(address, BOUND) as client:
            # As between fork and exec.
            client.set_inheritable(True)
            command = [sys.executable, "-c", "input()"]
            with subprocess.Popen(command, stdin=PIPE, close_fds=False) as started:
                found = process_of(client.getsockname()[1], address[1])
                started.communicate(b"\n")
    assert found == Process(os.getpid(), os.getcwd())


@pytest.mark.skipif(IS_PORTABLE, reason="needs the table of Linux")
def test_a_machine_full_of_closed_connections_costs_no_memory() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        for _ in range(1000):
            with socket.create_connection(address, BOUND):
                server.accept()[0].close()
        with socket.create_connection(address, BOUND) as client:
            own = client.getsockname()[1]
            process_of(own, address[1])
            tracemalloc.start()
            try:
                process_of(own, address[1])
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
    assert peak < 200_000


@pytest.mark.parametrize(("options", "expected"), [([], 2), (["--acp"], 0)])
def test_a_cli_under_an_acp_client_is_offered_no_tools(
    serve_alone: Callable[..., Alone], options: list[str], expected: int
) -> None:
    alone = serve_alone(finds_processes=True, list_limit=BOUND)
    found = subprocess.run(
        [sys.executable, "-c", CLIENT, str(alone.port), alone.token, *options],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdout=PIPE,
        check=True,
        timeout=BOUND,
    )
    assert int(found.stdout) == expected


def test_a_long_search_delays_no_client(
    serve_alone: Callable[..., Alone], cli_of: Callable[[Any], Any]
) -> None:
    alone = serve_alone(list_limit=0.01, open_limit=0.01)
    searched = alone.slow_search()
    cli = cli_of(alone)
    cli.connect()
    assert len(cli.ask("tools/list", {})["result"]["tools"]) == 2
    cli.open_diff("/a", "x")
    assert alone.emacs.facts.process is None
    searched.set()
    alone.emacs.until(lambda emacs: len(emacs.sessions) == 2)
    cli.open_diff("/b", "x")
    assert alone.emacs.facts.process == Process(7, "/project")
    assert alone.searches == 1


@pytest.fixture
def living() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=PIPE) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("is_reaped", [True, False])
def test_the_exit_of_a_process_is_detected(
    living: "subprocess.Popen[bytes]", is_reaped: bool
) -> None:
    async def scene() -> None:
        exited = asyncio.Event()
        on_exit(living.pid, exited.set)
        await asyncio.sleep(0.05)
        assert not exited.is_set()
        living.kill()
        if is_reaped:
            living.wait()
        await asyncio.wait_for(exited.wait(), BOUND)
        living.wait()
        exited.clear()
        on_exit(living.pid, exited.set)
        await asyncio.wait_for(exited.wait(), BOUND)

    asyncio.run(scene())


NEGLIGENT_PARENT = """
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", "input()"]).pid, flush=True)
sys.stdin.read()
"""


def test_the_exit_of_a_process_that_its_parent_neglects_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waited: list[int] = []
    wait = psutil.Process.wait

    def kill_later(process: psutil.Process, timeout: float | None = None) -> object:
        waited.append(process.pid)
        if waited.count(pid) == 2:
            os.kill(pid, signal.SIGKILL)
        return wait(process, timeout)

    monkeypatch.setattr(system, "_IS_LINUX", False)
    command = [sys.executable, "-c", NEGLIGENT_PARENT]
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        monkeypatch.setattr(psutil.Process, "wait", kill_later)
        watch = threading.Thread(target=system.wait_for_exit, args=(pid,), daemon=True)
        watch.start()
        watch.join(BOUND)
        assert not watch.is_alive()
        assert psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


CLIENT_THAT_PROPOSES = """
import sys
from fake_cli import FakeCli
cli = FakeCli(int(sys.argv[1]), sys.argv[2])
cli.connect()
cli.ask("tools/list", {})
cli.open_diff("/a", "x")
print("proposed", flush=True)
input()
"""


def test_a_cli_that_is_killed_takes_its_reviews_along(
    serve_alone: Callable[..., Alone],
) -> None:
    alone = serve_alone(finds_processes=True, review_grace=BOUND, list_limit=BOUND)
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            CLIENT_THAT_PROPOSES,
            str(alone.port),
            alone.token,
            "/a",
        ],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent)},
        stdin=PIPE,
        stdout=PIPE,
    ) as cli:
        assert cli.stdout is not None
        assert cli.stdout.readline() == b"proposed\n"
        assert alone.emacs.facts.process is not None
        killed = time.monotonic()
        cli.kill()
        # Its parent has not waited for it yet.
        alone.emacs.until(lambda emacs: emacs.closed == [(1, "exited")])
        assert time.monotonic() - killed < 2
