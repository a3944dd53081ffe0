# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: a started server, and the HTTP part alone."""

import ctypes
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from endpoint import Endpoint, Loop
from fake_cli import BOUND, FakeCli
from fake_emacs import PYTHON_PATH, FakeEmacs
from gemini_companion_epc.linked import Linked
from gemini_companion_epc.port import Port
from gemini_companion_epc.server import load_http
from gemini_companion_epc.types import Facts
from scene import Rig

Start = Callable[..., FakeEmacs]
CliOf = Callable[[Any], FakeCli]

# A seed that fails is printed; nothing is written into the checkout.
settings.register_profile("tests", database=None, deadline=None, print_blob=True)
settings.load_profile("tests")

FUZZ_INPUTS = int(os.environ.get("GC_FUZZ") or 300)
FUZZ_SEED = int(os.environ.get("GC_FUZZ_SEED") or random.randrange(2**32))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"fuzz: {FUZZ_INPUTS} inputs, GC_FUZZ_SEED={FUZZ_SEED}")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture(autouse=True)
def private_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in ("QWEN_HOME", "COPILOT_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.delenv(name, raising=False)
    # As the server does.
    os.umask(0o077)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[FakeEmacs] = []
    numbers = itertools.count(1)

    def start(is_connected: bool = True, **line: Any) -> FakeEmacs:
        tmp = line.pop("tmp", None) or tmp_path / f"emacs-{next(numbers)}"
        emacs = FakeEmacs(tmp, **{"forked": True, **line})
        started.append(emacs)
        return emacs.connect() if is_connected else emacs

    yield start
    for emacs in started:
        emacs.close()
        log = "".join(emacs.log)
        assert "Traceback" not in log, log


@pytest.fixture
def dead_mount(tmp_path: Path) -> Iterator[Path]:
    """The directory of a file system that does not answer, as that of a lost server."""
    path = tmp_path / "dead"
    path.mkdir()
    try:
        fuse = os.open("/dev/fuse", os.O_RDWR)
    except OSError:
        pytest.skip("needs Linux, root and /dev/fuse")
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None)
    if libc.mount(b"dead", bytes(path), b"fuse", 0, options):
        os.close(fuse)
        pytest.skip("file systems cannot be mounted")
    yield path
    # All calls that wait now fail.
    os.close(fuse)
    libc.umount2(bytes(path), 2)


@pytest.fixture
def cli_of() -> Iterator[CliOf]:
    made: list[FakeCli] = []

    def cli_of(server: Any) -> FakeCli:
        cli = FakeCli(server.port, server.token)
        made.append(cli)
        return cli

    yield cli_of
    for cli in made:
        cli.close()


@pytest.fixture
def epc() -> Iterator[Endpoint]:
    epc = Endpoint()
    yield epc
    epc.close()


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < end, "the condition was not met in time"
        threading.Event().wait(0.005)


def dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def run_python(*args: str) -> "subprocess.CompletedProcess[str]":
    """Run Python, which finds the package, with ``args`` and garbage as its input."""
    return subprocess.run(
        [sys.executable, *args],
        env={**os.environ, "PYTHONPATH": PYTHON_PATH},
        input="\0\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=BOUND,
    )


class Alone(Loop, Rig):
    """The HTTP part on a real socket in a thread, with a stub for Emacs."""

    def __init__(self, **fields: Any) -> None:
        Loop.__init__(self)
        port = Port(0)
        port.listen()
        self._listener = port.listener
        self.port = port.number
        Rig.__init__(self, self.port, **fields)
        self.token = self.config.token
        self.linked = Linked(self.config, self.emacs, self.sessions.set_directory)
        self.linked.roots = ["/"]
        # Importing it may take longer than a bridge waits.
        serve = load_http()

        async def run() -> None:
            await serve(
                self.config, port, self.sessions, self.diffs, self.hosts, self.linked
            )

        self._served = self.start(run())

    def answer(self, facts: Facts) -> None:
        """Turn the questions on, and answer each with ``facts``."""

        async def on_question() -> Facts:
            return facts

        self.linked.turn(True)
        self.emacs.on_question = on_question

    def stop(self) -> None:
        async def end() -> None:
            await self.hosts.stop_all()
            await self.sessions.end_streams()

        self.run(end())
        self._served.cancel()
        self.end()
        # A short test may end before the server has taken it.
        self._listener.close()


ServeAlone = Callable[..., Alone]


@pytest.fixture
def serve_alone() -> Iterator[ServeAlone]:
    served: list[Alone] = []

    def serve(**fields: Any) -> Alone:
        served.append(Alone(**fields))
        return served[-1]

    yield serve
    for alone in served:
        alone.stop()


@pytest.fixture
def alone(serve_alone: ServeAlone) -> Alone:
    return serve_alone()


@pytest.fixture
def cli(alone: Alone, cli_of: CliOf) -> FakeCli:
    return cli_of(alone)


def edit(file: str, **display: Any) -> dict[str, Any]:
    """Return what Gemini CLI sends to a hook after it has written ``file``."""
    texts = {"filePath": file, "originalContent": "old", "newContent": "new"}
    return {
        "hook_event_name": "AfterTool",
        "cwd": "/",
        "tool_name": "write_file",
        "tool_input": {"file_path": file},
        "tool_response": {"returnDisplay": {**texts, **display}},
    }
