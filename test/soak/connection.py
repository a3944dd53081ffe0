# SPDX-License-Identifier: GPL-3.0-or-later
"""HTTP as the CLI speaks it: one connection for each request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

BOUND = 60.0
VERSION = "2025-06-18"
LINE = 1 << 20


class Lost(Exception):
    """The connection closed before the end of the answer."""


class Wrong(Exception):
    """The answer is malformed or wrong."""


class Connection:
    """One connection to the server."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, port: int) -> Connection:
        try:
            return cls(*await asyncio.open_connection("127.0.0.1", port, limit=LINE))
        except OSError as error:
            raise Lost(f"no connection: {error}") from None

    async def request(
        self, method: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str]]:
        """Send a request; return the status and the headers of its answer."""
        lines = [f"{method} /mcp HTTP/1.1"]
        lines += [f"{key}: {value}" for key, value in headers.items()]
        head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
        try:
            self._writer.write(head.encode() + body)
            await self._writer.drain()
            first = await asyncio.wait_for(self._line(), BOUND)
            status = int(first.split(b" ")[1])
            found = {}
            while line := await self._line():
                key, _, value = line.decode().partition(":")
                found[key.lower()] = value.strip()
        except asyncio.TimeoutError:
            raise Wrong(f"{method}: no answer within {BOUND:g} s") from None
        except (OSError, IndexError, asyncio.IncompleteReadError) as error:
            raise Lost(f"{method}: {error!r}") from None
        return status, found

    async def body(self, headers: dict[str, str]) -> bytes:
        """Return the whole body of the answer with ``headers``."""
        if "chunked" in headers.get("transfer-encoding", ""):
            return b"".join([chunk async for chunk in self.chunks()])
        try:
            return await self._reader.readexactly(int(headers["content-length"]))
        except (OSError, asyncio.IncompleteReadError) as error:
            raise Lost(f"body: {error!r}") from None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the chunks of a body; raise Lost if the last one is missing."""
        try:
            while size := int(await self._line(), 16):
                yield await self._reader.readexactly(size)
                await self._line()
            await self._line()
        except (OSError, ValueError, asyncio.IncompleteReadError) as error:
            raise Lost(f"stream: {error!r}") from None

    def abort(self) -> None:
        """Reset the connection, as a killed process does."""
        with suppress(OSError):
            self._writer.transport.abort()

    def close(self) -> None:
        """Close the connection."""
        with suppress(OSError):
            self._writer.close()

    async def _line(self) -> bytes:
        line = await self._reader.readuntil(b"\r\n")
        return line[:-2]


class Peer:
    """The server, as one CLI reaches it."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token

    async def post(
        self, message: dict[str, Any], session_id: str = ""
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of the answer to ``message``."""
        connection = await Connection.open(self._port)
        try:
            status, headers = await connection.request(
                "POST", self._headers(session_id), json.dumps(message).encode()
            )
            body = await connection.body(headers)
        except BaseException:
            connection.abort()
            raise
        connection.close()
        return status, headers, body

    async def get(self, session_id: str) -> Connection:
        """Return the connection of a new event stream."""
        connection = await Connection.open(self._port)
        status, _ = await connection.request("GET", self._headers(session_id), b"")
        if status != 200:
            connection.abort()
            raise Wrong(f"GET was answered {status}")
        return connection

    def _headers(self, session_id: str) -> dict[str, str]:
        headers = {
            "Host": f"127.0.0.1:{self._port}",
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        if session_id:
            headers["Mcp-Session-Id"] = session_id
            headers["Mcp-Protocol-Version"] = VERSION
        return headers
