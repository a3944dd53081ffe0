# SPDX-License-Identifier: GPL-3.0-or-later
"""Hypercorn and the MCP SDK, put together; what hypercorn lacks is put right.

Apart from server because they take half a second to import.
"""

import asyncio
import logging
from typing import cast

import hypercorn.asyncio
import hypercorn.asyncio.run
import hypercorn.asyncio.tcp_server
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.config import Config as HypercornConfig
from hypercorn.config import Sockets
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import ASGIFramework

from .asgi import Asgi
from .config import Config
from .connections import Listener
from .ide import Ide
from .tools import session_manager

_PIECE = 1024 * 1024


async def serve(
    config: Config,
    listener: Listener,
    ide: Ide,
    started: asyncio.Event,
    stop: asyncio.Event,
) -> None:
    """Serve IDE to the clients that LISTENER accepts, until STOP is set.

    Set STARTED as soon as they are accepted.
    """

    async def until_stop() -> None:
        started.set()
        await stop.wait()

    _mend()
    manager = session_manager(ide, config)
    app = Asgi(config, listener, ide, manager.handle_request)
    async with manager.run():
        await hypercorn.asyncio.serve(
            cast(ASGIFramework, app),
            _settings(config, listener),
            shutdown_trigger=until_stop,
            mode="asgi",
        )


def _settings(config: Config, listener: Listener) -> HypercornConfig:
    class Bound(HypercornConfig):
        def create_sockets(self) -> Sockets:
            return Sockets([], [listener], [])

    settings = Bound()
    settings.errorlog = logging.getLogger("hypercorn")
    settings.graceful_timeout = config.exit_limit
    settings.keep_alive_timeout = config.headers_time
    settings.include_server_header = False
    return settings


def _mend() -> None:
    # Hypercorn has no option for any of these.
    H11Protocol._check_protocol = _stay  # type: ignore[method-assign]
    hypercorn.asyncio.run.TCPServer = _Connection  # type: ignore[attr-defined]
    # In pieces of 64 KiB a proposal of 10 MB takes longer.
    hypercorn.asyncio.tcp_server.MAX_RECV = _PIECE


async def _stay(self: H11Protocol, event: object) -> None:
    """Go on with HTTP/1.1 whatever the client asks for.

    Anybody may ask for HTTP/2, and such a connection is never let go.
    """


class _Connection(TCPServer):
    """A connection that is let go at once when the client has closed it.

    Hypercorn keeps it, and 100 KB, until it would have been idle for too long.
    """

    async def _read_data(self) -> None:
        await super()._read_data()
        await self.idle_task.stop()
