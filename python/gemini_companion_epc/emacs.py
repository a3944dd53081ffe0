# SPDX-License-Identifier: GPL-3.0-or-later
"""The Emacs end: what Emacs calls, what it is asked, and how it is told apart."""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeAlias

from sexpdata import Symbol

from .config import Config
from .exceptions import EmacsError, EmacsGone, MalformedArgument, StartError
from .folder import PrivateFolder
from .sexp import (
    Sexp,
    as_integer,
    as_plist,
    as_text,
    context_from,
    is_text,
    roots_from,
    session_plist,
)
from .types import CloseReason, Diff, IdeContext, SessionFacts, clean, encode
from .wire import MOST_UNPROVEN, Handler, PeerListener, to_loop

logger = logging.getLogger(__name__)

Reply: TypeAlias = Callable[[Sexp], None]

LONGEST_TEXT = 256 * 1024

_START_LINE_LIMIT = 1024 * 1024


class Owner(Protocol):
    """What the calls of Emacs reach; every method runs in the event loop."""

    def hello(self) -> dict[str, object]:
        """Return what Emacs is to know, now that it has proved itself."""

    def context_update(self, context: IdeContext) -> None:
        """Take the files that are open in Emacs."""

    def roots_update(self, roots: Sequence[str]) -> None:
        """Take the folders of the open projects."""

    def diff_accepted(self, diff_id: int, text: str) -> None:
        """Take the outcome of a review that was accepted with TEXT."""

    def diff_rejected(self, diff_id: int) -> None:
        """Take the outcome of a review that was rejected."""

    def adopt_diff(self, diff: Diff) -> None:
        """Take in DIFF, which a former process had open."""

    def drop_diff(self, diff_id: int) -> None:
        """Forget a diff that the former process has closed."""

    def retire(self) -> None:
        """Make way for a successor, which has what is open now."""

    def stop(self) -> None:
        """Shut down; Emacs asks for it, or is gone."""


class _Text:
    """A text that goes through a file when it is large.

    sexpdata asks for its form in the thread that writes.
    """

    def __init__(self, text: str, folder: PrivateFolder) -> None:
        self._text = text
        self._folder = folder

    def __to_lisp_as__(self) -> Sexp:
        if _is_large(self._text):
            path = self._folder.write(self._text)
            if path is not None:
                return [Symbol(":file"), str(path)]
        return clean(self._text)


def _is_large(text: str) -> bool:
    if len(text) > LONGEST_TEXT:
        return True
    return 4 * len(text) > LONGEST_TEXT and len(encode(text)) > LONGEST_TEXT


