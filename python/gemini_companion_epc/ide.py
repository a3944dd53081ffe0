# SPDX-License-Identifier: GPL-3.0-or-later
"""The Gemini end: sessions, their outboxes, and the diffs that await an outcome.

Knows neither HTTP nor EPC: the streams are read by asgi, and Emacs is whatever
keeps the promises of the Protocol below.  All of it runs in the event loop.
"""

import asyncio
import itertools
import json
import logging
from collections import deque
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol
from uuid import uuid4

from .config import Config
from .exceptions import EmacsError, MalformedArgument
from .types import (
    Accepted,
    CloseReason,
    Diff,
    IdeContext,
    Notification,
    Outcome,
    Rejected,
    clean,
    fault,
)

logger = logging.getLogger(__name__)

COMMENT = b": \r\n\r\n"


class Emacs(Protocol):
    """What the sessions need of Emacs."""

    def open_diff(self, diff: Diff) -> None:
        """Show DIFF, whenever it suits the person."""

    async def close_diff(self, diff_id: int, reason: CloseReason) -> str | None:
        """Take the diff DIFF_ID away; return what its proposal held."""

    def sessions_update(self, session_ids: Sequence[str]) -> None:
        """Tell which sessions are connected."""


class Session:
    """One CLI, with its diffs by path and its outbox."""

    def __init__(self, session_id: str) -> None:
        self.id = session_id
        self.diffs: dict[str, Diff] = {}
        self.interrupted: dict[str, float] = {}
        self.context: bytes | None = None
        self.outcomes: deque[bytes] = deque()
        self.flushed = asyncio.Event()
        self.flushed.set()
        self.stream: Stream | None = None
        self.requests = 0
        self.review_timer: asyncio.TimerHandle | None = None
        self.session_timer: asyncio.TimerHandle | None = None

    def show(self, context: bytes) -> None:
        """Make CONTEXT, and no older one, what the client is to know."""
        self.context = context
        self._wake()

    def notify(self, outcome: Outcome) -> None:
        """Queue OUTCOME until it is written to an open stream."""
        event = encode_event(outcome.notification())
        if event is not None:
            self.outcomes.append(event)
            self.flushed.clear()
            self._wake()

    def _wake(self) -> None:
        if self.stream is not None:
            self.stream.wake()


