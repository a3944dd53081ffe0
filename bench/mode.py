# SPDX-License-Identifier: GPL-3.0-or-later
"""From the call of `gemini-companion-mode`, in an Emacs that has just started.

The package is loaded by then, and no file is open.  Until it returns to the
user, and until the discovery file is whole and its port accepts.  A client that
connects right then must be answered, so that nobody meets a port that refuses.
The comparator is the server of Node, from the start of its process until it
listens; the limit a Python that does nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

from client import BOUND, Broken, Client
from editor import Editor, in_background
from harness.tools import Tools
from rows import Goal, Row, Samples, row
from servers import Node, wait_for_port
from start import run

ROUNDS = 9


def measure(folder: Path) -> Iterator[Row]:
    names = count(1)
    samples: Samples = {"ours": [], "comparator": [], "limit": []}
    returns: Samples = {"ours": []}
    for _ in range(ROUNDS):
        with in_background(Tools.find(), "(require 'gemini-companion)") as emacs:
            returned, accepting = _turn_on(emacs)
        returns["ours"].append(returned)
        samples["ours"].append(accepting)
        with closing(Node(folder / str(next(names)))) as node:
            samples["comparator"].append(1000 * (node.listening - node.started))
        samples["limit"].append(1000 * run([sys.executable, "-c", "pass"]))
    yield row("mode called → back to the user, ms", returns, Goal(most=10))
    yield row("mode called → CLI can connect, ms", samples, Goal(times=1))


def _turn_on(emacs: Editor) -> tuple[float, float]:
    """Return the ms until Emacs is back, and until a CLI can connect."""
    emacs.send("(bench-mode)")
    port, token = _discovered(emacs)
    accepting = wait_for_port(port)
    with closing(Client(port, token)) as one:
        one.initialize()
    began, done = map(float, emacs.answer())
    emacs.wait_until_ready()
    return 1000 * (done - began), 1000 * (accepting - began)


def _discovered(emacs: Editor) -> tuple[int, str]:
    """Return port and token once the discovery file is whole."""
    deadline = time.monotonic() + BOUND
    while time.monotonic() < deadline:
        for path in emacs.scratch.discovery_files():
            found = json.loads(path.read_text(encoding="utf-8"))
            return found["port"], found["authToken"]
        time.sleep(0.001)  # no finer than what is measured needs
    raise Broken("no discovery file")
