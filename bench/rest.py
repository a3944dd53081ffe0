# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU and wake-ups of Emacs and the server at rest, with a CLI connected.

CPU is the time that both were on a processor, by the kernel's own count, in a
minute in which nothing happens in either.  A wake-up is a
thread that had slept of its own will and ran again; those of both count.  The
CLI must be connected still when the minute is over.  The comparator is an Emacs
without the mode in the same minute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
from client import Broken
from editor import on_screen
from harness.tools import Tools
from rows import Goal, Row, Samples, row
from usage import cpu, wake_ups

SECONDS = 60
WARM_UP = 15
BY = 15

Wakes = dict[int, int]


def measure(directory: Path) -> Iterator[Row]:
    file = directory / "file.txt"
    file.write_text("a line\n" * 100)
    with ExitStack() as stack:
        emacs = stack.enter_context(on_screen(Tools.find(), file))
        stack.enter_context(closing(emacs.client()))
        plain = stack.enter_context(on_screen(Tools.find(), file, mode=False))
        pids = emacs.pid, *(server.pid for server in emacs.scratch.servers())
        all_ = [*map(psutil.Process, (*pids, plain.pid))]
        if len(all_) != 3:
            raise Broken("there is not one server")
        time.sleep(WARM_UP)  # the mode, the server and the CLI are still starting
        before = [(cpu(process), wake_ups(process)) for process in all_]
        time.sleep(SECONDS)  # the measured time
        after = [(cpu(process), wake_ups(process)) for process in all_]
        if emacs.ask("(length (gemini-companion-sessions))") != 1:
            raise Broken("the CLI is not connected any more")
    pairs = list(zip(before, after, strict=True))
    used = [100 * (late[0] - early[0]) / SECONDS for early, late in pairs]
    yield row("CPU at rest, both, %", _sides(used), Goal(more=0.2))
    wakes = [_more(early[1], late[1]) * BY / SECONDS for early, late in pairs]
    what = f"at rest in {BY} s, both, wake-ups"
    # The server comments on the stream each 30 s, and checks its files each minute, in
    # a thread, which hands the interpreter over up to six times.  A timer of 10 s
    # would be six more.
    yield row(what, _sides(wakes), Goal(more=11 * BY / SECONDS))


def _sides(figures: list[float]) -> Samples:
    return {"ours": [sum(figures[:2])], "comparator": [figures[2]]}


def _more(early: Wakes, late: Wakes) -> int:
    """Return how many wake-ups ``late`` has more than ``early``."""
    if early.keys() != late.keys():
        raise Broken("a thread began or ended, whose wake-ups are not known")
    return sum(late.values()) - sum(early.values())
