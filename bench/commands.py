# SPDX-License-Identifier: GPL-3.0-or-later
"""The cost of one command while point moves in a file and a CLI is connected.

A loop moves point, at the end of the file, and runs the hooks that a command runs, with
nothing in them but our functions (taken from the hooks as the mode left them), or the
habit of other companions.  The two take turns in one Emacs.  Commands come in quick
succession, so that a timer waits since the first of them.  At last, the context that
is sent to the CLI must be where our commands have led.

A hundred edits are kept.  Of the bytes the most of all rounds counts.

Then there is our part of the time that `term' takes for the output of a CLI, which
sets the title of its window with every 40 KB.

A key in a buffer with 500 marks of what a CLI has written, each time at another place,
is compared with a key in one without marks.

What follows an edit, a look at the file, is measured in a file of 20,000 lines, of
which a CLI has changed 500, beside one of 2,000 lines with 50: ten times is linear.
After many writes that nobody has reviewed, it is compared with a look after a tenth.
With origins of all lines, whose edits are forgotten, it is compared with one without.

What has once blocked Emacs is measured beside the same without the cause: 4,000 reports
of the state of a CLI, which took two minutes, beside links; a look at a line of 480 kB
that others have changed, which took a second; and a command that changes a third of a
file of 4.5 MB, which took 12 s.

The last row is the CPU time of one report of a moved point, which computes what is
shared and sends it, in an Emacs that visits 1,000 files in 50 projects beside one that
visits 20 files in one: it must not grow with the number of buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path

from client import Client, until
from editor import Editor, on_screen
from harness.tools import Tools
from review import propose
from rows import Goal, Row, Samples, alternate, row
from texts import lines

ROUNDS = 15
COUNT = 10_000
REPORTS = 50
EDITS = 100
HALF = f"(seq-take (gemini-companion-edits-open) {EDITS // 2})"
SIDES = ("ours", "comparator")
LINES = 1_000_000
WRITTEN = (
    ("500 lines, 60 writes of 100 hunks", 60, 500, 5, 4),
    ("2,000 lines, 50 rewrites", 50, 2_000, 1, 4),
)
BLOCKED = (
    (
        "4,000 reports of a state (comparator: links), CPU, ms",
        "sequences",
        Goal(more=150),
    ),
    (
        "look, line of 480 kB of others (comparator: unchanged), CPU, ms",
        "long-line",
        Goal(more=30),
    ),
    (
        "a command changes 1.5 of 4.5 MB (comparator: five lines), CPU, ms",
        "written",
        Goal(more=1500),
    ),
)


def measure(directory: Path) -> Iterator[Row]:
    file = directory / "file.txt"
    file.write_text("".join(lines(LINES)), encoding="utf-8")
    editor = on_screen(Tools.find(), file, library="bench-commands")
    with editor as emacs, closing(emacs.client()) as client:
        emacs.ask("(setq gemini-companion-review-arrival 'notify)")
        propose(client, *(directory / f"{n}.txt" for n in range(EDITS)))
        emacs.ask(f"(mapc #'gemini-companion-edit-reject {HALF})")
        times, sizes = _samples(emacs)
        # A stat of the file, as edits are open; counting lines makes it 1,000 times.
        yield row("by command, 1M lines, µs", times, Goal(times=4))
        yield row("by command, 1M lines, bytes", sizes, Goal(times=0))
        _check(emacs, client)
        what = "output of a CLI, 100 KB, watched, CPU, ms"
        # A CLI that was not started here is searched for at each title.
        yield row(what, _output(emacs), Goal(times=0.02))
        what = "key and redisplay, 500 marks (comparator: none), CPU, ms"
        # Each key is typed at another place, so that all lines are drawn again.
        yield row(what, _marks(emacs), Goal(times=2))
        # A line that is searched for among all others makes it 100 times.
        for kind, samples in _looks(emacs).items():
            what = f"look, {kind}, 20,000 lines (comparator: 2,000), CPU, ms"
            yield row(what, samples, Goal(times=20))
        # What removed lines of other times cost; the weave took 2,500 ms and 475 ms.
        for what, writes, count, step, most in WRITTEN:
            samples = _written(emacs, writes, count, step)
            what = f"look, {what} (comparator: {writes // 10}), CPU, ms"
            yield row(what, samples, Goal(times=most))
        what = "look, 20,000 kept lines with origins (comparator: without), CPU, ms"
        times, sizes = _origins(emacs)
        # It is 1.05 times on an idle machine; marks in place of origins make it 1.6.
        yield row(what, times, Goal(times=1.4), part=0.25)
        yield row(what.replace("CPU, ms", "kB"), sizes, Goal(times=1.3))
        for what, function, goal in BLOCKED:
            yield row(what, _blocked(emacs, function), goal)
    with ExitStack() as stack:
        sides = {}
        for side, projects in (("ours", 50), ("comparator", 1)):
            emacs = stack.enter_context(_visiting(directory / side, projects))
            stack.enter_context(closing(emacs.client()))
            sides[side] = emacs
        # With all buffers searched for each report, it is 31 times.
        what = "report of a moved point, 1,000 buffers (comparator: 20), CPU, ms"
        yield row(what, _buffers(sides, f"report {REPORTS}"), Goal(times=1.5))
        # A search among all buffers takes 1.4 ms; there is one, and a table of them for
        # the rest.  A search for each file of the turn would add 80 ms.
        what = "60th write of a turn, 1,000 buffers (comparator: 20), CPU, ms"
        yield row(what, _buffers(sides, f'writes "{directory}"', 5), Goal(more=5))


def _looks(emacs: Editor) -> dict[str, Samples]:
    """Return the times of looks at a file, by what was done there before."""
    form = "(bench-commands-look {})"
    samples = alternate(
        7,
        ours=lambda: emacs.ask(form.format(20_000)),
        comparator=lambda: emacs.ask(form.format(2_000)),
    )
    kinds = ("one character typed", "all lines reindented", "reindented back")
    return {
        kind: {side: [float(times[n]) for times in samples[side]] for side in SIDES}
        for n, kind in enumerate(kinds)
    }


def _written(emacs: Editor, writes: int, count: int, step: int) -> Samples:
    """Return the times of looks after ``writes`` unreviewed writes, and a tenth."""

    def run(writes: int) -> float:
        return float(emacs.ask(f"(bench-commands-look-after {writes} {count} {step})"))

    return alternate(
        5, ours=partial(run, writes), comparator=partial(run, writes // 10)
    )


def _origins(emacs: Editor) -> tuple[Samples, Samples]:
    """Return the times of looks, and sizes of records, with origins and without."""

    def run(origin: str) -> list[float]:
        figures = emacs.ask(f"(bench-commands-origins 20000 {origin})")
        return [float(figure) for figure in figures]

    samples = alternate(7, ours=lambda: run("t"), comparator=lambda: run("nil"))
    times, sizes = (
        {side: [of[n] for of in samples[side]] for side in SIDES} for n in (0, 1)
    )
    return times, sizes


def _buffers(sides: dict[str, Editor], form: str, rounds: int = ROUNDS) -> Samples:
    """Return the times of ``form`` with 1,000 buffers, and with 20."""

    def run(emacs: Editor) -> float:
        return float(emacs.ask(f"(bench-commands-{form})"))

    return alternate(
        rounds, **{side: partial(run, emacs) for side, emacs in sides.items()}
    )


@contextmanager
def _visiting(directory: Path, projects: int) -> Iterator[Editor]:
    """An Emacs that visits 20 files in each of the ``projects`` in ``directory``."""
    for number in range(20 * projects):
        file = directory / f"{number // 20}" / f"part{number % 3}" / f"{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parents[1] / ".git").mkdir(exist_ok=True)
        file.write_text("x" * 2000)
    with on_screen(Tools.find(), file, library="bench-commands") as emacs:
        emacs.ask(f'(bench-commands-visit "{directory}")')
        yield emacs


def _output(emacs: Editor) -> Samples:
    """Return the times that our watcher, and term itself, take for 100 KB."""
    form = "(bench-commands-output '{})"
    return alternate(
        5,
        ours=lambda: float(emacs.ask(form.format("ours"))),
        comparator=lambda: float(emacs.ask(form.format("comparator"))),
    )


def _blocked(emacs: Editor, function: str) -> Samples:
    """Return the times of what has blocked Emacs, and of the same without the cause."""
    return alternate(
        5,
        ours=lambda: float(emacs.ask(f"(bench-commands-{function} 'ours)")),
        comparator=lambda: float(emacs.ask(f"(bench-commands-{function} 'comparator)")),
    )


def _marks(emacs: Editor) -> Samples:
    """Return the times of a key in a buffer with marks of changes, and without."""
    form = "(bench-commands-type '{})"
    return alternate(
        5,
        ours=lambda: float(emacs.ask(form.format("ours"))),
        comparator=lambda: float(emacs.ask(form.format("comparator"))),
    )


def _samples(emacs: Editor) -> tuple[Samples, Samples]:
    """Return the times, and the most bytes, of commands."""
    sizes: Samples = {side: [] for side in SIDES}

    def run(side: str) -> float:
        time, size = map(float, emacs.ask(f"(bench-commands-run '{side} {COUNT})"))
        sizes[side].append(size)
        return time

    times = alternate(ROUNDS, **{side: partial(run, side) for side in SIDES})
    return times, {side: [max(values)] for side, values in sizes.items()}


def _check(emacs: Editor, client: Client) -> None:
    """Run a few commands, and wait until ``one`` has received the position of point."""
    emacs.ask("(bench-commands-run 'ours 10)")
    line, character = emacs.ask("(bench-commands-place)")
    until(
        lambda: client.cursor() == {"line": line, "character": character},
        "the CLI receives the position of point",
    )
