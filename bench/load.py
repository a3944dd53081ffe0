# SPDX-License-Identifier: GPL-3.0-or-later
"""Fifty sessions, and a context twenty times a second.

Latency is from the moment at which the side gets the change (ours by a call over
EPC, the comparator by a line in its file) until one of the clients has parsed the
notification; CPU is what the server used, by notification.  The sides take
turns.  A client that misses a context is an error: nothing may be lost.
"""

from __future__ import annotations

import selectors
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

from client import Broken, Client
from rows import Goal, Row, alternate, quantile, row
from servers import Side, client, sides
from usage import cpu

SESSIONS = 50
RATE = 20
CONTEXTS = 60
ROUNDS = 5


def measure(directory: Path) -> Iterator[Row]:
    with sides(directory) as (ours, node), ExitStack() as stack:
        loads = {"ours": Load(ours, stack), "comparator": Load(node, stack)}
        figures = alternate(ROUNDS, **{name: loads[name].run for name in loads})
    for place, what in enumerate(("latency p50", "latency p99", "CPU by message")):
        samples = {
            name: [each[place] for each in rounds] for name, rounds in figures.items()
        }
        yield row(f"{SESSIONS} sessions, {RATE}/s: {what}, ms", samples, Goal(times=1))


class Load:
    """One side and its clients."""

    def __init__(self, side: Side, stack: ExitStack) -> None:
        self._side = side
        self._selector = selectors.DefaultSelector()
        stack.callback(self._selector.close)
        for _ in range(SESSIONS):
            one = client(side).connect()
            stack.callback(one.close)
            self._selector.register(one.stream, selectors.EVENT_READ, one)
        self._reported: list[float] = []
        self._firsts = count(1000, 1000)
        self.run()

    def run(self) -> list[float]:
        """Send the contexts of a round; return p50, p99 and CPU in ms."""
        self._reported = []
        first = next(self._firsts)
        before = cpu(self._side.process)
        feeder = threading.Thread(target=self._feed, args=(first,))
        feeder.start()
        latencies = self._read(first)
        feeder.join()
        used = cpu(self._side.process) - before
        return [
            quantile(latencies, 0.5),
            quantile(latencies, 0.99),
            1000 * used / len(latencies),
        ]

    def _feed(self, first: int) -> None:
        for number in range(CONTEXTS):
            began = time.time()
            self._reported.append(began)
            self._side.send_context(__file__, first + number)
            time.sleep(max(0.0, began + 1 / RATE - time.time()))  # the rate is the load

    def _read(self, first: int) -> list[float]:
        wanted = {id(key.data): CONTEXTS for key in self._selector.get_map().values()}
        latencies = []
        deadline = time.time() + 3 * CONTEXTS / RATE + 10
        while any(wanted.values()):
            if time.time() > deadline:
                raise Broken(f"{sum(wanted.values())} contexts were lost")
            for key, _ in self._selector.select(1):
                for stamp, at in _stamps(key.data):
                    if stamp >= first:
                        latencies.append(1000 * (at - self._reported[stamp - first]))
                        wanted[id(key.data)] -= 1
        return latencies


def _stamps(one: Client) -> Iterator[tuple[int, float]]:
    """Yield the timestamps of the contexts that have arrived, and the time."""
    while True:
        event = one.events.event()
        files = event.get("params", {}).get("workspaceState", {}).get("openFiles")
        if files:
            yield files[0]["timestamp"], time.time()
        if not one.events.has_event:
            return
