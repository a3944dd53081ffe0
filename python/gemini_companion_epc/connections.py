# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP port, which a successor takes over.

Hypercorn does not limit the number of connections, so the socket from which it
accepts them keeps those on which no token has arrived, and sheds the oldest when
there are too many.
"""

import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from .exceptions import StartError
from .system import may_bind_again, stop_listening, take_over

Address: TypeAlias = tuple[str, int]

MAX_WAITING = 256
# Younger connections are shed only when there are three times as many: their
# requests may have arrived and not been read yet.  The age is measured in
# processor seconds, as the server may have to wait for a busy machine.
MIN_AGE = 1.0
_BACKLOG = 128


class Listener(socket.socket):
    """A listening socket that sheds connections without a token.

    It is bound to ``port``, or it is the ``descriptor`` of one that is.
    """

    def __init__(self, port: int, descriptor: int | None = None) -> None:
        # Without IPPROTO_TCP asyncio leaves Nagle's algorithm on: 40 ms an answer.
        super().__init__(
            socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, descriptor
        )
        self._waiting: dict[Address, tuple[socket.socket, float]] = {}
        self.is_inherited = descriptor is not None
        if not self.is_inherited:
            try:
                self.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                may_bind_again(self)
                self.bind(("127.0.0.1", port))
                self.listen(_BACKLOG)
            except OSError:
                self.close()
                raise
        # Once it has ended, the socket does not know its port.
        self.port: int = self.getsockname()[1]

    def accept(self) -> tuple[socket.socket, Address]:
        """Accept a connection for the event loop."""
        connection, address = super().accept()
        self._waiting[address] = connection, time.process_time()
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
        """Leave further connections to the successor, which has this socket too."""
        stop_listening(self)

    def _shed(self) -> None:
        self._waiting = {
            address: (connection, since)
            for address, (connection, since) in self._waiting.items()
            if connection.fileno() >= 0
        }
        while (count := len(self._waiting)) > MAX_WAITING:
            address, (oldest, since) = next(iter(self._waiting.items()))
            if time.process_time() - since < MIN_AGE and count <= 3 * MAX_WAITING:
                return
            del self._waiting[address]
            with suppress(OSError):
                oldest.shutdown(socket.SHUT_RDWR)


def listen(port: int, predecessor: str = "") -> tuple[Listener, bool]:
    """Return a listening socket, and whether ``port`` is in use elsewhere.

    It is the socket of the process whose private directory is ``predecessor``, if
    that process still runs.  Raise StartError if no port can be bound.
    """
    if predecessor:
        with suppress(OSError):
            return Listener(port, take_over(Path(predecessor))), False
    try:
        return Listener(port), False
    except OSError as error:
        if not port:
            problem = error.strerror or error
            raise StartError(f"Cannot bind a port on 127.0.0.1: {problem}") from None
        return listen(0)[0], True
