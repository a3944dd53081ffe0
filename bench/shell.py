# SPDX-License-Identifier: GPL-3.0-or-later
"""The hooks around a command of a CLI, by which what it writes is seen.

A pair of hooks runs as a CLI runs them, around a command that writes nothing, in a
repository of 500, of 10,000 and of 80,000 files.  The server's share of one of the two
snapshots, with the git that it starts, is compared with `git status` there, both in
processor time.  What a CLI waits for the pair is compared with two of these and two
starts of an empty hook.  Then the memory of the server is compared with that after 200
calls that each change a file of 20 kB.

Then a command changes 20 files of 16 kB, half of which are visited; the longest time
for which Emacs runs no timer is the figure, without garbage collection.  Another one
changes 300 files, which an undo gives their texts again, or 30.

At last 80,000 files are ignored: as one directory, or in directories that also have
files of the repository, so that each one is listed before a command.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from asked import BRIDGE, OPTIONS, START, TRIVIAL
from client import Broken, until
from editor import Editor, on_screen
from harness.tools import Tools
from rows import Goal, Row, Samples, alternate, row
from usage import memory_at_rest

ROUNDS = 15
FILES = (500, 10_000, 80_000)
# A repository in which a pair takes a second.
MANY = 80_000
IGNORED = 80_000
CALLS = 200
LONGEST_BLOCK = 20
LINE = "a line of text in a file\n"
# The time between two runs of a timer of 1 ms, with the time that it takes itself.
BLOCKED = """
(progn (defvar bench-longest 0) (defvar bench-last (float-time))
 (setq bench-longest 0 bench-last (float-time)
       gc-cons-threshold most-positive-fixnum)
 (defun bench-tick ()
  (setq bench-longest (max bench-longest (- (float-time) bench-last)))
  (run-at-time 0.001 nil #'bench-tick)
  (setq bench-last (float-time)))
 (cancel-function-timers #'bench-tick) (bench-tick) t)
"""
LAST = "(gemini-companion-edit-file (car (last (gemini-companion-edits))))"
UNDONE = 300
# How many files of the last command are not undone, nil unless they are one row.
LEFT = """
(let ((edit (car (last (gemini-companion-edits)))))
 (and (gemini-companion-unmarked-p edit)
      (length (gemini-companion-undo-several-left edit))))
"""
UNDO = """
(cl-letf (((symbol-function 'gemini-companion-choice-key) (lambda (&rest _) ?y)))
 (gemini-companion-undo-edits (last (gemini-companion-edits)))
 t)
"""


def measure(directory: Path) -> Iterator[Row]:
    for number in FILES:
        root = directory / str(number)
        repository(root, number)
        with on_screen(Tools.find(), root / "d0" / "f0.txt") as emacs:
            emacs.wait_until_ready()
            emacs.ask(" ".join(START.split()))
            hooks = Hooks(emacs, root)
            yield from _pair(hooks, number)
            if number == FILES[0]:
                yield from _memory(hooks)
                yield _block(hooks)
                yield _undo(hooks)
    for name in "node_modules", "*.o":
        root = directory / name
        repository(root, IGNORED // 100, 1)
        ignore(root, name)
        with on_screen(Tools.find(), root / "d0" / "f0.txt") as emacs:
            emacs.wait_until_ready()
            emacs.ask(" ".join(START.split()))
            what = f"{IGNORED:,} ignored files in {name}".replace(" in *", " *")
            yield from _pair(Hooks(emacs, root), MANY, what)


def repository(root: Path, number: int, together: int = 100) -> None:
    """Make a repository with ``number`` files, ``together`` in each directory."""
    for index in range(number):
        file = root / f"d{index // together}" / f"f{index % together}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{index}\n{LINE * 40}")
    identity = "-c", "user.name=a", "-c", "user.email=a@b"
    for arguments in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        command = ["git", *identity, "-C", str(root), *arguments]
        subprocess.run(command, check=True)


def ignore(root: Path, name: str) -> None:
    """Make files in ``root`` that the pattern ``name`` ignores."""
    (root / ".gitignore").write_text(f"{name}\n")
    for index in range(IGNORED):
        above = root if name.startswith("*") else root / name
        file = above / f"d{index // 100}" / f"f{index % 100}.o"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


class Hooks:
    """The hooks of Gemini CLI around a command, in ``root``."""

    def __init__(self, emacs: Editor, root: Path) -> None:
        self.emacs, self.root = emacs, root
        processes = psutil.Process(emacs.pid).children(recursive=True)
        (self.server,) = (
            each for each in processes if "gemini_companion_epc" in each.cmdline()
        )

    def run(self, event: str, option: str) -> None:
        given = {
            "hook_event_name": event,
            "session_id": "s",
            "cwd": str(self.root),
            "tool_name": "run_shell_command",
            "tool_input": {"command": "make"},
        }
        bridge = self.emacs.scratch.home / BRIDGE
        self._python(given, *OPTIONS, bridge, "gemini", option)

    def pair(self) -> float:
        """Return the seconds of both hooks."""
        began = time.monotonic()
        self.run("BeforeTool", "--call")
        self.run("AfterTool", "--hook")
        return time.monotonic() - began

    def plain(self) -> float:
        """Return the seconds of two `git status` and two empty hooks."""
        began = time.monotonic()
        for _ in range(2):
            self.status()
            self._python({}, "-c", TRIVIAL)
        return time.monotonic() - began

    def status(self) -> None:
        command = ["git", "--no-optional-locks", "-C", str(self.root), "status", "-s"]
        subprocess.run(command, check=True, capture_output=True)

    def _python(self, event: dict[str, Any], *program: object) -> None:
        subprocess.run(
            [Tools.find().python, *map(str, program)],
            cwd=self.root,
            env=self.emacs.scratch.environment,
            input=json.dumps(event).encode(),
            capture_output=True,
            check=True,
        )


def _used(process: psutil.Process) -> float:
    """Return the processor time of ``process`` and of its programs that have ended."""
    return float(sum(process.cpu_times()[:4]))


def _pair(hooks: Hooks, number: int, files: str = "") -> Iterator[Row]:
    files = files or f"{number:,} files"
    this = psutil.Process()

    def server() -> float:
        before = _used(hooks.server)
        hooks.pair()
        # One of the two snapshots.
        return 1000 * (_used(hooks.server) - before) / 2

    def status() -> float:
        before = _used(this)
        # The clock of the processor has steps of 10 ms.
        for _ in range(10):
            hooks.status()
        return 1000 * (_used(this) - before) / 10

    def some_pairs() -> float:
        count = 5 if number >= MANY else 10
        return sum(server() for _ in range(count)) / count

    hooks.pair()
    what = f"server's share of a snapshot, {files}, CPU, ms"
    samples = alternate(3, ours=some_pairs, comparator=status)
    # A request of a hook takes the server some ms, whatever the tree.
    goal = Goal(times=2) if number > 1_000 else Goal(more=8)
    # git itself takes 2.6 times as long as git status to list each ignored file.
    yield row(what, samples, Goal(times=3.5) if "*" in files else goal)
    samples = alternate(
        ROUNDS // 3 if number >= MANY else ROUNDS,
        ours=lambda: 1000 * hooks.pair(),
        comparator=lambda: 1000 * hooks.plain(),
    )
    what = f"hooks around a command, {files}, p25, ms"
    yield row(what, samples, Goal(times=2), part=0.25)


def _memory(hooks: Hooks) -> Iterator[Row]:
    file = hooks.root / "d0" / "f1.txt"

    def calls(number: int) -> float:
        for index in range(number):
            hooks.run("BeforeTool", "--call")
            file.write_text(f"{index}\n{LINE * 800}")
            hooks.run("AfterTool", "--hook")
        return memory_at_rest(hooks.server)

    before = calls(20)
    samples: Samples = {"ours": [calls(CALLS)], "limit": [before]}
    what = f"memory after {CALLS} commands (limit: after 20), MB"
    yield row(what, samples, Goal(times=1.1, side="limit"))


def _block(hooks: Hooks) -> Row:
    times = [_longest(hooks, hooks.root / f"d{index}") for index in (1, 2, 3)]
    samples: Samples = {"ours": times, "limit": [LONGEST_BLOCK]}
    what = "Emacs blocked by 20 files of a command (limit: the goal), ms"
    return row(what, samples, Goal(times=1, side="limit"), part=0.1)


def _longest(hooks: Hooks, directory: Path) -> float:
    """Return the ms for which a command in ``directory`` blocks Emacs."""
    # In the order of git.
    files = sorted(directory / f"f{index}.txt" for index in range(20))
    visits = " ".join(f'(find-file-noselect "{file}")' for file in files[::2])
    hooks.emacs.ask(f"(progn {visits} t)")
    hooks.run("BeforeTool", "--call")
    for file in files:
        file.write_text(file.read_text() + LINE * 600)
    hooks.emacs.ask(" ".join(BLOCKED.split()))
    hooks.run("AfterTool", "--hook")
    until(lambda: hooks.emacs.ask(LAST) == str(files[-1]), "the files are recorded")
    time.sleep(1)  # until buffers are reverted and drawn
    longest = float(hooks.emacs.ask('(format "%f" bench-longest)'))
    if not longest:
        raise Broken("the timer of Emacs did not run")
    return 1000 * longest


def _undo(hooks: Hooks) -> Row:
    samples = alternate(
        ROUNDS // 3,
        ours=lambda: _undone(hooks, UNDONE),
        comparator=lambda: _undone(hooks, UNDONE // 10),
    )
    what = f"{UNDONE} files of a command undone (comparator: {UNDONE // 10}), p25, ms"
    return row(what, samples, Goal(times=16), part=0.25)


def _undone(hooks: Hooks, number: int) -> float:
    """Return the ms in which ``number`` files of a command are undone."""
    files = sorted(hooks.root.glob("d*/*.txt"))[-number:]
    texts = [file.read_text() for file in files]
    # Until Emacs has checked what the last undo has written.
    hooks.pair()
    hooks.pair()
    hooks.run("BeforeTool", "--call")
    # Two commands that write the same are one.
    new = f"{time.monotonic_ns()}\n"
    for file, text in zip(files, texts, strict=True):
        file.write_text(text + new)
    hooks.run("AfterTool", "--hook")
    left = " ".join(LEFT.split())
    until(lambda: hooks.emacs.ask(left) == number, "the files are recorded")
    began = time.monotonic()
    hooks.emacs.ask(" ".join(UNDO.split()))
    until(lambda: hooks.emacs.ask(left) == 0, "the files are undone")
    took = time.monotonic() - began
    if [file.read_text() for file in files] != texts:
        raise Broken("files have another text after the undo")
    return 1000 * took
