# SPDX-License-Identifier: GPL-3.0-or-later
"""EPC alone, both ways, one Emacs with two connections.

At the far end of each is epc_end.py, which uses the server's own modules.  Ours
is used as the package uses it: a proposal comes into its buffer, and goes back
when it is accepted.  The other, the comparator and the limit at once, is a bare
socket in the same Emacs that speaks the same protocol.  The clock runs from the
call until the other end has the text, and that must be the text that was sent.
A tenth of its lines is not all ASCII.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from client import BOUND, Broken, until
from editor import PACKAGE, Editor, in_background
from harness.emacs import lisp
from harness.tools import Tools
from rows import Goal, Row, alternate, row
from texts import digest, of_size

from gemini_companion_epc import __version__

HERE = Path(__file__).resolve().parent
SIZES = {
    "500 B": (500, 40, Goal(most=3)),
    "16 KB": (16_000, 40, Goal(most=2)),
    "1 MB": (1_000_000, 15, Goal(times=1.5)),
}
WAYS = ("Emacs → Python", "Python → Emacs")


def measure(directory: Path) -> Iterator[Row]:
    tools = Tools.find()
    with (
        in_background(tools, "(require 'bench-exchange)") as emacs,
        ExitStack() as stack,
    ):
        ours = Connection(emacs, "ours", tools.python, stack)
        bare = Connection(emacs, "bare", tools.python, stack, __version__)
        until(lambda: bool(emacs.ask("(bench-exchange-ready-p)")), "both connections")
        for name, (size, rounds, goal) in SIZES.items():
            calls = {
                "ours": partial(ours.trips, size),
                "comparator": partial(bare.trips, size),
            }
            alternate(1, **calls)
            trips = alternate(rounds, **calls)
            for place, way in enumerate(WAYS):
                samples = {side: [one[place] for one in trips[side]] for side in trips}
                samples["limit"] = samples["comparator"]
                yield row(f"EPC {way}, {name}, ms", samples, goal)


class Connection:
    """One of the two sides, and its Python process."""

    def __init__(
        self, emacs: Editor, kind: str, python: str, stack: ExitStack, *arguments: str
    ) -> None:
        self._emacs, self._kind = emacs, kind
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(BOUND)
            port = listener.getsockname()[1]
            # The package's process runs without the directory of the program.
            path = f"PYTHONPATH={HERE}:{PACKAGE / 'python'}"
            program = str(HERE / "epc_end.py")
            command = ["env", f"BENCH_PORT={port}", path, python, program]
            words = [f"'({' '.join(map(lisp, command))})", *map(lisp, arguments)]
            emacs.ask(f"(bench-exchange-{kind} {' '.join(words)})")
            end, _ = listener.accept()
        stack.callback(end.close)
        end.settimeout(BOUND)
        self._end = stack.enter_context(end.makefile("rw", encoding="ascii"))

    def trips(self, size: int) -> tuple[float, float]:
        """Return the ms for a text of ``size`` from Emacs to Python, and back."""
        wanted = digest(of_size(size))
        self._end.write(f"{size}\n")
        self._end.flush()
        arrived, found = self._emacs.reported()
        back = float(arrived) - self._end_time(wanted)
        _check(found, wanted)
        began = float(self._emacs.ask(f"(bench-exchange-send '{self._kind})"))
        return 1000 * (self._end_time(wanted) - began), 1000 * back

    def _end_time(self, wanted: str) -> float:
        """Return the time when Python had the text with the digest ``wanted``."""
        at, found = self._end.readline().split()
        _check(found, wanted)
        return float(at)


def _check(found: str, wanted: str) -> None:
    if found != wanted:
        raise Broken("another text came than was sent")
