# SPDX-License-Identifier: GPL-3.0-or-later
"""What one command costs while point moves in a file and a CLI is connected.

A loop moves point and runs the hooks that a command runs, with nothing in them
but our functions (taken from the hooks as the mode left them), the habit of
other companions, or an empty function.  All three loops run in one Emacs, one
after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from editor import Editor, on_screen
from harness.tools import Tools
from rows import Goal, Row, Samples, row

ROUNDS = 15
COUNT = 10_000
LINES = {"1k": 1_000, "1M": 1_000_000}


def measure(folder: Path) -> Iterator[Row]:
    for name, lines in LINES.items():
        file = folder / f"{name}.txt"
        file.write_text("a line of forty characters, more or less\n" * lines)
        with on_screen(Tools.find(), file) as emacs, closing(emacs.client()):
            times, sizes = _sample(emacs)
        what = f"by command, {name} lines"
        yield row(f"{what}, µs", times, Goal(times=1 / 8), Goal(more=2, side="limit"))
        yield row(f"{what}, bytes", sizes, Goal(most=0))


def _sample(emacs: Editor) -> tuple[Samples, Samples]:
    times: Samples = {"ours": [], "comparator": [], "limit": []}
    sizes: Samples = {"ours": [], "comparator": [], "limit": []}
    for _ in range(ROUNDS):
        for side, (time, size) in emacs.ask(f"(bench-commands {COUNT})").items():
            times[side].append(time)
            sizes[side].append(size)
    return times, sizes
