# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews by random keys, in a text terminal and in a graphical frame.

A real Emacs 30.1, the real server, and a scripted CLI that keeps some edits open.  The
keys come one by one, ahead of a busy Emacs, or as a keyboard macro.  Watched are
crashes, answers that take long, and what grows: between two rests, in which Emacs is
reset as between two tests, nothing may be left but a little memory.
"""

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random

import psutil
from editor import PACKAGE, build
from harness.display import screen, spelled, xdotool
from harness.emacs import Emacs
from harness.random_keys import FILES, OLD, OTHERS, OURS, SETUP, Cli
from harness.scratch import Scratch
from harness.terminal import Tmux
from harness.tools import DEPS, ROOT, Tools
from harness.wait import eventually

from fake_cli import FakeCli

KINDS = {
    "terminal": DEPS / "emacs-30.1" / "bin" / "emacs",
    "graphical": DEPS / "emacs-30.1-emacs-lucid" / "bin" / "emacs",
}
SIZE = (170, 50)
# Seconds that an answer of Emacs may take.
ANSWER = 20.0
# Seconds in which some review must be answered; random keys may take long.
PATIENCE = 300.0
# How much memory may grow, as a factor and in MiB.
BOUND = 1.15
SLACK = 24.0
# How many buffers, for example, may be made once and kept.
ONCE = 3
COUNTED = "buffers", "timers", "processes", "overlays", "windows", "frames", "files"


@dataclass
class Sample:
    """What Emacs has in a rest; memory in MiB."""

    reviews: int
    rss: float
    live: float
    counts: dict[str, int]


@dataclass
class Run:
    """A soak of one kind of Emacs, and what was seen."""

    kind: str
    reviews: int
    seed: int
    samples: list[Sample] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    keys: int = 0
    rounds: int = 0
    slowest: float = 0.0
    ended: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def soak(self) -> None:
        began = time.monotonic()
        with ExitStack() as ends:
            display = ""
            if self.kind == "graphical":
                display = ends.enter_context(screen())
            user = User(self, display, ends)
            for step in (user.soak, user.close):
                try:
                    step()
                except (AssertionError, OSError, subprocess.SubprocessError) as problem:
                    self.problems.append(f"{problem!r}\nlast keys: {user.last()}")
        self.seconds = time.monotonic() - began
        self._judge()

    def _judge(self) -> None:
        if len(self.samples) < 4:
            return
        first, *_, last = self.samples
        for what in COUNTED:
            # Some come and go, such as a timer of Emacs itself; some are made once.
            counts = [sample.counts[what] for sample in self.samples]
            if min(counts[-2:]) > max(counts[:2]) + ONCE:
                self.problems.append(f"{what} grew: {counts}")
        for what in ("rss", "live"):
            before, after = getattr(first, what), getattr(last, what)
            if after > before * BOUND + SLACK:
                self.problems.append(f"{what} grew: {before:.0f} to {after:.0f} MiB")

    def table(self) -> str:
        lines = [
            f"keys, {self.kind}, GC_SOAK_SEED={self.seed}: {self.ended} by"
            f" {self.keys} keys in {self.rounds} rounds, {self.seconds:.0f} s;"
            f" slowest answer {self.slowest:.1f} s",
            "  reviews  rss MiB live MiB " + " ".join(f"{w:>9}" for w in COUNTED),
            *(
                f"  {sample.reviews:7d} {sample.rss:8.1f} {sample.live:8.1f} "
                + " ".join(f"{sample.counts[what]:9d}" for what in COUNTED)
                for sample in self.samples
            ),
        ]
        return "\n".join(lines)


class User:
    """The user of one Emacs, who presses keys at random."""

    def __init__(self, run: Run, display: str, ends: ExitStack) -> None:
        self._run = run
        self._display = display
        self._random = Random(run.seed)
        self._pressed: list[str] = []
        tools = Tools.find(str(KINDS[run.kind]))
        self._scratch = Scratch(tools)
        ends.callback(self._scratch.remove)
        ends.callback(self._scratch.kill)
        self._tmux = Tmux(self._scratch)
        ends.callback(self._tmux.close)
        files = [self._scratch.file(f"{n}.txt", OLD) for n in range(FILES)]
        self._emacs = Emacs(
            tools,
            self._scratch,
            self._tmux,
            [self._scratch.file("mine.txt", "mine\n")],
            root=PACKAGE,
            extra=SETUP,
            size=SIZE,
            display=display,
        )
        self._process = psutil.Process(self._emacs.pid)
        (path,) = self._scratch.discovery_files()
        facts = json.loads(path.read_text(encoding="utf-8"))
        fake = FakeCli(facts["port"], facts["authToken"])
        self._cli = Cli(fake, files, Random(run.seed + 1))

    def last(self) -> str:
        return " ".join(self._pressed[-120:])

    def soak(self) -> None:
        # The first part warms up; there are five rests.
        rests = [self._run.reviews * part // 5 for part in range(1, 6)]
        heard = time.monotonic(), 0
        while rests:
            self._round()
            count = self._cli.count()
            if count > heard[1]:
                heard = time.monotonic(), count
            assert time.monotonic() - heard[0] < PATIENCE, "no review was answered"
            assert not self._cli.problems, self._cli.problems
            if count >= rests[0]:
                rests.pop(0)
                self._rest()

    def close(self) -> None:
        self._run.ended = self._cli.ended
        self._cli.stop()
        if self._emacs.terminal.is_open():
            self._emacs.eval("(gemini-companion-mode 0)")
            self._emacs.quit()

    def _round(self) -> None:
        """Press some keys, and wait until Emacs answers."""
        run, random = self._run, self._random
        run.rounds += 1
        keys: list[str] = []
        for _ in range(random.choice([1, 1, 2, 3, 5, 8])):
            table = OURS if random.random() < 0.7 else OTHERS
            keys += random.choices(list(table), list(table.values()))[0]
        if self._display:
            window = self._ask("(frame-parameter nil 'outer-window-id)").strip('"')
            xdotool(self._display, "windowfocus", window, check=False)
        how = random.choice(["one by one", "ahead", "macro"])
        run.keys += len(keys)
        self._pressed += [f"[{how}]", *keys]
        if how == "macro" and "C-g" not in keys:
            # The rest is read from the user, who answers the prompts.
            self._ask(f"(soak-macro {Emacs.macro(keys)})")
        elif how == "ahead" and "C-g" not in keys:
            with self._emacs.busy():
                self._press(keys)
        else:
            for key in keys:
                self._press([key])
                self._ask("t")
        self._ask("t")
        if random.random() < 0.2:
            # Whatever asks is quit, so that keys are commands again.
            self._press(["C-g"])
            self._ask("(soak-top-level)")
        self._resize()

    def _press(self, keys: list[str]) -> None:
        if not self._display:
            self._emacs.terminal.keys(*keys)
            self._emacs.terminal.written()
            return
        xdotool(self._display, "key", "--delay", "2", *map(spelled, keys))

    def _resize(self) -> None:
        if self._random.random() > 0.04:
            return
        size = self._random.choice([SIZE, (100, 30), (80, 24), (200, 60)])
        if self._display:
            self._ask(f"(progn (set-frame-size nil {size[0]} {size[1]}) nil)")
        else:
            self._emacs.terminal.resize(size)

    def _ask(self, code: str) -> str:
        """Return the value of ``code``; fail if Emacs is gone, or takes too long."""
        began = time.monotonic()
        value = self._emacs.eval(code)
        took = time.monotonic() - began
        self._run.slowest = max(self._run.slowest, took)
        assert took < ANSWER, f"no answer for {took:.0f} s"
        return value

    def _rest(self) -> None:
        """Reset Emacs, and record what it has."""
        cli, emacs = self._cli, self._emacs
        cli.rest(True)
        emacs.terminal.resize(SIZE)
        # A timer may ask once what was asked before is quit.
        emacs.holds("(or (soak-quiet-p) (soak-top-level))", "no prompt is left")
        emacs.eval("(soak-close-frames)")
        # A file that was edited is the user's, and no proposal.
        emacs.reset()
        emacs.eval("(soak-close-frames)")
        before = ""

        def is_still() -> bool:
            nonlocal before
            last, before = before, emacs.eval("(soak-counts)")
            return last == before

        # The file of an edit that has ended is watched for a minute, by a timer each.
        emacs.holds("(null gemini-companion-watch--all)", "no file is watched")
        # Timers of what has just ended, such as that of a highlight.
        for _ in range(4):
            time.sleep(1)
            eventually(is_still, "nothing changes")
        live = int(emacs.eval("(soak-live-bytes)")) / 2**20
        counts = emacs.value("(soak-counts)")
        counts["files"] = len(self._scratch.temporary_files())
        rss = self._process.memory_info().rss / 2**20
        self._run.samples.append(Sample(cli.count(), rss, live, counts))
        cli.rest(False)


def run(reviews: int, seed: int) -> list[str]:
    """Run ``reviews`` with each Emacs, print the tables, and return the problems."""
    subprocess.run([str(ROOT / "dev" / "graphical")], check=True)
    build(Tools.find(str(KINDS["terminal"])))
    kinds = os.environ.get("GC_SOAK_KINDS", " ".join(KINDS)).split()
    runs = [Run(kind, reviews, seed + n) for n, kind in enumerate(kinds)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(Run.soak, runs))
    for one in runs:
        print(one.table(), flush=True)
    return [f"keys, {one.kind}: {text}" for one in runs for text in one.problems]
