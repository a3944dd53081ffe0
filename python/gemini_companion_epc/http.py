# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP server: hypercorn with its patches, and the MCP endpoint.

Importing them takes half a second, so the server imports this module late.
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
from .questions import Questions
from .tools import session_manager

_CHUNK = 1024 * 1024


async def serve(
    config: Config,
    listener: Listener,
    ide: Ide,
    questions: Questions,
    started: asyncio.Event,
    stop: asyncio.Event,
) -> None:
    """Serve ``ide`` and ``questions`` to the clients that ``listener`` accepts.

    Set ``started`` when connections are accepted, and return when ``stop`` is set.
    """

    async def until_stop() -> None:
        started.set()
        await stop.wait()

    _patch()
    manager = session_manager(ide, config)
    app = Asgi(config, listener, ide, questions, manager.handle_request)
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
    # A busy client does not notice that an idle connection was closed, and fails
    # when it writes the next request to it.
    settings.keep_alive_max_requests = 0
    return settings


def _patch() -> None:
    """Correct hypercorn 0.18 where it has no option."""
    H11Protocol._check_protocol = _stay  # type: ignore[method-assign]
    hypercorn.asyncio.run.TCPServer = _Connection  # type: ignore[attr-defined]
    # Upstream: 64 KiB, which takes longer for a large body.
    hypercorn.asyncio.tcp_server.MAX_RECV = _CHUNK


async def _stay(self: H11Protocol, event: object) -> None:
    """Stay with HTTP/1.1.

    Upstream: any client may upgrade to HTTP/2, before it is authenticated, and
    such a connection is not closed when it is idle.
    """


class _Connection(TCPServer):
    """A connection that is dropped when the client has closed it.

    Upstream: it is kept, with 100 KB, until ``keep_alive_timeout`` has passed.
    """

    async def _read_data(self) -> None:
        await super()._read_data()
        await self.idle_task.stop()
