# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP port, which a successor can share.

Hypercorn does not limit the number of connections, so the socket from which it
accepts them keeps those on which no token has arrived, and sheds the oldest when
there are too many.
"""

import asyncio
import os
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from typing import TypeAlias

from .exceptions import StartError

Address: TypeAlias = tuple[str, int]

MAX_WAITING = 256
# Younger connections are shed only when there are three times as many: their
# requests may have arrived and not been read yet.
MIN_AGE = 1.0
_BACKLOG = 128


class Listener(socket.socket):
    """A listening socket that sheds connections without a token."""

    def __init__(self, port: int) -> None:
        # Without IPPROTO_TCP asyncio leaves Nagle's algorithm on: 40 ms an answer.
        super().__init__(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        self._waiting: dict[Address, tuple[socket.socket, float]] = {}
        self._late: deque[tuple[socket.socket, Address]] = deque()
        self._is_ended = False
        try:
            self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if os.name == "posix":
                self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if sys.platform == "linux":
                # A successor binds the same port before this process ends.
                # Elsewhere the option has another meaning or none.
                self.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            self.bind(("127.0.0.1", port))
            self.listen(_BACKLOG)
        except OSError:
            self.close()
            raise

    @property
    def port(self) -> int:
        """The port of the socket."""
        port: int = self.getsockname()[1]
        return port

    def accept(self) -> tuple[socket.socket, Address]:
        """Accept a connection for the event loop."""
        if self._is_ended:
            return self._accept_late()
        connection, address = super().accept()
        self._waiting[address] = connection, time.monotonic()
        if len(self._waiting) > MAX_WAITING:
            self._shed()
        return connection, address

    def authenticate(self, address: Address) -> None:
        """Keep the connection from ``address``, which sent the token."""
        self._waiting.pop(address, None)

    @property
    def is_awaited(self) -> bool:
        """Whether a connection is open on which no request has arrived."""
        return any(one.fileno() >= 0 for one, _ in self._waiting.values())

    def end(self) -> None:
        """Leave further connections to the successor, without resetting any.

        The connections that the kernel has completed are still accepted: a
        listening socket that was shut down is readable.
        """
        if sys.platform == "linux":
            with suppress(OSError):
                while True:
                    self._late.append(self.accept())
            self._is_ended = True
            self.shutdown(socket.SHUT_RDWR)

    def _accept_late(self) -> tuple[socket.socket, Address]:
        if self._late:
            return self._late.popleft()
        asyncio.get_running_loop().remove_reader(self)
        raise BlockingIOError

    def _shed(self) -> None:
        self._waiting = {
            address: (connection, since)
            for address, (connection, since) in self._waiting.items()
            if connection.fileno() >= 0
        }
        while (count := len(self._waiting)) > MAX_WAITING:
            address, (oldest, since) = next(iter(self._waiting.items()))
            if time.monotonic() - since < MIN_AGE and count <= 3 * MAX_WAITING:
                return
            del self._waiting[address]
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)


def listen(port: int) -> tuple[Listener, bool]:
    """Return a listening socket, and whether ``port`` is in use elsewhere.

    Raise StartError if no port can be bound.
    """
    try:
        return Listener(port), False
    except OSError:
        if not port:
            raise StartError("Cannot bind a port on 127.0.0.1") from None
        return listen(0)[0], True
