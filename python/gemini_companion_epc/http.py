# SPDX-License-Identifier: GPL-3.0-or-later
"""The HTTP server: hypercorn with its patches, and the MCP tools of each CLI.

The MCP SDK answers single requests; sessions and event streams are in other
modules.  Importing these packages takes half a second, so the server imports this
module late.
"""

import asyncio
import logging
from functools import partial
from typing import Any, TypeAlias, cast

import h11
import hypercorn.asyncio.run
from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.config import Config as HypercornConfig
from hypercorn.config import Sockets
from hypercorn.protocol.h11 import H11Protocol
from hypercorn.typing import ASGIFramework
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)
from starlette.requests import Request

from . import __version__, protocol
from .asgi import Asgi
from .config import LARGEST_BODY, Config
from .diffs import Diffs
from .hosts import Hosts
from .linked import Linked
from .port import Port
from .sessions import Session, Sessions
from .types import MalformedArgument

Context: TypeAlias = ServerRequestContext[object, Request]


async def serve(
    config: Config,
    port: Port,
    sessions: Sessions,
    diffs: Diffs,
    hosts: Hosts,
    linked: Linked,
) -> None:
    """Answer the clients at ``port``."""
    # Hypercorn 0.18 has no option for these.
    H11Protocol._check_protocol = _limit_protocol  # type: ignore[method-assign]
    hypercorn.asyncio.run.TCPServer = partial(  # type: ignore[attr-defined, assignment]
        TrackedServer, port
    )
    server = Server(
        "gemini-companion",
        version=__version__,
        on_list_tools=partial(_list_tools, config),
        on_call_tool=partial(_call_tool, diffs),
    )
    # OpenTelemetry, which is not set up.
    server.middleware.clear()
    manager = StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        # Upstream: 4 MB.
        max_request_body_size=LARGEST_BODY,
    )
    settings = HypercornConfig()
    settings.errorlog = logging.getLogger("hypercorn")
    settings.keep_alive_timeout = config.headers_time
    settings.include_server_header = False
    # A busy client does not notice that an idle connection was closed, and fails
    # when it writes the next request to it.
    settings.keep_alive_max_requests = 0
    app = Asgi(config, port, sessions, linked, hosts, manager.handle_request)
    async with manager.run():
        await hypercorn.asyncio.run.worker_serve(
            ASGIWrapper(cast(ASGIFramework, app)),
            settings,
            sockets=Sockets([], [port.listener], []),
            shutdown_trigger=asyncio.Event().wait,
        )


async def _limit_protocol(self: H11Protocol, event: h11.Request) -> None:
    """Answer ``event`` with HTTP/1.1, without an upgrade and without chunks."""
    # Upstream: any client may upgrade to HTTP/2, before it is authenticated, and
    # such a connection is not closed when it is idle, nor is one with a malformed
    # WebSocket handshake.  An event stream without its last chunk, as after a crash,
    # is an error for Qwen Code; without chunks, it ends with its connection.
    headers = [pair for pair in event.headers if pair[0] != b"upgrade"]
    # It is frozen.
    object.__setattr__(event, "headers", headers)
    cast(h11.Connection, self.connection).their_http_version = b"1.0"


class TrackedServer(TCPServer):
    """The server of one connection, which is known to ``port``."""

    def __init__(self, port: Port, *args: Any) -> None:
        super().__init__(*args)
        self._port = port

    async def run(self) -> None:
        address = self.writer.get_extra_info("peername")
        with self._port.opened(address, self.writer.transport.abort):
            await super().run()

    async def _read_data(self) -> None:
        await super()._read_data()
        # Upstream: a connection that the client has closed is kept, with 100 KB,
        # until ``keep_alive_timeout`` has passed.
        await self.idle_task.stop()


# The tools


async def _list_tools(
    config: Config, context: Context, params: PaginatedRequestParams | None
) -> ListToolsResult:
    session = _session(context)
    if session.search is not None:
        await asyncio.wait([session.search], timeout=config.list_limit)
    # An ACP client asks the user itself; with an additional diff, the turn would hang
    # until both are answered.
    if not config.offer_tools or (session.process and session.process.is_acp):
        return ListToolsResult(tools=[])
    return ListToolsResult(tools=[*map(_declared, session.client.protocol.tools)])


def _declared(tool: protocol.Tool) -> Tool:
    types = dict.fromkeys(tool.arguments, "string") | dict.fromkeys(
        tool.flags, "boolean"
    )
    properties = {name: {"type": kind} for name, kind in types.items()}
    schema = {"type": "object", "properties": properties, "required": tool.arguments}
    return Tool(name=tool.name, description=tool.description, input_schema=schema)


async def _call_tool(
    diffs: Diffs, context: Context, params: CallToolRequestParams
) -> CallToolResult:
    assert context.request is not None
    session = _session(context)
    # Even if they are no longer offered: the CLI may have listed them before a restart.
    if params.name not in [tool.name for tool in session.client.protocol.tools]:
        raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
    reviews = protocol.Reviews(
        session.id,
        partial(diffs.open, session),
        partial(diffs.close, session),
        partial(session.calls.decided, call=context.request.state.call),
        session.connected_for,
        session.end_prompt,
        partial(diffs.written, session),
    )
    try:
        call = session.client.protocol.call
        text = await call(reviews, params.name, params.arguments or {})
    except MalformedArgument as error:
        return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
    return CallToolResult(content=[TextContent(text=text)] if text else [])


def _session(context: Context) -> Session:
    assert context.request is not None
    session: Session = context.request.state.session
    return session
