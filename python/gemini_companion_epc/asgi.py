# SPDX-License-Identifier: GPL-3.0-or-later
"""The ASGI application: authentication, limits and event streams.

Requests are refused before their bodies are read.  ``answer``, the application
that answers the remaining POST requests, finds the session in the state of the
request.
"""

import asyncio
import hmac
import json
import logging
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from uuid import uuid4

from mcp.server.streamable_http import MCP_SESSION_ID_HEADER as SESSION_HEADER
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION, InitializeRequest
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic_core import from_json
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    Response,
    StreamingResponse,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .calls import Call
from .client import Client
from .clients import CLIENTS, bearers, remote_clients
from .config import LARGEST_BODY, Config
from .hosts import Hosts
from .linked import Linked
from .port import Port
from .processes import ancestors, is_below, process_with
from .sessions import COMMENT, Session, Sessions, Stream, session_id_on
from .system import is_own_peer
from .types import Facts, MalformedArgument, clean

PATH = "/mcp"
TOOLS_PATH = "/tools"
HOSTS = ("127.0.0.1", "localhost", "host.docker.internal")
SUPPORTED = list(reversed(HANDSHAKE_PROTOCOL_VERSIONS))
"""The versions of MCP that are spoken, the newest first."""

logger = logging.getLogger(__name__)

_SURROGATE = re.compile(rb"\\u[dD]")
_DISCOVER = b"server/discover"
_HEAD = 4096


@dataclass(frozen=True)
class Asgi:
    """The ASGI application that guards the sessions."""

    _config: Config
    _port: Port
    _sessions: Sessions
    _linked: Linked
    _hosts: Hosts
    _answer: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            return
        request = Request(scope, receive)
        try:
            await self._admit(request)
            if request.scope["path"] == TOOLS_PATH:
                await (await self._ask(request))(scope, receive, send)
            elif request.method == "POST":
                body = await _body(request)
                if refused := unsupported(request, body):
                    await refused(scope, receive, send)
                else:
                    await self._post(request, body, send)
            elif refused := unsupported(request):
                await refused(scope, receive, send)
            else:
                await self._get(request, send)
        except HTTPException as refusal:
            status, detail = refusal.status_code, refusal.detail
            logger.info("HTTP out: %d %s", status, detail)
            answer = PlainTextResponse(detail, status, refusal.headers)
            await answer(scope, receive, send)
        except ClientDisconnect:
            pass

    async def _admit(self, request: Request) -> None:
        """Raise HTTPException unless the body of ``request`` may be read."""
        headers = request.headers
        if "origin" in headers:
            raise HTTPException(403, "Forbidden: Origin not allowed")
        # On another host, the outpost listens at another port.
        if headers.get("host", "").rpartition(":")[0] not in HOSTS:
            raise HTTPException(403, "Forbidden: Host not allowed")
        client = self._client(headers.get("authorization", "").encode(), request)
        if client is None or not await self._is_own(request):
            raise HTTPException(401)
        request.state.client = client
        self._port.authenticate(request.scope["client"])
        is_tools = (
            request.scope["path"] == TOOLS_PATH
            and self._linked.questions is not None
            and request.state.outpost is None
        )
        if request.scope["path"] != PATH and not is_tools:
            raise HTTPException(404)
        methods = ("POST",) if is_tools else ("GET", "POST")
        if request.method not in methods:
            raise HTTPException(405, headers={"Allow": ", ".join(methods)})

    async def _is_own(self, request: Request) -> bool:
        """Return whether the client is of this user; others may know the token."""
        # Another user may have the same port at another address.
        if request.scope["client"][0] != "127.0.0.1":
            return False
        if not self._config.is_exposed:
            return True
        ends = request.scope["client"], self._port.number
        return await asyncio.to_thread(is_own_peer, *ends, self._sessions.pids())

    def _client(self, authorization: bytes, request: Request) -> Client | None:
        """Return the client with the bearer ``authorization``, in constant time."""
        # Each host has its own, which counts for connections from that host only.
        outpost = self._hosts.of_address(request.scope["client"])
        request.state.outpost = outpost
        token = (outpost or self._config).token
        # A host may not pose as a CLI that can only run on this one.
        clients = remote_clients() if outpost else CLIENTS
        client = None
        for expected, other in bearers(token, clients).items():
            if hmac.compare_digest(authorization, expected):
                client = other
        return client

    def _session(self, request: Request, body: bytes = b"") -> Session:
        """Return the session of ``request``, a new one if ``body`` initializes it."""
        client, outpost = request.state.client, request.state.outpost
        remote = outpost.name if outpost else ""
        header, version = request.headers.get(SESSION_HEADER), None
        if header is None:
            try:
                first = InitializeRequest.model_validate_json(body)
            except ValueError:
                detail = "Mcp-Session-Id is missing, or initialize is malformed"
                raise HTTPException(400, detail) from None
            names = [request.headers.get(name, "") for name in client.identity]
            # Clients that lack one of them must not share a session.
            header = "-".join(names) if names and all(names) else uuid4().hex
            version = first.params.client_info.version
        elif remote and self._sessions.is_of_another_host(header, remote):
            raise HTTPException(404, "Session not found")
        session = self._sessions.open(session_id_on(remote, header), client, remote)
        if client.states_version:
            session.version = version or session.version
        session.is_alive = outpost and outpost.is_alive
        if client.identity and not remote:
            pid = request.headers.get(client.identity[0], "")
            session.process = session.process or process_with(pid)
        elif not remote:  # or the peer is this process
            is_lasting = request.method == "GET"
            self._sessions.identify(session, request.scope["client"], is_lasting)
        return session

    # POST

    async def _ask(self, request: Request) -> Response:
        try:
            question = dict(from_json(await _body(request)))
        except (ValueError, TypeError) as error:
            raise HTTPException(400, f"Bad Request: {error}") from None
        if question.get("method") == "connected":
            return JSONResponse(await self._relation(request, question.get("pid")))
        client, questions = request.state.client, self._linked.questions
        if questions is None:
            raise HTTPException(404)  # since the request has begun
        try:
            if question.get("method") == "permission":
                answer = await questions.permission(client, question)
                return StreamingResponse(answer, media_type="application/json")
            if questions.renames(client, question):
                answer = await questions.rename(client, question)
                return StreamingResponse(answer, media_type="application/json")
            return JSONResponse(await questions.answer(client, question))
        except MalformedArgument as error:
            raise HTTPException(400, f"Bad Request: {error}") from None

    async def _relation(self, request: Request, pid: object) -> Facts:
        """Return how this Emacs and the CLI of the process ``pid`` are related.

        The value is empty if the CLI is connected.  Raise HTTPException if it is not,
        and was not started in this Emacs either.
        """
        pids = await asyncio.to_thread(ancestors, pid, request.state.client)
        if set(pids).intersection(self._sessions.pids()):
            return {}
        if await asyncio.to_thread(is_below, pid, self._config.emacs_pid):
            return {"started": True}
        raise HTTPException(404, "The CLI is not connected")

    async def _post(self, request: Request, body: bytes, send: Send) -> None:
        is_new = SESSION_HEADER not in request.headers
        session = request.state.session = self._session(request, body)
        call = request.state.call = Call()
        watch = None
        if request.state.client.has_socket:
            # A call may last as long as a review.
            self._port.answered(request.scope["client"])
            watch = asyncio.create_task(_watch(request, session, call))

        async def name_session(message: Message) -> None:
            if is_new and message["type"] == "http.response.start":
                MutableHeaders(scope=message)[SESSION_HEADER] = session.header
            await send(message)

        first = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if first:
                return first.pop()
            if watch is None:
                return await request.receive()
            await asyncio.wait([watch])
            return {"type": "http.disconnect"}

        try:
            with self._sessions.request(session):
                await self._answer(request.scope, receive, name_session)
        finally:
            if watch is not None:
                watch.cancel()

    # GET

    async def _get(self, request: Request, send: Send) -> None:
        session = self._session(request)
        logger.info("HTTP in: %s GET", session.short_id)
        self._port.answered(request.scope["client"])

        session.resume(request.headers.get("last-event-id", ""))
        stream = self._sessions.open_stream(session)
        headers = {
            "Content-Type": "text/event-stream",
            "Cache-Control": "no-cache, no-transform",
            SESSION_HEADER: session.header,
        }
        answer = StreamingResponse(self._events(session, stream), 200, headers)
        try:
            await answer(request.scope, request.receive, send)
        finally:
            self._sessions.close_stream(session, stream)

    async def _events(self, session: Session, stream: Stream) -> AsyncIterator[bytes]:
        yield COMMENT
        while (event := await stream.next(self._config.comment_interval)) is not None:
            yield event
            stream.written(event)
        logger.info("HTTP out: %s end of stream", session.short_id)


