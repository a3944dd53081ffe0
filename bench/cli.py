# SPDX-License-Identifier: GPL-3.0-or-later
"""One edit, with the real Gemini CLI.

Its model is scripted; everything else is real.  Emacs is idle, so that a review
appears `when-idle`.  The first time is from when the CLI sends openDiff, reported
by a module that is loaded into it, until the review is on the screen; the
comparator is Ediff alone on the same two files.  The other two are from the call of
the accept command until the CLI has written the file, of which most is the CLI's
own work, with the start of an empty Python as its limit; and until the buffer that
visits the file has the new text, with the file as its limit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from client import BOUND, Broken, until
from editor import Editor, on_screen
from harness import gemini
from harness.emacs import lisp
from harness.gemini import Gemini
from harness.model import Model, say, write_file
from harness.tools import Tools
from rows import Goal, Row, row
from servers import start_of_python
from texts import lines

HERE = Path(__file__).resolve().parent
ROUNDS = 7
LINES = 500

Edit = tuple[float, float, float, float, float]


def measure(directory: Path) -> Iterator[Row]:
    with on_screen(Tools.find(), library="bench-review") as emacs:
        cli = Cli(emacs)
        try:
            cli.edit()
            edits = [cli.edit() for _ in range(ROUNDS)]
        finally:
            cli.model.close()
    shown, alone, written, current, start = map(list, zip(*edits, strict=True))
    yield row(
        "Gemini CLI: openDiff sent → review shown, ms",
        {"ours": shown, "comparator": alone},
        Goal(more=40),
        part=0.25,
    )
    yield row(
        "Gemini CLI: accepted → file written, ms",
        {"ours": written, "limit": start},
        Goal(times=10, side="limit"),
        part=0.25,
    )
    yield row(
        "Gemini CLI: accepted → buffer up to date, ms",
        {"ours": current, "limit": written},
        Goal(more=300, side="limit"),
    )


class Cli:
    """The CLI that is connected to this package."""

    def __init__(self, emacs: Editor) -> None:
        self._emacs = emacs
        self._numbers = count(1)
        self.model = Model()
        scratch = emacs.scratch
        gemini.configure(scratch)
        emacs.ask("(bench-review-report 'when-idle)")
        program = gemini.script(Tools.find(), scratch, self.model, "cli")
        self._sent = scratch.root / "sent"
        environment = {
            **gemini.in_container(),
            "BENCH_SENT": str(self._sent),
            "NODE_OPTIONS": f"--require={HERE / 'node' / 'sent.cjs'}",
        }
        terminal = emacs.tmux.start(
            "cli", [str(program)], scratch.project, environment, gemini.SIZE
        )
        self._cli = Gemini(terminal, self.model)
        until(lambda: emacs.ask("(gemini-companion-sessions)"), "it is connected")

    def edit(self) -> Edit:
        """Return ms: shown, Ediff alone, written, in the buffer; start of a Python."""
        number = next(self._numbers)
        old = lines(LINES)
        text = "".join([*old[: LINES // 2], f"edit {number}\n", *old[LINES // 2 :]])
        path = self._emacs.scratch.file(f"{number}.txt", "".join(old))
        new = self._emacs.scratch.file(f"{number}.new", text)
        files = f"{lisp(path)} {lisp(new)}"
        alone = float(self._emacs.ask(f"(bench-review-alone {files})"))
        self._emacs.ask(f"(find-file-noselect {lisp(path)})")
        self._emacs.ask("(garbage-collect)")
        self.model.script(write_file(path, text), say(f"done {number}"))
        self._cli.ask()
        shown, kind = self._emacs.reported()
        if kind != "ediff":
            raise Broken(f"no ediff is on the screen but: {kind}")
        sent = float(self._sent.read_text(encoding="ascii").split()[-1])
        self._emacs.ask(f"(bench-review-follow {files})")
        self._emacs.send("(bench-review-accept)")
        written = _written(path, text)
        pressed = float(self._emacs.answer())
        current = float(self._emacs.reported())
        self._cli.wait_for(f"done {number}")
        return (
            1000 * float(shown) - sent,
            1000 * alone,
            1000 * (written - pressed),
            1000 * (current - pressed),
            start_of_python(),
        )


def _written(path: Path, text: str) -> float:
    """Return the time when ``path`` had ``text``."""
    size = len(text.encode())
    deadline = time.time() + BOUND
    while time.time() < deadline:
        if os.stat(path).st_size == size and path.read_text(encoding="utf-8") == text:
            return time.time()
        time.sleep(0.0005)  # no finer than what is measured needs
    raise Broken("the CLI does not write")