class Emacs:
    """The one Emacs at the other end."""

    def __init__(self, config: Config, owner: Owner) -> None:
        self.folder = PrivateFolder()
        self._config = config
        self._owner = owner
        self._peer: Handler | None = None
        self._is_gone = False
        self._early: list[tuple[str, list[Sexp], Reply, Reply]] = []
        self._listener = PeerListener(config.secret)
        self._accepting: asyncio.Task[None] | None = None
        self._listener.funcs = {
            "context-update": self._context_update,
            "roots-update": self._roots_update,
            "diff-accepted": self._diff_accepted,
            "diff-rejected": self._diff_rejected,
            "adopt-diff": self._adopt_diff,
            "drop-diff": self._drop_diff,
            "retire": self._retire,
            "stop": self._stop,
        }
        if self.folder.path is None:
            self.warn(
                f"No temporary folder can be made ({self.folder.fault}), so texts "
                "of more than 16 MB cannot be reviewed; set TMPDIR to a folder "
                "that can be written"
            )

    @property
    def port(self) -> int:
        """The port that Emacs is to connect to."""
        port: int = self._listener.server_address[1]
        return port

    def listen(self) -> None:
        """Let Emacs in; needs the running event loop."""
        listener = self._listener
        listener.loop = asyncio.get_running_loop()
        listener.connected = self._connected
        listener.disconnected = self._disconnected
        listener.peer_arrived = self._peer_arrived
        self._accepting = listener.loop.create_task(self._accept())

    async def close(self) -> None:
        """Leave once Emacs has done all that it was asked; remove the folder."""
        self._stop_listening()
        with suppress(EmacsError, asyncio.TimeoutError):
            await asyncio.wait_for(self._all_done(), self._config.done_limit)
        peer = self._peer
        if peer is not None:
            peer.finish_writing()
            await asyncio.to_thread(peer.writer.join, 0.2)
            peer.hang_up()
            self._lose(peer)
        self.folder.remove()

    async def _all_done(self) -> None:
        # Emacs answers in order.  A connection that is closed over an answer of
        # Emacs is lost to it with all that it has not read.
        if self._peer is not None:
            await self._ask("outcome-told", [0], lambda reply: None)

    async def _accept(self) -> None:
        listener = self._listener
        try:
            while True:
                with suppress(ConnectionError):
                    peer, address = await listener.loop.sock_accept(listener.socket)
                    peer.setblocking(True)
                    listener.process_request(peer, address)
        finally:
            listener.server_close()

    def _connected(self, handler: Handler) -> None:
        unproven = [one for one in self._listener.clients if not one.is_proven]
        for oldest in unproven[:-MOST_UNPROVEN]:
            oldest.hang_up()
        self._listener.loop.call_later(
            self._config.hello_limit,
            lambda: None if handler.is_proven else handler.hang_up(),
        )

    def _peer_arrived(self, handler: Handler, uid: int) -> None:
        logger.info("Emacs is connected")
        self._peer = handler
        self._stop_listening()
        handler._send("return", uid, self._welcome())
        for early in self._early:
            handler.call(*early)
        self._early.clear()

    def _welcome(self) -> dict[str, object]:
        path = self.folder.path
        folder = None if path is None else str(path)
        return {**self._owner.hello(), "folder": folder}

    def _stop_listening(self) -> None:
        if self._accepting is not None:
            self._accepting.cancel()
            self._accepting = None
        for handler in list(self._listener.clients):
            if handler is not self._peer:
                handler.hang_up()

    def _disconnected(self, handler: Handler) -> None:
        if handler is self._peer:
            logger.info("Emacs has disconnected")
            self._lose(handler)
            self._owner.stop()

    def give_up(self) -> None:
        """Wait no longer for what Emacs has not answered by now."""
        waiting = self._peer.callmanager.callbacks if self._peer else {}
        while waiting:
            _, (_, fail) = waiting.popitem()
            fail(EmacsGone("Emacs did not answer"))

    def _lose(self, handler: Handler) -> None:
        self.give_up()
        self._peer = None
        self._is_gone = True

    # What Emacs calls: each method runs in the thread that reads, and returns a
    # function for the event loop

    def _context_update(self, files: Sexp) -> Callable[[], object]:
        return partial(self._owner.context_update, context_from(files))

    def _roots_update(self, roots: Sexp) -> Callable[[], object]:
        return partial(self._owner.roots_update, roots_from(roots))

    def _diff_accepted(self, diff_id: Sexp, content: Sexp) -> Callable[[], object]:
        return partial(
            self._owner.diff_accepted,
            as_integer(diff_id, "ID"),
            self._read_text(content),
        )

    def _diff_rejected(self, diff_id: Sexp) -> Callable[[], object]:
        return partial(self._owner.diff_rejected, as_integer(diff_id, "ID"))

    def _adopt_diff(
        self, diff_id: Sexp, session: Sexp, path: Sexp, proposal: Sexp
    ) -> Callable[[], object]:
        diff = Diff(
            as_integer(diff_id, "ID"),
            as_text(session, "SESSION-ID"),
            as_text(path, "FILE-PATH"),
            self._read_text(proposal),
        )
        return partial(self._owner.adopt_diff, diff)

    def _drop_diff(self, diff_id: Sexp) -> Callable[[], object]:
        return partial(self._owner.drop_diff, as_integer(diff_id, "ID"))

    def _retire(self) -> Callable[[], object]:
        return self._owner.retire

    def _stop(self) -> Callable[[], object]:
        return self._owner.stop

    def _read_text(self, value: Sexp) -> str:
        if is_text(value):
            return clean(value)
        return self.folder.take(as_text(as_plist(value).get(":file"), "TEXT"))

    # What Emacs is asked

    def open_diff(self, diff: Diff, session: SessionFacts) -> None:
        """Show DIFF of SESSION, whenever it suits the person."""
        loop = asyncio.get_running_loop()
        text = _Text(diff.proposal, self.folder)

        def fail(error: Exception) -> None:
            if isinstance(error, EmacsGone):
                return
            to_loop(
                loop,
                self.warn,
                f"The proposal for {diff.path} cannot be shown ({error}); "
                "answer in the terminal of Gemini CLI",
            )

        self._tell(
            "open-diff", [diff.id, session_plist(session), diff.path, text], fail
        )

    async def close_diff(self, diff_id: int, reason: CloseReason) -> str | None:
        """Take the diff DIFF_ID away; return what its proposal held."""
        return await self._ask(
            "close-diff",
            [diff_id, Symbol(reason)],
            lambda reply: None if reply == [] else self._read_text(reply),
        )

    def sessions_update(self, sessions: Sequence[SessionFacts]) -> None:
        """Tell which sessions are connected."""
        self._tell(
            "sessions-update", [[session_plist(session) for session in sessions]]
        )

    def outcome_told(self, diff_id: int) -> None:
        """Tell that the outcome of the diff DIFF_ID has left for its client."""
        self._tell("outcome-told", [diff_id])

    def outcome_undelivered(self, diff_id: int) -> None:
        """Report that the accepted text of `diff_id` cannot reach its client."""
        self._tell("outcome-undelivered", [diff_id])

    def warn(self, message: str) -> None:
        """Tell the person MESSAGE."""
        logger.warning("%s", message)
        self._tell("warn", [clean(message)])

    def _tell(self, name: str, args: list[Sexp], fail: Reply | None = None) -> None:
        def log(error: Exception) -> None:
            if not isinstance(error, EmacsGone):
                logger.warning("%s failed in Emacs: %s", name, error)

        if not self._is_gone:
            self._call(name, args, lambda reply: None, fail or log)

    async def _ask(
        self,
        name: str,
        args: list[Sexp],
        read: Callable[[Sexp], str | None],
    ) -> str | None:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[str | None] = loop.create_future()

        def succeed(reply: Sexp) -> None:
            try:
                to_loop(loop, _resolve, answer, read(reply))
            except MalformedArgument as error:
                fail(error)

        def fail(error: Exception) -> None:
            gone = isinstance(error, EmacsGone)
            to_loop(loop, _reject, answer, error if gone else EmacsError(str(error)))

        if self._is_gone:
            raise EmacsGone("Emacs has left")
        self._call(name, args, succeed, fail)
        return await answer

    def _call(self, name: str, args: list[Sexp], succeed: Reply, fail: Reply) -> None:
        if self._peer is None:
            self._early.append((name, args, succeed, fail))
        else:
            self._peer.call(name, args, succeed, fail)


def _resolve(answer: "asyncio.Future[str | None]", text: str | None) -> None:
    if not answer.done():
        answer.set_result(text)


def _reject(answer: "asyncio.Future[str | None]", error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


# The start line, and the end of stdin


def read_start_line() -> bytes:
    """Return the first line of stdin, which is left open."""
    line = bytearray()
    try:
        while not line.endswith(b"\n") and (byte := os.read(0, 1)):
            line += byte
            if len(line) > _START_LINE_LIMIT:
                raise StartError("The start line is too long")
    except OSError:
        return b""
    return bytes(line)


def watch_stdin(gone: Callable[[], None]) -> None:
    """Have the running event loop call GONE once Emacs has closed stdin."""
    loop = asyncio.get_running_loop()

    def watch() -> None:
        with suppress(OSError):
            while os.read(0, 4096):
                pass
        to_loop(loop, gone)

    threading.Thread(target=watch, daemon=True).start()
