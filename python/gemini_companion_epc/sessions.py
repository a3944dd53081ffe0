# SPDX-License-Identifier: GPL-3.0-or-later
"""The sessions of the CLIs: their outboxes, event streams, processes and ends.

A notification would be lost if it were sent while no event stream is open.  So each
session queues its outcomes until they are written, and keeps the latest context.
"""

import asyncio
import json
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from time import monotonic
from uuid import uuid4

from .calls import Calls, QueuedOutcome
from .client import Client
from .config import Config
from .processes import has_exited
from .protocol import Protocol
from .types import Address, CloseReason, Diff, Facts, File, Json, Process

logger = logging.getLogger(__name__)

COMMENT = b": \r\n\r\n"
# Seconds between two checks whether a process without an event stream has exited.
_EXIT_CHECK = 0.5


def session_id_on(remote: str, header: str) -> str:
    """Return the ID of the session that a client on ``remote`` names by ``header``.

    No other host can name that session, whatever its clients send.
    """
    return f"{header} {remote}" if remote else header


@dataclass(eq=False, repr=False)
class Session:
    """The session of one CLI, with its outbox.

    For ``_report``, see ``report`` of `Sessions`.
    """

    id: str
    """See `session_id_on`."""
    client: Client
    remote: str
    """The name of the host of the client, empty for this host."""
    _report: Callable[[str, object], None]
    is_alive: Callable[[], Awaitable[bool]] | None = None
    """Function that waits for a sign of life of a remote host."""
    version: str | None = None
    process: Process | None = None
    search: asyncio.Task[None] | None = None
    context: bytes | None = None
    outcomes: deque[QueuedOutcome] = field(default_factory=deque)
    written: list[QueuedOutcome] = field(default_factory=list)
    """Outcomes that were written to a client on a remote host, and may be lost."""
    received: str = ""
    """The ID of the last diff whose outcome the client has, as it says."""
    prompts: "dict[str, asyncio.Future[bool]]" = field(default_factory=dict)
    """Whether the client has taken each prompt, by the ID of the prompt."""
    flushed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all outcomes are written."""
    stream: "Stream | None" = None
    requests: int = 0
    timer: asyncio.Handle = field(init=False)
    calls: Calls = field(init=False)

    def __post_init__(self) -> None:
        self.calls = Calls(self.outcomes_of, self.acknowledge)

    @property
    def header(self) -> str:
        """The name of the session in the headers of its client."""
        return self.id.removesuffix(f" {self.remote}") if self.remote else self.id

    @property
    def short_id(self) -> str:
        """The client and ID of the session in the log."""
        return f"{self.client.name} {self.id[:8]}"

    @property
    def facts(self) -> Facts:
        """The description of the session for Emacs, without unknown values."""
        facts = {
            "id": self.id,
            "client": self.client.name,
            "version": self.version,
            "remote": self.remote or None,
            "pid": self.process and self.process.pid,
            "identity": self.process and self.process.identity,
            "directory": self.process and self.process.directory,
        }
        return {key: value for key, value in facts.items() if value is not None}

    def connected_for(self) -> float:
        """Return the age of the event stream in seconds, 0 if there is none."""
        return 0 if self.stream is None else monotonic() - self.stream.since

    def notify(
        self,
        path: str,
        content: str | None = None,
        diff: Diff | None = None,
        reason: str = "",
    ) -> None:
        """Queue the outcome of ``diff``, see `Protocol.outcome`.

        The client may have it from the previous process, which then crashed.
        """
        if diff and str(diff.id) == self.received:
            self._report("outcome-written", diff.id)
            return
        notification = self.client.protocol.outcome(path, content, reason)
        event = encode_event(notification, diff) if notification else None
        self.outcomes.append(QueuedOutcome(path, content, diff, event))
        self.flushed.clear()
        self.calls.answer(path)
        self.wake()
        if event is None:
            loop = asyncio.get_running_loop()
            limit = self.calls.patience(path)
            loop.call_later(limit, self._lose, self.outcomes_of(path))

    async def prompt(self, text: str) -> bool:
        """Send ``text`` as a prompt; return whether the client has taken it.

        The client may wait with that, for example while it compacts the conversation.
        It takes no prompts if its protocol has none, and none after its session.
        """
        prompt_id = uuid4().hex
        notification = self.client.protocol.prompt(prompt_id, text)
        if notification is None:
            return False
        taken: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.prompts[prompt_id] = taken
        event = encode_event(notification)
        self.outcomes.append(QueuedOutcome("", None, None, event))
        self.flushed.clear()
        self.wake()
        return await taken

    def end_prompt(self, prompt_id: str, is_taken: bool) -> None:
        """Record whether the client has taken a prompt; ignore an unknown one."""
        taken = self.prompts.pop(prompt_id, None)
        if taken and not taken.done():
            taken.set_result(is_taken)

    def outcomes_of(self, path: str) -> list[QueuedOutcome]:
        """Return the queued outcomes of ``path``."""
        return [outcome for outcome in self.outcomes if outcome.path == path]

    def _lose(self, outcomes: Sequence[QueuedOutcome]) -> None:
        """Drop those of ``outcomes`` that are still queued, and report them."""
        for outcome in outcomes:
            if outcome in self.outcomes:
                logger.info("Session %s: an outcome is lost", self.short_id)
                self._drop(outcome, "outcome-undelivered")

    def acknowledge(self, outcome: QueuedOutcome) -> None:
        """Drop ``outcome``, which was written, and report it."""
        self._drop(outcome, "outcome-written")

    def _drop(self, outcome: QueuedOutcome, report: str) -> None:
        self.outcomes.remove(outcome)
        if outcome.diff is not None:
            self._report(report, outcome.diff.id)
        if not self.outcomes:
            self.flushed.set()

    def resume(self, received: str) -> None:
        """Queue again the outcomes that were written after that of diff ``received``.

        Drop that one, if Emacs has repeated it after a crash.
        """
        self.received = received
        for outcome in reversed(self.written):
            if outcome.diff and str(outcome.diff.id) == received:
                break
            self.outcomes.appendleft(outcome)
        self.written.clear()
        for outcome in [*self.outcomes]:
            if outcome.diff and str(outcome.diff.id) == received:
                self.acknowledge(outcome)

    def wake(self) -> None:
        """Make the event stream, if any, write new events."""
        if self.stream is not None:
            self.stream.changed.set()


class Stream:
    """An open event stream of a session, until a newer one replaces it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.since = monotonic()
        """The time at which it was opened, of a monotonic clock."""
        self.changed = asyncio.Event()
        """Set when there may be events to write."""
        self._ending = False
        self._context: bytes | None = None
        self.closed = asyncio.Event()

    async def next(self, silence: float) -> bytes | None:
        """Return the next event, or None at the end, or a comment after ``silence``."""
        if self._pending() is None and not self._ending:
            self.changed.clear()
            # `asyncio.wait_for` creates a task, which delays each event.
            loop = asyncio.get_running_loop()
            timer = loop.call_later(silence, self.changed.set)
            try:
                await self.changed.wait()
            finally:
                timer.cancel()
        is_alive = self._session.is_alive
        # An outcome for a silent host might be lost, so wait for a sign of life.
        if is_alive and self._session.outcomes and not await is_alive():
            return None
        event = self._pending()
        return COMMENT if event is None and not self._ending else event

    def written(self, event: bytes) -> None:
        """Record that ``event`` was written, unless the stream was replaced."""
        session = self._session
        if session.stream is not self:
            return
        if session.outcomes and session.outcomes[0].event is event:
            if session.is_alive:
                session.written.append(session.outcomes[0])
            session.acknowledge(session.outcomes[0])
        elif event is not COMMENT:
            self._context = event

    def end(self) -> None:
        """End the stream gracefully when everything is written."""
        self._ending = True
        self.changed.set()

    def _pending(self) -> bytes | None:
        session = self._session
        if session.stream is not self:
            return None
        outcome = session.outcomes[0].event if session.outcomes else None
        is_new = session.context not in (None, self._context)
        # The first context precedes the outcomes, later ones follow them.
        if is_new and (outcome is None or self._context is None):
            return session.context
        return outcome


