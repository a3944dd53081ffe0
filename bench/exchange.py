# SPDX-License-Identifier: GPL-3.0-or-later
"""The EPC wire alone, both ways, one Emacs with two wires.

At the far end of each is epc_end.py, which uses the server's own modules.  Ours
is used as the package uses it; the other, the comparator and the limit at once,
is a bare socket in the same Emacs that speaks the same protocol.  The clock
runs from the call until the other end has the text as a string; its length is
compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from client import Broken, until
from editor import Editor, in_background
from harness.emacs import lisp
from harness.tools import Tools
from rows import Goal, Row, alternate, row

HERE = Path(__file__).resolve().parent
SIZES = {"500 B": (500, 40), "16 KB": (16_000, 40), "1 MB": (1_000_000, 15)}
LARGE = 1_000_000
# Milliseconds that a small text may take.
THERE, BACK = 3, 2
KINDS = {"ours": "ours", "comparator": "bare"}


def measure(folder: Path) -> Iterator[Row]:
    tools = Tools.find()
    with in_background(tools, "(setq process-adaptive-read-buffering nil)") as emacs:
        wires = {}
        for kind in KINDS.values():
            wires[kind] = Wire(emacs, kind, folder / f"{kind}.times", tools.python)
        until(lambda: bool(emacs.ask("(bench-wire-ready)")), "both wires")
        for name, (size, rounds) in SIZES.items():
            for way, bound in (("there", THERE), ("back", BACK)):
                for wire in wires.values():
                    getattr(wire, way)(size)
                samples = alternate(
                    rounds,
                    **{
                        side: partial(getattr(wires[kind], way), size)
                        for side, kind in KINDS.items()
                    },
                )
                samples["limit"] = samples["comparator"]
                ends = "Emacs → Python" if way == "there" else "Python → Emacs"
                goal = Goal(times=1.5) if size >= LARGE else Goal(most=bound)
                yield row(f"EPC {ends}, {name}, ms", samples, goal)


class Wire:
    """One of the two wires."""

    def __init__(self, emacs: Editor, kind: str, times: Path, python: str) -> None:
        self._emacs, self._kind = emacs, kind
        times.touch()
        self._times = times.open(encoding="utf-8")
        command = [python, str(HERE / "epc_end.py")]
        shell = " ".join(map(lisp, ["env", f"BENCH_TIMES={times}", *command]))
        emacs.ask(f"(bench-wire-{kind} '({shell}))")

    def there(self, size: int) -> float:
        """Return how long a text of SIZE takes from Emacs to Python."""
        began = float(self._emacs.ask(f"(bench-send '{self._kind} {size})"))
        return 1000 * (self._noted(size) - began)

    def back(self, size: int) -> float:
        """Return how long a text of SIZE takes from Python to Emacs."""
        self._emacs.ask(f"(bench-ask '{self._kind} {size})")
        ended, length = self._emacs.told()
        if length != size:
            raise Broken(f"{length} characters came, not {size}")
        return 1000 * (float(ended) - self._noted(size))

    def _noted(self, size: int) -> float:
        line = ""

        def read() -> bool:
            nonlocal line
            line += self._times.readline()
            return line.endswith("\n")

        until(read, "a time")
        at, length = line.split()
        if int(length) != size:
            raise Broken(f"{length} characters, not {size}")
        return float(at)
