# SPDX-License-Identifier: GPL-3.0-or-later
"""A Unix socket that leads to the HTTP port, for CLIs that use nothing else."""

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from contextlib import suppress
from pathlib import Path

from .copilot import socket_name
from .processes import has_exited

_CHUNK = 64 * 1024


class UnixPort:
    """The socket, whose connections are carried to the TCP ``port``."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listening: asyncio.Task[asyncio.Server] | None = None

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
