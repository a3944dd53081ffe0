# SPDX-License-Identifier: GPL-3.0-or-later
"""From the call of `gemini-companion-mode`, in an Emacs that has just started.

Only its autoloads are loaded, as after the start of an Emacs where it is installed, and
the call loads it. No file is open. The clock stops when the call returns to the user,
and again when the discovery file is complete and its port accepts connections. A client
that connects at once waits until the imports are done, and must be answered. The
comparator is the server of Node, from the start of its process; the limit a Python that
does nothing, or, for the answer, one that imports `mcp`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

from client import BOUND, Broken, Client
from editor import Editor, on_screen
from harness.tools import Tools
from rows import Goal, Row, alternate, row
from servers import Node, client, start_of_python, wait_for_port

ROUNDS = 9
# Without what an interpreter does to end.
IMPORT = "import mcp, os; os._exit(0)"
ROWS = {
    "back to the user": Goal(times=1, side="limit"),
    "CLI can connect": Goal(times=1),
    "first answer": Goal(times=1.4, side="limit"),
}
LOAD = '(load "gemini-companion-autoloads" nil t)'


def measure(directory: Path) -> Iterator[Row]:
    numbers = count(1)
    rounds = alternate(
        ROUNDS,
        ours=_ours,
        comparator=lambda: _comparator(directory / str(next(numbers))),
        limit=lambda: [*2 * [start_of_python()], start_of_python(IMPORT)],
    )
    for place, (end, goal) in enumerate(ROWS.items()):
        sides = rounds if place else ("ours", "limit")
        samples = {side: [times[place] for times in rounds[side]] for side in sides}
        yield row(f"mode called → {end}, p10, ms", samples, goal, part=0.1)


def _ours() -> list[float]:
    """Return the ms until each of ``ROWS``."""
    with on_screen(Tools.find(), load=LOAD, mode=False) as emacs:
        if emacs.ask("(featurep 'gemini-companion)"):
            raise Broken("the package is loaded already")
        emacs.send("(bench-mode)")
        port, token = _discovered(emacs)
        accepting = wait_for_port(port)
        with closing(Client(port, token)) as our_client:
            our_client.initialize()
            answered = time.time()
        began, done = map(float, emacs.answer())
        emacs.wait_until_ready()
    return [1000 * (end - began) for end in (done, accepting, answered)]


def _comparator(directory: Path) -> list[float]:
    with closing(Node(directory)) as node, closing(client(node)) as its_client:
        its_client.initialize()
        answered = time.time()
        ends = (node.started, node.listening, answered)
        return [1000 * (end - node.started) for end in ends]


def _discovered(emacs: Editor) -> tuple[int, str]:
    """Return port and token once the discovery file is whole."""
    deadline = time.monotonic() + BOUND
    while time.monotonic() < deadline:
        for path in emacs.scratch.discovery_files():
            facts = json.loads(path.read_text(encoding="utf-8"))
            return facts["port"], facts["authToken"]
        time.sleep(0.001)  # no finer than what is measured needs
    raise Broken("no discovery file")
