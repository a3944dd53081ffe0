# SPDX-License-Identifier: GPL-3.0-or-later
"""One CLI: its session, what waits for it, and its event streams.

A notification that is sent while no event stream is open would be lost, so each
session keeps its outcomes until they are written, and the latest context.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from .clients import Client
from .processes import ProcessWatch
from .types import Accepted, Diff, Notification, Outcome, Process, SessionFacts

COMMENT = b": \r\n\r\n"


class QueuedOutcome(NamedTuple):
    """An outcome that waits for a stream; the diff is 0 for one without a review."""

    diff_id: int
    is_accepted: bool
    event: bytes


class Session:
    """One CLI, with its diffs by path and its outbox."""

    def __init__(self, session_id: str, told: Callable[[int], None]) -> None:
        self.id = session_id
        self._told = told
        self.since = int(1000 * time.time())
        self.client: Client | None = None
        self.version: str | None = None
        self.process: Process | None = None
        self.search: asyncio.Task[None] | None = None
        self._watch: ProcessWatch | None = None
        self.diffs: dict[str, Diff] = {}
        self.interrupted: dict[str, float] = {}
        self.settled: dict[str, float] = {}
        self.context: bytes | None = None
        self.outcomes: deque[QueuedOutcome] = deque()
        self.flushed = asyncio.Event()
        self.flushed.set()
        self.stream: Stream | None = None
        self.requests = 0
        self.review_timer: asyncio.TimerHandle | None = None
        self.session_timer: asyncio.TimerHandle | None = None

    @property
    def short_id(self) -> str:
        """What tells the session from others in the log."""
        return self.id[:8]

    @property
    def facts(self) -> SessionFacts:
        """What Emacs is to know of the session."""
        client = None if self.client is None else self.client.name
        return SessionFacts(self.id, self.process, self.since, self.version, client)

    async def wait_for_process(self, limit: float) -> Process | None:
        """Return the CLI's process, searched for LIMIT seconds more at most."""
        if self.search is not None:
            await asyncio.wait([self.search], timeout=limit)
        return self.process

    def watch_process(self, exited: Callable[[], object]) -> None:
        """Call `exited` once the CLI's process, if it is known, has ended."""
        self.end_watch()
        if self.process is not None:
            self._watch = ProcessWatch(self.process.pid, exited)

    def end_watch(self) -> None:
        """Stop watching the CLI's process."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def show(self, context: bytes) -> None:
        """Make CONTEXT, and no older one, what the client is to know."""
        self.context = context
        self._wake()

    def notify(self, outcome: Outcome, diff_id: int = 0) -> None:
        """Queue OUTCOME, of the diff DIFF_ID, until it is written to a stream."""
        event = encode_event(outcome.notification())
        is_accepted = isinstance(outcome, Accepted)
        self.outcomes.append(QueuedOutcome(diff_id, is_accepted, event))
        self.flushed.clear()
        self._wake()

    def withdraw(self, diff_id: int) -> None:
        """Tell no outcome of the diff DIFF_ID that has not been written by now."""
        self._keep([one for one in self.outcomes if one.diff_id != diff_id])

    def withdraw_accepted(self) -> list[int]:
        """Withdraw what was accepted and not written; return the diffs."""
        accepted = [one.diff_id for one in self.outcomes if one.is_accepted]
        self._keep([one for one in self.outcomes if not one.is_accepted])
        return accepted

    def _keep(self, outcomes: list[QueuedOutcome]) -> None:
        self.outcomes = deque(outcomes)
        if not outcomes:
            self.flushed.set()

    def left(self) -> None:
        """Forget the first outcome, which has left, and say so."""
        outcome = self.outcomes.popleft()
        if outcome.diff_id:
            self._told(outcome.diff_id)
        if not self.outcomes:
            self.flushed.set()

    def _wake(self) -> None:
        if self.stream is not None:
            self.stream.wake()


class Stream:
    """One open event stream of a session; a newer one takes its place."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: asyncio.Future[bool] | None = None
        self._ending = False
        self._context: bytes | None = None
        self.closed = asyncio.Event()

    async def next(self, silence: float) -> bytes | None:
        """Return what to write next, a comment after SILENCE, None at the end."""
        while True:
            event = self._pending()
            if event is not None or self._ending:
                return event
            if not await self._wait(silence):
                return COMMENT

    async def _wait(self, silence: float) -> bool:
        """Return whether `wake` was called before SILENCE seconds were over.

        A task less than with `asyncio.wait_for`, and the client is told sooner.
        """
        loop = asyncio.get_running_loop()
        self._waiting = loop.create_future()
        timer = loop.call_at(next_tick(loop.time(), silence), self._go_on, False)
        try:
            return await self._waiting
        finally:
            timer.cancel()
            self._waiting = None

    def _go_on(self, is_changed: bool) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(is_changed)

    def written(self, event: bytes) -> None:
        """Forget EVENT, which has left; a stream that was replaced keeps it."""
        session = self._session
        if session.stream is not self:
            return
        if session.outcomes and session.outcomes[0].event is event:
            session.left()
        elif event is not COMMENT:
            self._context = event

    def wake(self) -> None:
        """Look again at what there is to write."""
        self._go_on(True)

    def end(self) -> None:
        """End the stream gracefully once everything is written."""
        self._ending = True
        self.wake()

    def _pending(self) -> bytes | None:
        session = self._session
        if session.stream is not self:
            return None
        if session.outcomes and self._context is not None:
            return session.outcomes[0].event
        if session.context is not None and session.context != self._context:
            return session.context
        return session.outcomes[0].event if session.outcomes else None


def next_tick(now: float, interval: float) -> float:
    """Return when after NOW that is due which is done at each INTERVAL.

    Intervals that are multiples of each other then wake the process together.
    """
    return (now // interval + 1) * interval


def encode_event(notification: Notification) -> bytes:
    """Return the event for ``notification``."""
    return b"event: message\r\ndata: " + _json(notification) + b"\r\n\r\n"


def _json(notification: Notification) -> bytes:
    if notification["method"] != "ide/diffAccepted":
        return json.dumps(notification, separators=(",", ":")).encode("ascii")
    # Five times as fast for a large text.  It comes with mcp, which a server
    # that has just started has not imported, so not for the context.
    from pydantic_core import to_json

    return to_json(notification)
