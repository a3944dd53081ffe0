# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP port and its open connections."""

import asyncio
import socket
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager, suppress
from select import select
from typing import TypeAlias

from .exceptions import StartError
from .system import share_port

Address: TypeAlias = tuple[str, int]

MAX_WAITING = 100
_BACKLOG = 128
_POLL = 0.01
# Turns of the event loop from accepting a connection to `Connections.opened`.
_TURNS = 10


class Connections:
    """The connections to the socket ``listener`` that await an answer.

    Hypercorn does not limit their number, so the oldest one on which no token has
    arrived is closed when there are too many.
    """

    def __init__(self, listener: socket.socket) -> None:
        self.listener = listener
        self.port: int = listener.getsockname()[1]
        self._waiting: dict[Address, Callable[[], None]] = {}
        self._unanswered: set[Address] = set()
        self._quiet = asyncio.Event()
        self._quiet.set()

    @contextmanager
    def opened(self, address: Address, close: Callable[[], None]) -> Iterator[None]:
        """Know the connection from ``address``, which ``close`` closes."""
        self._waiting[address] = close
        self._unanswered.add(address)
        self._quiet.clear()
        if len(self._waiting) > MAX_WAITING:
            self._waiting.pop(next(iter(self._waiting)))()
        try:
            yield
        finally:
            self._waiting.pop(address, None)
            self.answered(address)

    def authenticate(self, address: Address) -> None:
        """Keep the connection from ``address``, which sent the token."""
        self._waiting.pop(address, None)
        self._unanswered.add(address)
        self._quiet.clear()

    def answered(self, address: Address) -> None:
        """Do not wait for the connection from ``address``, which may be a stream."""
        self._unanswered.discard(address)
        if not self._unanswered:
            self._quiet.set()

    async def stop_listening(self) -> None:
        """Leave further connections to the other process that listens, if any."""
        descriptor = self.listener.fileno()
        # Nothing signals that the kernel's queue of connections is empty.
        while select([descriptor], [], [], 0)[0]:  # noqa: ASYNC110
            await asyncio.sleep(_POLL)
        # Closing the socket resets connections that were not accepted, so nothing
        # may come between.
        self.listener.close()
        asyncio.get_running_loop().remove_reader(descriptor)
        for _ in range(_TURNS):
            await asyncio.sleep(0)

    def expect_only(self, clients: Container[Address]) -> None:
        """Wait for a token on the connections from ``clients`` only."""
        for address in self._waiting:
            if address not in clients:
                self.answered(address)

    def give_up(self) -> None:
        """Do not wait for any connection that is open now."""
        self._unanswered.clear()
        self._quiet.set()

    async def finish(self, limit: float) -> None:
        """Wait until all requests are answered, ``limit`` seconds at most."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._quiet.wait(), limit)


def listen(port: int) -> tuple[socket.socket, bool]:
    """Return a listening socket, and whether ``port`` is in use elsewhere.

    Raise StartError if no port can be bound.
    """
    try:
        return _bound(port), False
    except OSError as error:
        if not port:
            problem = error.strerror or error
            raise StartError(f"Cannot bind a port on 127.0.0.1: {problem}") from None
        return listen(0)[0], True


def _bound(port: int) -> socket.socket:
    # Without IPPROTO_TCP asyncio leaves Nagle's algorithm on: 40 ms an answer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        share_port(listener)
        listener.bind(("127.0.0.1", port))
        listener.listen(_BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
