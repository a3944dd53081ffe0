# SPDX-License-Identifier: GPL-3.0-or-later
"""EPC endpoint: the methods Emacs may call, and the calls made to Emacs."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from sexpdata import Symbol

from . import texts
from .config import Config
from .epc_server import EpcServer, Sexp
from .types import CloseReason, Diff, EmacsError, EmacsGone, Facts

logger = logging.getLogger(__name__)

MOST_WAITING = 500
"""Number of calls without an answer from which on Emacs is asked no questions."""


class Emacs(EpcServer):
    """The Emacs that has started this process."""

    def __init__(self, config: Config) -> None:
        super().__init__(config.secret)
        self._end_limit = config.end_limit

    async def listen(self, methods: Mapping[str, Callable[..., object]]) -> int:
        run = {name: partial(_run, method) for name, method in methods.items()}
        return await super().listen(run)

    async def close(self) -> None:
        """Disconnect when Emacs has answered."""
        self._server.close()
        if self._peer is not None:
            # Emacs answers in order.  Closing a connection with unread answers resets
            # it, and Emacs would lose the calls that it has not read.
            with suppress(EmacsError, asyncio.TimeoutError):
                last = self.call("outcome-written", 0)
                await asyncio.wait_for(last, self._end_limit)
            self._peer.close()
            self.give_up()

    # Calls to Emacs

    async def open_diff(self, diff: Diff, session: Facts) -> None:
        """Open a review of ``diff``, from ``session``; raise EmacsError if it fails."""
        text = texts.pack(diff.proposal)
        path = diff.local_name or diff.path
        await self.call("open-diff", diff.id, session, path, text)

    async def close_diff(self, diff_id: int, reason: CloseReason) -> str | None:
        """Close the review of ``diff_id``; return the text of its proposal.

        Return None if Emacs has none; raise EmacsError if it cannot close it.
        """
        text = _value_of(await self.call("close-diff", diff_id, Symbol(reason)))
        return None if text == [] else str(text)

    async def ask(self, kind: str, facts: Facts, parts: Sequence[str | None]) -> Facts:
        """Return the answer to the question ``kind`` with ``facts`` and texts.

        Raise EmacsError if Emacs cannot be asked.
        """
        self._check_answers()
        packed = [text and texts.pack(text) for text in parts]
        return dict(_value_of(await self.call("ask", Symbol(kind), facts, *packed)))

    async def may_run(self, facts: Facts, text: str) -> Sexp:
        """Return, as it came, the answer to the permission with ``facts`` for ``text``.

        Raise EmacsError if Emacs cannot be asked.
        """
        self._check_answers()
        return await self.call("ask", Symbol("permission"), facts, texts.pack(text))

    def _check_answers(self) -> None:
        """Raise EmacsError if too many calls wait, as while Emacs is in a debugger."""
        if self.count_waiting() >= MOST_WAITING:
            raise EmacsError("Emacs does not answer")

    async def ping(self) -> None:
        """Return when Emacs has answered; raise EmacsError if it cannot."""
        await self.call("ping")

    def warn(self, message: str) -> None:
        """Show ``message`` to the user."""
        logger.warning("%s", message)
        self.report("warn", message)

    def report(self, name: str, *args: Sexp) -> None:
        """Call ``name`` with ``args``, without waiting for the answer."""

        def log(answer: "asyncio.Future[Sexp]") -> None:
            error = answer.exception()
            if error is not None and not isinstance(error, EmacsGone):
                logger.warning("%s failed in Emacs: %s", name, error)

        self.call(name, *args).add_done_callback(log)


def _run(function: Callable[..., object], *args: Sexp) -> object:
    return function(*map(_value_of, args))


def _value_of(form: Sexp) -> Sexp:
    """Return ``form`` with its property lists as dictionaries, or texts from files."""
    if not isinstance(form, list):
        return form
    values = [_value_of(item) for item in form]
    if values and isinstance(values[0], Symbol):
        keys = [key.value()[1:].replace("-", "_") for key in values[::2]]
        facts = dict(zip(keys, values[1::2], strict=True))
        return texts.take(facts["file"]) if keys == ["file"] else facts
    return values


# Stdin


def watch_stdin(gone: Callable[[], None]) -> None:
    """Call ``gone`` on the running event loop when Emacs closes stdin."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        with suppress(RuntimeError):  # the loop is closed; the process ends
            loop.call_soon_threadsafe(gone)

    threading.Thread(target=watch, daemon=True).start()
