# SPDX-License-Identifier: GPL-3.0-or-later
"""The two MCP tools that a CLI can call.

The MCP SDK answers single requests; sessions and event streams are in other
modules.  Importing the SDK takes half a second, so no module that the EPC server
needs may import this one.
"""

import json
import logging
from typing import Any, TypeAlias

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
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

from . import __version__
from .config import LARGEST_BODY, Config
from .diffs import Diffs
from .exceptions import MalformedArgument
from .session import Session
from .types import file_name

logger = logging.getLogger(__name__)

Context: TypeAlias = ServerRequestContext[Any, Request]

OPEN_DIFF = Tool(
    name="openDiff",
    description="Open a review of the proposed content of a file in Emacs.",
    input_schema={
        "type": "object",
        "properties": {
            "filePath": {"type": "string"},
            "newContent": {"type": "string"},
        },
        "required": ["filePath", "newContent"],
    },
)
CLOSE_DIFF = Tool(
    name="closeDiff",
    description="Close the review of a file and return the text of the proposal.",
    input_schema={
        "type": "object",
        "properties": {
            "filePath": {"type": "string"},
            "suppressNotification": {"type": "boolean"},
        },
        "required": ["filePath"],
    },
)


class Tools:
    """The handlers of tools/list and tools/call."""

    def __init__(self, diffs: Diffs, config: Config) -> None:
        self._diffs = diffs
        self._config = config
        self._tools = [OPEN_DIFF, CLOSE_DIFF] if config.offer_tools else []

    async def list(
        self, context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        """Answer tools/list."""
        process = await _session(context).wait_for_process(self._config.list_limit)
        # An ACP client asks the user itself; with a diff too, the turn would hang
        # until both are answered.
        is_acp = process is not None and process.is_acp
        return ListToolsResult(tools=[] if is_acp else self._tools)

    async def call(
        self, context: Context, params: CallToolRequestParams
    ) -> CallToolResult:
        """Answer tools/call, with an error result only for malformed arguments."""
        # Even if they are no longer offered: the CLI may have listed them before a
        # restart.
        if params.name not in (OPEN_DIFF.name, CLOSE_DIFF.name):
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}")
        session = _session(context)
        arguments = params.arguments or {}
        try:
            path = file_name(arguments.get("filePath"), "filePath")
            if params.name == "openDiff":
                proposal = arguments.get("newContent")
                if not isinstance(proposal, str):
                    raise MalformedArgument("newContent must be a string")
                size = len(proposal)
                logger.info("openDiff: %s %d characters", session.short_id, size)
                await self._diffs.open(session, path, proposal)
                return CallToolResult(content=[])
        except MalformedArgument as error:
            return CallToolResult(content=[TextContent(text=str(error))], is_error=True)
        return await self._close_diff(session, path)

    async def _close_diff(self, session: Session, path: str) -> CallToolResult:
        text = await self._diffs.close(session, path)
        size = "no diff" if text is None else f"{len(text)} characters"
        logger.info("closeDiff: %s %s", session.short_id, size)
        answer = {} if text is None else {"content": text}
        content = json.dumps(answer, ensure_ascii=False)
        return CallToolResult(content=[TextContent(text=content)])


def session_manager(diffs: Diffs, config: Config) -> StreamableHTTPSessionManager:
    """Return the MCP endpoint, which answers each request independently."""
    tools = Tools(diffs, config)
    server = Server(
        "gemini-companion",
        version=__version__,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
    )
    server.middleware[:] = [_log]
    return StreamableHTTPSessionManager(
        server,
        json_response=True,
        stateless=True,
        # Upstream: 4 MB.
        max_request_body_size=LARGEST_BODY,
    )


async def _log(ctx: Context, call_next: CallNext) -> HandlerResult:
    logger.debug("HTTP in: %s %.40r", _session(ctx).short_id, ctx.method)
    return await call_next(ctx)


def _session(context: Context) -> Session:
    assert context.request is not None
    session: Session = context.request.state.session
    return session
