# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP server: hypercorn with its patches, and the MCP endpoint.

Importing them takes half a second, so the server imports this module late.
"""

import asyncio
import logging
from functools import partial
from typing import Any, cast

import h11
import hypercorn.asyncio
import hypercorn.asyncio.run
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.config import Config as HypercornConfig
from hypercorn.config import Sockets
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import ASGIFramework

from .asgi import Asgi
from .config import Config
from .connections import Connections
from .diffs import Diffs
from .places import Places
from .questions import Questions
from .sessions import Sessions
from .tools import session_manager


async def serve(
    config: Config,
    connections: Connections,
    sessions: Sessions,
    diffs: Diffs,
    questions: Questions,
    places: Places,
    stop: asyncio.Event,
) -> None:
    """Answer the clients of ``connections`` until ``stop`` is set."""
    _patch(connections)
    manager = session_manager(diffs, config)
    app = Asgi(config, connections, sessions, questions, places, manager.handle_request)
    async with manager.run():
        await hypercorn.asyncio.serve(
            cast(ASGIFramework, app),
            _settings(config, connections),
            shutdown_trigger=stop.wait,
            mode="asgi",
        )


def _settings(config: Config, connections: Connections) -> HypercornConfig:
    class Bound(HypercornConfig):
        def create_sockets(self) -> Sockets:
            return Sockets([], [connections.listener], [])

    settings = Bound()
    settings.errorlog = logging.getLogger("hypercorn")
    settings.graceful_timeout = config.exit_limit
    settings.keep_alive_timeout = config.headers_time
    settings.include_server_header = False
    # A busy client does not notice that an idle connection was closed, and fails
    # when it writes the next request to it.
    settings.keep_alive_max_requests = 0
    return settings


def _patch(connections: Connections) -> None:
    """Correct hypercorn 0.18 where it has no option."""
    H11Protocol._check_protocol = _stay  # type: ignore[method-assign]
    hypercorn.asyncio.run.TCPServer = partial(  # type: ignore[attr-defined, assignment]
        _Connection, connections
    )


async def _stay(self: H11Protocol, event: h11.Request) -> None:
    """Stay with HTTP/1.1: ignore that ``event`` asks for another protocol.

    Upstream: any client may upgrade to HTTP/2, before it is authenticated, and
    such a connection is not closed when it is idle, nor is one with a malformed
    WebSocket handshake.
    """
    headers = [pair for pair in event.headers if pair[0] != b"upgrade"]
    # It is frozen.
    object.__setattr__(event, "headers", headers)


class _Connection(TCPServer):
    """A connection that is known to ``connections``."""

    def __init__(self, connections: Connections, *args: Any) -> None:
        super().__init__(*args)
        self._connections = connections

    async def run(self) -> None:
        address = self.writer.get_extra_info("peername")
        with self._connections.opened(address, self.writer.transport.abort):
            await super().run()

    async def _read_data(self) -> None:
        await super()._read_data()
        # Upstream: a connection that the client has closed is kept, with 100 KB,
        # until ``keep_alive_timeout`` has passed.
        await self.idle_task.stop()
