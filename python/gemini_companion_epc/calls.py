# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls that last until a review has its outcome, such as those of Copilot CLI.

An outcome without an event is sent only to such a call; if no call waits for it, it
is kept for a while.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .types import Diff

# Seconds in which a client that has hung up calls again, if it only reconnects.
_CALL_AGAIN = 3


@dataclass(eq=False)
class QueuedOutcome:
    """The outcome of ``diff``, or of no review, that waits for a stream or a call.

    A prompt waits as an outcome of no file, so that both arrive in order.
    """

    path: str
    content: str | None
    diff: Diff | None
    event: bytes | None
    """What is written to the stream, None if only a call has the outcome."""


@dataclass(eq=False)
class Call:
    """A request whose client may hang up before it is answered."""

    is_gone: bool = False


@dataclass(eq=False)
class _Waiting:
    """A call that is answered with the outcome of the review of ``proposal``."""

    proposal: str
    call: Call
    answer: asyncio.Future[bool | None]


@dataclass(eq=False, repr=False)
class Calls:
    """The calls of a session that wait, at most one for each file."""

    _outcomes_of: Callable[[str], Iterable[QueuedOutcome]]
    """Function that returns the outcomes of a file that wait, the oldest first."""
    _acknowledge: Callable[[QueuedOutcome], None]
    """Function called with an outcome that was sent to a call."""
    limit: float = 0
    """Seconds for which an outcome is kept that no call waits for."""
    _waiting: dict[str, _Waiting] = field(default_factory=dict)
    _hung_up: set[str] = field(default_factory=set)
    """The files for whose outcomes a client no longer waits."""

    def has_call_for(self, path: str) -> bool:
        """Return whether a call waits for the outcome of ``path``."""
        return path in self._waiting

    def patience(self, path: str) -> float:
        """Return the seconds for which an outcome of ``path`` is kept for a call."""
        return _CALL_AGAIN if path in self._hung_up else self.limit

    async def decided(
        self, path: str, proposal: str, call: Call | None = None
    ) -> bool | None:
        """Wait for the outcome of the diff of ``path``; return whether it is accepted.

        Return None if the diff is closed, another call waits for its outcome, or the
        client of this ``call`` has hung up.
        """
        call = call or Call()
        if call.is_gone:
            self._hung_up.add(path)
            return None
        self.release(path)
        self._hung_up.discard(path)
        waiting = _Waiting(proposal, call, asyncio.get_running_loop().create_future())
        self._waiting[path] = waiting
        self.answer(path)
        return await waiting.answer

    def hang_up(self, call: Call) -> None:
        """Record that the client of ``call`` can no longer receive the answer."""
        call.is_gone = True
        for path, waiting in [*self._waiting.items()]:
            if waiting.call is call:
                self._hung_up.add(path)
                self.release(path)

    def answer(self, path: str) -> None:
        """Answer the call for the outcome of ``path``, if both exist."""
        waiting = self._waiting.get(path)
        for outcome in self._outcomes_of(path) if waiting else ():
            if waiting and (
                outcome.diff is None or outcome.diff.proposal == waiting.proposal
            ):
                self.release(path, outcome.content is not None)
                self._acknowledge(outcome)
                return

    def release(self, path: str, is_accepted: bool | None = None) -> None:
        """Answer the call for ``path`` with ``is_accepted``; None means no outcome."""
        waiting = self._waiting.pop(path, None)
        if waiting and not waiting.answer.done():
            waiting.answer.set_result(is_accepted)

    def release_all(self) -> None:
        """Answer all calls, as their session ends."""
        for path in list(self._waiting):
            self.release(path)