class Stream:
    """One open event stream of a session; a newer one takes its place."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._changed = asyncio.Event()
        self._ending = False
        self._context: bytes | None = None
        self.closed = asyncio.Event()

    async def next(self, silence: float) -> bytes | None:
        """Return what to write next, a comment after SILENCE, None at the end."""
        while True:
            self._changed.clear()
            event = self._pending()
            if event is not None or self._ending:
                return event
            try:
                await asyncio.wait_for(self._changed.wait(), silence)
            except asyncio.TimeoutError:
                return COMMENT

    def written(self, event: bytes) -> None:
        """Forget EVENT, which has left; a stream that was replaced keeps it."""
        session = self._session
        if session.stream is not self:
            return
        if session.outcomes and session.outcomes[0] is event:
            session.outcomes.popleft()
            if not session.outcomes:
                session.flushed.set()
        elif event is not COMMENT:
            self._context = event

    def wake(self) -> None:
        """Look again at what there is to write."""
        self._changed.set()

    def end(self) -> None:
        """End the stream gracefully once everything is written."""
        self._ending = True
        self._changed.set()

    def _pending(self) -> bytes | None:
        session = self._session
        if session.stream is not self:
            return None
        if session.outcomes and self._context is not None:
            return session.outcomes[0]
        if session.context is not None and session.context != self._context:
            return session.context
        return session.outcomes[0] if session.outcomes else None


class Ide:
    """All sessions, and the way of each diff to exactly one end."""

    def __init__(self, config: Config, emacs: Emacs) -> None:
        self._config = config
        self._emacs = emacs
        self._sessions: dict[str, Session] = {}
        self._diffs: dict[int, Diff] = {}
        self._closing: dict[int, str | None] = {}
        self._ids = itertools.count(1)
        self._context: bytes | None = None
        self._dismissals: set[asyncio.Task[None]] = set()
        self._is_stopping = False

    # Sessions

    def new_session(self) -> Session:
        """Return a session for a client that has just introduced itself."""
        return self.session(uuid4().hex)

    def session(self, session_id: str) -> Session:
        """Return the session SESSION_ID, taking in one from before a restart."""
        session = self._sessions.get(session_id)
        if session is None:
            session = self._sessions[session_id] = Session(session_id)
            session.context = self._context
            self._start_session_timer(session)
        return session

    def end_session(self, session_id: str) -> bool:
        """Forget the session SESSION_ID; return whether there was one."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        _cancel(session.review_timer, session.session_timer)
        self._dismiss_all(session)
        if session.stream is not None:
            session.stream.end()
            session.stream = None
        self._report_sessions()
        return True

    @contextmanager
    def request(self, session: Session) -> Iterator[None]:
        """Keep SESSION while a request of it is answered."""
        session.requests += 1
        _cancel(session.session_timer)
        try:
            yield
        finally:
            session.requests -= 1
            self._start_session_timer(session)

    def open_stream(self, session: Session) -> Stream:
        """Return a new event stream of SESSION, which ends the one before."""
        former, session.stream = session.stream, Stream(session)
        if former is not None:
            former.end()
        _cancel(session.review_timer, session.session_timer)
        if self._is_stopping:
            session.stream.end()
        self._report_sessions()
        return session.stream

    def close_stream(self, session: Session, stream: Stream) -> None:
        """Note that STREAM of SESSION is closed, for good unless one follows."""
        stream.closed.set()
        if session.stream is not stream:
            return
        session.stream = None
        stream.end()
        loop = asyncio.get_running_loop()
        session.review_timer = loop.call_later(
            self._config.review_grace, self._dismiss_all, session
        )
        self._start_session_timer(session)
        self._report_sessions()

    def _start_session_timer(self, session: Session) -> None:
        _cancel(session.session_timer)
        if session.stream is None and not session.requests:
            loop = asyncio.get_running_loop()
            session.session_timer = loop.call_later(
                self._config.session_grace, self.end_session, session.id
            )

    def _report_sessions(self) -> None:
        self._emacs.sessions_update(
            [
                session.id
                for session in self._sessions.values()
                if session.stream is not None
            ]
        )

    # From Emacs

    def broadcast(self, context: IdeContext) -> None:
        """Tell every client CONTEXT, now or when it connects."""
        event = encode_event(context.notification())
        if event is None:
            return
        self._context = event
        for session in self._sessions.values():
            session.show(event)

    def accept(self, diff_id: int, content: str) -> None:
        """Tell the client of the diff DIFF_ID to write CONTENT."""
        if diff_id in self._closing:
            self._closing[diff_id] = content
            return
        diff = self._diffs.get(diff_id)
        if diff is not None and not content and diff.proposal:
            # The client takes "" for no answer and writes the model's text.
            raise MalformedArgument(
                "An emptied proposal cannot be accepted: Gemini CLI would write "
                "the model's text; reject it, or answer in the terminal"
            )
        if diff is not None:
            self._settle(diff, Accepted(diff.path, content))

    def reject(self, diff_id: int) -> None:
        """Tell the client of the diff DIFF_ID to leave the file as it is."""
        diff = self._diffs.get(diff_id)
        if diff is not None:
            self._settle(diff, Rejected(diff.path))

    def _settle(self, diff: Diff, outcome: Outcome) -> None:
        session = self._sessions[diff.session_id]
        self._take_out(session, diff)
        session.notify(outcome)

    def _take_out(self, session: Session, diff: Diff) -> None:
        del self._diffs[diff.id]
        del session.diffs[diff.path]

    # From the client

    def open_diff(self, session: Session, path: str, proposal: str) -> None:
        """Have the person review PROPOSAL for PATH."""
        if self._is_interrupted(session, path) or self._is_stopping:
            session.notify(Rejected(path))
            return
        if self._sessions.get(session.id) is not session:
            return
        former = session.diffs.get(path)
        if former is not None:
            self._dismiss(session, former, "closed")
        diff = Diff(next(self._ids), session.id, path, proposal)
        self._diffs[diff.id] = session.diffs[path] = diff
        self._emacs.open_diff(diff)

    async def close_diff(self, session: Session, path: str) -> str | None:
        """Close the diff of PATH; return its text, None when there is none."""
        diff = session.diffs.get(path)
        if diff is None:
            self._release(session, path)
            return None
        self._take_out(session, diff)
        self._closing[diff.id] = None
        try:
            text = await self._final_text(diff)
        finally:
            accepted = self._closing.pop(diff.id)
        if text is None:
            text = accepted
        return clean(diff.proposal if text is None else text)

    async def _final_text(self, diff: Diff) -> str | None:
        try:
            return await asyncio.wait_for(
                self._emacs.close_diff(diff.id, "closed"), self._config.close_limit
            )
        except (EmacsError, asyncio.TimeoutError) as error:
            logger.warning("No text of diff %d from Emacs: %r", diff.id, error)
            return None

    def _release(self, session: Session, path: str) -> None:
        """Free a client that Ctrl-C left waiting for a diff nobody sees.

        It sends no closeDiff for the interrupted one and holds back the next
        openDiff, so the first sign is the closeDiff of a path not open here.
        """
        for diff in list(session.diffs.values()):
            self._dismiss(session, diff, "lost")
            session.notify(Rejected(diff.path))
            now = asyncio.get_running_loop().time()
            session.interrupted[path] = now + self._config.cancel_window

    def _is_interrupted(self, session: Session, path: str) -> bool:
        until = session.interrupted.pop(path, 0.0)
        return asyncio.get_running_loop().time() < until

    def _dismiss_all(self, session: Session) -> None:
        for diff in list(session.diffs.values()):
            self._dismiss(session, diff, "lost")

    def _dismiss(self, session: Session, diff: Diff, reason: CloseReason) -> None:
        self._take_out(session, diff)
        task = asyncio.get_running_loop().create_task(
            self._tell_dismissed(diff, reason)
        )
        self._dismissals.add(task)
        task.add_done_callback(self._dismissals.discard)

    async def _tell_dismissed(self, diff: Diff, reason: CloseReason) -> None:
        try:
            await self._emacs.close_diff(diff.id, reason)
        except EmacsError as error:
            logger.info("Diff %d was not dismissed in Emacs: %r", diff.id, error)

    # Stop

    def reject_all(self) -> None:
        """Reject every diff that awaits its outcome, and all that follow."""
        self._is_stopping = True
        for diff in list(self._diffs.values()):
            self._settle(diff, Rejected(diff.path))

    async def flush(self) -> None:
        """Wait until every outcome has left, within the limit."""
        waiting = [session.flushed.wait() for session in self._sessions.values()]
        await _within(self._config.flush_limit, waiting)

    async def end_streams(self) -> None:
        """End every event stream gracefully, within the limit."""
        streams = [
            session.stream
            for session in self._sessions.values()
            if session.stream is not None
        ]
        for stream in streams:
            stream.end()
        await _within(
            self._config.end_limit, [stream.closed.wait() for stream in streams]
        )


def encode_event(notification: Notification) -> bytes | None:
    """Return NOTIFICATION as an event, None if the client would refuse it."""
    found = fault(notification)
    if found is not None:
        logger.error("Not sent: %s: %s", notification.get("method"), found)
        return None
    data = json.dumps(notification, separators=(",", ":"))
    return b"event: message\r\ndata: " + data.encode("ascii") + b"\r\n\r\n"


async def _within(
    limit: float, waiting: Sequence[Coroutine[None, None, object]]
) -> None:
    if waiting:
        tasks = [asyncio.ensure_future(one) for one in waiting]
        _, late = await asyncio.wait(tasks, timeout=limit)
        for task in late:
            task.cancel()


def _cancel(*timers: asyncio.TimerHandle | None) -> None:
    for timer in timers:
        if timer is not None:
            timer.cancel()
