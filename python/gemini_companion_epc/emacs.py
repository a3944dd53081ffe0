# SPDX-License-Identifier: GPL-3.0-or-later
"""The Emacs end: EPC.  The only module with S-expressions and threads.

Each connection has a thread that reads and a thread that writes, so neither a
stopped Emacs nor a large message holds up the event loop.  What is read enters
the loop by `_to_loop`; what is to be sent leaves it by `_Handler._send`.
"""

import asyncio
import hmac
import logging
import math
import os
import re
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import SimpleQueue
from socketserver import ThreadingMixIn
from typing import Any, Protocol, TypeAlias

import sexpdata
from epc.handler import BaseRemoteError, EPCHandler
from epc.server import EPCServer
from sexpdata import Symbol

from . import __version__
from .config import Config
from .exceptions import EmacsError, EmacsGone, MalformedArgument, StartError
from .folder import PrivateFolder
from .types import (
    CloseReason,
    Cursor,
    Diff,
    File,
    IdeContext,
    SessionFacts,
    clean,
)

logger = logging.getLogger(__name__)

Sexp: TypeAlias = Any
Reply: TypeAlias = Callable[[Sexp], None]

LONGEST_MESSAGE = 0xFFFFFF
LONGEST_HELLO = 4096
LONGEST_TEXT = 256 * 1024
MOST_UNPROVEN = 32

_START_LINE_LIMIT = 1024 * 1024
_LENGTH = re.compile(rb"[0-9a-fA-F]{6}")
_CALL_HEAD = re.compile(rb"\s*\(\s*(?:call|methods)\s+(\d{1,18})\b")
_OCTAL = re.compile(r"[0-7]{1,3}")
_QUICKACK: int | None = getattr(socket, "TCP_QUICKACK", None)


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


# Reading and writing S-expressions


class _Parser(sexpdata.Parser):
    """The reader of sexpdata with the escapes of strings put right."""

    def parse_str(self, i: int) -> tuple[int, str]:
        chars: list[str] = []
        i += 1
        while (found := self.quote_or_escape_re.search(self.string, i)) is not None:
            chars.append(self.string[i : found.start()])
            i = found.end()
            if found.group() == '"':
                return i, "".join(chars)
            i = self._escape(i, chars)
        raise ValueError("a string does not end")

    def _escape(self, i: int, chars: list[str]) -> int:
        octal = _OCTAL.match(self.string, i)
        if octal is not None:
            code = int(octal.group(), 8)
            # Emacs writes a byte that is not text in this form.
            chars.append(chr(code) if code < 0x80 else "\ufffd")
            return octal.end()
        char = self.string[i : i + 1]
        if char not in (" ", "\n"):
            chars.append(sexpdata.String.unquote("\\" + char)[-1:])
        return i + 1


def parse(message: bytes) -> list[Sexp]:
    """Return the list that MESSAGE holds; ValueError if it is not one."""
    try:
        forms = _Parser(message.decode("utf-8", errors="replace")).parse()
    except (
        ValueError,
        IndexError,
        RecursionError,
        sexpdata.ExpectClosingBracket,
        sexpdata.ExpectNothing,
        sexpdata.ExpectSExp,
    ) as error:
        raise ValueError(f"not an S-expression: {type(error).__name__}") from None
    if len(forms) != 1 or not isinstance(forms[0], list):
        raise ValueError("not one list")
    return forms[0]


def _is_text(value: Sexp) -> bool:
    return isinstance(value, str) and not isinstance(value, Symbol)


def _is_integer(value: Sexp) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _integer(value: Sexp, name: str) -> int:
    if not _is_integer(value):
        raise MalformedArgument(f"{name} must be an integer")
    return int(value)


def _text(value: Sexp, name: str) -> str:
    if not _is_text(value):
        raise MalformedArgument(f"{name} must be a string")
    return clean(value)


def _plist(value: Sexp) -> dict[str, Sexp]:
    if not isinstance(value, list) or len(value) % 2:
        raise MalformedArgument("a property list is needed")
    keys = value[::2]
    if not all(isinstance(key, Symbol) for key in keys):
        raise MalformedArgument("a property list is needed")
    return {key.value(): item for key, item in zip(keys, value[1::2], strict=True)}


