# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU, wake-ups and memory of a process; one that has ended is an error."""

from __future__ import annotations

import time
from pathlib import Path

import psutil
from client import BOUND, Broken

# The part of the time in which an idle process may use the processor.
STILL = 0.5
PART = 0.002


def cpu(process: psutil.Process) -> float:
    """Return the seconds that ``process`` was on a processor, all its threads.

    Threads that have ended count too.
    """
    _check(process)
    # As clock_getcpuclockid does in C.
    return time.clock_gettime(~process.pid << 3 | 2)


def wake_ups(process: psutil.Process) -> dict[int, int]:
    """Return how often each thread of ``process`` went to sleep voluntarily."""
    _check(process)
    return {
        int(task.name): _slept(task)
        for task in Path(f"/proc/{process.pid}/task").iterdir()
    }


def _slept(task: Path) -> int:
    for line in (task / "status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "voluntary_ctxt_switches":
            return int(value)
    raise Broken("this system does not count when threads sleep")


def memory_at_rest(process: psutil.Process) -> float:
    """Return the memory of ``process`` in MB (RSS), once it uses no processor."""
    _wait_for_rest(process)
    size = process.memory_info().rss
    if not size:
        raise Broken(f"process {process.pid} has no memory")
    return float(size) / 1e6


def _wait_for_rest(process: psutil.Process) -> None:
    deadline = time.monotonic() + BOUND
    used = cpu(process)
    while time.monotonic() < deadline:
        time.sleep(STILL)  # that nothing happens meanwhile is the question
        before, used = used, cpu(process)
        if used - before <= PART * STILL:
            return
    raise Broken(f"process {process.pid} does not rest")


def _check(process: psutil.Process) -> None:
    if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
        raise Broken(f"process {process.pid} has ended")