def unsupported(request: Request, body: bytes = b"") -> Response | None:
    """Return the refusal of ``request`` for the version of MCP that it is in, or None.

    From 2026-07-28 on, the protocol has no sessions and no streams.  A client that also
    speaks an earlier version goes on with that if it is told so.
    """
    requested = request.headers.get("mcp-protocol-version")
    message: Facts = {}
    # Most bodies are large, and none of them is parsed here.
    if _DISCOVER in body[:_HEAD] or requested not in (None, *SUPPORTED):
        with suppress(ValueError, TypeError):
            message = dict(from_json(body))
    asks = message.get("method") == "server/discover"
    if not asks and requested in (None, *SUPPORTED):
        return None
    error = {
        "code": UNSUPPORTED_PROTOCOL_VERSION,
        "message": "Unsupported protocol version",
        "data": {"supported": SUPPORTED, "requested": requested or ""},
    }
    refusal = {"jsonrpc": "2.0", "id": message.get("id"), "error": error}
    logger.info("HTTP out: 400 for version %.20s", requested)
    return JSONResponse(refusal, 400)


async def _watch(request: Request, session: Session, call: Call) -> None:
    """Record that the client of ``request``, whose body was read, has hung up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    session.calls.hang_up(call)


async def _body(request: Request) -> bytes:
    """Return the body of ``request``, as `without_lone_surrogates`."""
    body, size = bytearray(), 0
    async for piece in request.stream():
        size += len(piece)
        if size > LARGEST_BODY:
            body.clear()
        else:
            body += piece
    # Before all of it has been read, the client would not read the answer.
    if size > LARGEST_BODY:
        raise HTTPException(413)
    return without_lone_surrogates(bytes(body))


def without_lone_surrogates(body: bytes) -> bytes:
    """Return the JSON text ``body`` with escaped lone surrogates as U+FFFD."""
    # The SDK refuses them, and a refusal disconnects the client.
    if not _SURROGATE.search(body):
        return body
    try:
        return clean(json.dumps(json.loads(body), ensure_ascii=False)).encode()
    except (ValueError, RecursionError):
        return body
