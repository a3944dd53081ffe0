# SPDX-License-Identifier: GPL-3.0-or-later
"""EPC endpoint: the methods Emacs may call, and the calls made to Emacs."""

import asyncio
import logging
import os
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from sexpdata import Symbol

from . import texts
from .config import Config
from .epc_server import Peer, Sexp, value_of
from .types import CloseReason, Diff, EmacsError, EmacsGone, Facts

logger = logging.getLogger(__name__)


class Emacs:
    """The Emacs that has started this process."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._peer: Peer | None = None
        self._is_gone = False
        self._queue: list[tuple[Sexp, ...]] = []

    async def listen(self, methods: Mapping[str, Callable[..., Sexp]]) -> int:
        """Accept connections, and return the port.

        Emacs may call ``methods``: ``hello``, which returns the description of the
        server, only at first.  ``stop`` is also called when it disconnects.
        """
        self._methods = methods
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def close(self) -> None:
        """Disconnect when Emacs has answered."""
        self._server.close()
        if peer := self._peer:
            # Emacs answers in order.  Closing a connection with unread answers resets
            # it, and Emacs would lose the calls that it has not read.
            with suppress(EmacsError, asyncio.TimeoutError):
                await asyncio.wait_for(
                    self._call("outcome-written", 0), self._config.end_limit
                )
            self._forget_peer()
            peer.close()

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        methods = {name: partial(self._run, one) for name, one in self._methods.items()}
        peer = Peer(methods, reader, writer)
        try:
            self._greet(peer, await peer.hello(self._config.secret))
            await peer.run()
        except (OSError, EOFError, ValueError) as error:
            logger.info("EPC connection ended: %s", error)
        finally:
            peer.close()
            if peer is self._peer:
                self._forget_peer()
                self._methods["stop"]()

    def _greet(self, peer: Peer, uid: int) -> None:
        logger.info("Emacs is connected")
        self._server.close()
        self._peer = peer
        peer.answer(uid, {**self._methods["hello"](), "files": texts.prefix()})
        for call in self._queue:
            peer.call(*call)
        self._queue.clear()

    def give_up(self) -> None:
        """Fail the calls that Emacs has not answered."""
        if self._peer is not None:
            self._peer.give_up()

    def _forget_peer(self) -> None:
        self.give_up()
        self._peer = None
        self._is_gone = True

    # Calls to Emacs

    async def open_diff(self, diff: Diff, session: Facts) -> None:
        """Open a review of ``diff``, from ``session``.

        Raise EmacsError if that is not possible.
        """
        text = texts.pack(diff.proposal)
        path = diff.local_name or diff.path
        await self._call("open-diff", diff.id, session, path, text)

    async def close_diff(self, diff_id: int, reason: CloseReason) -> str | None:
        """Close the review of ``diff_id`` and return the text of its proposal.

        Return None if Emacs has none.  Raise EmacsError if it cannot close it.
        """
        reply = await self._call("close-diff", diff_id, Symbol(reason))
        text = self._argument(reply)
        return None if text == [] else str(text)

    async def ask(self, kind: str, facts: Facts, parts: Sequence[str | None]) -> Facts:
        """Return what Emacs answers to the question ``kind`` with ``facts``.

        The texts ``parts`` go with them, see gemini-companion-lookup.el.  Raise
        EmacsError if it cannot be asked.
        """
        packed = [text and texts.pack(text) for text in parts]
        return dict(value_of(await self._call("ask", Symbol(kind), facts, *packed)))

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

        self._call(name, *args).add_done_callback(log)

    def _call(self, name: str, *args: Sexp) -> "asyncio.Future[Sexp]":
        """Return what Emacs answers, or an EmacsError, to the call of ``name``."""
        answer = asyncio.get_running_loop().create_future()
        if self._is_gone:
            answer.set_exception(EmacsGone("Emacs has disconnected"))
        elif self._peer is None:
            self._queue.append((answer, name, *args))
        else:
            self._peer.call(answer, name, *args)
        return answer

    # Arguments of Emacs

    def _run(self, function: Callable[..., object], *args: Sexp) -> object:
        return function(*map(self._argument, args))

    def _argument(self, form: Sexp) -> Sexp:
        """Return the value of ``form``; the text if it is in a file."""
        value = value_of(form)
        if isinstance(value, dict) and value.keys() == {"file"}:
            return texts.take(value["file"])
        return value


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
