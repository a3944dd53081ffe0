# SPDX-License-Identifier: GPL-3.0-or-later
"""The sessions of all CLIs: their event streams, processes and ends.

This module depends neither on HTTP nor on EPC.  Everything runs in the event loop.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from .clients import Client
from .config import Config
from .places import Place
from .processes import has_exited
from .session import Session, Stream, encode_event
from .types import CloseReason, Facts, Process, context_update

logger = logging.getLogger(__name__)

# Seconds between two checks whether a process without an event stream has exited.
_EXIT_CHECK = 0.5


class Sessions:
    """The sessions by ID.

    ``report`` is called for Emacs: with "sessions-update" and the connected ones when
    they change, with "outcome-written" and the diff of each outcome that was written.
    """

    def __init__(
        self,
        config: Config,
        find_process: Callable[[tuple[str, int]], Process | None],
        report: Callable[[str, object], None],
    ) -> None:
        self.is_stopping = False
        self.on_end: Callable[[Session, CloseReason], None] = lambda *_: None
        """Function called with a session that ends, and why."""
        self.name_for: Callable[[Place | None, str], str | None] = lambda _, path: path
        """Function that returns the name in a place of a file in Emacs, or None."""
        self._config = config
        self._find_process = find_process
        self._report_to_emacs = report
        self._one_search = asyncio.Lock()
        self._sessions: dict[str, Session] = {}
        self._context: Sequence[Facts] | None = None
        # Emacs sends a context to a new process before its clients reconnect.
        self._wants_context = True
        self._may_report = not config.port
        self._is_ending = False

    def get(
        self, session_id: str, client: Client | None = None, place: Place | None = None
    ) -> Session:
        """Return the session ``session_id``, a new one if it is unknown.

        A client in ``place`` may have opened it before a restart.
        """
        session = self._sessions.get(session_id)
        if session is None:
            session = Session(session_id, self._report_to_emacs)
            session.place = place
            self._sessions[session_id] = session
            session.context = self._event(session)
            self._expect_client(session)
        # An adopted session is known before its first request comes.
        session.client = session.client or client
        return session

    def has(self, session: Session) -> bool:
        """Return whether ``session`` has not ended."""
        return self._sessions.get(session.id) is session

    def pids_of(self, session_id: str | None) -> list[int]:
        """Return the process of the session ``session_id``, if both are known."""
        session = self._sessions.get(session_id or "")
        return [session.process.pid] if session and session.process else []

    def has_process(self, pids: Sequence[int]) -> bool:
        """Return whether the process of a session is one of ``pids``."""
        return any(s.process and s.process.pid in pids for s in self._sessions.values())

    def end(self, session_id: str, reason: CloseReason = "disconnected") -> None:
        """End the session ``session_id``."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        logger.info("Session %s ended: %s", session.short_id, reason)
        _cancel(session.timer)
        self.on_end(session, reason)
        session.outcomes.clear()
        session.flushed.set()
        if session.stream is not None:
            session.stream.end()
            session.stream = None
        self.report()

    @contextmanager
    def request(self, session: Session) -> Iterator[None]:
        """Keep ``session`` while one of its requests is answered."""
        session.requests += 1
        _cancel(session.timer)
        try:
            yield
        finally:
            session.requests -= 1
            self._expect_client(session)

    # Processes

    def identify(
        self, session: Session, peer: tuple[str, int], is_lasting: bool
    ) -> None:
        """Search for the process of ``session``, which is connected from ``peer``.

        Search again for a connection that is lasting: others may be closed before
        they are found.
        """
        if session.place is not None:
            # The peer is this process.
            return
        if session.process is None and (session.search is None or is_lasting):
            loop = asyncio.get_running_loop()
            session.search = loop.create_task(self._search(session, peer))

    async def _search(self, session: Session, peer: tuple[str, int]) -> None:
        # Each search reads much, and many clients may connect at once.
        async with self._one_search:
            if session.process is None:
                session.process = await asyncio.to_thread(self._find_process, peer)
                if session.process is not None and session.stream is not None:
                    self.report()

    # Event streams

    def open_stream(self, session: Session) -> Stream:
        """Return a new event stream of ``session``, and end the previous one."""
        if session.place is not None:
            # What decides which files are shared may have changed there meanwhile.
            session.context = None
        previous, session.stream = session.stream, Stream(session)
        if previous is not None:
            previous.end()
        _cancel(session.timer)
        if self.is_stopping:
            session.stream.end()
        self.report()
        return session.stream

    def close_stream(self, session: Session, stream: Stream) -> None:
        """Record that ``stream`` of ``session`` is closed; another may follow."""
        stream.closed.set()
        if session.stream is not stream:
            return
        session.stream = None
        stream.end()
        self.report()
        self._expect_client(session)

    def _expect_client(self, session: Session, left: float | None = None) -> None:
        """End ``session`` if its client sends no request and opens no stream in time.

        One that comes later is taken in, as after a restart.  End it soon if its
        process exits: the reviews of a killed CLI would stay open for the grace time.
        """
        _cancel(session.timer)
        if not self.has(session) or session.stream is not None or session.requests:
            return
        if left is None:
            left = self._config.session_grace
        if session.process is not None and has_exited(session.process.pid):
            self.end(session.id, "exited")
        elif left <= 0:
            self.end(session.id)
        else:
            pause = min(left, _EXIT_CHECK)
            session.timer = asyncio.get_running_loop().call_later(
                pause, self._expect_client, session, left - pause
            )

    async def flush(self) -> None:
        """Wait until all outcomes are written, ``end_limit`` at most."""
        await self._end([one.flushed for one in self._sessions.values()])

    async def end_streams(self) -> None:
        """End all event streams gracefully, waiting ``end_limit`` at most."""
        self._is_ending = True
        sessions = self._sessions.values()
        streams = [one.stream for one in sessions if one.stream is not None]
        for stream in streams:
            stream.end()
        await self._end([stream.closed for stream in streams])

    async def _end(self, events: Sequence[asyncio.Event]) -> None:
        waits = asyncio.gather(*(event.wait() for event in events))
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(waits, self._config.end_limit)

    # Emacs

    def begin_reports(self) -> None:
        """Report the clients of the previous process once all could return."""
        self._may_report = True
        self.report()

    def report(self) -> None:
        """Report the connected sessions to Emacs."""
        if self._is_ending or not self._may_report:
            # The clients connect again to a successor, or Emacs knows.
            return
        connected = [one for one in self._sessions.values() if one.stream is not None]
        self._wants_context = bool(connected)
        if not connected:
            # Emacs sends the next context when a client connects.
            self._context = None
            for session in self._sessions.values():
                session.context = None
        facts = [session.facts for session in connected]
        self._report_to_emacs("sessions-update", facts)

    def broadcast(self, files: Sequence[Facts]) -> None:
        """Send ``files`` to every client, and to those that connect later.

        Drop them if the last report to Emacs had no sessions: they answer an earlier
        report, and would be outdated when a client connects.
        """
        if not self._wants_context:
            return
        self._context = files
        events: dict[Place | None, bytes | None] = {}
        for session in self._sessions.values():
            if session.place not in events:
                events[session.place] = self._event(session)
            session.update_context(events[session.place])

    def _event(self, session: Session) -> bytes | None:
        """Return the event with the current context for the place of ``session``."""
        if self._context is None:
            return None
        files = [
            {**file, "path": name}
            for file in self._context
            if (name := self.name_for(session.place, file["path"])) is not None
        ]
        return encode_event(context_update(files))


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
