# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions, and the diffs that await an outcome.

This module depends neither on HTTP nor on EPC: asgi reads the event streams, and
Emacs is any object with the methods of the Protocol below.  Everything runs in
the event loop.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias
from uuid import uuid4

from .clients import Client
from .config import Config
from .exceptions import EmacsError, MalformedArgument, TooManySessions
from .processes import on_exit
from .session import Session, Stream, encode_event
from .types import (
    Accepted,
    CloseReason,
    Diff,
    IdeContext,
    Outcome,
    Process,
    Rejected,
    SessionFacts,
    clean,
)

logger = logging.getLogger(__name__)


FindProcess: TypeAlias = Callable[[int], Process | None]


class Emacs(Protocol):
    """The calls to Emacs."""

    def open_diff(self, diff: Diff, session: SessionFacts) -> None:
        """Open a review of ``diff``, from ``session``."""

    async def close_diff(self, diff_id: int, reason: CloseReason) -> str | None:
        """Close the review of ``diff_id`` and return the text of its proposal.

        Return None if Emacs has none.
        """

    def sessions_update(self, sessions: Sequence[SessionFacts]) -> None:
        """Report the sessions that are connected."""

    def outcome_written(self, diff_id: int) -> None:
        """Report that the outcome of ``diff_id`` was written to its client."""

    def outcome_undelivered(self, diff_id: int) -> None:
        """Report that the accepted text of ``diff_id`` cannot be delivered."""


