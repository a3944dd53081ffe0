# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures: a started server, and the HTTP part alone."""

import asyncio
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import settings

from endpoint import Endpoint, Loop
from fake_cli import FakeCli
from fake_emacs import PYTHON_PATH, FakeEmacs
from gemini_companion_epc.config import Config
from gemini_companion_epc.diffs import Diffs
from gemini_companion_epc.port import Port
from gemini_companion_epc.questions import Questions
from gemini_companion_epc.remote import Remotes
from gemini_companion_epc.server import load_http
from gemini_companion_epc.sessions import Sessions
from gemini_companion_epc.types import CloseReason, Diff, EmacsGone, Facts, Process

Result = TypeVar("Result")

Start = Callable[..., FakeEmacs]
CliOf = Callable[[Any], FakeCli]

# A seed that fails is printed; nothing is written into the checkout.
settings.register_profile("tests", database=None, deadline=None, print_blob=True)
settings.load_profile("tests")

BOUND = 120.0
FUZZ_INPUTS = int(os.environ.get("GC_FUZZ") or 1000)
FUZZ_SEED = int(os.environ.get("GC_FUZZ_SEED") or random.randrange(2**32))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"fuzz: {FUZZ_INPUTS} inputs, GC_FUZZ_SEED={FUZZ_SEED}")


@pytest.fixture(autouse=True)
def private_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for name in ("QWEN_HOME", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[FakeEmacs] = []
    numbers = itertools.count(1)

    def start(is_connected: bool = True, **line: Any) -> FakeEmacs:
        tmp = line.pop("tmp", None) or tmp_path / f"emacs-{next(numbers)}"
        emacs = FakeEmacs(tmp, **line)
        started.append(emacs)
        return emacs.connect() if is_connected else emacs

    yield start
    for emacs in started:
        emacs.close()
        log = "".join(emacs.log)
        assert "Traceback" not in log, log


@pytest.fixture
def cli_of() -> Iterator[CliOf]:
    """A function that returns a CLI of a started server or of `alone`."""
    made: list[FakeCli] = []

    def cli_of(server: Any) -> FakeCli:
        cli = FakeCli(server.port, server.token)
        made.append(cli)
        return cli

    yield cli_of
    for cli in made:
        cli.close()


@pytest.fixture
def rig() -> Iterator[Endpoint]:
    """The EPC endpoint alone."""
    rig = Endpoint()
    yield rig
    rig.close()


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


async def never(*_: object) -> Any:
    await asyncio.Event().wait()


async def nothing() -> None:
    """Do nothing."""


class StubEmacs:
    """An Emacs that only records the calls."""

    def __init__(self) -> None:
        self.opened: list[Diff] = []
        self.closed: list[tuple[int, CloseReason]] = []
        self.sessions: list[list[str]] = []
        self.reported: defaultdict[str, list[int]] = defaultdict(list)
        self.written = self.reported["outcome-written"]
        self.undelivered = self.reported["outcome-undelivered"]
        self.acknowledged = self.reported["diff-opened"]
        self.warnings: list[str] = []
        self.texts: dict[int, str | None] = {}
        self.asked: list[tuple[str, Any, Sequence[str | None]]] = []
        self.on_question: Callable[[str, Any], Awaitable[Any]] = never
        self.is_gone = self.is_silent = False
        self.before_answer: Callable[[int], None] = lambda diff_id: None
        self.before_opening: Callable[[], Awaitable[object]] = nothing

    async def open_diff(self, diff: Diff, session: Facts) -> None:
        self.facts = session
        self.opened.append(diff)
        await self.before_opening()

    async def close_diff(self, diff_id: int, reason: CloseReason) -> str | None:
        self.closed.append((diff_id, reason))
        if self.is_gone:
            raise EmacsGone("gone")
        if self.is_silent:
            await never()
        self.before_answer(diff_id)
        return self.texts.get(diff_id)

    async def ask(self, kind: str, facts: Facts, texts: Sequence[str | None]) -> Facts:
        self.asked.append((kind, facts, texts))
        return dict(await self.on_question(kind, facts))

    def report(self, name: str, fact: Any) -> None:
        if name == "sessions-update":
            self.sessions.append([session["id"] for session in fact])
        else:
            self.reported[name].append(fact)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


class Alone(Loop):
    """The HTTP part on a real socket in a thread, with a stub for Emacs."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.token = config.token
        self.emacs = StubEmacs()
        self.searches = 0
        self.find_process: Callable[[Any], Process | None] = lambda peer: None
        self._http_port = Port(0)
        self._http_port.listen()
        self.port = self._http_port.number
        self.sessions = Sessions(
            config,
            lambda peer: self.find_process(peer),
            self.emacs.report,
        )
        self.remote_facts: list[dict[str, Any]] = []
        self.remotes = Remotes(self.port, self.remote_facts.append)
        self.sessions.remote_name = self.remotes.remote_name
        self.diffs = Diffs(config, self.sessions, self.emacs, self.remotes)
        self.questions = Questions(config, self.emacs.ask)
        self.questions.roots = ["/"]
        # Importing it may take longer than a bridge waits.
        serve = load_http()

        async def run() -> None:
            parts = self.sessions, self.diffs, self.questions, self.remotes
            await serve(config, self._http_port, *parts)

        self._served = self.start(run())

    def slow_search(self) -> threading.Event:
        """Delay the search for a process until the event is set."""
        searched = threading.Event()

        def find(peer: tuple[str, int]) -> Process:
            self.searches += 1
            assert searched.wait(BOUND)
            return Process(7, "/project")

        self.find_process = find
        return searched

    def stop(self) -> None:
        async def end() -> None:
            await self.remotes.stop_all()
            await self.sessions.end_streams()

        self.run(end())
        self._served.cancel()
        self.end()


ServeAlone = Callable[..., Alone]


@pytest.fixture
def serve_alone() -> Iterator[ServeAlone]:
    served: list[Alone] = []

    def serve(**fields: Any) -> Alone:
        fields = {"secret": "s", "emacs_pid": os.getpid(), **fields}
        served.append(Alone(Config(**fields)))
        return served[-1]

    yield serve
    for alone in served:
        alone.stop()


@pytest.fixture
def alone(serve_alone: ServeAlone) -> Alone:
    return serve_alone()


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
