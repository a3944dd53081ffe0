# SPDX-License-Identifier: GPL-3.0-or-later
"""A scripted CLI: sessions that open diffs, and the outcome of each."""

import asyncio
import hashlib
import itertools
import time
from asyncio import to_thread
from collections import Counter, defaultdict
from http.client import HTTPException
from pathlib import Path
from random import Random
from typing import Any

from fake_cli import Events, FakeCli

# How long an answer may take, including a restart and garbage collections.
ANSWER = 20.0
# The CLI opens its event stream again after this.
AGAIN = 1.0
# How long after a kill a connection may be lost because of it.
KILL_SHADOW = 8.0

BY_USER = {
    "accepted": ("accept", "edit", "race"),
    "rejected": ("reject", "kill", "stop"),
}
KINDS = "accept", "edit", "reject", "kill", "hold", "holdedit", "race"
WEIGHTS = 24, 20, 16, 4, 8, 8, 6

# With these, the end of a session may lose a message in transit.
UNSURE = ("server killed", "cut", "wrong answer")
# The answer is malformed or wrong, or none came in time.
WRONG = AssertionError, KeyError, TimeoutError
# The connection closed before the end of the answer; a time that is up is an OSError.
LOST = OSError, HTTPException

LINE = "plain text, as most of it is, and \u00e9 \u2028 \U0001d11e\r\n"


