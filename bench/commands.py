# SPDX-License-Identifier: GPL-3.0-or-later
"""What one command costs while point moves in a file and a CLI is connected.

A loop moves point, at the end of the file, and runs the hooks that a command
runs, with nothing in them but our functions (taken from the hooks as the mode
left them), the habit of other companions, or an empty function.  The three take
turns in one Emacs.  Commands come in quick succession, so that a timer waits
since the first of them; or each after a pause, so that none waits and one is
made, which is to cost no more than the habit does each time.

After each loop a timer must wait (but for the empty function), and at last the
CLI must be told where our commands have led.  Of the bytes the most of all
rounds counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from client import Client, until
from editor import Editor, on_screen
from harness.tools import Tools
from rows import Goal, Row, Samples, alternate, row
from texts import lines

ROUNDS = 15
COUNT = 10_000
SIDES = ("ours", "comparator", "limit")
LINES = {"1k": 1_000, "1M": 1_000_000}


def measure(folder: Path) -> Iterator[Row]:
    for name, count in LINES.items():
        file = folder / f"{name}.txt"
        file.write_text("".join(lines(count)), encoding="utf-8")
        editor = on_screen(Tools.find(), file, room="bench-commands")
        with editor as emacs, closing(emacs.client()) as one:
            times, sizes = _samples(emacs, "nil")
            what = f"by command, {name} lines"
            yield row(
                f"{what}, µs", times, Goal(times=1 / 8), Goal(more=2, side="limit")
            )
            yield row(f"{what}, bytes", sizes, Goal(most=0))
            times, sizes = _samples(emacs, "t")
            what = f"by command after a pause, {name} lines"
            yield row(f"{what}, µs", times, Goal(times=1.25))
            yield row(f"{what}, bytes", sizes, Goal(times=1))
            _check(emacs, one)


def _samples(emacs: Editor, pause: str) -> tuple[Samples, Samples]:
    """Return the times, and the most bytes, with a PAUSE, Lisp, before each command."""
    sizes: Samples = {side: [] for side in SIDES}

    def run(side: str) -> float:
        form = f"(bench-commands-run '{side} {COUNT} {pause})"
        time, size = map(float, emacs.ask(form))
        sizes[side].append(size)
        return time

    times = alternate(ROUNDS, **{side: partial(run, side) for side in SIDES})
    return times, {side: [max(values)] for side, values in sizes.items()}


def _check(emacs: Editor, one: Client) -> None:
    """Have a few commands done, and wait until ONE is told where point is."""
    emacs.ask("(bench-commands-run 'ours 10 nil)")
    line, character = emacs.ask("(bench-commands-place)")
    until(
        lambda: one.cursor() == {"line": line, "character": character},
        "the CLI is told where point is",
    )
