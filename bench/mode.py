# SPDX-License-Identifier: GPL-3.0-or-later
"""From the call of `gemini-companion-mode`, in an Emacs that has just started.

The package is loaded by then; or only its autoloads are, as after the start of
an Emacs where it is installed, and the call loads it.  No file is open.  The
clock stops when the call returns to the user, and again when the discovery file
is complete and its port accepts connections.  A client that connects at once
must be answered, so that none is refused.  The comparator is the server of Node,
from the start of its process until it listens; the limit a Python that does
nothing.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path

from client import BOUND, Broken, Client
from editor import Editor, in_background
from harness.tools import Tools
from rows import Goal, Row, Samples, alternate, row
from servers import Node, wait_for_port
from start import run

ROUNDS = 9
# What Emacs loads, and whether that is the package.
STATES = {
    "mode called": ("(require 'gemini-companion)", True),
    "first call, package not loaded": (
        '(load "gemini-companion-autoloads" nil t)',
        False,
    ),
}


def measure(directory: Path) -> Iterator[Row]:
    numbers = count(1)
    for what, (load, is_loaded) in STATES.items():
        returned: Samples = {"ours": []}
        samples = alternate(
            ROUNDS,
            ours=partial(_ours, load, is_loaded, returned["ours"]),
            comparator=lambda: _comparator(directory / str(next(numbers))),
            limit=_limit,
        )
        yield row(f"{what} → back to the user, ms", returned, Goal(most=10))
        yield row(f"{what} → CLI can connect, ms", samples, Goal(times=1))


def _ours(load: str, is_loaded: bool, returned: list[float]) -> float:
    """Return the ms until a CLI can connect; add those of the call to ``returned``."""
    with in_background(Tools.find(), load) as emacs:
        if bool(emacs.ask("(featurep 'gemini-companion)")) != is_loaded:
            raise Broken(f"the package is loaded, or not, after {load}")
        emacs.send("(bench-mode)")
        port, token = _discovered(emacs)
        accepting = wait_for_port(port)
        with closing(Client(port, token)) as one:
            one.initialize()
        began, done = map(float, emacs.answer())
        emacs.wait_until_ready()
    returned.append(1000 * (done - began))
    return 1000 * (accepting - began)


def _comparator(directory: Path) -> float:
    with closing(Node(directory)) as node:
        return 1000 * (node.listening - node.started)


def _limit() -> float:
    return 1000 * run([sys.executable, "-c", "pass"])


def _discovered(emacs: Editor) -> tuple[int, str]:
    """Return port and token once the discovery file is whole."""
    deadline = time.monotonic() + BOUND
    while time.monotonic() < deadline:
        for path in emacs.scratch.discovery_files():
            found = json.loads(path.read_text(encoding="utf-8"))
            return found["port"], found["authToken"]
        time.sleep(0.001)  # no finer than what is measured needs
    raise Broken("no discovery file")
