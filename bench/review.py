# SPDX-License-Identifier: GPL-3.0-or-later
"""From openDiff to the review on the screen, and from accepting to the client.

An Emacs in a terminal shows reviews at once; the clock starts before the first
byte of openDiff is sent, and stops when Emacs has redisplayed.  In turn with
that, the same Emacs shows the same two texts with `ediff-buffers` alone, which
is the comparator and the limit at once.

When a clock has stopped, the windows must show the differences.

The review is then accepted, 1 KB to 1 MB; the clock runs from the call of the
command until the client has parsed the notification, whose text must be the
proposal's.  The comparator sends the same text, on a line in its file.

A tenth of the lines of all these texts is not all ASCII.

The page of a turn, with 400 changes in 20 files of Python, is drawn in turn with `git
diff --color-words` and Diff mode on the output of `git diff`.

A turn with 2,000 changes in 200 files is drawn, undone and restored, beside one with
200 changes in 20.

The last row is the processor time of Emacs from openDiff until the list shows the
edit, below 60 diffs of 20 hunks; the comparator is the same below 6.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

from client import Broken, Client, result
from editor import Editor, on_screen
from harness.emacs import lisp
from harness.tools import Tools
from rows import Goal, Row, Samples, alternate, row
from servers import Node, client
from texts import LINE, lines
from usage import cpu

LINES = {
    "1k lines": (1_000, 9),
    "10k lines": (10_000, 9),
    "100k lines": (100_000, 7),
}
CHANGES = {"100 B": 100, "1 MB": 1_000_000}
LISTED = 5
CHANGED = 400
UNDONE = (
    "page of a turn of 200 files drawn",
    "undo of its 2,000 changes",
    "C-/ after that",
)

# The seconds until something was seen, and those of the processor.
Times = tuple[float, float]


def measure(directory: Path) -> Iterator[Row]:
    with ExitStack() as stack:
        emacs = stack.enter_context(on_screen(Tools.find(), library="bench-review"))
        our_client = stack.enter_context(closing(emacs.client()))
        emacs.ask("(bench-review-report 'now)")
        for name, (count, rounds) in LINES.items():
            for change, size in CHANGES.items():
                pair = Pair(directory, count, size)
                ours = partial(_ours, pair, emacs, our_client)
                alone = partial(_alone, pair, emacs)
                ours(), alone()
                samples = alternate(rounds, ours=ours, comparator=alone)
                what = f"review, {name}, {change}"
                if small := count + size < 2_000:
                    yield _elapsed(what, samples, Goal(times=2.5))
                # For the smallest, the comparator takes 7 ms, and what each review
                # adds 5 ms; a collection of garbage makes it 4.6 times.
                yield _used(what, samples, Goal(times=2.5 if small else 1.9))
        node = Node(directory / "node")
        stack.callback(node.close)
        other_client = stack.enter_context(closing(client(node).connect()))
        what = "accepted → at the client"
        new = partial(Pair, directory, 1_000 // LINE, 100)
        samples = accepted(new, emacs, our_client, node, other_client, 51)
        yield _elapsed(f"{what}, 1 KB", samples, Goal(more=1.3))
        new = partial(Pair, directory, 1_000_000 // LINE, 100)
        samples = accepted(new, emacs, our_client, node, other_client, 21)
        yield _used(f"{what}, 1 MB, server", samples, Goal(times=2.3))
    what = "page of a turn, 20 files, 400 changes"
    samples = _page(directory / "turn")
    yield _elapsed(what, samples, Goal(times=2))
    yield _used(what, samples, Goal(times=2))
    for what, undone in _undone(directory).items():
        # Linear is 10 times.
        yield row(f"{what} (comparator: 20), CPU, ms", undone, Goal(times=14))
    # With each diff drawn again it is 6 times.
    what = "list of 60 diffs of 20 hunks, one more edit (comparator: 6), CPU, ms"
    yield row(what, _listed(), Goal(times=3))


def _page(directory: Path) -> dict[str, list[Times]]:
    """Return the times of the page of a turn, and of Git and Diff mode."""
    directory.mkdir()
    with on_screen(Tools.find(), library="bench-review") as emacs:
        # Drawn meanwhile, a page would delay the answer of the server.
        emacs.wait_until_ready()
        changes = emacs.ask(f"(bench-review-write-turn {lisp(directory)})")
        if changes != CHANGED:
            raise Broken(f"{changes} changes")

        def run(form: str) -> Times:
            real, used = map(float, emacs.ask(form))
            return real, used

        ours = partial(run, "(bench-review-page)")
        alone = partial(run, f"(bench-review-diff-mode {lisp(directory)})")
        ours(), alone()
        return alternate(7, ours=ours, comparator=alone)


def _undone(directory: Path) -> dict[str, Samples]:
    """Return the times to draw, undo and restore a turn of 200 files, and of 20."""

    def run(files: int) -> list[float]:
        # A page with the turns of other samples would take longer.
        with on_screen(Tools.find(), library="bench-review") as emacs:
            emacs.wait_until_ready()
            form = f"(bench-review-undo-turn {lisp(directory)} {files})"
            return [float(time) for time in emacs.ask(form)]

    samples = alternate(5, ours=partial(run, 200), comparator=partial(run, 20))
    return {
        what: {side: [times[n] for times in samples[side]] for side in samples}
        for n, what in enumerate(UNDONE)
    }


def _elapsed(what: str, samples: dict[str, list[Times]], goal: Goal) -> Row:
    times = {side: [1000 * each[0] for each in samples[side]] for side in samples}
    return row(f"{what}, p10, ms", times, goal, part=0.1)


def _used(what: str, samples: dict[str, list[Times]], goal: Goal) -> Row:
    times = {side: [1000 * each[1] for each in samples[side]] for side in samples}
    return row(f"{what}, CPU, ms", times, goal)


def _ours(pair: Pair, emacs: Editor, our_client: Client) -> Times:
    times = open_diff(pair, emacs, our_client)
    emacs.ask("(gemini-companion-edit-reject)")
    our_client.until("ide/diffRejected")
    return times


def _alone(pair: Pair, emacs: Editor) -> Times:
    form = f"(bench-review-alone {lisp(pair.old)} {lisp(pair.new)})"
    real, used = map(float, emacs.ask(form))
    return real, used


def open_diff(pair: Pair, emacs: Editor, our_client: Client) -> Times:
    """Return the times until the review of ``pair`` is on the screen."""
    before = emacs.ask("(progn (garbage-collect) (bench-review-cpu))")
    request = our_client.call(
        "openDiff", filePath=str(pair.old), newContent=pair.proposal
    )
    began = time.time()
    answer = our_client.send(request)
    shown, used = emacs.reported()
    result(*answer)
    return float(shown) - began, float(used) - float(before)


def _listed() -> Samples:
    """Return the times until a list of 60 diffs, and one of 6, has another edit."""
    with ExitStack() as stack:
        sides = {}
        for side, count in (("ours", 60), ("comparator", 6)):
            emacs = stack.enter_context(on_screen(Tools.find(), library="bench-review"))
            our_client = stack.enter_context(closing(emacs.client()))
            emacs.ask("(setq gemini-companion-review-arrival 'notify)")
            files = map(emacs.scratch.file, map("{}.txt".format, itertools.count(1)))
            propose(our_client, *itertools.islice(files, count))
            emacs.ask("(bench-review-list)")
            sides[side] = partial(_arrive, emacs, our_client, files)
        return alternate(LISTED, **sides)


def _arrive(emacs: Editor, our_client: Client, files: Iterator[Path]) -> float:
    file = next(files)
    emacs.send(f"(bench-review-arriving {lisp(file.name)})")
    emacs.reported()
    propose(our_client, file)
    return float(emacs.answer())


def propose(proposer: Client, *files: Path) -> None:
    """Have ``one`` propose an edit of 20 hunks of each of the new ``files``."""
    old = lines(400)
    new = [line if n % 20 else f"new {line}" for n, line in enumerate(old)]
    for file in files:
        file.write_text("".join(old), encoding="utf-8")
        request = proposer.call("openDiff", filePath=str(file), newContent="".join(new))
        result(*proposer.send(request))


class Pair:
    """A file, and another with the proposed text."""

    _numbers = itertools.count(1)

    def __init__(self, directory: Path, count: int, size: int) -> None:
        number = next(self._numbers)
        text = lines(count)
        self.old = directory / f"{number}.txt"
        self.text = "".join(text)
        self.old.write_text(self.text, encoding="utf-8")
        middle = count // 2
        text[middle : middle + 1] = lines(size // LINE, "new")
        self.proposal = "".join(text)
        self.new = directory / f"{number}.new.txt"
        self.new.write_text(self.proposal, encoding="utf-8")


def accepted(
    new: Callable[[], Pair],
    emacs: Editor,
    our_client: Client,
    node: Node,
    other_client: Client,
    rounds: int,
) -> dict[str, list[Times]]:
    """Return the times of both sides for ``new`` pairs; those of the servers.

    Each is of another file.  No client writes what was accepted, so that Emacs would
    check one file for all edits of it that it still awaits, more with each round.
    """
    (server,) = emacs.scratch.servers()

    def ours() -> Times:
        pair = new()
        open_diff(pair, emacs, our_client)
        used = cpu(server)
        emacs.send("(bench-review-accept)")
        at = arrival(our_client, pair)
        return at - float(emacs.answer()), cpu(server) - used

    def comparator() -> Times:
        pair = new()
        path = str(pair.old)
        request = other_client.call("openDiff", filePath=path, newContent=pair.proposal)
        result(*other_client.send(request))
        used = cpu(node.process)
        pressed = time.time()
        node.event(kind="accept", path=path)
        return arrival(other_client, pair) - pressed, cpu(node.process) - used

    def arrival(client: Client, pair: Pair) -> float:
        """Return the time when ``client`` had parsed the notification."""
        content = client.until("ide/diffAccepted")["content"]
        at = time.time()
        if content != pair.proposal:
            raise Broken("another text was accepted")
        return at

    return alternate(rounds, ours=ours, comparator=comparator)
