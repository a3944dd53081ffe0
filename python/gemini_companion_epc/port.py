# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP port, its open connections, and a Unix socket that leads to it."""

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from select import select

from .copilot import socket_name
from .processes import has_exited
from .system import share_port
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
        """Know the connection from ``address``, which ``close`` closes."""
        # Hypercorn does not limit their number, so the oldest one on which no token
        # has arrived is closed when there are too many.
        self._unanswered[address] = close
        self._quiet.clear()
        waiting = [one for one in self._unanswered.values() if one is not None]
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
        """Do not wait for the connection from ``address``, which may be a stream."""
        self._unanswered.pop(address, None)
        if not self._unanswered:
            self._quiet.set()

    async def stop_listening(self) -> None:
        """Leave further connections to the other process that listens, if any."""
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
    """A Unix socket, for CLIs that use nothing else, which leads to ``_port``."""

    _port: int
    _listening: asyncio.Task[asyncio.Server] | None = None

    def listen(self) -> None:
        """Accept connections, if it does not yet; raise OSError if it cannot."""
        path = Path(socket_name())
        if self._listening is not None and path.exists():
            return
        self.close()
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        for old in path.parent.glob("*.sock"):
            if old.stem.isdecimal() and has_exited(int(old.stem)):
                old.unlink()
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(str(path))
        except OSError:
            listener.close()
            raise
        path.chmod(0o600)
        server = asyncio.start_unix_server(self._carry, sock=listener)
        self._listening = asyncio.get_running_loop().create_task(server)

    def close(self) -> None:
        """Remove the socket."""
        if self._listening is not None:
            self._listening.add_done_callback(lambda task: task.result().close())
            Path(socket_name()).unlink(missing_ok=True)

    async def _carry(self, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            back, forth = await asyncio.open_connection("127.0.0.1", self._port)
            await asyncio.gather(_pass_on(reader, forth), _pass_on(back, writer))
        writer.close()


async def _pass_on(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()
