# SPDX-License-Identifier: GPL-3.0-or-later
"""EPC server for one authenticated peer, without the defects of the epc package.

Each connection has a thread that reads and a thread that writes, so neither a
stopped Emacs nor a large message blocks the event loop.  Calls of Emacs enter the
loop by `to_loop`, its answers are handled in the thread that reads, and messages
leave the loop by `Handler._send` only.
"""

import asyncio
import hmac
import logging
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from socketserver import ThreadingMixIn

import sexpdata
from epc.handler import BaseRemoteError, EPCHandler
from epc.server import EPCServer
from sexpdata import Symbol

from . import __version__
from .exceptions import MalformedArgument
from .sexp import Sexp, is_integer, parse
from .system import acknowledge
from .types import clean

logger = logging.getLogger(__name__)

MAX_MESSAGE = 0xFFFFFF
MAX_HELLO = 4096

_LENGTH = re.compile(rb"[0-9a-fA-F]{6}")


class Handler(EPCHandler):
    """A connection, whose first message must be a call of hello."""

    server: "PeerServer"
    connection: socket.socket
    disable_nagle_algorithm = True

    def setup(self) -> None:
        self.is_authenticated = False
        self._outgoing: SimpleQueue[tuple[Sexp, ...] | None] = SimpleQueue()
        self.writer = threading.Thread(target=self._write, daemon=True)
        super().setup()
        self.writer.start()

    def finish(self) -> None:
        self.finish_writing()
        super().finish()

    def finish_writing(self) -> None:
        """End the thread that writes when it has written all messages."""
        self._outgoing.put(None)

    def close(self) -> None:
        """Close the connection; this may be called in any thread."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def to_loop(self, function: Callable[..., object], *args: object) -> None:
        """Schedule ``function(*args)`` on the event loop."""
        to_loop(self.server.loop, function, *args)

    # Reading

    def handle(self) -> None:
        try:
            for message in self._messages():
                self._handle(message)
        except (OSError, EOFError, ValueError) as error:
            logger.info("EPC connection failed: %s", error)

    def _messages(self) -> Iterator[bytes]:
        while (head := self._read(6)) is not None:
            if not _LENGTH.fullmatch(head):
                raise ValueError("message without a length")
            length = int(head, 16)
            if not self.is_authenticated and length > MAX_HELLO:
                raise ValueError("message too long for hello")
            message = self._read(length)
            if message is None:
                raise EOFError("message without a text")
            yield message

    def _read(self, size: int) -> bytes | None:
        """Return ``size`` bytes, or None at the end of the stream."""
        data = bytearray(size)
        view = memoryview(data)
        done = 0
        while done < size:
            count = self.connection.recv_into(view[done:])
            if not count:
                if done:
                    raise EOFError("incomplete message")
                return None
            # Emacs cannot turn off Nagle's algorithm, so its next message would wait
            # 40 ms for a delayed acknowledgement.
            acknowledge(self.connection)
            done += count
        return bytes(data)

    def _handle(self, sexp: bytes) -> None:
        try:
            form = parse(sexp)
            kind, uid = form[0], form[1]
            if not isinstance(kind, Symbol) or not is_integer(uid):
                raise ValueError("not an EPC message")
        except (ValueError, IndexError) as error:
            logger.warning("Cannot decode an EPC message: %s", error)
            if not self.is_authenticated:
                self.close()
            return
        logger.debug("EPC in: %s, %d bytes", _title(form), len(sexp))
        if not self.is_authenticated:
            self._authenticate(kind.value(), uid, form[2:])
        else:
            self._receive(kind.value(), uid, form[2:])

    def _authenticate(self, kind: str, uid: int, rest: list[Sexp]) -> None:
        try:
            name, (secret, version) = rest
            if kind != "call" or name.value() != "hello":
                raise ValueError
            is_right = hmac.compare_digest(secret.encode(), self.server.secret.encode())
        except (ValueError, TypeError, AttributeError):
            is_right = False
        if not is_right:
            logger.warning("EPC peer refused: no hello with the right secret")
            self.close()
        elif version != __version__:
            self._send("return-error", uid, _version_sentence(version))
        else:
            self.is_authenticated = True
            self.to_loop(self.server.on_authenticate, self, uid)

    def _receive(self, kind: str, uid: int, rest: list[Sexp]) -> None:
        if kind == "call":
            self._receive_call(uid, rest)
        elif kind in ("return", "return-error", "epc-error"):
            self._receive_answer(kind, uid, rest)
        else:
            logger.warning("EPC message of unknown kind: %s", kind[:40])

    def _receive_call(self, uid: int, rest: list[Sexp]) -> None:
        try:
            method, args = rest
            run = self.server.funcs[method.value()](*args)
        except (
            MalformedArgument,
            AttributeError,
            KeyError,
            TypeError,
            ValueError,
        ) as error:
            self._send("return-error", uid, f"Malformed call: {error}")
        else:
            self.to_loop(self._run, uid, run)

    def _run(self, uid: int, run: Callable[[], object]) -> None:
        try:
            value = run()
        except MalformedArgument as error:
            self._send("return-error", uid, str(error))
        except Exception:
            logger.exception("A call from Emacs failed")
            self._send("return-error", uid, "The server failed; see its log")
        else:
            if asyncio.iscoroutine(value):
                task = self.server.loop.create_task(value)
                task.add_done_callback(lambda _: self._send("return", uid, True))
                return
            # Let the tasks that the call has started run before the other thread.
            answer = True if value is None else value
            self.server.loop.call_soon(self._send, "return", uid, answer)

    def _receive_answer(self, kind: str, uid: int, rest: list[Sexp]) -> None:
        with suppress(BaseRemoteError):  # the call was given up
            if kind == "return":
                self._handle_return(uid, rest[0] if rest else [])
            else:
                self._handle_return_error(uid, rest[0] if rest else "")

    # Writing

    def _send(self, *message: Sexp) -> None:
        """Send ``message`` after all previous ones."""
        self._outgoing.put(message)

    def _write(self) -> None:
        while (message := self._outgoing.get()) is not None:
            try:
                data = _encode(message)
            except (ValueError, TypeError, OSError, RecursionError) as error:
                logger.error("Cannot send an EPC message: %s", error)
                self._fail(message, str(error))
                continue
            logger.debug("EPC out: %s, %d bytes", _title(message), len(data))
            try:
                self.connection.sendall(data)
            except OSError as error:
                logger.info("Cannot write to Emacs: %s", error)
                self.close()
                return

    def _fail(self, message: tuple[Sexp, ...], problem: str) -> None:
        kind, uid = message[:2]
        if kind == "call":
            self._receive_answer("return-error", uid, [problem])
        elif kind == "return":
            self._send("return-error", uid, problem)


def _encode(message: tuple[Sexp, ...]) -> bytes:
    kind, *rest = message
    # The name of a directory may have any byte.
    data = clean(sexpdata.dumps([Symbol(kind), *rest])).encode()
    length = len(data) + 1
    if length > MAX_MESSAGE:
        raise ValueError(f"message too long: {length} bytes")
    return b"%06x%b\n" % (length, data)


def _title(message: Sequence[Sexp]) -> str:
    words = message[:3] if str(message[0]) == "call" else message[:2]
    return " ".join(str(word)[:40] for word in words)


def _version_sentence(version: Sexp) -> str:
    return (
        f"Emacs has gemini-companion {version}, but the Python server that "
        f"{sys.executable} runs is {__version__}; install the same version of both "
        "and restart Emacs"
    )


class PeerServer(ThreadingMixIn, EPCServer):
    """The EPC server, which accepts peers that know the secret."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, secret: str) -> None:
        # The logger of epc writes to stderr, and formats the arguments of each call.
        epc_logger = logging.getLogger("epc")
        epc_logger.handlers.clear()
        epc_logger.setLevel(logging.ERROR)
        super().__init__(("127.0.0.1", 0), Handler)
        self.secret = secret
        self.loop: asyncio.AbstractEventLoop
        self.on_authenticate: Callable[[Handler, int], None]
        self.on_disconnect: Callable[[Handler], None]

    def handle_client_disconnect(self, handler: Handler) -> None:
        handler.to_loop(self.on_disconnect, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        logger.exception("EPC connection failed")


def to_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: object
) -> None:
    """Schedule ``function(*args)`` on ``loop`` from any thread."""
    with suppress(RuntimeError):  # the loop is closed; the process ends
        loop.call_soon_threadsafe(function, *args)
