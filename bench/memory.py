# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory at rest: all pages of the process that are in memory (RSS).

A share of the shared ones (PSS) would tell how many other programs of the same
kind run on the machine: each Gemini CLI is one more Node.  Both servers get the
same clients, each with its event stream.  At last a thousand clients connect
and leave, one after the other; "flat" compares the memory after a thousand with
that after a hundred.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
from client import Client
from rows import Goal, Row, row
from servers import Side, client, sides

SESSIONS = (1, 10, 50)
CONNECTS = 1000
WARM = 100
FLAT = 1.1
SAMPLES = 5


def measure(folder: Path) -> Iterator[Row]:
    with sides(folder) as (ours, node), ExitStack() as stack:
        clients: list[Client] = []
        for number in SESSIONS:
            while len(clients) < 2 * number:
                for side in (ours, node):
                    clients.append(client(side).connect())
                    stack.callback(clients[-1].close)
            sessions = "session" if number == 1 else "sessions"
            yield _row(f"memory at rest, {number} {sessions}, MB", ours, node)
    with sides(folder / "connects") as (ours, node):
        samples: dict[str, list[float]] = {}
        for name, side in (("ours", ours), ("comparator", node)):
            _connect(side, WARM)
            samples["limit" if name == "ours" else "before"] = _memory(side)
            _connect(side, CONNECTS - WARM)
            samples[name] = _memory(side)
        del samples["before"]
        what = f"memory after {CONNECTS} connects (limit: after {WARM}), MB"
        yield row(what, samples, Goal(times=1))
        yield row("the same, flat, MB", samples, Goal(times=FLAT, side="limit"))


def _connect(side: Side, count: int) -> None:
    for _ in range(count):
        one = client(side)
        one.initialize()
        one.open_stream()
        one.close()


def _row(what: str, ours: Side, node: Side) -> Row:
    samples = {"ours": _memory(ours), "comparator": _memory(node)}
    return row(what, samples, Goal(times=1))


def _memory(side: Side) -> list[float]:
    """Return some samples of the memory of SIDE in MB, once it rests."""
    time.sleep(1)  # what is freed late is to be free
    samples = []
    for _ in range(SAMPLES):
        samples.append(_rss(side.process))
        time.sleep(0.1)  # samples of different moments
    return samples


def _rss(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 1e6
