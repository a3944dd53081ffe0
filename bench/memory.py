# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory at rest: all pages of the process that are in memory (RSS).

A proportional share (PSS) would depend on how many other programs of the same
kind run on the machine: each Gemini CLI is one more Node.  Both servers get the
same clients, each with its event stream; a process rests when it uses no
processor.  After each measurement, every client must still be answered.

At last a thousand clients connect and leave, one after the other.  "Flat"
compares the memory after a thousand with that after a hundred.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path

from calls import Calls
from client import Client
from rows import Goal, Row, Samples, row
from servers import Side, client, sides
from usage import memory_at_rest

SESSIONS = (1, 10, 50)
CONNECTS = (100, 1000)
FLAT = 1.1


def measure(directory: Path) -> Iterator[Row]:
    with sides(directory) as (ours, node), ExitStack() as stack:
        clients: list[Client] = []
        for number in SESSIONS:
            while len(clients) < 2 * number:
                for side in (ours, node):
                    clients.append(client(side).connect())
                    stack.callback(clients[-1].close)
            samples = {
                "ours": [memory_at_rest(ours.process)],
                "comparator": [memory_at_rest(node.process)],
            }
            for connected in clients:
                connected.check()
            sessions = "session" if number == 1 else "sessions"
            what = f"memory at rest, {number} {sessions}, MB"
            yield row(what, samples, Goal(times=1))
    with sides(directory / "connects") as (ours, node):
        yield from _connects(_growth(ours), _growth(node))
        before = memory_at_rest(ours.process)
        with closing(client(ours).connect()) as connected:
            calls = Calls(ours, connected, connected, 4_000_000)
            for _ in range(100):
                calls.ours()
        samples = {"ours": [memory_at_rest(ours.process)], "limit": [before]}
        what = "memory after 100 proposals of 4 MB (limit: before), MB"
        yield row(what, samples, Goal(times=1.2, side="limit"))


def _connects(ours: Sequence[float], node: Sequence[float]) -> Iterator[Row]:
    """Yield the rows of the memory of both after each of ``CONNECTS``."""
    first, last = CONNECTS[0], CONNECTS[-1]
    samples: Samples = {
        "ours": [ours[-1]],
        "comparator": [node[-1]],
        "limit": [ours[0]],
    }
    what = f"memory after {last} connects (limit: after {first}), MB"
    yield row(what, samples, Goal(times=1))
    yield row("the same, flat, MB", samples, Goal(times=FLAT, side="limit"))


def _growth(side: Side) -> list[float]:
    """Return the memory of ``side`` after each of ``CONNECTS``."""
    sizes = []
    for early, late in pairwise((0, *CONNECTS)):
        for _ in range(late - early):
            _connect(side)
        sizes.append(memory_at_rest(side.process))
        with closing(client(side)) as connected:
            connected.connect()
    return sizes


def _connect(side: Side) -> None:
    with closing(client(side)) as connected:
        connected.initialize()
        connected.open_stream()