def file_from(value: Sexp) -> File:
    """Return the file that the property list VALUE tells."""
    plist = _plist(value)
    timestamp = plist.get(":timestamp")
    if isinstance(timestamp, float) and math.isfinite(timestamp):
        timestamp = int(timestamp)
    selected = plist.get(":selected-text")
    cursor = None
    if plist.get(":line"):
        cursor = Cursor(
            _integer(plist[":line"], ":line"),
            _integer(plist.get(":character", 1), ":character"),
        )
    return File(
        path=_text(plist.get(":path"), ":path"),
        timestamp=_integer(timestamp, ":timestamp"),
        is_active=bool(plist.get(":active")),
        cursor=cursor,
        selected_text=_text(selected, ":selected-text") if selected else None,
    )


def context_from(value: Sexp) -> IdeContext:
    """Return the context that the list VALUE tells, without its bad entries."""
    if not isinstance(value, list):
        raise MalformedArgument("FILES must be a list")
    files = []
    for item in value:
        try:
            files.append(file_from(item))
        except MalformedArgument as error:
            logger.warning("A file of the context is left out: %s", error)
    return IdeContext.of(files)


def _roots_from(value: Sexp) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise MalformedArgument("ROOTS must be a list")
    return tuple(_text(root, "a root") for root in value)


def _told(session: SessionFacts) -> dict[str, Sexp]:
    told: dict[str, Sexp] = {"id": session.id}
    if session.process is not None:
        told["pid"] = session.process.pid
        if session.process.directory is not None:
            told["directory"] = clean(session.process.directory)
    return told


# Large texts


class _Text:
    """A text that goes through a file when it is large.

    sexpdata asks for its form in the thread that writes.
    """

    def __init__(self, text: str, folder: PrivateFolder) -> None:
        self._text = text
        self._folder = folder

    def __to_lisp_as__(self) -> Sexp:
        text = clean(self._text)
        if 4 * len(text) > LONGEST_TEXT and len(text.encode()) > LONGEST_TEXT:
            path = self._folder.write(text)
            if path is not None:
                return [Symbol(":file"), str(path)]
        return text


# One connection


