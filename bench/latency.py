# SPDX-License-Identifier: GPL-3.0-or-later
"""From a moved point to a client that has parsed `ide/contextUpdate`.

Emacs gets the key C-f as if it was typed; the clock starts when the command is
done and before our hook runs.  The comparator reads a line in its file.
Both wait until nothing has changed for 50 ms, which is included; on the whole none
may come earlier.  A single one may: Emacs sends the context at once when the server
reports a client, and on a busy machine it does that late.  Each column that point
reaches must be reported.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, count, islice
from pathlib import Path
from statistics import median

from client import Broken, Client, until
from editor import Editor, on_screen
from harness.tools import Tools
from rows import Goal, Row, alternate, row
from servers import Node, client, file_of

ROUNDS = 6
MOVES = 20
PAUSE = 0.15
# The least and the most that half of the contexts may take.
EARLY, LATE = 49, 70
CONNECTED = (
    "(and (seq-some #'gemini-companion-session-pid (gemini-companion-sessions))"
    " (gemini-companion-idle-p) t)"
)
# Another task in the way takes 0.3 ms more, so two are too many.  The slowest answers
# depend on the other programs, for both; a wait for a timer doubles them.
ROWS = {"p10": (0.1, Goal(more=0.5)), "p95": (0.95, Goal(times=2))}


def measure(directory: Path) -> Iterator[Row]:
    file = directory / "file.txt"
    file.write_text(("x" * 1000 + "\n") * 1000)
    with ExitStack() as stack:
        emacs = stack.enter_context(on_screen(Tools.find(), file))
        node = Node(directory / "node")
        stack.callback(node.close)
        our_client, other_client = emacs.client(), client(node).connect()
        stack.callback(our_client.close)
        stack.callback(other_client.close)
        _next(our_client)  # each new event stream begins with a context
        # Emacs may send it again when the server reports the client or its process.
        until(lambda: emacs.ask(CONNECTED), "Emacs knows the client")
        places = count(1)
        rounds = alternate(
            ROUNDS,
            ours=lambda: _ours(emacs, our_client),
            comparator=lambda: _comparator(node, other_client, places, file),
        )
    samples = {side: list(chain(*each)) for side, each in rounds.items()}
    if median(samples["comparator"]) > LATE:
        raise Broken("the comparator waits longer")
    if min(map(median, samples.values())) < EARLY:
        raise Broken("contexts come too early")
    for name, (part, goal) in ROWS.items():
        what = f"point moved → context at the client, {name}, ms"
        yield row(what, samples, goal, part=part)


def _ours(emacs: Editor, our_client: Client) -> list[float]:
    arrived = {}
    for _ in range(MOVES):
        emacs.ask("(bench-move)")
        column, at = _next(our_client)
        arrived[column] = at
        time.sleep(PAUSE)  # until the debounce of this move is over
    moved = dict(emacs.ask("(bench-moves)"))
    if moved.keys() != arrived.keys() or len(moved) != MOVES:
        raise Broken(f"moved to {sorted(moved)}, reported {sorted(arrived)}")
    return [1000 * (arrived[place] - moved[place]) for place in moved]


def _comparator(
    node: Node, other_client: Client, places: Iterator[int], file: Path
) -> list[float]:
    took = []
    for place in islice(places, MOVES):
        entry = file_of(str(file), 1)
        entry["cursor"]["character"] = place
        began = time.time()
        node.event(kind="moved", files=[entry])
        column, at = _next(other_client)
        if column != place:
            raise Broken(f"the comparator reports {column} instead of {place}")
        took.append(1000 * (at - began))
        time.sleep(PAUSE)  # until the debounce of this move is over
    return took


def _next(receiver: Client) -> tuple[int, float]:
    """Return the column of the next context that has one, and when it came."""
    column = receiver.cursor()["character"]
    return column, time.time()
