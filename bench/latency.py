# SPDX-License-Identifier: GPL-3.0-or-later
"""From a moved point to a client that has parsed `ide/contextUpdate`.

Emacs gets the key C-f as if it was typed; the clock starts when the command is
done and before our hook runs.  The comparator is told by a line in its file.
Both wait 50 ms for quiet, which is taken off.  Each column that point comes to
must be told, or there is no figure.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from client import Broken, Client
from editor import Editor, on_screen
from harness.tools import Tools
from rows import Goal, Row, Samples, row
from servers import Echo, Node, client, echo, file_of

ROUNDS = 6
MOVES = 20
PAUSE = 0.15
DEBOUNCE = 50
REQUEST, EVENT = 200, 300


def measure(folder: Path) -> Iterator[Row]:
    file = folder / "file.txt"
    file.write_text(("x" * 1000 + "\n") * 1000)
    with ExitStack() as stack:
        emacs = stack.enter_context(on_screen(Tools.find(), file))
        limit = stack.enter_context(echo())
        node = Node(folder / "node")
        stack.callback(node.close)
        one, two = emacs.client(), client(node).connect()
        stack.callback(one.close)
        stack.callback(two.close)
        _next(one)  # the one of each new event stream
        samples: Samples = {"ours": [], "comparator": [], "limit": []}
        for number in range(ROUNDS):
            samples["ours"] += _ours(emacs, one)
            samples["comparator"] += _comparator(node, two, number, file)
            samples["limit"] += _limit(limit)
    what = "point moved → context at the client, ms"
    yield row(f"{what}, p50", samples, Goal(most=2), Goal(times=1))
    yield row(f"{what}, p95", samples, Goal(most=4), Goal(times=1), at=0.95)


def _ours(emacs: Editor, one: Client) -> list[float]:
    arrived = {}
    for _ in range(MOVES):
        emacs.ask("(bench-move)")
        column, at = _next(one)
        arrived[column] = at
        time.sleep(PAUSE)  # until the debounce of this move is over
    moved = dict(emacs.ask("(bench-moves)"))
    if moved.keys() != arrived.keys() or len(moved) != MOVES:
        raise Broken(f"moved to {sorted(moved)}, told of {sorted(arrived)}")
    return [1000 * (arrived[place] - moved[place]) - DEBOUNCE for place in moved]


def _comparator(node: Node, two: Client, number: int, file: Path) -> list[float]:
    took = []
    for place in range(1 + MOVES * number, 1 + MOVES * (number + 1)):
        entry = file_of(str(file), 1)
        entry["cursor"]["character"] = place
        began = time.time()
        node.event(kind="moved", files=[entry])
        column, at = _next(two)
        if column != place:
            raise Broken(f"the comparator tells {column} in place of {place}")
        took.append(1000 * (at - began) - DEBOUNCE)
        time.sleep(PAUSE)  # until the debounce of this move is over
    return took


def _limit(limit: Echo) -> list[float]:
    return [1000 * limit.trip(REQUEST, EVENT) for _ in range(MOVES)]


def _next(one: Client) -> tuple[int, float]:
    """Return the column of the next context that has one, and when it came."""
    column = one.cursor()["character"]
    return column, time.time()