class Ide:
    """All sessions, and their diffs, each of which has exactly one outcome."""

    def __init__(self, config: Config, emacs: Emacs, find_process: FindProcess) -> None:
        self._config = config
        self._emacs = emacs
        self._find_process = find_process
        self._one_search = asyncio.Lock()
        self._watched: set[int] = set()
        self._sessions: dict[str, Session] = {}
        self._diffs: dict[int, Diff] = {}
        self._closing: dict[int, str | None] = {}
        # A client may open a diff before Emacs hands over those of the previous
        # process, with other IDs.
        self._next_id = 1000 * int(time.time()) if config.port else 1
        self._context: bytes | None = None
        # Emacs sends a context to a new process before its clients reconnect.
        self._wants_context = True
        self._dismissals: set[asyncio.Task[str | None]] = set()
        self._reported = 0.0
        self._report: asyncio.TimerHandle | None = None
        self._is_stopping = False
        self._is_ending = False

    # Sessions

    def new_session(self, client: Client) -> Session:
        """Return a new session of ``client``."""
        return self.session(uuid4().hex, client)

    def session(self, session_id: str, client: Client | None = None) -> Session:
        """Return the session ``session_id``, a new one if it is unknown.

        A client may have opened it before a restart.  Raise TooManySessions if
        there are too many.
        """
        session = self._sessions.get(session_id)
        if session is None:
            if len(self._sessions) >= self._config.max_sessions:
                raise TooManySessions
            session = Session(session_id, self._emacs.outcome_written)
            self._sessions[session_id] = session
            session.context = self._context
            self._start_session_timer(session)
        # An adopted session is known before its first request comes.
        session.client = session.client or client
        return session

    def identify(self, session: Session, port: int, is_lasting: bool) -> None:
        """Search for the process of ``session``, which is connected from ``port``.

        Search again for a connection that is lasting: others may be closed before
        they are found.
        """
        if session.process is None and (session.search is None or is_lasting):
            loop = asyncio.get_running_loop()
            session.search = loop.create_task(self._search(session, port))

    async def _search(self, session: Session, port: int) -> None:
        # Each search reads much, and many clients may connect at once.
        async with self._one_search:
            if session.process is None:
                session.process = await asyncio.to_thread(self._find_process, port)
                if session.process is not None and session.stream is not None:
                    self.report_sessions()

    def end_session(
        self, session_id: str, reason: CloseReason = "disconnected"
    ) -> bool:
        """End the session ``session_id``; return whether it existed."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return False
        logger.info("Session %s ended: %s", session.short_id, reason)
        _cancel(session.review_timer, session.session_timer)
        self._abandon(session, reason)
        # The client will not receive the rejections that are left, and Emacs would
        # send them again after a crash.
        while session.outcomes and not self._is_ending:
            session.acknowledge()
        if session.stream is not None:
            session.stream.end()
            session.stream = None
        self.report_sessions()
        return True

    @contextmanager
    def request(self, session: Session) -> Iterator[None]:
        """Keep ``session`` while one of its requests is answered."""
        session.requests += 1
        _cancel(session.session_timer)
        try:
            yield
        finally:
            session.requests -= 1
            self._start_session_timer(session)

    def open_stream(self, session: Session) -> Stream:
        """Return a new event stream of ``session``, and end the previous one."""
        previous, session.stream = session.stream, Stream(session)
        if previous is not None:
            previous.end()
        _cancel(session.review_timer, session.session_timer)
        if self._is_stopping or self._is_ending:
            session.stream.end()
        self.report_sessions()
        return session.stream

    def close_stream(self, session: Session, stream: Stream) -> None:
        """Record that ``stream`` of ``session`` is closed; another may follow."""
        stream.closed.set()
        if session.stream is not stream:
            return
        session.stream = None
        stream.end()
        self._watch_process(session)
        self._start_review_timer(session)
        self._start_session_timer(session)
        self.report_sessions()

    def _watch_process(self, session: Session) -> None:
        """End ``session`` when its process, if known, exits.

        Otherwise the reviews of a killed CLI would stay open for the grace time.
        """
        if session.process is not None:
            pid = session.process.pid
            if pid not in self._watched:
                self._watched.add(pid)
                on_exit(pid, partial(self._exited, pid))

    def _exited(self, pid: int) -> None:
        self._watched.discard(pid)
        for session in list(self._sessions.values()):
            process = session.process
            if session.stream is None and process is not None and process.pid == pid:
                self.end_session(session.id, "exited")

    def _start_review_timer(self, session: Session) -> None:
        _cancel(session.review_timer)
        loop = asyncio.get_running_loop()
        session.review_timer = loop.call_later(
            self._config.review_grace, self._abandon, session, "disconnected"
        )

    def _start_session_timer(self, session: Session) -> None:
        _cancel(session.session_timer)
        if session.stream is None and not session.requests:
            loop = asyncio.get_running_loop()
            session.session_timer = loop.call_later(
                self._config.session_grace, self.end_session, session.id
            )

    def report_sessions(self) -> None:
        """Report the connected sessions to Emacs, soon and not too often."""
        if self._report is None:
            self._report = asyncio.get_running_loop().call_at(
                self._reported + self._config.report_interval, self._report_now
            )

    def _report_now(self) -> None:
        self._report = None
        self._reported = asyncio.get_running_loop().time()
        if self._is_ending:
            # The answer of Emacs would arrive after the connection is closed.
            return
        connected = [
            session for session in self._sessions.values() if session.stream is not None
        ]
        self._wants_context = bool(connected)
        if not connected:
            # Emacs sends the next context when a client connects.
            self._context = None
            for session in self._sessions.values():
                session.context = None
        self._emacs.sessions_update([session.facts for session in connected])

    # From Emacs

    def broadcast(self, context: IdeContext) -> None:
        """Send ``context`` to every client, and to those that connect later.

        Drop it if the last report to Emacs had no sessions: it answers an earlier
        report, and would be outdated when a client connects.
        """
        if not self._wants_context:
            return
        self._context = encode_event(context.notification(self._config.is_trusted))
        for session in self._sessions.values():
            session.update_context(self._context)

    def adopt(self, diff: Diff) -> None:
        """Take over ``diff``, which was opened in the previous process.

        Raise MalformedArgument if it is already open here.
        """
        if diff.id in self._diffs or diff.id in self._closing:
            raise MalformedArgument(f"The diff {diff.id} is open already")
        self._next_id = max(self._next_id, diff.id + 1)
        session = self.session(diff.session_id)
        other = session.diffs.get(diff.path)
        if other is not None:
            # The previous process may have received a newer one in the meantime.
            older = min(diff, other, key=lambda one: one.id)
            self._dismiss(older, "closed")
            if older is diff:
                return
            self._remove(session, other)
        self._add(session, diff)
        if self._is_stopping:
            self._settle(diff, Rejected(diff.path))
        elif session.stream is None:
            self._start_review_timer(session)

    def drop(self, diff_id: int) -> None:
        """Drop the diff ``diff_id``, which the previous process has closed."""
        diff = self._diffs.get(diff_id)
        if diff is not None:
            self._remove(self._sessions[diff.session_id], diff)
        for session in self._sessions.values():
            session.withdraw(diff_id)
        self._emacs.outcome_written(diff_id)

    def accept(self, diff_id: int, content: str) -> None:
        """Accept the diff ``diff_id``: its client writes ``content``.

        Raise MalformedArgument if ``content`` is empty and the proposal is not.
        """
        if diff_id in self._closing:
            self._closing[diff_id] = content
        diff = self._open(diff_id)
        if diff is None:
            return
        if not content and diff.proposal:
            # The client takes "" for no content and writes the proposal.
            raise MalformedArgument(
                "An empty text cannot be accepted: the CLI would write the "
                "model's text; reject the proposal, or answer in the terminal"
            )
        self._settle(diff, Accepted(diff.path, content))

    def reject(self, diff_id: int) -> None:
        """Reject the diff ``diff_id``: its client writes nothing."""
        diff = self._open(diff_id)
        if diff is not None:
            self._settle(diff, Rejected(diff.path))

    def _open(self, diff_id: int) -> Diff | None:
        """Return the diff ``diff_id``, or None if it is not open any more."""
        diff = self._diffs.get(diff_id)
        if diff is None:
            self._emacs.outcome_written(diff_id)
        return diff

    def _settle(self, diff: Diff, outcome: Outcome) -> None:
        session = self._sessions[diff.session_id]
        self._remove(session, diff)
        now = asyncio.get_running_loop().time()
        session.settled = {
            path: until for path, until in session.settled.items() if until > now
        }
        session.settled[diff.path] = now + self._config.cancel_window
        session.notify(outcome, diff.id)

    def _add(self, session: Session, diff: Diff) -> None:
        self._diffs[diff.id] = session.diffs[diff.path] = diff

    def _remove(self, session: Session, diff: Diff) -> None:
        del self._diffs[diff.id]
        del session.diffs[diff.path]

    # From the client

    def open_diff(self, session: Session, path: str, proposal: str) -> None:
        """Open a review of ``proposal`` for the file ``path``."""
        now = asyncio.get_running_loop().time()
        if now < session.interrupted.pop(path, 0.0) or self._is_stopping:
            session.notify(Rejected(path))
            return
        if self._sessions.get(session.id) is not session:
            return
        previous = session.diffs.get(path)
        if previous is not None:
            self._remove(session, previous)
            self._dismiss(previous, "closed")
        diff = Diff(self._next_id, session.id, path, proposal)
        self._next_id += 1
        self._add(session, diff)
        self._emacs.open_diff(diff, session.facts)

    async def close_diff(self, session: Session, path: str) -> str | None:
        """Close the diff of ``path``; return its text, or None if there is none."""
        diff = session.diffs.get(path)
        if diff is None:
            self._release(session, path)
            return None
        self._remove(session, diff)
        self._closing[diff.id] = None
        try:
            # The client may disconnect before the task has begun.
            text = await asyncio.shield(self._dismiss(diff, "closed"))
        finally:
            accepted = self._closing.pop(diff.id)
        if text is None:
            text = accepted
        return clean(diff.proposal if text is None else text)

    def _release(self, session: Session, path: str) -> None:
        """Release a client that still waits for a diff after Ctrl-C.

        It sends neither closeDiff for that diff nor the next openDiff, so the
        first sign is closeDiff for a path that is not open.
        """
        now = asyncio.get_running_loop().time()
        if session.settled.get(path, now) > now:
            # The outcome of this diff is on its way to the client.
            return
        for diff in list(session.diffs.values()):
            self._remove(session, diff)
            self._dismiss(diff, "interrupted")
            session.notify(Rejected(diff.path))
            session.interrupted[path] = now + self._config.cancel_window

    def _abandon(self, session: Session, reason: CloseReason) -> None:
        """Dismiss the diffs of ``session``, and report undelivered acceptances."""
        if self._is_ending:
            # The successor has the diffs.
            return
        for diff in list(session.diffs.values()):
            self._remove(session, diff)
            self._dismiss(diff, reason)
        for diff_id in session.withdraw_accepted():
            self._emacs.outcome_undelivered(diff_id)

    def _dismiss(self, diff: Diff, reason: CloseReason) -> "asyncio.Task[str | None]":
        """Close ``diff`` in Emacs; the value of the task is its text, if any."""
        task = asyncio.get_running_loop().create_task(
            self._close_in_emacs(diff, reason)
        )
        self._dismissals.add(task)
        task.add_done_callback(self._dismissals.discard)
        return task

    async def _close_in_emacs(self, diff: Diff, reason: CloseReason) -> str | None:
        try:
            return await asyncio.wait_for(
                self._emacs.close_diff(diff.id, reason), self._config.close_limit
            )
        except (EmacsError, asyncio.TimeoutError) as error:
            logger.warning("Diff %d was not dismissed in Emacs: %r", diff.id, error)
            return None

    # Stop

    def reject_all(self) -> None:
        """Reject all diffs, and those that follow."""
        self._is_stopping = True
        for diff in list(self._diffs.values()):
            self._settle(diff, Rejected(diff.path))
            # After a signal, Emacs does not know that the server stops.
            self._dismiss(diff, "lost")

    async def finish_closing(self, limit: float) -> None:
        """Wait until Emacs has answered each close-diff, ``limit`` seconds at most."""
        await _within(limit, [self._all_dismissed()])

    async def _all_dismissed(self) -> None:
        # A client may close a diff meanwhile.
        while self._dismissals:
            await asyncio.wait(self._dismissals)

    async def flush(self, limit: float) -> None:
        """Wait until all outcomes are written, ``limit`` seconds at most."""
        waiting = [session.flushed.wait() for session in self._sessions.values()]
        await _within(limit, waiting)

    async def end_streams(self) -> None:
        """End all event streams gracefully, waiting ``end_limit`` at most."""
        self._is_ending = True
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


async def _within(limit: float, waiting: Sequence[Coroutine[Any, Any, object]]) -> None:
    if waiting:
        tasks = [asyncio.ensure_future(one) for one in waiting]
        _, late = await asyncio.wait(tasks, timeout=limit)
        for task in late:
            task.cancel()


def _cancel(*timers: asyncio.TimerHandle | None) -> None:
    for timer in timers:
        if timer is not None:
            timer.cancel()
