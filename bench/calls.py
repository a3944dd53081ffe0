# SPDX-License-Identifier: GPL-3.0-or-later
"""Time from sending openDiff to its answer.

The same bytes go to our server and to the comparator.  Each side must have received
the whole text: ours passes it on to Emacs, the comparator returns it for closeDiff.
A tenth of its lines contains non-ASCII characters.  Our server closes the connection
after each answer, so a call includes connecting, which takes 0.4 ms.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

from client import Broken, Client, result
from rows import Goal, Row, alternate, row
from servers import Ours, client, sides
from texts import of_size

# Ours answers when Emacs has the text, the comparator when it has read it.  What that
# takes grows as the comparator does on a slow or busy machine.
SIZES = {
    "500 B, p10": (500, 100, Goal(times=2.4), 0.1),
    "1 MB, p10": (1_000_000, 21, Goal(times=2.6), 0.1),
}


def measure(directory: Path) -> Iterator[Row]:
    with (
        sides(directory) as (ours, node),
        closing(client(ours).connect()) as our_client,
        closing(client(node).connect()) as other_client,
    ):
        for name, (size, rounds, goal, part) in SIZES.items():
            calls = Calls(ours, our_client, other_client, size)
            calls.ours(), calls.comparator()
            samples = alternate(rounds, ours=calls.ours, comparator=calls.comparator)
            yield row(f"tools/call {name}, ms", samples, goal, part=part)


class Calls:
    """The two sides for one size."""

    def __init__(
        self, ours: Ours, our_client: Client, other_client: Client, size: int
    ) -> None:
        self._emacs = ours.emacs
        self._ours, self._other = our_client, other_client
        self._text = of_size(size)
        self._numbers = count(1)
        self._emacs.epc.answers["close-diff"] = lambda *_: []

    def ours(self) -> float:
        path, took = self._open(self._ours)
        got = received(self._emacs.expect("open-diff")[3])
        self._ours.send(self._ours.call("closeDiff", filePath=path))
        if got != self._text:
            raise Broken("our server lost some of the text")
        return took

    def comparator(self) -> float:
        path, took = self._open(self._other)
        if self._other.close_diff(path) != self._text:
            raise Broken("the comparator lost some of the text")
        return took

    def _open(self, side: Client) -> tuple[str, float]:
        path = f"/tmp/calls/{next(self._numbers)}.txt"
        request = side.call("openDiff", filePath=path, newContent=self._text)
        began = time.perf_counter()
        answer = side.send(request)
        took = time.perf_counter() - began
        result(*answer)
        return path, 1000 * took


def received(text: Any) -> str:
    """Return ``text`` as it is sent to Emacs: a large one is in a file."""
    if isinstance(text, str):
        return text
    path = text[1]
    with open(path, encoding="utf-8") as file:
        content = file.read()
    os.remove(path)
    return content
