# SPDX-License-Identifier: GPL-3.0-or-later
"""The connections of the CLIs on a remote host, through its outpost."""

import asyncio
import base64
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from .config import LARGEST_BODY
from .outpost_lines import CHUNK, Kind
from .types import Address, RemoteError

_MOST_CONNECTIONS = 256
_MOST_UNREAD = LARGEST_BODY + 1024 * 1024
"""Number of bytes above which a connection whose data is not read is closed."""


@dataclass(eq=False, repr=False)
class Tunnel:
    """The connections from a host to the server of this process, by number."""

    _port: int
    _send: Callable[..., Awaitable[None]]
    _writers: dict[int, StreamWriter] = field(default_factory=dict)
    _tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    async def open(self, number: int) -> None:
        """Connect the connection ``number`` to the server."""
        if number in self._writers or len(self._writers) >= _MOST_CONNECTIONS:
            await self._send(Kind.CLOSE, number)
            return
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        except OSError:
            await self._send(Kind.CLOSE, number)
            return
        self._writers[number] = writer
        self._tasks[number] = asyncio.create_task(self._carry_back(number, reader))

    async def _carry_back(self, number: int, reader: StreamReader) -> None:
        with suppress(OSError, RemoteError):
            while data := await reader.read(CHUNK):
                await self._send(Kind.DATA, number, base64.b64encode(data).decode())
        with suppress(RemoteError):
            await self._send(Kind.CLOSE, number)
        self._writers.pop(number).close()
        del self._tasks[number]

    async def write(self, number: int, data: bytes) -> None:
        """Write ``data``, which the outpost has read, without waiting for its reader.

        The lines of the other CLIs follow.  A connection is closed that is not read.
        """
        if writer := self._writers.get(number):
            writer.write(data)
            if writer.transport.get_write_buffer_size() > _MOST_UNREAD:
                writer.transport.abort()

    async def close(self, number: int) -> None:
        """Close the connection ``number``, which the CLI has closed."""
        if number in self._writers:
            self._writers[number].close()

    def abort(self) -> None:
        """Close all connections at once."""
        for writer in self._writers.values():
            writer.transport.abort()

    def carries(self, address: Address) -> bool:
        """Return whether a connection from ``address`` comes from the host."""
        writers = self._writers.values()
        return any(writer.get_extra_info("sockname") == address for writer in writers)