def sha(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


def proposal(random: Random, mark: str) -> str:
    """Return a proposal, empty or with ``mark`` as its first line."""
    # Most are small; of the large ones few are near the limit.
    limits = 0, 2_000, 20_000, 100_000, 300_000
    (limit,) = random.choices(limits, [4, 71, 17, 5, 3])
    if not limit:
        return ""
    return f"{mark}\n" + LINE * (random.randrange(limit) // len(LINE))


class Opened:
    """One openDiff that was acknowledged, and its outcomes."""

    def __init__(self, path: str, kind: str, text: str, mark: str) -> None:
        self.path = path
        self.kind = kind
        self.text = text
        self.mark = mark if text else ""
        self.ends: list[str] = []
        self.ended = asyncio.Event()

    def end(self, how: str) -> None:
        self.ends.append(how)
        self.ended.set()


class Log:
    def __init__(self, reviews: int) -> None:
        self.reviews = reviews
        self.opened = 0
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.sessions: list[Session] = []
        self.last_kill = -1000.0

    def is_excused(self) -> bool:
        return time.monotonic() - self.last_kill < KILL_SHADOW

    def problem(self, text: str) -> None:
        self.problems.append(text)
        if len(self.problems) <= 20:
            print(f"PROBLEM: {text}", flush=True)

    def judge(self, entries: list[dict[str, str]]) -> None:
        """Compare what the CLIs saw with ``entries``, which is what Emacs did."""
        ends: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for entry in entries:
            key = (entry["session"], entry["path"], entry["state"])
            ends[key].append(entry["sha"] or "")
        for session in self.sessions:
            for path in session.diffs:
                kinds = ("accepted", "rejected", "edited")
                session.judge(path, *(ends[session.id, path, kind] for kind in kinds))


class Session:
    def __init__(self, cli: "Cli", fake: FakeCli) -> None:
        self._cli = cli
        self.log = cli.log
        self.fake = fake
        self.diffs: dict[str, list[Opened]] = {}
        self.accepted: dict[str, list[str]] = {}
        self.rejected: Counter[str] = Counter()
        self.closed: dict[str, list[str]] = {}
        self.contexts = 0
        self.fate = ""
        self.is_leaving = False
        self.is_listening = True
        self._stream: Events | None = None
        self._reader: asyncio.Task[None] | None = None

    def follow(self, stream: Events) -> None:
        self._stream = stream
        self._reader = asyncio.create_task(self._read(stream))

    async def reopen(self) -> None:
        """Cut the event stream while nothing is in transit; open another."""
        reader, stream = self._reader, self._stream
        assert reader is not None
        assert stream is not None
        self._reader = None
        reader.cancel()
        stream.close()
        await asyncio.sleep(self._cli.random.random() * 2)
        self.follow(await to_thread(self.fake.listen))

    def lose(self, why: str) -> None:
        """Record that the session has ended, with all its diffs."""
        if self.fate:
            return
        self.fate = why
        self.log.counts[f"sessions lost: {why}"] += 1
        if self._stream is not None:
            self._stream.close()
        if self._reader is not None and self._reader is not asyncio.current_task():
            self._reader.cancel()
        for diff in self.open_diffs():
            diff.end("lost")

    def open_diffs(self) -> list[Opened]:
        every = itertools.chain(*self.diffs.values())
        return [diff for diff in every if not diff.ends]

    @property
    def id(self) -> str:
        return self.fake.session_id

    def judge(
        self, path: str, accepted: list[str], rejected: list[str], edited: list[str]
    ) -> None:
        """Report each diff of ``path`` that has no end, or another than in Emacs."""
        for diff in self.diffs[path]:
            if len(diff.ends) != 1:
                self.log.problem(f"{path}: ends {diff.ends}")
        where = f"{self.id} {path}"
        in_emacs, here = Counter(accepted), Counter(self.accepted.get(path, []))
        closed = Counter(self.closed.get(path, []))
        if here - in_emacs:
            self.log.problem(f"{where}: received a text that was not accepted")
        rejects = self.rejected[path]
        if rejects > len(rejected):
            self.log.problem(f"{where}: {rejects} rejects, {len(rejected)}")
        if self.fate in UNSURE:
            return
        if in_emacs - here - closed:
            self.log.problem(f"{where}: an accepted text never came")
        if rejects < len(rejected) and not closed:
            self.log.problem(f"{where}: a reject never came")
        proposed = {sha(diff.text) for diff in self.diffs[path]}
        if "holdedit-" in path and set(closed - Counter(edited)) - proposed:
            self.log.problem(f"{where}: closeDiff returned an unknown text")

    async def _read(self, stream: Events) -> None:
        """Take the events of ``stream``, and of those that follow it."""
        try:
            while True:
                try:
                    self._take(await to_thread(stream.next, None))
                except AssertionError as end:
                    if not stream.is_graceful:
                        raise ConnectionError(str(end)) from None
                    self.log.counts["streams ended gracefully"] += 1
                    self.is_listening = False
                    await asyncio.sleep(AGAIN)
                    if self.fate or self.is_leaving:
                        return
                    stream = self._stream = await to_thread(self.fake.listen)
                    self.is_listening = True
        except (*WRONG, *LOST) as error:
            if not self.is_leaving:
                self.break_off(f"stream: {error!r}")

    def break_off(self, why: str) -> None:
        """Lose the session, which is a problem unless the server was killed."""
        if not self.fate and not self.log.is_excused():
            self.log.problem(f"{self._cli.name} lost without a reason: {why}")
        self.lose("server killed")

    def _take(self, event: dict[str, Any]) -> None:
        method, params = event["method"], event["params"]
        if method == "ide/contextUpdate":
            self.contexts += 1
        elif method == "ide/diffAccepted":
            path, text = params["filePath"], params["content"]
            self.accepted.setdefault(path, []).append(sha(text))
            self._take_end(path, "accepted", text)
        elif method == "ide/diffRejected":
            self.rejected[params["filePath"]] += 1
            self._take_end(params["filePath"], "rejected")
        else:
            self.log.problem(f"unknown notification {method}")

    def _take_end(self, path: str, how: str, text: str | None = None) -> None:
        """Take that a diff of ``path`` was accepted with ``text``, or rejected."""
        for diff in self.diffs.get(path, []):
            if not diff.ends and (text is None or text.startswith(diff.mark)):
                if diff.kind not in BY_USER[how]:
                    self.log.problem(f"{path}: {how} without the user")
                elif diff.kind == "accept" and text != diff.text:
                    self.log.problem(f"{path}: accepted another text")
                diff.end(how)
                return
        outcomes = [(d.mark, d.ends) for d in self.diffs.get(path, [])[-3:]]
        what = f"{how} {text and text[:30]!r} again: {outcomes}"
        self.log.problem(f"{self._cli.name} {path}: {what}")


class Cli:
    """One CLI, which opens one diff after the other, or several."""

    def __init__(
        self, name: str, log: Log, random: Random, server: tuple[int, str], root: Path
    ) -> None:
        self.name = name
        self.log = log
        self.random = random
        self._server = server
        self.session: Session | None = None
        self._directory = root
        self._marks = itertools.count(1)
        self._names = itertools.count(1)

    async def connected(self) -> Session:
        """Return a live session, a new one if necessary."""
        for _ in range(60):
            if self.session is not None and not self.session.fate:
                return self.session
            try:
                fake = FakeCli(*self._server)
                session = Session(self, fake)
                session.follow(await to_thread(fake.connect))
                tools = (await to_thread(fake.ask, "tools/list", {}))["result"]["tools"]
                assert {tool["name"] for tool in tools} == {"openDiff", "closeDiff"}, (
                    tools
                )
                self.log.sessions.append(session)
                self.session = session
            except (*WRONG, *LOST) as error:
                if not self.log.is_excused():
                    self.log.problem(f"{self.name} cannot connect: {error!r}")
                await asyncio.sleep(0.5)
        raise AssertionError(f"{self.name} is not connected within 30 s")

    async def open_diff(self, session: Session, diff: Opened) -> None:
        """Call openDiff, and count it once it is acknowledged."""
        # An answer to it may come before the acknowledgement.
        session.diffs.setdefault(diff.path, []).append(diff)
        try:
            await to_thread(session.fake.open_diff, diff.path, diff.text)
        except BaseException:
            session.diffs[diff.path].remove(diff)
            raise
        self.log.opened += 1

    def _new(self, kind: str, name: str = "") -> Opened:
        mark = f"{self.name} {next(self._marks)}"
        text = proposal(self.random, f"<{mark}>")
        if kind in ("edit", "holdedit"):
            text = text or f"<{mark}>\n"
        name = name or f"{kind}-{next(self._names) % 40}.txt"
        path = str(self._directory / name)
        return Opened(path, kind, text, f"<{mark}>")

    async def review(self) -> None:
        session = await self.connected()
        try:
            if self.random.random() < 0.05:
                kinds = self.random.choices(KINDS[:4], k=5)
                await asyncio.gather(*(self._one(session, kind) for kind in kinds))
            else:
                (kind,) = self.random.choices(KINDS, WEIGHTS)
                await self._one(session, kind)
        except WRONG as error:
            if not session.fate:
                self.log.problem(f"{self.name}: {error!r}"[:300])
            session.lose("wrong answer")
        except LOST as error:
            session.break_off(repr(error))

    async def _one(self, session: Session, kind: str) -> None:
        # The first few are open in Emacs.
        visited = kind == "accept" and self.random.random() < 0.1
        name = f"accept-{self.random.randrange(3)}-open.txt" if visited else ""
        path = str(self._directory / name)
        if visited and any(
            open_diff.path == path for open_diff in session.open_diffs()
        ):
            name = ""
        diff = self._new(kind, name)
        await self.open_diff(session, diff)
        if kind in ("hold", "holdedit", "race"):
            await self._close(session, diff)
        else:
            await self._ended(diff)
        if diff.ends == ["accepted"] and (visited or self.random.random() < 0.1):
            await to_thread(Path(diff.path).write_bytes, diff.text.encode())

    async def _close(self, session: Session, diff: Opened) -> None:
        await asyncio.sleep(self.random.random() * 0.12)
        answer = await to_thread(session.fake.close_diff, diff.path)
        content = answer.get("content")
        if content is None:
            if diff.kind != "race" and not session.fate:
                self.log.problem(f"{diff.path}: closeDiff found no diff: {diff.ends}")
            await self._ended(diff)
            return
        session.closed.setdefault(diff.path, []).append(sha(content))
        if not diff.ends:
            diff.end("closed")
            if diff.kind != "holdedit" and content != diff.text:
                self.log.problem(f"{diff.path}: closeDiff returned another text")
        elif not session.fate:
            self.log.problem(f"{diff.path}: closed after it had ended: {diff.ends}")

    async def _ended(self, diff: Opened) -> None:
        try:
            await asyncio.wait_for(diff.ended.wait(), ANSWER)
        except asyncio.TimeoutError:
            self.log.problem(f"{self.name} {diff.path} {diff.mark}: no end came")
            diff.end("none")

    async def disrupt(self, kind: str) -> None:
        session = await self.connected()
        self.log.counts[f"disruption: {kind}"] += 1
        try:
            if kind == "reopen":
                await session.reopen()
                return
            for action in ("hold", "accept", "reject"):
                if self.random.random() < 0.5:
                    await self.open_diff(session, self._new(action))
            session.lose("cut")
        except (*WRONG, *LOST) as error:
            session.break_off(f"{kind}: {error!r}")

    async def run(self) -> None:
        while self.log.opened < self.log.reviews:
            if self.random.random() < 0.01:
                await self.disrupt(self.random.choice(["cut", "reopen"]))
            else:
                await self.review()

    async def open_some(self) -> None:
        """Open diffs that stay unanswered until the server stops."""
        session = await self.connected()
        for number in range(5):
            await self.open_diff(session, self._new("stop", f"hold-{number}-stop.txt"))
