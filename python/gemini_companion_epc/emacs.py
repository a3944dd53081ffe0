# SPDX-License-Identifier: GPL-3.0-or-later
"""EPC endpoint: the methods Emacs may call, and the calls made to Emacs."""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

from sexpdata import Symbol

from .config import Config
from .epc_server import Handler, PeerServer, to_loop
from .exceptions import EmacsError, EmacsGone, MalformedArgument
from .processes import describe
from .sexp import Sexp, value_of
from .texts import Text, TextFiles
from .types import CloseReason, Diff, Facts

logger = logging.getLogger(__name__)

Reply: TypeAlias = Callable[[Sexp], None]


class Emacs:
    """The Emacs that has started this process."""

    def __init__(self, config: Config) -> None:
        self.files = TextFiles()
        self._config = config
        self._methods: Mapping[str, Callable[..., Any]] = {}
        self._peer: Handler | None = None
        self._is_gone = False
        self._queue: list[tuple[str, list[Sexp], Reply, Reply]] = []
        self._server = PeerServer(config.secret)

    @property
    def port(self) -> int:
        """The port to which Emacs connects."""
        port: int = self._server.server_address[1]
        return port

    def listen(self, methods: Mapping[str, Callable[..., Any]]) -> None:
        """Accept connections; the event loop must be running.

        Emacs may call ``methods``, which run in the event loop: ``hello``, which
        returns the description of the server, only at first.  ``stop`` is also called
        when it disconnects.
        """
        self._methods = methods
        server = self._server
        server.funcs = {
            name: partial(self._prepare, function) for name, function in methods.items()
        }
        server.funcs["processes"] = _processes
        server.loop = asyncio.get_running_loop()
        server.on_disconnect = self._disconnected
        server.on_authenticate = self._authenticated
        threading.Thread(target=self._accept, daemon=True).start()

    async def close(self) -> None:
        """Disconnect when Emacs has answered."""
        self._stop_listening()
        peer = self._peer
        if peer is not None:
            # Emacs answers in order.  Closing a connection with unread answers resets
            # it, and Emacs would lose the calls that it has not read.
            with suppress(EmacsError, asyncio.TimeoutError):
                await asyncio.wait_for(
                    self._request("outcome-written", 0), self._config.end_limit
                )
            peer.finish_writing()
            await asyncio.to_thread(peer.writer.join, 0.2)
            peer.close()
            self._forget_peer()

    def _accept(self) -> None:
        self._server.serve_forever()
        self._server.server_close()

    def _authenticated(self, handler: Handler, uid: int) -> None:
        logger.info("Emacs is connected")
        self._peer = handler
        self._stop_listening()
        hello = self._methods["hello"]()
        handler._send("return", uid, {**hello, "files": self.files.prefix})
        for call in self._queue:
            handler.call(*call)
        self._queue.clear()

    def _stop_listening(self) -> None:
        # It waits until no more connections are accepted.
        threading.Thread(target=self._server.shutdown, daemon=True).start()
        for handler in list(self._server.clients):
            if handler is not self._peer:
                handler.close()

    def _disconnected(self, handler: Handler) -> None:
        if handler is self._peer:
            logger.info("Emacs has disconnected")
            self._forget_peer()
            self._methods["stop"]()

    def give_up(self) -> None:
        """Fail the calls that Emacs has not answered."""
        calls = self._peer.callmanager.callbacks if self._peer else {}
        while calls:
            _, (_, fail) = calls.popitem()
            fail(EmacsGone("Emacs did not answer"))

    def _forget_peer(self) -> None:
        self.give_up()
        self._peer = None
        self._is_gone = True

    # Calls to Emacs

    async def open_diff(self, diff: Diff, session: Facts) -> None:
        """Open a review of ``diff``, from ``session``.

        Raise EmacsError if that is not possible.
        """
        text = Text(diff.proposal, self.files)
        path = diff.here or diff.path
        await self._request("open-diff", diff.id, session, path, text)

    def diff_opened(self, diff_id: int) -> None:
        """Report that the client has the answer that ``diff_id`` is open."""
        self._send("diff-opened", diff_id)

    async def close_diff(self, diff_id: int, reason: CloseReason) -> str | None:
        """Close the review of ``diff_id`` and return the text of its proposal.

        Return None if Emacs has none.  Raise EmacsError if it cannot close it.
        """
        reply = await self._request("close-diff", diff_id, Symbol(reason))
        try:
            # It may be in a file.
            text = await asyncio.to_thread(self._argument, reply)
        except MalformedArgument as error:
            raise EmacsError(str(error)) from None
        return None if text == [] else str(text)

    async def ask(self, kind: str, facts: Facts, texts: Sequence[str | None]) -> Facts:
        """Return what Emacs answers to the question ``kind`` with ``facts``.

        ``texts`` go with the facts.  Raise EmacsError if it cannot be asked.
        """
        packed = [text and Text(text, self.files) for text in texts]
        return Facts(value_of(await self._request("ask", Symbol(kind), facts, *packed)))

    def sessions_update(self, sessions: Sequence[Facts]) -> None:
        """Report the sessions that are connected."""
        self._send("sessions-update", list(sessions))

    def place_update(self, facts: Mapping[str, Sexp]) -> None:
        """Report the state of a remote place."""
        self._send("place-update", dict(facts))

    def outcome_written(self, diff_id: int) -> None:
        """Report that the outcome of ``diff_id`` was written to its client."""
        self._send("outcome-written", diff_id)

    def outcome_undelivered(self, diff_id: int) -> None:
        """Report that the accepted text of ``diff_id`` cannot be delivered."""
        self._send("outcome-undelivered", diff_id)

    def warn(self, message: str) -> None:
        """Show ``message`` to the user."""
        logger.warning("%s", message)
        self._send("warn", message)

    def _send(self, name: str, *args: Sexp) -> None:
        def fail(error: Exception) -> None:
            if not isinstance(error, EmacsGone):
                logger.warning("%s failed in Emacs: %s", name, error)

        self._call(name, list(args), lambda reply: None, fail)

    async def _request(self, name: str, *args: Sexp) -> Sexp:
        """Return what Emacs answers to the call of ``name``.

        Raise EmacsError if it cannot answer.
        """
        answer: Future[Sexp] = Future()
        # Emacs may answer although nothing waits for it any more.
        answer.set_running_or_notify_cancel()

        def fail(error: Exception) -> None:
            is_ours = isinstance(error, EmacsGone)
            answer.set_exception(error if is_ours else EmacsError(str(error)))

        self._call(name, list(args), answer.set_result, fail)
        return await asyncio.wrap_future(answer)

    def _call(self, name: str, args: list[Sexp], succeed: Reply, fail: Reply) -> None:
        if self._is_gone:
            fail(EmacsGone("Emacs has disconnected"))
        elif self._peer is None:
            self._queue.append((name, args, succeed, fail))
        else:
            self._peer.call(name, args, succeed, fail)

    # Arguments of Emacs

    def _prepare(
        self, function: Callable[..., object], *args: Sexp
    ) -> Callable[[], object]:
        """Return a call of ``function`` with ``args`` for the event loop."""
        return partial(function, *map(self._argument, args))

    def _argument(self, form: Sexp) -> Any:
        """Return the value of ``form``; the text if it is in a file."""
        value = value_of(form)
        if isinstance(value, dict) and value.keys() == {"file"}:
            return self.files.take(value["file"])
        return value


def _processes(pids: list[int]) -> Callable[[], object]:
    processes = [describe(pid) for pid in pids]
    return lambda: processes


# Stdin


def read_start_line() -> bytes:
    """Return the first line of stdin, and leave stdin open."""
    with suppress(OSError):
        return sys.stdin.buffer.readline()
    return b""


def watch_stdin(gone: Callable[[], None]) -> None:
    """Call ``gone`` on the running event loop when Emacs closes stdin."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        to_loop(loop, gone)

    threading.Thread(target=watch, daemon=True).start()
