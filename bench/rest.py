# SPDX-License-Identifier: GPL-3.0-or-later
"""What Emacs and the server use while nothing happens and a CLI is connected.

CPU is the time that all threads of both were on a processor, by the kernel's
own count, in a minute of which the machine has nothing else to do with us.  A
wake-up is a thread that had slept of its own will and ran again; Emacs's own
are those of an Emacs without the mode, which rests beside it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from editor import on_screen
from harness.tools import Tools
from rows import Goal, Row, row

SECONDS = 60
SETTLE = 15
BY = 15


def measure(folder: Path) -> Iterator[Row]:
    file = folder / "file.txt"
    file.write_text("a line\n" * 100)
    with on_screen(Tools.find(), file) as emacs, closing(emacs.client()):
        (server,) = emacs.scratch.servers()
        pids = [emacs.pid, server.pid]
        time.sleep(SETTLE)  # until what begins has begun
        before = [_usage(pid) for pid in pids]
        time.sleep(SECONDS)  # rest is what is measured
        after = [_usage(pid) for pid in pids]
    used = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(before, after, strict=True)]
    cpu = 100 * sum(cpu for cpu, _ in used) / SECONDS
    yield row("CPU at rest, both, %", {"ours": [cpu]}, Goal(most=0.2))
    for name, (_, wakes) in zip(("Emacs", "server"), used, strict=True):
        what = f"wake-ups at rest in {BY} s, {name}"
        yield row(what, {"ours": [wakes * BY / SECONDS]}, Goal(most=1))


def _usage(pid: int) -> tuple[float, int]:
    """Return the seconds on a processor and the wake-ups of PID's threads."""
    seconds, wakes = 0.0, 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        seconds += int((task / "schedstat").read_text().split()[0]) / 1e9
        for line in (task / "status").read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                wakes += int(line.split()[1])
    return seconds, wakes
