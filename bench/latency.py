# SPDX-License-Identifier: GPL-3.0-or-later
"""From a moved point to a client that has parsed `ide/contextUpdate`.

Emacs gets the key C-f as if it was typed; the clock starts when the command is
done and before our hook runs.  The comparator reads a line in its file.
Both wait until nothing has changed for 50 ms, which is subtracted.  Each column
that point reaches must be reported.  The figures are the medians of the rounds,
each with its own p50 and p95.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from statistics import median

from client import Broken, Client, until
from editor import Editor, on_screen
from harness.tools import Tools
from rows import Goal, Row, alternate, quantile, row
from servers import Node, client, echo, file_of

ROUNDS = 6
MOVES = 20
PAUSE = 0.15
DEBOUNCE = 50
# By how much a report may be too early, and by how much the comparator may be late
# before it has not waited for 50 ms but for more.
EARLY, LATE = 1, 20
REQUEST, EVENT = 200, 300
CONNECTED = (
    "(and (plist-get (car (gemini-companion-sessions)) :pid)"
    " (gemini-companion-idle-p) t)"
)


def measure(directory: Path) -> Iterator[Row]:
    file = directory / "file.txt"
    file.write_text(("x" * 1000 + "\n") * 1000)
    with ExitStack() as stack:
        emacs = stack.enter_context(on_screen(Tools.find(), file))
        limit = stack.enter_context(echo())
        node = Node(directory / "node")
        stack.callback(node.close)
        one, two = emacs.client(), client(node).connect()
        stack.callback(one.close)
        stack.callback(two.close)
        _next(one)  # the one of each new event stream
        # Emacs may send it again when the server reports the client or its process.
        until(lambda: emacs.ask(CONNECTED), "Emacs knows the client")
        places = count(1)
        rounds = alternate(
            ROUNDS,
            ours=lambda: _ours(emacs, one),
            comparator=lambda: _comparator(node, two, places, file),
            limit=lambda: [1000 * limit.trip(REQUEST, EVENT) for _ in range(MOVES)],
        )
    if median(map(median, rounds["comparator"])) > LATE:
        raise Broken("the comparator waits longer")
    for name, at, most, more in (("p50", 0.5, 2, 0.2), ("p95", 0.95, 4, 1)):
        samples = {
            side: [quantile(times, at) for times in each]
            for side, each in rounds.items()
        }
        what = f"point moved → context at the client, {name}, ms"
        yield row(what, samples, Goal(most=most), Goal(more=more))


def _ours(emacs: Editor, one: Client) -> list[float]:
    arrived = {}
    for _ in range(MOVES):
        emacs.ask("(bench-move)")
        column, at = _next(one)
        arrived[column] = at
        time.sleep(PAUSE)  # until the debounce of this move is over
    moved = dict(emacs.ask("(bench-moves)"))
    if moved.keys() != arrived.keys() or len(moved) != MOVES:
        raise Broken(f"moved to {sorted(moved)}, reported {sorted(arrived)}")
    return [_delay(moved[place], arrived[place]) for place in moved]


def _comparator(
    node: Node, two: Client, places: Iterator[int], file: Path
) -> list[float]:
    took = []
    for place in islice(places, MOVES):
        entry = file_of(str(file), 1)
        entry["cursor"]["character"] = place
        began = time.time()
        node.event(kind="moved", files=[entry])
        column, at = _next(two)
        if column != place:
            raise Broken(f"the comparator reports {column} instead of {place}")
        took.append(_delay(began, at))
        time.sleep(PAUSE)  # until the debounce of this move is over
    return took


def _delay(moved: float, reported: float) -> float:
    """Return the ms from ``moved`` to ``reported`` without the debounce."""
    delay = 1000 * (reported - moved) - DEBOUNCE
    if delay < -EARLY:
        raise Broken(f"reported {-delay:.1f} ms too early")
    return delay


def _next(one: Client) -> tuple[int, float]:
    """Return the column of the next context that has one, and when it came."""
    column = one.cursor()["character"]
    return column, time.time()
