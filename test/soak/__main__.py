# SPDX-License-Identifier: GPL-3.0-or-later
"""The soak test: thousands of reviews while connections and servers break.

A real Emacs, the real server, three scripted CLIs.  The first fifth warms up; in
the middle the server is restarted and killed at random; the rest shows whether
the memory is flat.  GC_SOAK_REVIEWS sets the number of reviews,
GC_SOAK_SEED repeats the choices of a run.  Then GC_SOAK_KEYS reviews, 300 if unset,
are answered by random keys in each of two Emacsen, see keys.py, and a large desktop
is used for GC_SOAK_DESKTOP seconds, 600 if unset, see desktop.py.  Each may be 0.
"""

import asyncio
import json
import os
import random
import signal
import sys
import time
from asyncio import to_thread
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

sys.path.extend(
    str(Path(__file__).parents[1] / name) for name in ("e2e", "python", "../bench")
)

import desktop
import keys
import psutil
from cli import Cli, Log
from harness.emacs import Emacs, lisp
from harness.scratch import Scratch
from harness.terminal import Tmux
from harness.tools import ROOT, Tools
from harness.wait import eventually

CLIS = 3
LONGEST_RESTART = 60.0
# How much memory may grow, as a factor and in MiB.  Emacs keeps the texts of the last
# hundred edits, of up to 300 kB each.
BOUND = 1.15
SLACK = 8.0
EMACS_SLACK = 24.0
LIVE_BOUND = 1.3
# Fewer reviews show nothing about memory.
ENOUGH = 5000


class User(Emacs):
    """The real Emacs, in which soak.el is the user."""

    def __init__(self, tools: Tools, scratch: Scratch, seed: int) -> None:
        self._journal = scratch.root / "journal"
        setup = f"""
            (random "{seed}")
            (setq soak-journal {lisp(self._journal)})
            (load {lisp(Path(__file__).with_name("soak.el"))})"""
        files = sorted(scratch.project.glob("c*/*.txt"))
        self._tmux = Tmux(scratch)
        super().__init__(
            tools, scratch, self._tmux, files, mode=False, extra=setup, root=ROOT
        )
        self._process = psutil.Process(self.pid)

    def server_pid(self) -> int | None:
        text = self.eval("(plist-get (gemini-companion-server-info) :pid)")
        return None if text == "nil" else int(text)

    def rss(self) -> float:
        return float(self._process.memory_info().rss) / 2**20

    def quit(self) -> None:
        super().quit()
        self._tmux.close()

    def entries(self) -> list[dict[str, str]]:
        lines = self._journal.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@dataclass
class Sample:
    """Memory in MiB after some reviews."""

    reviews: int
    emacs: float
    live: float
    server: float