def encode_event(notification: Json, diff: Diff | None = None) -> bytes:
    """Return ``notification`` as an event of the stream, the outcome of ``diff``."""
    # A client that reconnects names the last ID that it has received.
    number = b"id: %d\r\n" % diff.id if diff else b""
    data = json.dumps(notification, ensure_ascii=False).encode()
    return b"event: message\r\n" + number + b"data: " + data + b"\r\n\r\n"


@dataclass(eq=False, repr=False)
class Sessions:
    """The sessions by ID.

    ``_report_to_emacs`` is called with "sessions-update" and the connected sessions
    when they change; with "outcome-written" and the diff ID of each outcome that was
    written; and with "outcome-undelivered" and the diff ID of each outcome for which
    no client waits.
    """

    _config: Config
    _find_process: Callable[[Address], Process | None]
    _report_to_emacs: Callable[[str, object], None]
    _remote_name: Callable[[str, str], str | None]
    """Function that returns the name on a host of a file in Emacs, or None."""
    _on_end: Callable[[Session, CloseReason], None]
    """Function called with a session that ends, and why."""
    is_stopping: bool = False
    _one_search: asyncio.Lock = field(default_factory=asyncio.Lock)
    _sessions: dict[str, Session] = field(default_factory=dict)
    _context: Sequence[File] | None = None
    # Emacs sends a context to a new process before its clients reconnect.
    _wants_context: bool = True
    _is_ending: bool = False

    def __post_init__(self) -> None:
        self._may_report = not self._config.port

    def open(self, session_id: str, client: Client, remote: str = "") -> Session:
        """Return the session ``session_id``; create it if it is unknown.

        Its client may have opened it before a restart of the server.
        """
        session = self.find(session_id)
        if session is None:
            session = Session(session_id, client, remote, self._report_to_emacs)
            session.calls.limit = self._config.session_grace
            session.context = self._event(session)
            self._sessions[session_id] = session
            loop = asyncio.get_running_loop()
            session.timer = loop.call_soon(self._expect_client, session)
        return session

    def is_of_another_host(self, header: str, remote: str) -> bool:
        """Return whether clients use ``header``, but none of them on ``remote``."""
        sessions = self._sessions.values()
        hosts = {session.remote for session in sessions if session.header == header}
        return bool(hosts) and remote not in hosts

    def find(self, session_id: str) -> Session | None:
        """Return the session ``session_id``, None if it is unknown."""
        return self._sessions.get(session_id)

    def has(self, session: Session) -> bool:
        """Return whether ``session`` has not ended."""
        return self._sessions.get(session.id) is session

    def pids(self) -> list[int]:
        """Return the known process IDs of the sessions."""
        return [
            session.process.pid
            for session in self._sessions.values()
            if session.process
        ]

    def end(self, session_id: str, reason: CloseReason = "disconnected") -> None:
        """End the session ``session_id``, if it exists."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            return
        logger.info("Session %s ended: %s", session.short_id, reason)
        session.timer.cancel()
        self._on_end(session, reason)
        session.calls.release_all()
        for prompt_id in [*session.prompts]:
            session.end_prompt(prompt_id, False)
        session.outcomes.clear()
        session.flushed.set()
        if session.stream is not None:
            session.stream.end()
            session.stream = None
        self.report()

    @contextmanager
    def request(self, session: Session) -> Iterator[None]:
        """Keep ``session`` alive while one of its requests is answered."""
        if session.client.has_socket:
            # A call may last as long as a review, and the client may have exited.
            yield
            return
        session.requests += 1
        session.timer.cancel()
        try:
            yield
        finally:
            session.requests -= 1
            self._expect_client(session)

    # Processes

    def identify(self, session: Session, peer: Address, is_lasting: bool) -> None:
        """Search for the process of ``session``, which is connected from ``peer``."""
        # A short connection may be closed before its process is found.
        if session.process is None and (session.search is None or is_lasting):
            loop = asyncio.get_running_loop()
            session.search = loop.create_task(self._search(session, peer))

    async def _search(self, session: Session, peer: Address) -> None:
        # A search reads the tables of all processes; many clients may connect at once.
        async with self._one_search:
            if session.process is None:
                session.process = await asyncio.to_thread(self._find_process, peer)
                if session.process is not None and session.stream is not None:
                    self.report()

    def set_directory(self, pids: Sequence[int], directory: str) -> None:
        """Record that the CLI with one of ``pids`` works in ``directory`` now."""
        for session in self._sessions.values():
            process = session.process
            if process is None or session.remote or process.pid not in pids:
                continue
            if process.directory != directory:
                session.process = replace(process, directory=directory)
                if session.stream is not None:
                    self.report()

    # Event streams

    def open_stream(self, session: Session) -> Stream:
        """Return a new event stream of ``session``, and end the previous one."""
        if session.remote or self._may_report:
            # Rules of sharing may have changed meanwhile.  Emacs reads them when the
            # session is reported, and sends a new context.
            session.context = None
        previous, session.stream = session.stream, Stream(session)
        if previous is not None:
            previous.end()
        session.timer.cancel()
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

        End it soon if its process has exited, as its reviews would stay open.
        """
        session.timer.cancel()
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
        """Wait until all outcomes are written, at most for ``end_limit``."""
        sessions = self._sessions.values()
        await self._end([session.flushed for session in sessions if session.outcomes])

    async def end_streams(self) -> None:
        """End all event streams gracefully, waiting ``end_limit`` at most."""
        self._is_ending = True
        sessions = self._sessions.values()
        streams = [session.stream for session in sessions if session.stream is not None]
        for stream in streams:
            stream.end()
        await self._end([stream.closed for stream in streams])

    async def _end(self, events: Sequence[asyncio.Event]) -> None:
        waits = asyncio.gather(*(event.wait() for event in events))
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(waits, self._config.end_limit)

    # Emacs

    def begin_reports(self) -> None:
        """Begin to report, after clients of the previous process could return."""
        self._may_report = True
        self.report()

    def report(self) -> None:
        """Report the connected sessions to Emacs."""
        if self._is_ending or not self._may_report:
            # The clients reconnect to a successor, or Emacs has requested the end.
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
        facts = [session.facts for session in connected]
        self._report_to_emacs("sessions-update", facts)

    def broadcast(self, files: Sequence[File]) -> None:
        """Send ``files`` to every client, and to those that connect later."""
        # If the last report to Emacs had no sessions, ``files`` answer an earlier
        # report, and would be outdated when a client connects.
        if not self._wants_context:
            return
        self._context = files
        events: dict[tuple[str, Protocol], bytes | None] = {}
        for session in self._sessions.values():
            kind = session.remote, session.client.protocol
            if kind not in events:
                events[kind] = self._event(session)
            session.context = events[kind]
            session.wake()

    def _event(self, session: Session) -> bytes | None:
        if self._context is None:
            return None
        files = [
            replace(file, path=name)
            for file in self._context
            if (name := self._remote_name(session.remote, file.path)) is not None
        ]
        return encode_event(session.client.protocol.context(files))
