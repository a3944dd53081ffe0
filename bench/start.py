# SPDX-License-Identifier: GPL-3.0-or-later
"""From the start of the process to the first answer to initialize.

The clock of ours runs from before the process is started until the answer is
read; the client connects as soon as the port accepts, which is before the
imports are done, and waits.  The limit is a Python that imports `mcp`, and leaves
as soon as that is done.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

from client import Client
from rows import Goal, Row, alternate, row
from servers import Node, Ours, client, free_port, wait_for_port

ROUNDS = 9
# Without what an interpreter does to end.
IMPORT = "import mcp, os; os._exit(0)"


def measure(directory: Path) -> Iterator[Row]:
    starts = Starts(directory)
    starts.ours(), starts.comparator(), starts.limit()
    samples = alternate(
        ROUNDS, ours=starts.ours, comparator=starts.comparator, limit=starts.limit
    )
    what = "process start → first initialize answered, ms"
    yield row(what, samples, Goal(times=1.2, side="limit"))


class Starts:
    """The three sides, each started again every time."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._numbers = count(1)

    def ours(self) -> float:
        port, token = free_port(), "token"
        began = time.time()
        side = Ours(self._new_directory(), port=port, token=token)
        with closing(side):
            wait_for_port(port)
            with closing(Client(port, token)) as one:
                one.initialize()
                return 1000 * (time.time() - began)

    def comparator(self) -> float:
        with closing(Node(self._new_directory())) as side, closing(client(side)) as one:
            one.initialize()
            return 1000 * (time.time() - side.started)

    def limit(self) -> float:
        return 1000 * run([sys.executable, "-c", IMPORT])

    def _new_directory(self) -> Path:
        return self._directory / str(next(self._numbers))


def run(command: list[str]) -> float:
    """Return how long ``command`` takes."""
    began = time.time()
    subprocess.run(command, check=True)
    return time.time() - began
