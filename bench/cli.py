# SPDX-License-Identifier: GPL-3.0-or-later
"""One edit, with the real Gemini CLI.

Its model is scripted; everything else is real.  Emacs is idle, so that a review
appears `when-idle`.  The first time is from when the CLI sends openDiff, reported
by a module that is loaded into it, until the review is on the screen.  The other
two are from the call of the accept command until the CLI has written the file, and
until the buffer that visits it has the new text.

The comparator is another CLI that is connected to the server of Node, which has
the same Emacs display the texts by Ediff, and keeps the buffer up to date by
`auto-revert-mode`.  The two take turns, and a CLI is idle while the other works.
The limit of the last row is the file: no buffer can be up to date before.  The goal
is relative to that: the comparator takes 5 s when it misses a notification, or 60 ms.
"""

from __future__ import annotations

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from client import BOUND, Broken, until
from editor import Editor, on_screen
from harness import gemini
from harness.emacs import lisp
from harness.gemini import Gemini
from harness.model import Model, say, write_file
from harness.tools import Tools
from rows import Goal, Row, Samples, alternate, row
from servers import Node
from texts import lines

HERE = Path(__file__).resolve().parent
ROUNDS = 7
LINES = 500
# 300 ms are hardly noticed.
ROWS = {
    "openDiff sent → review shown, ms": [Goal(times=1.5)],
    "accepted → file written, ms": [Goal(times=1.5)],
    "accepted → buffer up to date, ms": [Goal(more=300, side="limit")],
}

Edit = tuple[float, float, float]


def measure(directory: Path) -> Iterator[Row]:
    tools = Tools.find()
    with ExitStack() as stack:
        emacs = stack.enter_context(on_screen(tools, library="bench-cli"))
        gemini.configure(emacs.scratch)
        emacs.ask("(bench-review-report 'when-idle)")
        ours = Ours(tools, emacs, stack)
        node = Node(directory / "node", int(emacs.ask("(bench-listen)")))
        stack.callback(node.close)
        comparator = Comparator(tools, emacs, stack, node)
        sides = {"ours": ours.edit, "comparator": comparator.edit}
        alternate(1, **sides)
        edits = alternate(ROUNDS, **sides)
    for place, (what, goals) in enumerate(ROWS.items()):
        samples: Samples = {side: [one[place] for one in edits[side]] for side in sides}
        if place == 2:
            samples["limit"] = [one[1] for one in edits["ours"]]
        yield row(f"Gemini CLI: {what}", samples, *goals)


class Side(ABC):
    """A CLI, and the editor that shows its proposals."""

    name: str
    auto_revert = "nil"

    def __init__(self, tools: Tools, emacs: Editor, stack: ExitStack) -> None:
        self._emacs = emacs
        self._numbers = count(1)
        self._model = Model()
        stack.callback(self._model.close)
        scratch = emacs.scratch
        program = gemini.script(tools, scratch, self._model, f"cli-{self.name}")
        sent = scratch.root / f"{self.name}.sent"
        sent.touch()
        self._sent = stack.enter_context(sent.open(encoding="ascii"))
        environment = {
            **gemini.in_container(),
            "BENCH_SENT": str(sent),
            "NODE_OPTIONS": f"--require={HERE / 'node' / 'sent.cjs'}",
            **self.environment(),
        }
        terminal = emacs.tmux.start(
            self.name, [str(program)], scratch.project, environment, gemini.SIZE
        )
        self._cli = Gemini(terminal, self._model)
        self.connect()

    def environment(self) -> dict[str, str]:
        """Return the additional environment variables of this side's CLI."""
        return {}

    @abstractmethod
    def connect(self) -> None:
        """Wait until the CLI is connected."""

    @abstractmethod
    def accept(self, path: Path, text: str) -> tuple[float, float]:
        """Accept ``text`` for ``path``; return the times of the call and the write."""

    def edit(self) -> Edit:
        """Return the ms of one edit for each of ``ROWS``."""
        number = next(self._numbers)
        old = lines(LINES)
        new = [*old[: LINES // 2], f"edit {number}\n", *old[LINES // 2 :]]
        text = "".join(new)
        path = self._emacs.scratch.file(f"{self.name}-{number}.txt", "".join(old))
        self._emacs.ask(f"(bench-cli-visit {lisp(path)} {self.auto_revert})")
        self._emacs.ask("(garbage-collect)")
        self._model.script(write_file(path, text), say(f"done {number}"))
        self._cli.ask()
        shown, kind = self._emacs.reported()
        if kind != "ediff":
            raise Broken(f"no ediff is on the screen but: {kind}")
        sent = float(self._sent.readline())
        self._emacs.ask(f"(bench-cli-follow {lisp(path)} {_one_line(text)})")
        pressed, written = self.accept(path, text)
        current = float(self._emacs.reported())
        self._cli.wait_for(f"done {number}")
        return (
            1000 * float(shown) - sent,
            1000 * (written - pressed),
            1000 * (current - pressed),
        )


class Ours(Side):
    """The CLI that is connected to this package."""

    name = "ours"

    def connect(self) -> None:
        """Wait until the CLI is connected."""
        until(
            lambda: self._emacs.ask("(gemini-companion-sessions)"),
            "the CLI is connected",
        )

    def accept(self, path: Path, text: str) -> tuple[float, float]:
        """Accept ``text`` for ``path``; return the times of the call and the write."""
        self._emacs.send("(bench-review-accept)")
        written = _written(path, text)
        return float(self._emacs.answer()), written


class Comparator(Side):
    """The CLI that is connected to the server of Node."""

    name = "comparator"
    auto_revert = "t"

    def __init__(
        self, tools: Tools, emacs: Editor, stack: ExitStack, node: Node
    ) -> None:
        self._node = node
        self._tmp = emacs.scratch.root / "node"
        directory = self._tmp / "gemini" / "ide"
        directory.mkdir(parents=True, mode=0o700)
        file = directory / f"gemini-ide-server-{node.process.pid}-{node.port}.json"
        file.touch(mode=0o600)
        facts = {
            "port": node.port,
            "workspacePath": str(emacs.scratch.project),
            "authToken": node.token,
            "ideInfo": {"name": "node", "displayName": "Node"},
        }
        file.write_text(json.dumps(facts), encoding="utf-8")
        super().__init__(tools, emacs, stack)

    def environment(self) -> dict[str, str]:
        """Return the additional environment variables of this side's CLI."""
        return {"TMPDIR": str(self._tmp)}

    def connect(self) -> None:
        """Wait until the CLI is connected."""

        def is_connected() -> bool:
            self._node.send_context(__file__, 1)
            return "1 open file" in self._cli.screen()

        until(is_connected, "the CLI of the comparator is connected")

    def accept(self, path: Path, text: str) -> tuple[float, float]:
        """Accept ``text`` for ``path``; return the times of the call and the write."""
        self._emacs.ask("(bench-review-hide)")
        pressed = time.time()
        self._node.event(kind="accept", path=str(path))
        return pressed, _written(path, text)


def _written(path: Path, text: str) -> float:
    """Return the time when ``path`` had ``text``."""
    size = len(text.encode())
    deadline = time.time() + BOUND
    while time.time() < deadline:
        if os.stat(path).st_size == size and path.read_text(encoding="utf-8") == text:
            return time.time()
        time.sleep(0.0005)  # no finer than what is measured needs
    raise Broken("the CLI does not write")


def _one_line(text: str) -> str:
    """Return ``text`` as a Lisp string on one line."""
    return lisp(text).replace("\n", "\\n")
