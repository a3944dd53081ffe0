# SPDX-License-Identifier: GPL-3.0-or-later
"""The session of one CLI: its outbox and its event streams.

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
from .places import Place
from .types import Facts, Notification, Process, outcome

COMMENT = b": \r\n\r\n"


class QueuedOutcome(NamedTuple):
    """An outcome that waits for a stream; ``diff_id`` is 0 if there was no review."""

    diff_id: int
    event: bytes


class Session:
    """The session of one CLI, with its outbox; ``report`` see `Sessions`."""

    def __init__(self, session_id: str, report: Callable[[str, object], None]) -> None:
        self.id = session_id
        self._report = report
        self.since = int(1000 * time.time())
        self.client: Client | None = None
        self.place: Place | None = None
        self.version: str | None = None
        self.process: Process | None = None
        self.search: asyncio.Task[None] | None = None
        # Until their timers end.
        self.interrupted: dict[str, asyncio.TimerHandle] = {}
        self.settled: dict[str, asyncio.TimerHandle] = {}
        self.context: bytes | None = None
        self.outcomes: deque[QueuedOutcome] = deque()
        self.flushed = asyncio.Event()
        self.flushed.set()
        self.stream: Stream | None = None
        self.requests = 0
        self.timer: asyncio.TimerHandle | None = None

    @property
    def short_id(self) -> str:
        """The client and ID of the session in the log."""
        name = "" if self.client is None else f"{self.client.name} "
        return name + self.id[:8]

    @property
    def facts(self) -> Facts:
        """The description of the session for Emacs, without what is unknown."""
        facts = {
            "id": self.id,
            "since": self.since,
            "client": self.client and self.client.name,
            "version": self.version,
            "place": self.place and self.place.name,
            "pid": self.process and self.process.pid,
            "identity": self.process and self.process.identity,
            "directory": self.process and self.process.directory,
        }
        return {key: value for key, value in facts.items() if value is not None}

    async def wait_for_process(self, limit: float) -> Process | None:
        """Return the process of the CLI, after waiting ``limit`` seconds at most."""
        if self.search is not None:
            await asyncio.wait([self.search], timeout=limit)
        return self.process

    def update_context(self, context: bytes | None) -> None:
        """Send ``context`` in place of an earlier context."""
        self.context = context
        self._wake()

    def notify(self, path: str, content: str | None = None, diff_id: int = 0) -> None:
        """Queue the outcome of the diff ``diff_id``, see `outcome`."""
        event = encode_event(outcome(path, content))
        self.outcomes.append(QueuedOutcome(diff_id, event))
        self.flushed.clear()
        self._wake()

    def acknowledge(self) -> None:
        """Drop the first outcome, which was written, and report it."""
        diff_id = self.outcomes.popleft().diff_id
        if diff_id:
            self._report("outcome-written", diff_id)
        if not self.outcomes:
            self.flushed.set()

    def _wake(self) -> None:
        if self.stream is not None:
            self.stream.wake()


class Stream:
    """An open event stream of a session, until a newer one replaces it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changed = asyncio.Event()
        self._ending = False
        self._context: bytes | None = None
        self.closed = asyncio.Event()

    async def next(self, silence: float) -> bytes | None:
        """Return the next event, None at the end, or a comment after ``silence``."""
        if self._pending() is None and not self._ending:
            self._changed.clear()
            # `asyncio.wait_for` creates a task, which delays each event.
            loop = asyncio.get_running_loop()
            timer = loop.call_later(silence, self._changed.set)
            try:
                await self._changed.wait()
            finally:
                timer.cancel()
        place = self._session.place
        # An outcome for a silent host might be lost, so it waits for its answer.
        if place is not None and self._session.outcomes and not await place.is_alive():
            return None
        event = self._pending()
        return COMMENT if event is None and not self._ending else event

    def written(self, event: bytes) -> None:
        """Record that ``event`` was written, unless the stream was replaced."""
        session = self._session
        if session.stream is not self:
            return
        if session.outcomes and session.outcomes[0].event is event:
            session.acknowledge()
        elif event is not COMMENT:
            self._context = event

    def wake(self) -> None:
        """Check again for events to write."""
        self._changed.set()

    def end(self) -> None:
        """End the stream gracefully when everything is written."""
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


def encode_event(notification: Notification) -> bytes:
    """Return ``notification`` as an event of the stream."""
    data = json.dumps(notification, ensure_ascii=False).encode()
    return b"event: message\r\ndata: " + data + b"\r\n\r\n"