class _Handler(EPCHandler):
    """One connection, which must say hello before anything else."""

    server: "_Listener"
    connection: socket.socket
    disable_nagle_algorithm = True

    def setup(self) -> None:
        self.is_proven = False
        self._outgoing: SimpleQueue[tuple[Sexp, ...] | None] = SimpleQueue()
        self.writer = threading.Thread(target=self._write, daemon=True)
        super().setup()
        self.writer.start()

    def finish(self) -> None:
        self.finish_writing()
        super().finish()

    def finish_writing(self) -> None:
        """End the thread that writes once all before this is written."""
        self._outgoing.put(None)

    def hang_up(self) -> None:
        """Close the connection from any thread."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def to_loop(self, function: Callable[..., object], *args: object) -> None:
        """Have the event loop call FUNCTION with ARGS."""
        _to_loop(self.server.loop, function, *args)

    # Reading

    def handle(self) -> None:
        try:
            for message in self._messages():
                self._handle(message)
        except (OSError, EOFError, ValueError) as error:
            logger.info("An EPC connection broke: %s", error)

    def _messages(self) -> Iterator[bytes]:
        while (head := self._read(6)) is not None:
            if not _LENGTH.fullmatch(head):
                raise ValueError("a message without a length")
            length = int(head, 16)
            if not self.is_proven and length > LONGEST_HELLO:
                raise ValueError("too long for a hello")
            message = self._read(length)
            if message is None:
                raise EOFError("a message without its text")
            yield message

    def _read(self, size: int) -> bytes | None:
        """Return SIZE bytes, None at the end of the stream before the first."""
        data = bytearray(size)
        view = memoryview(data)
        done = 0
        while done < size:
            count = self.connection.recv_into(view[done:])
            if not count:
                if done:
                    raise EOFError("a message is cut short")
                return None
            self._acknowledge()
            done += count
        return bytes(data)

    def _acknowledge(self) -> None:
        # Emacs cannot turn Nagle off: what it sends next waits for our delayed
        # acknowledgement, 40 ms, and the kernel forgets this option every time.
        if _QUICKACK is not None:
            with suppress(OSError):
                self.connection.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)

    def _handle(self, sexp: bytes) -> None:
        try:
            form = parse(sexp)
            kind, uid = form[0], form[1]
            if not isinstance(kind, Symbol) or not _is_integer(uid):
                raise ValueError("not an EPC message")
        except (ValueError, IndexError) as error:
            self._answer_undecodable(sexp, str(error))
            return
        logger.debug("EPC in: %s, %d bytes", _title(form), len(sexp))
        if not self.is_proven:
            self._prove(kind.value(), uid, form[2:])
            return
        self._receive(kind.value(), uid, form[2:])

    def _answer_undecodable(self, message: bytes, fault: str) -> None:
        logger.warning("An EPC message cannot be decoded: %s", fault)
        call = _CALL_HEAD.match(message)
        if not self.is_proven:
            self.hang_up()
        elif call is not None:
            self._send("epc-error", int(call[1]), f"The message is {fault}")

    def _prove(self, kind: str, uid: int, rest: list[Sexp]) -> None:
        try:
            name, (secret, version) = rest
            if kind != "call" or name.value() != "hello":
                raise ValueError
            is_right = hmac.compare_digest(
                _text(secret, "SECRET").encode(), self.server.secret.encode()
            )
        except (ValueError, TypeError, AttributeError, MalformedArgument):
            is_right = False
        if not is_right:
            logger.warning("An EPC peer without the secret was turned away")
            self.hang_up()
        elif version != __version__:
            self._send("return-error", uid, _version_sentence(version))
        elif self.server.prove(self):
            self.to_loop(self.server.peer_arrived, self, uid)
        else:
            self.hang_up()

    def _receive(self, kind: str, uid: int, rest: list[Sexp]) -> None:
        if kind == "call":
            self._receive_call(uid, rest)
        elif kind == "methods":
            self._send(*self._handle_methods(uid))
        elif kind == "return":
            self._receive_return(uid, rest)
        elif kind in ("return-error", "epc-error"):
            self._receive_error(uid, rest)
        else:
            logger.warning("An EPC message of an unknown kind: %s", kind[:40])

    def _receive_call(self, uid: int, rest: list[Sexp]) -> None:
        try:
            method, args = rest
            name = method.value()
            if not isinstance(args, list):
                raise ValueError
        except (ValueError, AttributeError):
            self._send("epc-error", uid, "A call needs a method and its arguments")
            return
        try:
            run = self.server.get_method(name)(*args)
        except KeyError:
            self._send("epc-error", uid, f"No such method: {name}")
        except MalformedArgument as error:
            self._send("return-error", uid, f"{name}: {error}")
        except TypeError:
            self._send("return-error", uid, f"{name}: wrong number of arguments")
        else:
            self.to_loop(self._run, uid, run)

    def _run(self, uid: int, run: Callable[[], object]) -> None:
        try:
            run()
        except MalformedArgument as error:
            self._send("return-error", uid, str(error))
        except Exception:
            logger.exception("A call of Emacs failed")
            self._send("return-error", uid, "The server failed; see its log")
        else:
            self._send("return", uid, True)

    def _receive_return(self, uid: int, rest: list[Sexp]) -> None:
        with suppress(BaseRemoteError):  # nobody waits for it any more
            self._handle_return(uid, rest[0] if rest else [])

    def _receive_error(self, uid: int, rest: list[Sexp]) -> None:
        with suppress(BaseRemoteError):  # nobody waits for it any more
            self._handle_return_error(uid, rest[0] if rest else "")

    # Writing

    def _send(self, *message: Sexp) -> None:
        """Have MESSAGE sent after all before it: the only way out."""
        self._outgoing.put(message)

    def _write(self) -> None:
        while (message := self._outgoing.get()) is not None:
            try:
                data = _encode(message)
            except (ValueError, TypeError, OSError, RecursionError) as error:
                logger.error("An EPC message cannot be sent: %s", error)
                self._fail(message, str(error))
                continue
            logger.debug("EPC out: %s, %d bytes", _title(message), len(data))
            try:
                self.connection.sendall(data)
            except OSError as error:
                logger.info("Writing to Emacs ended: %s", error)
                self.hang_up()
                return

    def _fail(self, message: tuple[Sexp, ...], fault: str) -> None:
        kind, uid = message[:2]
        if kind == "call":
            self._receive_error(uid, [fault])
        elif kind == "return":
            self._send("return-error", uid, fault)


def _encode(message: tuple[Sexp, ...]) -> bytes:
    kind, *rest = message
    data = sexpdata.dumps([Symbol(kind), *rest]).encode("utf-8", errors="replace")
    length = len(data) + 1
    if length > LONGEST_MESSAGE:
        raise ValueError(f"it is too long: {length} bytes")
    return b"%06x%b\n" % (length, data)


def _title(message: Sequence[Sexp]) -> str:
    words = message[:3] if _word(message[0]) == "call" else message[:2]
    return " ".join(_word(word)[:40] for word in words)


def _word(value: Sexp) -> str:
    return str(value.value() if isinstance(value, Symbol) else value)


def _version_sentence(version: Sexp) -> str:
    theirs = version if _is_text(version) else "unknown"
    return (
        f"Emacs has gemini-companion {theirs}, but the Python server that "
        f"{sys.executable} runs is {__version__}; install the same version of both "
        "and restart Emacs"
    )


class _Listener(ThreadingMixIn, EPCServer):
    """The port that Emacs connects to, closed once it has proved itself."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = MOST_UNPROVEN

    def __init__(self, secret: str) -> None:
        # epc writes its log to stderr by itself, and describes each call.
        epc_logger = logging.getLogger("epc")
        epc_logger.handlers.clear()
        epc_logger.setLevel(logging.ERROR)
        super().__init__(("127.0.0.1", 0), _Handler)
        self.socket.setblocking(False)
        self.secret = secret
        self.loop: asyncio.AbstractEventLoop
        self.peer_arrived: Callable[[_Handler, int], None]
        self.connected: Callable[[_Handler], None]
        self.disconnected: Callable[[_Handler], None]
        self._lock = threading.Lock()
        self._is_taken = False

    def prove(self, handler: _Handler) -> bool:
        """Return whether HANDLER is the first that knows the secret."""
        with self._lock:
            handler.is_proven = not self._is_taken
            self._is_taken = True
        return handler.is_proven

    def get_method(self, name: str) -> Callable[..., Callable[[], object]]:
        method: Callable[..., Callable[[], object]] = self.funcs[name]
        return method

    def handle_client_connect(self, handler: _Handler) -> None:
        handler.to_loop(self.connected, handler)

    def handle_client_disconnect(self, handler: _Handler) -> None:
        handler.to_loop(self.disconnected, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        logger.exception("An EPC connection failed")


# Emacs as the rest of the server sees it


class Emacs:
    """The one Emacs at the other end."""

    def __init__(self, config: Config, owner: Owner) -> None:
        self.folder = PrivateFolder()
        self._config = config
        self._owner = owner
        self._peer: _Handler | None = None
        self._is_gone = False
        self._early: list[tuple[str, list[Sexp], Reply, Reply]] = []
        self._listener = _Listener(config.secret)
        self._accepting: asyncio.Task[None] | None = None
        for name, method in self._methods().items():
            self._listener.register_function(method, name)
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
        """Send what is still to be sent, leave, and remove the folder."""
        self._stop_listening()
        peer = self._peer
        if peer is not None:
            peer.finish_writing()
            await asyncio.to_thread(peer.writer.join, 0.2)
            peer.hang_up()
            self._lose(peer)
        self.folder.remove()

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

    def _connected(self, handler: _Handler) -> None:
        unproven = [one for one in self._listener.clients if not one.is_proven]
        for oldest in unproven[:-MOST_UNPROVEN]:
            oldest.hang_up()
        self._listener.loop.call_later(
            self._config.hello_limit,
            lambda: None if handler.is_proven else handler.hang_up(),
        )

    def _peer_arrived(self, handler: _Handler, uid: int) -> None:
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

    def _disconnected(self, handler: _Handler) -> None:
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

    def _lose(self, handler: _Handler) -> None:
        self.give_up()
        self._peer = None
        self._is_gone = True

    # What Emacs calls: each returns what the event loop is then to run

    def _methods(self) -> dict[str, Callable[..., Callable[[], object]]]:
        owner = self._owner

        def context_update(files: Sexp) -> Callable[[], object]:
            context = context_from(files)
            return lambda: owner.context_update(context)

        def roots_update(value: Sexp) -> Callable[[], object]:
            roots = _roots_from(value)
            return lambda: owner.roots_update(roots)

        def diff_accepted(value: Sexp, content: Sexp) -> Callable[[], object]:
            diff_id, text = _integer(value, "ID"), self._read_text(content)
            return lambda: owner.diff_accepted(diff_id, text)

        def diff_rejected(value: Sexp) -> Callable[[], object]:
            diff_id = _integer(value, "ID")
            return lambda: owner.diff_rejected(diff_id)

        def adopt_diff(
            value: Sexp, session: Sexp, path: Sexp, proposal: Sexp
        ) -> Callable[[], object]:
            diff = Diff(
                _integer(value, "ID"),
                _text(session, "SESSION-ID"),
                _text(path, "FILE-PATH"),
                self._read_text(proposal),
            )
            return lambda: owner.adopt_diff(diff)

        def drop_diff(value: Sexp) -> Callable[[], object]:
            diff_id = _integer(value, "ID")
            return lambda: owner.drop_diff(diff_id)

        def retire() -> Callable[[], object]:
            return owner.retire

        def stop() -> Callable[[], object]:
            return owner.stop

        return {
            "context-update": context_update,
            "roots-update": roots_update,
            "diff-accepted": diff_accepted,
            "diff-rejected": diff_rejected,
            "adopt-diff": adopt_diff,
            "drop-diff": drop_diff,
            "retire": retire,
            "stop": stop,
        }

    def _read_text(self, value: Sexp) -> str:
        if _is_text(value):
            return clean(value)
        return self.folder.take(_text(_plist(value).get(":file"), "TEXT"))

    # What Emacs is asked

    def open_diff(self, diff: Diff, session: SessionFacts) -> None:
        """Show DIFF of SESSION, whenever it suits the person."""
        loop = asyncio.get_running_loop()
        text = _Text(diff.proposal, self.folder)

        def fail(error: Exception) -> None:
            _to_loop(
                loop,
                self.warn,
                f"The proposal for {diff.path} cannot be shown ({error}); "
                "answer in the terminal of Gemini CLI",
            )

        self._tell("open-diff", [diff.id, _told(session), diff.path, text], fail)

    async def close_diff(self, diff_id: int, reason: CloseReason) -> str | None:
        """Take the diff DIFF_ID away; return what its proposal held."""
        return await self._ask(
            "close-diff",
            [diff_id, Symbol(reason)],
            lambda reply: None if reply == [] else self._read_text(reply),
        )

    def sessions_update(self, sessions: Sequence[SessionFacts]) -> None:
        """Tell which sessions are connected."""
        self._tell("sessions-update", [[_told(session) for session in sessions]])

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
                _to_loop(loop, _resolve, answer, read(reply))
            except MalformedArgument as error:
                fail(error)

        def fail(error: Exception) -> None:
            gone = isinstance(error, EmacsGone)
            _to_loop(loop, _reject, answer, error if gone else EmacsError(str(error)))

        if self._is_gone:
            raise EmacsGone("Emacs has left")
        self._call(name, args, succeed, fail)
        return await answer

    def _call(self, name: str, args: list[Sexp], succeed: Reply, fail: Reply) -> None:
        if self._peer is None:
            self._early.append((name, args, succeed, fail))
        else:
            self._peer.call(name, args, succeed, fail)


def _to_loop(
    loop: asyncio.AbstractEventLoop, function: Callable[..., object], *args: object
) -> None:
    """Have LOOP call FUNCTION with ARGS: the only way into it."""
    with suppress(RuntimeError):  # the loop is closed, the process ends
        loop.call_soon_threadsafe(function, *args)


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
        _to_loop(loop, gone)

    threading.Thread(target=watch, daemon=True).start()
