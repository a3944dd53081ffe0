# SPDX-License-Identifier: GPL-3.0-or-later
"""The EPC wire alone, both ways, one Emacs with two wires.

At the far end of each is epc_end.py, which uses the server's own modules.  Ours
is used as the package uses it; the other, the comparator and the limit at once,
is a bare socket in the same Emacs that speaks the same protocol.  The clock
runs from the call until the other end has the text as a string, and that must
be the text that was sent.  A tenth of its lines is not all ASCII.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from client import Broken, until
from editor import Editor, in_background
from harness.emacs import lisp
from harness.tools import Tools
from rows import Goal, Row, alternate, row
from texts import digest, of_size

HERE = Path(__file__).resolve().parent
SIZES = {
    "500 B": (500, 40, Goal(most=3)),
    "16 KB": (16_000, 40, Goal(most=2)),
    "1 MB": (1_000_000, 15, Goal(times=1.5)),
}
WAYS = {"there": "Emacs → Python", "back": "Python → Emacs"}
KINDS = {"ours": "ours", "comparator": "bare"}


def measure(folder: Path) -> Iterator[Row]:
    tools = Tools.find()
    with in_background(tools, "(require 'bench-exchange)") as emacs:
        wires = {}
        for side, kind in KINDS.items():
            wires[side] = Wire(emacs, kind, folder / f"{kind}.times", tools.python)
        until(lambda: bool(emacs.ask("(bench-exchange-ready)")), "both wires")
        for name, (size, rounds, goal) in SIZES.items():
            text = Text.make(folder, size)
            for way, ends in WAYS.items():
                calls = {
                    side: partial(getattr(wire, way), text)
                    for side, wire in wires.items()
                }
                alternate(1, **calls)
                samples = alternate(rounds, **calls)
                samples["limit"] = samples["comparator"]
                yield row(f"EPC {ends}, {name}, ms", samples, goal)


@dataclass(frozen=True)
class Text:
    """What is sent, which both ends can make."""

    size: int
    file: Path
    digest: str

    @classmethod
    def make(cls, folder: Path, size: int) -> Text:
        """Return one of SIZE bytes, and write it to a file in FOLDER."""
        text = of_size(size)
        file = folder / f"{size}.txt"
        file.write_text(text, encoding="utf-8")
        return cls(size, file, digest(text))

    def check(self, found: str) -> None:
        """Make sure that FOUND is the digest of this text."""
        if found != self.digest:
            raise Broken(f"another text came than that of {self.size} bytes")


class Wire:
    """One of the two wires."""

    def __init__(self, emacs: Editor, kind: str, times: Path, python: str) -> None:
        self._emacs, self._kind = emacs, kind
        times.touch()
        self._times = times.open(encoding="utf-8")
        command = [python, str(HERE / "epc_end.py")]
        shell = " ".join(map(lisp, ["env", f"BENCH_TIMES={times}", *command]))
        emacs.ask(f"(bench-exchange-{kind} '({shell}))")

    def there(self, text: Text) -> float:
        """Return how long TEXT takes from Emacs to Python."""
        form = f"(bench-exchange-send '{self._kind} {lisp(text.file)})"
        began = float(self._emacs.ask(form))
        return 1000 * (self._noted(text) - began)

    def back(self, text: Text) -> float:
        """Return how long TEXT takes from Python to Emacs."""
        self._emacs.ask(f"(bench-exchange-ask '{self._kind} {text.size})")
        ended, found = self._emacs.told()
        text.check(found)
        return 1000 * (float(ended) - self._noted(text))

    def _noted(self, text: Text) -> float:
        line = ""

        def read() -> bool:
            nonlocal line
            line += self._times.readline()
            return line.endswith("\n")

        until(read, "a time")
        at, found = line.split()
        text.check(found)
        return float(at)
