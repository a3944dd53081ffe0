# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP port, its open connections, and a Unix socket that leads to it."""

import asyncio
import socket
import stat
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from select import select

from .processes import has_exited
from .system import make_own_directory, share_port
from .types import Address, StartError

MAX_WAITING = 100
_BACKLOG = 128
_CHUNK = 64 * 1024
# Turns of the event loop from accepting a connection to `Port.opened`.
_TURNS = 10


class Port:
    """The port ``number``, or another one if it is in use, and its connections.

    Raise StartError if none can be bound.
    """

    def __init__(self, number: int) -> None:
        self.listener = _bound(number)
        self.number: int = self.listener.getsockname()[1]
        # Functions that close them, None once the token has arrived.
        self._unanswered: dict[Address, Callable[[], None] | None] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()

    def listen(self) -> None:
        """Listen; connections wait until they are accepted."""
        self.listener.listen(_BACKLOG)

    @contextmanager
    def opened(self, address: Address, close: Callable[[], None]) -> Iterator[None]:
        """Record the connection from ``address``, which ``close`` closes."""
        # Hypercorn does not limit their number, so the oldest one on which no token
        # has arrived is closed when there are too many.
        self._unanswered[address] = close
        self._quiet.clear()
        closings = self._unanswered.values()
        waiting = [close for close in closings if close is not None]
        for close_oldest in waiting[:-MAX_WAITING]:
            close_oldest()
        try:
            yield
        finally:
            self.answered(address)

    def authenticate(self, address: Address) -> None:
        """Keep the connection from ``address``, which sent the token."""
        self._unanswered[address] = None
        self._quiet.clear()

    def answered(self, address: Address) -> None:
        """Stop waiting for the connection from ``address``, which may be a stream."""
        self._unanswered.pop(address, None)
        if not self._unanswered:
            self._quiet.set()

    async def stop_listening(self) -> None:
        """Stop listening: another process, if any, accepts further connections."""
        descriptor = self.listener.fileno()
        # Closing the socket resets connections that were not accepted.
        while select([descriptor], [], [], 0)[0]:  # noqa: ASYNC110 - has no event
            await asyncio.sleep(0)
        self.listener.close()
        asyncio.get_running_loop().remove_reader(descriptor)
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    async def finish(self, limit: float) -> None:
        """Wait until all requests are answered, ``limit`` seconds at most."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), limit)


def _bound(port: int) -> socket.socket:
    # Without IPPROTO_TCP asyncio leaves Nagle's algorithm on: 40 ms an answer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        share_port(listener)
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        if port:
            return _bound(0)
        problem = error.strerror or error
        raise StartError(f"Cannot bind a port on 127.0.0.1: {problem}") from None
    return listener


@dataclass(eq=False, repr=False)
class UnixPort:
    """Unix sockets, for CLIs that use nothing else, which lead to ``_port``."""

    _port: int
    _loop: asyncio.AbstractEventLoop | None = field(init=False, default=None)
    """The event loop that serves, None until it does."""
    _listening: dict[Path, Future[asyncio.Server]] = field(default_factory=dict)
    """The names of the sockets at which it listens."""
    _is_closed: bool = field(init=False, default=False)

    @property
    def may_listen(self) -> bool:
        """Whether this process serves: clients must find the diffs of the last one."""
        return self._loop is not None and not self._is_closed

    def serve(self) -> None:
        """Let the running event loop serve the sockets."""
        self._loop = asyncio.get_running_loop()

    def listen(self, name: str, variable: str) -> None:
        """Accept connections at the socket ``name``, if it does not yet.

        This may be called in another thread than that of the event loop.  Raise an
        OSError whose message names the socket and a remedy if it cannot: the
        environment variable ``variable`` names another directory.
        """
        assert self._loop is not None
        path = Path(name)
        if path in self._listening and _is_socket(path):
            return
        self._close(path)
        try:
            listener = _bound_at(path)
        except OSError as error:
            raise OSError(
                f"Cannot listen at the socket {path}: {error.strerror or error}; set "
                f"{variable} to another directory, with a short name, for Emacs and "
                "the CLI"
            ) from None
        server = asyncio.start_unix_server(self._carry, sock=listener)
        self._listening[path] = asyncio.run_coroutine_threadsafe(server, self._loop)
        # Another thread may have closed them meanwhile.
        if self._is_closed:
            self._close(path)

    def close(self) -> None:
        """Remove the sockets, as far as that is possible, and listen no more."""
        self._is_closed = True
        for path in list(self._listening):
            self._close(path)

    def _close(self, path: Path) -> None:
        """Remove the socket ``path`` if it listens there, as far as possible."""
        if listening := self._listening.pop(path, None):
            listening.add_done_callback(_close_server)
            _remove_socket(path)

    async def _carry(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            back, forth = await asyncio.open_connection("127.0.0.1", self._port)
            await asyncio.gather(_pass_on(reader, forth), _pass_on(back, writer))
        writer.close()


def _bound_at(path: Path) -> socket.socket:
    """Return a socket that listens at ``path``, in a private directory."""
    directory = path.parent
    make_own_directory(directory)
    directory.chmod(0o700)
    # A process that was killed may have left its socket; it may have had the PID of
    # this one, which does not listen at that name.
    for old in directory.glob("*.sock"):
        if old == path or (old.stem.isdecimal() and has_exited(int(old.stem))):
            _remove_socket(old)
    if path.is_dir():
        raise OSError("it is a directory (remove it)")
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(str(path))
        path.chmod(0o600)
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _is_socket(path: Path) -> bool:
    with suppress(OSError):
        return stat.S_ISSOCK(path.lstat().st_mode)
    return False


def _remove_socket(path: Path) -> None:
    """Delete ``path`` if it is no directory, and can be deleted."""
    with suppress(OSError):
        path.unlink()


def _close_server(listening: Future[asyncio.Server]) -> None:
    # It is cancelled if the event loop ends before.
    if not listening.cancelled() and listening.exception() is None:
        server = listening.result()
        server.get_loop().call_soon_threadsafe(server.close)


async def _pass_on(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
