# SPDX-License-Identifier: GPL-3.0-or-later
"""The diffs that await an outcome."""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from itertools import count
from random import randrange
from weakref import WeakKeyDictionary

from .clients import client_named
from .config import Config
from .emacs import Emacs
from .hosts import Hosts
from .sessions import Session, Sessions
from .types import (
    CloseReason,
    Diff,
    EmacsError,
    EmacsGone,
    Facts,
    Process,
    RemoteError,
)

logger = logging.getLogger(__name__)

LARGEST_PROPOSAL = 8_000_000
"""Number of characters above which a proposal is not reviewed in Emacs."""


@dataclass
class Paths:
    """The paths of a session whose diffs have ended recently."""

    interrupted: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    """Paths whose next proposal is rejected, until their timers end."""
    decided: dict[str, asyncio.TimerHandle] = field(default_factory=dict)
    """Paths whose outcome may still be on its way, until their timers end."""
    accepted: set[str] = field(default_factory=set)
    """Paths that were accepted since the session had no open diff.

    Qwen Code writes all files of an answer after the last of its diffs.
    """


class Diffs:
    """The open diffs, each of which has exactly one outcome.

    They belong to ``sessions``, some of them on remote ``hosts``.  A session that ends
    must `abandon` its diffs, and a host follows the `reviewed` files.
    """

    def __init__(
        self,
        config: Config,
        emacs: Emacs,
        sessions: Sessions,
        hosts: Hosts,
    ) -> None:
        self._config = config
        self._emacs = emacs
        self._sessions = sessions
        self._hosts = hosts
        self._diffs: dict[int, Diff] = {}
        self._paths: WeakKeyDictionary[Session, Paths] = WeakKeyDictionary()
        self._closing: dict[int, str | None] = {}
        """Diffs that Emacs is closing; their texts if they were accepted meanwhile."""
        self._dismissals: set[asyncio.Task[str | None]] = set()
        # Emacs may still know diffs of a previous process.
        self._ids = count(randrange(2**40) if config.port else 1)

    def of(self, session: Session) -> dict[str, Diff]:
        """Return the open diffs of ``session`` by path."""
        mine = (diff for diff in self._diffs.values() if diff.session_id == session.id)
        return {diff.path: diff for diff in mine}

    def reviewed(self, remote: str) -> set[str]:
        """Return the files of the host ``remote`` to follow.

        They have an open diff, or were accepted while their session has another one.
        """
        paths: set[str] = set()
        for diff in self._diffs.values():
            session = self._sessions.find(diff.session_id)
            if session and session.remote == remote:
                paths |= {diff.path, *self.paths_of(session).accepted}
        return paths

    def paths_of(self, session: Session) -> Paths:
        """Return the paths of ``session`` whose diffs have ended."""
        return self._paths.setdefault(session, Paths())

    # From Emacs

    def adopt(self, diff_id: int, facts: Facts, name: str, text: str) -> None:
        """Take over a diff of the session with ``facts`` from the previous process."""
        client = client_named(facts["client"])
        session = self._sessions.open(facts["id"], client, facts.get("remote", ""))
        if session.process is None and "pid" in facts and not session.remote:
            # The client may have been killed together with the previous process.
            session.process = Process(
                facts["pid"], facts.get("directory"), identity=facts["identity"]
            )
        path = self._hosts.remote_name(session.remote, name) or name
        diff = self._diffs[diff_id] = Diff(diff_id, session.id, path, text, name)
        loop = asyncio.get_running_loop()
        loop.call_later(self._config.session_grace, self._end_unless_reopened, diff)

    def _end_unless_reopened(self, diff: Diff) -> None:
        """Dismiss ``diff`` if its client must call for the outcome and has not called.

        The user has answered in the terminal while there was no server.
        """
        if diff.id in self._diffs:
            session = self._sessions.find(diff.session_id)
            if session is None or (
                session.client.has_socket and not session.calls.has_call_for(diff.path)
            ):
                del self._diffs[diff.id]
                self._dismiss(diff, "interrupted")

    def reject(self, diff_id: int, reason: str = "") -> None:
        """Reject a diff; some clients pass ``reason`` to the model."""
        self.decide(diff_id, None, reason)

    def decide(
        self, diff_id: int, content: str | None = None, reason: str = ""
    ) -> None:
        """Accept a diff, so that its client writes ``content``, or reject it."""
        if content is not None and diff_id in self._closing:
            self._closing[diff_id] = content
        if diff := self._diffs.get(diff_id):
            self._finish(diff, content, reason)
        else:
            # The diff is no longer open.
            self._emacs.report("outcome-written", diff_id)

    def _finish(self, diff: Diff, content: str | None, reason: str = "") -> None:
        session = self._sessions.find(diff.session_id)
        del self._diffs[diff.id]
        if session is None:
            self._emacs.report("outcome-undelivered", diff.id)
            return
        paths = self.paths_of(session)
        if content is not None:
            paths.accepted.add(diff.path)
        self._remember(paths.decided, diff.path)
        session.notify(diff.path, content, diff, reason)

    # From the client

    async def open(self, session: Session, path: str, proposal: str) -> bool:
        """Open a review of ``proposal`` for the file ``path``.

        Return after Emacs has recorded the review: otherwise, if this process crashed,
        the client would wait for an answer to a review that is not displayed.  Return
        whether a review of this proposal was already open.
        """
        if self._sessions.is_stopping and session.client.protocol.keeps_proposals:
            return False
        is_interrupted = self.paths_of(session).interrupted.pop(path, None)
        if is_interrupted or self._sessions.is_stopping:
            await self._reject_unseen(session, path)
            return False
        if not self._sessions.has(session):
            return False
        if outpost := self._hosts.outposts.get(session.remote):
            outpost.copies.check_name(path)
        logger.info("Diff: %s %d characters", session.short_id, len(proposal))
        if self._is_known(session, path, proposal):
            # The review stays open, with the edits of the user.
            return True
        self._acknowledge_earlier(session, path)
        self._dismiss_earlier(session, path)
        diff = Diff(next(self._ids), session.id, path, proposal)
        self._diffs[diff.id] = diff
        if len(proposal) > LARGEST_PROPOSAL:
            self._emacs.warn(
                f"Proposal for {path} has more than {LARGEST_PROPOSAL // 1_000_000} "
                "MB and is not reviewed here; answer in the terminal of the CLI"
            )
            return False
        await self._open_in_emacs(diff, session)
        self._emacs.report("diff-opened", diff.id)
        return False

    async def _reject_unseen(self, session: Session, path: str) -> None:
        """Reject a proposal for ``path`` without sending it to Emacs."""
        session.notify(path)
        if self._sessions.is_stopping and not session.client.has_socket:
            # The call must not wait for an event stream that has ended.
            await session.flushed.wait()

    def _is_known(self, session: Session, path: str, proposal: str) -> bool:
        """Return whether ``proposal`` is open, or its outcome is not delivered yet."""
        waiting = (outcome.diff for outcome in session.outcomes)
        return any(
            diff is not None and (diff.path, diff.proposal) == (path, proposal)
            for diff in (self.of(session).get(path), *waiting)
        )

    def _acknowledge_earlier(self, session: Session, path: str) -> None:
        """Drop the outcomes of ``path`` that are queued for the event stream.

        The client no longer waits for them, and would take them for the outcomes of its
        next diff.
        """
        for outcome in session.outcomes_of(path):
            if outcome.event:
                session.acknowledge(outcome)

    def _dismiss_earlier(self, session: Session, path: str) -> None:
        """Dismiss the open diff of ``path``, if any, which another proposal replaces.

        If the session has no open diff, its client has received all outcomes.
        """
        open_diffs = self.of(session)
        if not open_diffs:
            self.paths_of(session).accepted.clear()
            session.written.clear()
        if previous := open_diffs.get(path):
            del self._diffs[previous.id]
            self._dismiss(previous, "closed")

    async def _open_in_emacs(self, diff: Diff, session: Session) -> None:
        try:
            if outpost := self._hosts.outposts.get(session.remote):
                local_name = await outpost.update(diff.path)
                diff = replace(diff, local_name=local_name)
            if diff.id in self._diffs:
                self._diffs[diff.id] = diff
                opening = self._emacs.open_diff(diff, session.facts)
                await asyncio.wait_for(opening, self._config.diff_limit)
        except (EmacsGone, asyncio.TimeoutError):
            # Emacs may display the review later.
            logger.warning("Emacs did not answer for diff %d", diff.id)
        except (EmacsError, RemoteError) as error:
            self._emacs.warn(
                f"Cannot show the proposal for {diff.path} ({error}); "
                "answer in the terminal of the CLI"
            )

    def written(self, session: Session, path: str) -> None:
        """Report that ``session`` has written ``path`` without a review."""
        if not session.remote:
            self._emacs.report("file-written", path)

    async def close(self, session: Session, path: str) -> str | None:
        """Close the diff of ``path``; return its text, or None if there is none."""
        diff = self.of(session).get(path)
        if diff is None:
            self._release(session, path)
            return None
        session.calls.release(path)
        del self._diffs[diff.id]
        self._closing[diff.id] = None
        try:
            # The client may disconnect before the task has begun.
            text = await asyncio.shield(self._dismiss(diff, "closed"))
        finally:
            accepted = self._closing.pop(diff.id)
        if text is None:
            text = diff.proposal if accepted is None else accepted
        logger.info("Diff closed: %s %d characters", session.short_id, len(text))
        return text

    def _release(self, session: Session, path: str) -> None:
        """Release a client that still waits for a diff after Ctrl-C."""
        # After Ctrl-C, the client sends neither closeDiff for its open diff nor the
        # next openDiff; the first sign is a closeDiff for a path without a diff.
        paths = self.paths_of(session)
        if path in paths.decided or session.client.protocol.keeps_proposals:
            # The client has not received the outcome of this diff yet.
            return
        for diff in self.of(session).values():
            # Emacs rejects the diff, and keeps the outcome until it is delivered.
            self._dismiss(diff, "interrupted")
            self._remember(paths.interrupted, path)

    def _remember(self, paths: dict[str, asyncio.TimerHandle], path: str) -> None:
        """Add ``path`` to ``paths`` for ``cancel_window`` seconds."""
        if previous := paths.get(path):
            previous.cancel()
        loop = asyncio.get_running_loop()
        paths[path] = loop.call_later(self._config.cancel_window, paths.pop, path, None)

    def abandon(self, session: Session, reason: CloseReason) -> None:
        """Dismiss the diffs of ``session``, and report undelivered outcomes."""
        for diff in self.of(session).values():
            del self._diffs[diff.id]
            self._dismiss(diff, reason)
        for undelivered in session.outcomes:
            if undelivered.diff is not None:
                self._emacs.report("outcome-undelivered", undelivered.diff.id)

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
            closing = self._emacs.close_diff(diff.id, reason)
            return await asyncio.wait_for(closing, self._config.diff_limit)
        except (EmacsError, asyncio.TimeoutError) as error:
            logger.warning("Diff %d was not dismissed in Emacs: %r", diff.id, error)
            return None
        finally:
            if diff.id in self._diffs:
                # The diff was interrupted, and Emacs has no record of it.
                self._finish(diff, None)

    # Stop

    def reject_all(self) -> None:
        """Reject all diffs, except those of clients that keep their proposals."""
        for diff in list(self._diffs.values()):
            session = self._sessions.find(diff.session_id)
            if session and session.client.protocol.keeps_proposals:
                del self._diffs[diff.id]
            else:
                self._finish(diff, None)
            # After a signal, Emacs does not know that the server stops.
            self._dismiss(diff, "lost")

    async def finish_closing(self, limit: float) -> None:
        """Wait until Emacs has answered each close-diff, ``limit`` seconds at most."""
        if self._dismissals:
            await asyncio.wait(self._dismissals, timeout=limit)
