# SPDX-License-Identifier: GPL-3.0-or-later
"""EPC server for one authenticated peer, without the defects of the epc package.

The calls and answers of the epc package are used, but not its server, which has a
thread for each connection.
"""

import asyncio
import hmac
import logging
import re
import sys
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeAlias

import sexpdata
from epc.handler import BaseRemoteError, EPCCallManager
from sexpdata import Symbol

from . import __version__
from .system import acknowledge
from .types import (
    EmacsError,
    EmacsGone,
    MalformedArgument,
    NoAnswer,
    RemoteError,
    clean,
)

logger = logging.getLogger(__name__)

MAX_MESSAGE = 0xFFFFFF
MAX_HELLO = 4096

Sexp: TypeAlias = Any

_BACKSLASH = re.compile(rb"\\(?:\\|[0-7]{1,3})")
_LENGTH = re.compile(rb"[0-9a-fA-F]{6}")


class EpcServer:
    """The server for the peer that knows ``secret``."""

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._calls = EPCCallManager()
        self._unsent: list[bytes] = []
        self._peer: StreamWriter | None = None
        """The connection to the peer, which may be closed, None before it connects."""

    async def listen(self, methods: Mapping[str, Callable[..., object]]) -> int:
        """Accept connections, and return the port.

        The peer may call ``methods``: ``hello``, which returns the description of the
        server, only at first.  When it disconnects, ``disconnected`` is called.
        """
        self._methods = methods
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            uid = await self._hello(reader, writer)
            logger.info("Emacs is connected")
            self._server.close()
            self._peer = writer
            self._send("return", uid, self._methods["hello"]())
            writer.writelines(self._unsent)
            while not writer.is_closing():
                self._handle(await _message(reader, writer, MAX_MESSAGE))
        except (OSError, EOFError, ValueError) as error:
            logger.info("EPC connection ended: %s", error)
        finally:
            writer.close()
            if writer is self._peer:
                self.give_up()
                self._methods["disconnected"]()

    async def _hello(self, reader: StreamReader, writer: StreamWriter) -> int:
        """Return the id of a call of hello with the secret and this version.

        Raise ValueError if anything else comes.
        """
        while True:
            kind, uid, rest = _parts(await _message(reader, writer, MAX_HELLO))
            try:
                name, (secret, version) = rest
                is_hello = (kind, name.value()) == ("call", "hello")
                is_right = hmac.compare_digest(secret.encode(), self._secret.encode())
            except (ValueError, TypeError, AttributeError):
                raise ValueError("no hello") from None
            if not (is_hello and is_right):
                raise ValueError("no hello with the right secret")
            if version == __version__:
                return uid
            text = (
                f"Emacs has gemini-companion {version}, but the Python server that "
                f"{sys.executable} runs is {__version__}; install the same version of "
                "both and restart Emacs"
            )
            writer.write(_encoded("return-error", uid, text))

    def _handle(self, message: bytes) -> None:
        try:
            kind, uid, rest = _parts(message)
        except ValueError as error:
            logger.warning("Cannot decode an EPC message: %s", error)
            return
        with suppress(BaseRemoteError):  # the call was given up
            if kind == "call":
                self._receive_call(uid, rest)
            elif kind == "return":
                self._calls.handle_return(uid, rest[0] if rest else [])
            elif kind in ("return-error", "epc-error"):
                self._calls.handle_return_error(uid, rest[0] if rest else "")
            else:
                logger.warning("EPC message of unknown kind: %s", kind[:40])

    def _receive_call(self, uid: int, rest: list[Sexp]) -> None:
        try:
            method, args = rest
            run = partial(self._methods[method.value()], *args)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            self._send("return-error", uid, f"Malformed call: {error}")
        else:
            self._reply(uid, run)

    def _reply(self, uid: int, run: Callable[[], Sexp]) -> None:
        """Answer the call ``uid`` with the value of ``run``, or with its error."""
        try:
            value = run()
        except (EmacsError, MalformedArgument, NoAnswer, RemoteError) as error:
            self._send("return-error", uid, str(error))
        except Exception:
            logger.exception("A call from Emacs failed")
            self._send("return-error", uid, "The server failed; see its log")
        else:
            if asyncio.iscoroutine(value):
                task = asyncio.get_running_loop().create_task(value)
                task.add_done_callback(lambda task: self._reply(uid, task.result))
            else:
                self._send("return", uid, True if value is None else value)

    def call(self, name: str, *args: Sexp) -> "asyncio.Future[Sexp]":
        """Return the future of what the peer answers, or of an EmacsError."""
        answer = asyncio.get_running_loop().create_future()

        def resolve(value: Sexp) -> None:
            if answer.done():  # nothing waits for it
                return
            if isinstance(value, Exception):
                is_ours = isinstance(value, EmacsError)
                answer.set_exception(value if is_ours else EmacsError(str(value)))
            else:
                answer.set_result(value)

        if self._peer is not None and self._peer.is_closing():
            resolve(EmacsGone("Emacs has disconnected"))
        else:
            self._calls.call(self, name, list(args), resolve, resolve)
        return answer

    def count_waiting(self) -> int:
        """Return how many calls have no answer, whether or not that is awaited."""
        return len(self._calls.callbacks)

    def give_up(self) -> None:
        """Let all calls that have no answer fail with EmacsGone."""
        while self._calls.callbacks:
            _, (_, fail) = self._calls.callbacks.popitem()
            fail(EmacsGone("Emacs did not answer"))

    def _send(self, kind: str, uid: int, *rest: Sexp) -> None:
        try:
            message = _encoded(kind, uid, *rest)
        except (ValueError, TypeError, RecursionError) as error:
            logger.error("Cannot send an EPC message: %s", error)
            if kind == "call":
                self._calls.handle_return_error(uid, str(error))
            elif kind == "return":
                self._send("return-error", uid, str(error))
        else:
            if self._peer is None:
                self._unsent.append(message)
            else:
                self._peer.write(message)