class Soak:
    def __init__(self, seed: int, reviews: int) -> None:
        self._random = random.Random(seed)
        self._reviews = reviews
        self._seed = seed
        self.log = Log(reviews)
        self.restarts = self.kills = 0
        self.slowest = 0.0
        self.samples: list[Sample] = []
        self._tools = Tools.find()
        self._scratch = Scratch(self._tools)
        self._clis: list[Cli] = []
        self._began = time.monotonic()

    async def run(self) -> None:
        for number in range(CLIS):
            for visited in range(3):
                name = f"c{number}/accept-{visited}-open.txt"
                self._scratch.file(name, "one\ntwo \U0001d11e\nthree\n" * 20)
        emacs = User(self._tools, self._scratch, self._seed)
        try:
            await to_thread(emacs.eval, "(soak-start)")
            await to_thread(emacs.holds, "(= 1 soak-ready)")
            self._make_clis()
            await self._soak(emacs)
            await self._stop(emacs)
            self.log.judge(emacs.entries())
        except AssertionError as problem:
            self.log.problem(f"{problem}")
        finally:
            self._scratch.kill()
            self._no_error_is_logged()
            self._scratch.remove()

    def _make_clis(self) -> None:
        (path,) = self._scratch.discovery_files()
        facts = json.loads(path.read_text(encoding="utf-8"))
        server = (facts["port"], facts["authToken"])
        for number in range(CLIS):
            chance = random.Random(self._random.random())
            directory = self._scratch.project / f"c{number}"
            self._clis.append(Cli(f"c{number}", self.log, chance, server, directory))

    async def _soak(self, emacs: User) -> None:
        # Each event stream and each request has a thread.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(64))
        tasks = [asyncio.create_task(cli.run()) for cli in self._clis]
        tasks.append(asyncio.create_task(self._direct(emacs)))
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        await self._sample(emacs)

    async def _direct(self, emacs: User) -> None:
        """Break the server in the middle, and sample the memory around that."""
        await self._opened(self._reviews // 5)
        await self._sample(emacs)
        await self._break(emacs, self._reviews * 3 // 5)
        await self._opened(self._reviews * 7 // 10)
        await self._sample(emacs)

    async def _opened(self, count: int) -> None:
        while self.log.opened < count:  # noqa: ASYNC110 - all CLIs count
            await asyncio.sleep(0.1)

    async def _break(self, emacs: User, until: int) -> None:
        while self.log.opened < until:
            await asyncio.sleep(0.5 + 3 * self._random.random())
            pid = await to_thread(emacs.server_pid)
            if pid is None:
                continue  # the next process is starting
            kinds = ["restart", "kill", "restart and kill"]
            (kind,) = self._random.choices(kinds, [15, 3, 1])
            began = time.monotonic()
            if "restart" in kind:
                self.restarts += 1
                await to_thread(emacs.eval, "(gemini-companion-restart)")
            if "kill" in kind:
                await asyncio.sleep(self._random.random() if "restart" in kind else 0)
                if servers := self._scratch.servers():
                    self.kills += 1
                    self.log.last_kill = time.monotonic()
                    self._random.choice(servers).kill()
            await self._until_other(emacs, pid)
            if kind == "restart":
                self.slowest = max(self.slowest, time.monotonic() - began)

    async def _until_other(self, emacs: User, previous: int | None) -> None:
        deadline = time.monotonic() + LONGEST_RESTART
        while time.monotonic() < deadline:
            pid = await to_thread(emacs.server_pid)
            # Perhaps the process that was killed was the next one.
            is_live = pid != previous or self.log.is_excused()
            if pid and is_live and len(self._scratch.servers()) == 1:
                return
            await asyncio.sleep(0.1)
        self.log.problem("no new server in time")

    async def _sample(self, emacs: User) -> None:
        live = int(await to_thread(emacs.eval, "(soak-live-bytes)")) / 2**20
        servers = self._scratch.servers()
        rss = servers[0].memory_info().rss / 2**20 if servers else 0.0
        self.samples.append(Sample(self.log.opened, emacs.rss(), live, rss))

    async def _stop(self, emacs: User) -> None:
        scratch = self._scratch
        # The server waits half a minute for a CLI whose connection was cut.
        await to_thread(emacs.holds, "(null (gemini-companion-edits-open))")
        for cli in self._clis:
            await cli.open_some()
        opened = f"(= {5 * CLIS} (length (gemini-companion-edits-open)))"
        await to_thread(emacs.holds, opened)
        sessions = [cli.session for cli in self._clis if cli.session]
        # An outcome needs a stream, and the server may just have been replaced.
        await to_thread(
            eventually,
            lambda: all(listener.is_listening for listener in sessions),
            "streams",
        )
        for session in sessions:
            # The server is stopped when the CLI opens the next stream.
            session.is_leaving = True
        await to_thread(emacs.eval, "(gemini-companion-mode 0)")
        await to_thread(emacs.eval, "(mapc 'cancel-timer soak-timers)")
        await to_thread(eventually, lambda: not scratch.servers(), "gone")
        for session in sessions:
            for diff in session.open_diffs():
                self.log.problem(f"{diff.path}: open after the server has stopped")
            session.lose("server stopped")
        await self._nothing_is_left(emacs)
        await to_thread(emacs.eval, "(gemini-companion-mode)")
        await to_thread(emacs.holds, "(= 2 soak-ready)")
        await to_thread(emacs.quit)
        await to_thread(eventually, lambda: not scratch.processes(), "end")
        self._no_file_is_left()

    async def _nothing_is_left(self, emacs: User) -> None:
        before = await to_thread(emacs.value, "soak-before")
        # A view that is closed has a timer, and so has a highlight.
        for _ in range(50):
            state = await to_thread(emacs.value, "(soak-state)")
            kinds = "buffers", "processes", "timers"
            more = [Counter(state[kind]) - Counter(before[kind]) for kind in kinds]
            if not any(more):
                break
            await asyncio.sleep(0.1)
        else:
            self.log.problem(f"left in Emacs: {more}")
        problems = await to_thread(emacs.value, "soak-problems")
        for problem in (problems or [])[:20]:
            self.log.problem(f"in Emacs: {problem}")
        self._no_file_is_left()

    def _no_file_is_left(self) -> None:
        for path in self._scratch.tmp.rglob("*"):
            if path.name not in ("gemini", "ide"):
                self.log.problem(f"left: {path}")

    def _no_error_is_logged(self) -> None:
        for path in self._scratch.root.rglob("server.log*"):
            for line in path.read_text(errors="replace").splitlines():
                if " ERROR " in line:
                    self.log.problem(f"in the server: {line}")

    def flat(self) -> None:
        if len(self.samples) < 3 or self._reviews < ENOUGH:
            return
        first, calm, last = self.samples[0], *self.samples[-2:]
        if last.emacs > first.emacs * BOUND + EMACS_SLACK:
            self.log.problem("Emacs grew")
        if last.live > first.live * LIVE_BOUND + SLACK:
            self.log.problem("the live data of Emacs grew")
        if last.server > calm.server * BOUND + SLACK:
            self.log.problem("the server grew")

    def table(self) -> str:
        log = self.log
        diffs = [
            diff for session in log.sessions for diff in chain(*session.diffs.values())
        ]
        ends = Counter(" and ".join(diff.ends) for diff in diffs)
        lines = [
            f"seed {self._seed}, {time.monotonic() - self._began:.0f} s",
            f"reviews      {len(diffs)}",
            *(f"  {end:<24} {count:6d}" for end, count in ends.most_common()),
            f"sessions     {len(log.sessions)}",
            f"contexts     {sum(session.contexts for session in log.sessions)}",
            f"server       {self.restarts} restarts (slowest {self.slowest:.1f} s),"
            f" {self.kills} kills",
            *(f"  {what:<34} {count:6d}" for what, count in sorted(log.counts.items())),
            "memory, MiB  reviews   Emacs    live  server",
            *(
                f"             {sample.reviews:7d} {sample.emacs:7.1f} "
                f"{sample.live:7.1f} {sample.server:7.1f}"
                for sample in self.samples
            ),
            f"problems     {len(log.problems)}",
        ]
        return "\n".join(lines)


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    problems = []
    seed = int(os.environ.get("GC_SOAK_SEED") or random.randrange(2**31))
    if reviews := int(os.environ.get("GC_SOAK_REVIEWS") or 10_000):
        print(f"soak: {reviews} reviews, GC_SOAK_SEED={seed}", flush=True)
        soak = Soak(seed, reviews)
        asyncio.run(soak.run())
        soak.flat()
        print(soak.table(), flush=True)
        problems += soak.log.problems
    if reviews := int(os.environ.get("GC_SOAK_KEYS") or 300):
        problems += keys.run(reviews, seed)
    if seconds := float(os.environ.get("GC_SOAK_DESKTOP") or 600):
        problems += desktop.run(seconds)
    for problem in problems[:40]:
        print(f"PROBLEM: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
