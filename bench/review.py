# SPDX-License-Identifier: GPL-3.0-or-later
"""From openDiff to the review on the screen, and from accepting to the client.

An Emacs in a terminal shows reviews at once; the clock starts before the first
byte of openDiff is sent, and stops when Emacs has redisplayed.  In turn with
that, the same Emacs shows the same two texts with `ediff-buffers` alone, which
is the comparator and the limit at once.

When a clock has stopped, the windows must show the differences.

The review is then accepted, 1 KB to 1 MB; the clock runs from the call of the
command until the client has parsed the notification, whose text must be the
proposal's.  The comparator sends the same text, on a line in its file;
the limit is the same number of bytes over the loopback interface.

A tenth of the lines of all these texts is not all ASCII.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from client import Broken, Client, result
from editor import Editor, on_screen
from harness.emacs import lisp
from harness.tools import Tools
from rows import Goal, Row, alternate, row
from servers import Echo, Node, client, echo
from texts import LINE, lines

LINES = {
    "1k lines": (1_000, 9),
    "10k lines": (10_000, 15),
    "100k lines": (100_000, 7),
}
CHANGES = {"100 B": 100, "1 MB": 1_000_000}
# Small texts are compared by the ms that are added, as a ratio of two such times
# varies from run to run by more than what a regression adds: a ms or more.
ACCEPTED = {
    "1 KB, p10": (1_000 // LINE, 51, Goal(more=1.3), 0.1),
    "16 KB, p10": (16_000 // LINE, 51, Goal(more=1.8), 0.1),
    # Emacs and the server each have a copy of the text; the comparator has one.
    "1 MB, p10": (1_000_000 // LINE, 21, Goal(times=3.3), 0.1),
}


def measure(directory: Path) -> Iterator[Row]:
    with ExitStack() as stack:
        emacs = stack.enter_context(on_screen(Tools.find(), library="bench-review"))
        one = emacs.client()
        stack.callback(one.close)
        emacs.ask("(bench-review-report 'now)")
        for name, (count, rounds) in LINES.items():
            for change, size in CHANGES.items():
                pair = Pair(directory, count, size)
                goal = _goal(count, size)
                yield _shown(f"{name}, {change}", pair, emacs, one, rounds, goal)
        node = Node(directory / "node")
        stack.callback(node.close)
        two = client(node).connect()
        stack.callback(two.close)
        limit = stack.enter_context(echo())
        for size_name, (count, rounds, goal, part) in ACCEPTED.items():
            pair = Pair(directory, count, 100)
            accept = accepting(pair, emacs, one, node, two, limit)
            samples = alternate(rounds, **accept)
            what = f"accepted → at the client, {size_name}, ms"
            yield row(what, samples, goal, part=part)


def _goal(count: int, size: int) -> Goal:
    """Return the goal of a review of ``count`` lines that changes ``size`` bytes."""
    # What is added to Ediff alone does not depend on the texts if they are small, but
    # with two copies of 360 kB, Emacs collects garbage once more, for 17 ms.
    if count * LINE + size < 1_000_000:
        return Goal(more=15 if count < 10_000 else 30)
    # HTTP, a file and a copy of the text: more on a machine that is slow to give
    # memory to a process.
    return Goal(times=1.65)


def _shown(
    what: str, pair: Pair, emacs: Editor, one: Client, rounds: int, goal: Goal
) -> Row:
    ours, comparator = partial(_ours, pair, emacs, one), partial(_alone, pair, emacs)
    ours(), comparator()
    samples = alternate(rounds, ours=ours, comparator=comparator)
    samples["limit"] = samples["comparator"]
    return row(f"review, {what}, ms", samples, goal)


def _ours(pair: Pair, emacs: Editor, one: Client) -> float:
    took = open_diff(pair, emacs, one)
    emacs.ask("(gemini-companion-edit-reject)")
    one.until("ide/diffRejected")
    return took


def _alone(pair: Pair, emacs: Editor) -> float:
    form = f"(bench-review-alone {lisp(pair.old)} {lisp(pair.new)})"
    return 1000 * float(emacs.ask(form))


def open_diff(pair: Pair, emacs: Editor, one: Client) -> float:
    """Return the ms until the review of ``pair`` is on the screen."""
    text = pair.proposal
    emacs.ask("(garbage-collect)")
    request = one.call("openDiff", filePath=str(pair.old), newContent=text)
    began = time.time()
    answer = one.send(request)
    shown, kind = emacs.reported()
    result(*answer)
    if kind != "ediff":
        raise Broken(f"no Ediff is on the screen but: {kind}")
    return 1000 * (float(shown) - began)


class Pair:
    """A file, and another with the proposed text."""

    _numbers = itertools.count(1)

    def __init__(self, directory: Path, count: int, size: int) -> None:
        number = next(self._numbers)
        self.lines = count
        text = lines(count)
        self.old = directory / f"{number}.txt"
        self.old.write_text("".join(text), encoding="utf-8")
        middle = count // 2
        new = lines(size // LINE, "new")
        text[middle : middle + 1] = new
        self.proposal = "".join(text)
        self.new = directory / f"{number}.new.txt"
        self.new.write_text(self.proposal, encoding="utf-8")
        self.size = self.new.stat().st_size


def accepting(
    pair: Pair, emacs: Editor, one: Client, node: Node, two: Client, limit: Echo
) -> dict[str, Callable[[], float]]:
    """Return the three sides for ``pair``."""

    def ours() -> float:
        open_diff(pair, emacs, one)
        emacs.send("(bench-review-accept)")
        at = accepted(one)
        return 1000 * (at - float(emacs.answer()))

    def comparator() -> float:
        path = str(pair.old)
        request = two.call("openDiff", filePath=path, newContent=pair.proposal)
        result(*two.send(request))
        pressed = time.time()
        node.event(kind="accept", path=path)
        return 1000 * (accepted(two) - pressed)

    def accepted(client: Client) -> float:
        """Return the time when ``client`` had parsed the notification."""
        content = client.until("ide/diffAccepted")["content"]
        at = time.time()
        if content != pair.proposal:
            raise Broken("another text was accepted")
        return at

    trip = partial(limit.trip, 100, pair.size)
    return {"ours": ours, "comparator": comparator, "limit": lambda: 1000 * trip()}