# Messages


async def _message(reader: StreamReader, writer: StreamWriter, longest: int) -> bytes:
    head = await reader.readexactly(6)
    if not _LENGTH.match(head) or int(head, 16) > longest:
        raise ValueError("no message, or a message that is too long")
    message = await reader.readexactly(int(head, 16))
    # Emacs cannot turn off Nagle's algorithm, so its next message would wait
    # 40 ms for a delayed acknowledgement.
    acknowledge(writer.get_extra_info("socket"))
    return message


def _encoded(kind: str, uid: int, *rest: Sexp) -> bytes:
    # The name of a directory may have any byte.
    data = clean(sexpdata.dumps([Symbol(kind), uid, *rest])).encode()
    if len(data) >= MAX_MESSAGE:
        raise ValueError(f"message too long: {len(data)} bytes")
    return b"%06x%b\n" % (len(data) + 1, data)


def _parts(message: bytes) -> tuple[str, int, list[Sexp]]:
    kind, uid, *rest = parse(message)
    if not isinstance(kind, Symbol) or not isinstance(uid, int):
        raise ValueError("not an EPC message")
    return kind.value(), uid, rest


def parse(message: bytes) -> list[Sexp]:
    """Return the list in ``message``; raise ValueError if it is not one list."""
    text = _BACKSLASH.sub(_unescaped, message)
    try:
        forms = sexpdata.parse(text.decode("utf-8", errors="replace"))
    except Exception as error:  # of many classes
        raise ValueError(f"not an S-expression: {type(error).__name__}") from None
    if len(forms) != 1 or not isinstance(forms[0], list):
        raise ValueError("not a single list")
    return forms[0]


def _unescaped(escape: re.Match[bytes]) -> bytes:
    """Return the byte of an escape in octal digits, which sexpdata does not know."""
    # Emacs prints one that is not part of a character like this, and control characters
    # with ``print-escape-control-characters``.
    if escape[0] == rb"\\":
        return escape[0]
    code = int(escape[0][1:], 8)
    return bytes([code]) if code < 0x80 else b"\xff"
