# SPDX-License-Identifier: GPL-3.0-or-later
"""Random keys in a text terminal: Emacs dies no more often than without the mode.

The keys are typed in the overview and in reviews of a scripted CLI, one by one or ahead
of a busy Emacs.  The frame is resized now and then, and garbage is collected after each
command that changes windows.  Some keys of windows end any Emacs then, if they are
typed ahead, such as C-x b RET C-x 2: these are typed one by one.  When Emacs has died,
the same keys are typed without the mode, which is the measure.

GC_KEYS sets the number of keys, and GC_KEYS_SEED repeats the choices of a run.
"""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random

import psutil
import pytest
from harness.emacs import Emacs
from harness.random_keys import COLLECT, FILES, OLD, OTHERS, OURS, SETUP, Cli
from harness.scratch import Scratch
from harness.terminal import Tmux
from harness.tools import Tools
from harness.wait import eventually

from fake_cli import FakeCli

SIZES = (80, 24), (100, 40), (200, 50)
KEYS = int(os.environ.get("GC_KEYS", "150"))
SEED = int(os.environ.get("GC_KEYS_SEED") or "3")
# Then Emacs is started again.
MOST = 400
# Keys of the overview beside those of reviews, with their weights.
MORE = {
    ("F6",): 10,
    ("W",): 4,
    ("C-o",): 4,
    ("C-c", "C-g"): 1,
    ("d",): 3,
    ("g",): 3,
    ("M-n",): 4,
    ("M-p",): 2,
    ("3",): 2,
    ("K",): 2,
    ("U",): 2,
    ("c",): 2,
}
# Keys of windows alone, which ask nothing.
WINDOWS = {(key,): 1 for key in ("W", "q", "C-o", "F6", "F10", "n", "M-n", "3")}
ACCEPT = "(mapc #'gemini-companion-edit-accept (gemini-companion-edits-open))"
Round = tuple[list[str], bool, tuple[int, int] | None]


def rounds(random: Random) -> Iterator[Round]:
    """Yield keys, whether they are typed ahead, and the size of the frame then."""
    ours = {key: weight + OURS.get(key, 0) for key, weight in (OURS | MORE).items()}
    while True:
        keys: list[str] = []
        for _ in range(random.choice([1, 1, 2, 3, 5])):
            table = random.choices([ours, WINDOWS, OTHERS], [4, 3, 3])[0]
            keys += random.choices(list(table), list(table.values()))[0]
        ahead = random.random() < 0.4 and not {"C-g", "C-x"} & set(keys)
        yield keys, ahead, random.choice(SIZES) if random.random() < 0.06 else None


@contextmanager
def emacs_of(tools: Tools, mode: bool) -> Iterator[Emacs]:
    """Yield an Emacs with reviews and changes, or without the mode."""
    with ExitStack() as ends:
        scratch = Scratch(tools)
        ends.callback(scratch.remove)
        ends.callback(scratch.kill)
        tmux = Tmux(scratch)
        ends.callback(tmux.close)
        files = [scratch.file(f"{n}.txt", OLD) for n in range(FILES)]
        visited = [*files[:3], scratch.file("mine.txt", "mine\n")]
        emacs = Emacs(
            tools, scratch, tmux, visited, mode=mode, extra=SETUP, size=SIZES[0]
        )
        emacs.eval(COLLECT)
        if mode:
            (path,) = scratch.discovery_files()
            facts = json.loads(path.read_text(encoding="utf-8"))
            cli = Cli(FakeCli(facts["port"], facts["authToken"]), files, Random(1))
            ends.callback(cli.stop)
            for _ in range(4):
                emacs.holds("(gemini-companion-edits-open)")
                emacs.eval(ACCEPT)
        yield emacs


def is_gone(pid: int) -> bool:
    """Return whether the process has ended; tmux may never ask for its status."""
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def typed(emacs: Emacs, source: Iterator[Round], count: int) -> tuple[list[str], bool]:
    """Type ``count`` keys, or fewer if Emacs dies; return them, and if it has died.

    The frame has each size at least once, if ``count`` is large enough.  Fail if
    Emacs is alive and does not answer, or answers with an error.
    """
    keys: list[str] = []
    sizes = list(SIZES)
    try:
        while len(keys) < count:
            more, ahead, size = next(source)
            if len(keys) * len(SIZES) >= count * (len(SIZES) - len(sizes)):
                size = sizes.pop(0)
            keys += more
            if ahead:
                with emacs.busy():
                    emacs.terminal.keys(*more)
                    emacs.terminal.written()
            for key in [] if ahead else more:
                emacs.terminal.keys(key)
                emacs.terminal.written()
                emacs.eval("t")
            if size:
                emacs.terminal.resize(size)
            emacs.eval("(soak-top-level)" if len(keys) % 7 == 0 else "t")
    except (AssertionError, OSError) as problem:
        # It closes its connections a moment before it is gone.
        what = f"the end of Emacs, after {problem!r}; keys: {' '.join(keys[-40:])}"
        eventually(lambda: is_gone(emacs.pid), what)
        return keys, True
    return keys, False


def deaths(tools: Tools, mode: bool) -> list[str]:
    """Type the keys; return the last ones before each death of Emacs."""
    source = rounds(Random(SEED))
    dead: list[str] = []
    rest = KEYS
    while rest > 0:
        with emacs_of(tools, mode) as emacs:
            keys, died = typed(emacs, source, min(MOST, rest))
        rest -= len(keys)
        if died:
            dead.append(" ".join(keys[-40:]))
    return dead


@pytest.mark.long
def test_random_keys_end_emacs_no_more_often_than_without_the_mode(
    tools: Tools,
) -> None:
    print(f"GC_KEYS_SEED={SEED}")
    dead = deaths(tools, True)
    if dead:
        assert len(dead) <= len(deaths(tools, False)), dead
