# SPDX-License-Identifier: GPL-3.0-or-later
"""A large desktop: how long Emacs handles no keys, and why.

A real Emacs with 1,000 files of 50 projects, one of which has 100,000 files; 300
other processes; two scripted CLIs with turns of 60 edits, one of which proposes all of
a turn at once.  See desktop.el for the user, and for what is counted.
"""

import json
import sys
import threading
import time
from itertools import chain
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen

import crowd
from editor import PACKAGE, build
from files import project
from harness.emacs import Emacs, lisp
from harness.scratch import Scratch
from harness.terminal import Tmux
from harness.tools import Tools

from fake_cli import Events, FakeCli

HERE = Path(__file__).resolve().parent
PROJECTS, BUFFERS = 50, 1_000
FILES = 100_000
PROCESSES = 300
EDITS = 60
# A turn begins with an edit that arrives a minute after the last one.
BETWEEN = 61
OLD = "".join(f"line {number}\n" for number in range(400))


class Cli:
    """A CLI with turns of edits, in a thread."""

    def __init__(self, fake: FakeCli, directory: Path, is_eager: bool) -> None:
        self._fake = fake
        self._files = [directory / f"{number}.txt" for number in range(EDITS)]
        self._is_eager = is_eager
        self._stop = threading.Event()
        self._turns = 0
        self.written = 0
        self.problems: list[str] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """End after the edits of the turn."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            events = self._fake.connect()
            while not self._stop.is_set():
                self._turns += 1
                at_once = EDITS if self._is_eager else 1
                for start in range(0, EDITS, at_once):
                    files = self._files[start : start + at_once]
                    for file in files:
                        self._fake.open_diff(str(file), self._text())
                    self._write(events, len(files))
                    if self._stop.is_set():
                        break
                self._stop.wait(BETWEEN)
        except Exception as error:
            self.problems.append(f"a CLI has failed: {error!r}")

    def _text(self) -> str:
        lines = OLD.splitlines(keepends=True)
        lines[::20] = [f"turn {self._turns}, {line}" for line in lines[::20]]
        return "".join(lines)

    def _write(self, events: Events, count: int) -> None:
        """Write the files of the next ``count`` edits that are accepted."""
        while count:
            event = events.next()
            if event["method"] == "ide/diffAccepted":
                params = event["params"]
                Path(params["filePath"]).write_text(params["content"])
                self.written += 1
                count -= 1


def run(seconds: float) -> list[str]:
    """Run the desktop for ``seconds``, print its table, and return the problems."""
    tools = Tools.find()
    build(tools)
    scratch = Scratch(tools)
    tmux = Tmux(scratch)
    command = [sys.executable, crowd.__file__, str(PROCESSES), "0"]
    try:
        with Popen(command, stdin=PIPE, stdout=PIPE) as others:
            assert others.stdout
            others.stdout.readline()
            _make_files(scratch)
            setup = f"(load {lisp(HERE / 'desktop.el')})"
            emacs = Emacs(tools, scratch, tmux, root=PACKAGE, extra=setup)
            return _run(emacs, scratch, seconds)
    finally:
        tmux.close()
        scratch.kill()
        scratch.remove()


def _make_files(scratch: Scratch) -> None:
    project(scratch.project, FILES)
    for number in range(BUFFERS):
        directory = f"p{number % PROJECTS}"
        scratch.file(f"{directory}/{number}.txt", OLD)
        (scratch.project / directory / ".git").mkdir(exist_ok=True)


def _run(emacs: Emacs, scratch: Scratch, seconds: float) -> list[str]:
    visited = emacs.value(f"(desktop-visit {lisp(scratch.project)})")
    (path,) = scratch.discovery_files()
    facts = json.loads(path.read_text(encoding="utf-8"))
    clis = []
    for number in range(2):
        directory = scratch.project / f"cli{number}"
        for edit in range(EDITS):
            scratch.file(f"{directory.name}/{edit}.txt", OLD)
        fake = FakeCli(facts["port"], facts["authToken"])
        clis.append(Cli(fake, directory, bool(number)))
    emacs.eval("(desktop-start)")
    time.sleep(seconds)  # the gaps in this time are what is measured
    emacs.eval("(desktop-stop)")
    edits = sum(cli.written for cli in clis)
    keys, gaps = emacs.value("(vector desktop-keys desktop-gaps)")
    print(f"desktop: {visited} buffers, {keys} keys, {edits} edits, {seconds:.0f} s")
    print(_table(gaps or []))
    emacs.eval("(progn (desktop-answer-all) nil)")
    for cli in clis:
        cli.stop()
    problems = emacs.value("desktop-problems") or []
    emacs.quit()
    return [*map(str, problems), *chain(*(cli.problems for cli in clis))]


def _table(gaps: list[tuple[str, float]]) -> str:
    """Return how many gaps each name has, and how long they are."""
    by_name: dict[str, list[float]] = {}
    for name, ms in gaps:
        by_name.setdefault(name, []).append(ms)
    lines = [
        f"{len(gaps)} gaps above 50 ms: count; median and longest in ms, without the"
        " time of other programs"
    ]
    for name, times in sorted(by_name.items(), key=lambda item: -sum(item[1])):
        middle, most = median(times), max(times)
        lines.append(f"{len(times):7d} {middle:7.0f} {most:7.0f}  {name}")
    return "\n".join(lines)
