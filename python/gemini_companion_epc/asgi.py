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
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import chain
from typing import Any, TypeAlias

from pydantic_core import from_json, to_json

from .clients import CLIENTS, Client
from .config import Config
from .connections import Listener
from .exceptions import MalformedArgument, TooManySessions
from .ide import Ide
from .questions import Questions
from .session import COMMENT, Session, Stream
from .system import is_own_peer

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]

PATH = "/mcp"
TOOLS_PATH = "/tools"
HOSTS = ("127.0.0.1", "localhost", "host.docker.internal")
METHODS = ("GET", "POST", "DELETE")
# With a later version in the header, the SDK serves a protocol without streams.
HEADER_VERSIONS = (b"2024-11-05", b"2025-03-26", b"2025-06-18", b"2025-11-25")
# The client refuses an answer with a later version.
INITIALIZE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18")

SESSION_HEADER = b"mcp-session-id"

logger = logging.getLogger(__name__)

_EVENT_METHOD = re.compile(rb'"method":"([^"]+)"')
_SESSION_ID = re.compile(rb"[\x21-\x7e]{1,128}")
_VERSION = re.compile(r"[\w.+-]{1,64}", re.ASCII)
_LARGEST_HEADERS = 16 * 1024
_DRAIN_LIMIT = 1.0
_ESCAPES = re.compile(
    rb"\\\\"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


class Refusal(Exception):
    """An error answer."""

    def __init__(self, status: int, text: str, headers: Headers | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.headers = headers or []


class _Disconnected(Exception):
    """The client disconnected before its request was complete."""


class Asgi:
    """The ASGI application that guards the sessions."""

    def __init__(
        self,
        config: Config,
        listener: Listener,
        ide: Ide,
        questions: Questions,
        answer: Application,
    ) -> None:
        self._config = config
        self._listener = listener
        self._ide = ide
        self._questions = questions
        self._answer = answer
        self._hosts = frozenset(f"{host}:{listener.port}".encode() for host in HOSTS)
        self._clients = {
            f"Bearer {client.bearer(config.token)}".encode(): client
            for client in CLIENTS
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or an event of the lifespan protocol."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            try:
                self._admit(scope)
                await self._check_owner(*scope["client"])
                await self._route(scope, receive, send)
            except Refusal as refusal:
                await _refuse(refusal, receive, send)
            except TooManySessions:
                await _refuse(Refusal(503, "Too many sessions"), receive, send)
            except _Disconnected:
                return

    def _admit(self, scope: Scope) -> None:
        # Hypercorn's own limit is for headers that come in several parts.
        if sum(map(len, chain(*scope["headers"]))) > _LARGEST_HEADERS:
            raise Refusal(431, "Request Header Fields Too Large")
        if _header(scope, b"origin") is not None:
            raise Refusal(403, "Forbidden: Origin not allowed")
        if _header(scope, b"host") not in self._hosts:
            raise Refusal(403, "Forbidden: Host not allowed")
        client = self._client(_header(scope, b"authorization") or b"")
        if client is None:
            raise Refusal(401, "Unauthorized")
        scope["state"] = {"client": client}
        is_tools = scope["path"] == TOOLS_PATH and self._questions.is_on
        if scope["path"] != PATH and not is_tools:
            raise Refusal(404, "Not Found")
        methods = ("POST",) if is_tools else METHODS
        if scope["method"] not in methods:
            allow = ", ".join(methods).encode()
            raise Refusal(405, "Method Not Allowed", [(b"allow", allow)])
        version = _header(scope, b"mcp-protocol-version")
        if version is not None and version not in HEADER_VERSIONS:
            raise Refusal(400, "Unsupported MCP-Protocol-Version")

    async def _check_owner(self, host: str, port: int) -> None:
        """Refuse a process of another user, who may know the token.

        Otherwise keep the connection from ``port``.  Raise Refusal.
        """
        if self._config.is_exposed and not await asyncio.to_thread(
            is_own_peer, port, self._listener.port
        ):
            raise Refusal(401, "Unauthorized")
        self._listener.authenticate((host, port))

    def _client(self, authorization: bytes) -> Client | None:
        """Return the client with the bearer ``authorization``, in constant time."""
        found = None
        for expected, client in self._clients.items():
            if hmac.compare_digest(authorization, expected):
                found = client
        return found

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == TOOLS_PATH:
            await self._ask(scope, receive, send)
        elif scope["method"] == "POST":
            await self._post(scope, receive, send)
        elif scope["method"] == "GET":
            await self._get(self._session(scope, True), receive, send)
        elif self._ide.end_session(_session_id(scope)):
            await _respond(200, "", [], send)
        else:
            raise Refusal(404, "Session not found")

    def _session(self, scope: Scope, is_lasting: bool) -> Session:
        session = self._ide.session(_session_id(scope), scope["state"]["client"])
        self._ide.identify(session, scope["client"][1], is_lasting)
        return session

    # POST

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of the bridge, which needs no session."""
        body = await self._body(scope, receive)
        try:
            request, _ = _parsed(body)
            if not isinstance(request, dict):
                raise MalformedArgument("the request must be an object")
            client = scope["state"]["client"].name
            answer = await self._questions.answer(client, request)
        except (ValueError, MalformedArgument) as error:
            raise Refusal(400, f"Bad Request: {error}") from None
        await _respond(200, json.dumps(answer), [], send, media=b"application/json")

    async def _post(self, scope: Scope, receive: Receive, send: Send) -> None:
        message, body = _message(await self._body(scope, receive))
        if message.get("method") == "initialize":
            session = self._ide.new_session(scope["state"]["client"])
            session.version = _version(message)
            self._ide.identify(session, scope["client"][1], False)
            body = _with_known_version(message, body)
            send = _with_header(SESSION_HEADER, session.id.encode(), send)
        else:
            session = self._session(scope, False)
        scope["state"]["session"] = session
        logger.debug("HTTP in: %s POST %d bytes", session.short_id, len(body))
        scope["state"]["arguments"] = arguments = _taken_arguments(message)
        if arguments is not None:
            # The SDK parses the body again.
            body = to_json(message)
        with self._ide.request(session):
            await self._answer(scope, _replayed(body, receive), send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        media = (_header(scope, b"content-type") or b"").split(b";")[0]
        if media.strip().lower() != b"application/json":
            raise Refusal(415, "Content-Type must be application/json")
        length = _header(scope, b"content-length") or b"0"
        size = int(length) if length.isdigit() else 0
        if size > self._config.body_limit:
            raise Refusal(413, "Content Too Large")
        try:
            return await asyncio.wait_for(
                _read(receive, self._config.body_limit), self._config.body_time
            )
        except asyncio.TimeoutError:
            raise Refusal(408, "Request Timeout") from None

    # GET

    async def _get(self, session: Session, receive: Receive, send: Send) -> None:
        logger.info("HTTP in: %s GET", session.short_id)
        stream = self._ide.open_stream(session)
        watch = asyncio.ensure_future(self._watch(session, stream, receive))
        try:
            await self._write(session, stream, send)
        finally:
            watch.cancel()
            self._ide.close_stream(session, stream)

    async def _write(self, session: Session, stream: Stream, send: Send) -> None:
        headers = [
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-cache, no-transform"),
            (SESSION_HEADER, session.id.encode("ascii")),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await _send_body(COMMENT, True, send)
        while (event := await stream.next(self._config.comment_interval)) is not None:
            await _send_body(event, True, send)
            stream.written(event)
            if method := _EVENT_METHOD.search(event):
                name, size = method[1].decode(), len(event)
                logger.debug("HTTP out: %s %s %d bytes", session.short_id, name, size)
        logger.info("HTTP out: %s end of stream", session.short_id)
        await _send_body(b"", False, send)

    async def _watch(self, session: Session, stream: Stream, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._ide.close_stream(session, stream)


def _with_header(name: bytes, value: bytes, send: Send) -> Send:
    """Return ``send`` with one more header in the answer."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], (name, value)]}
        await send(message)

    return wrapped


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        event = (await receive())["type"]
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return


def _header(scope: Scope, name: bytes) -> bytes | None:
    values = [value for key, value in scope["headers"] if key.lower() == name]
    return b", ".join(values) if values else None


def _session_id(scope: Scope) -> str:
    session_id = _header(scope, SESSION_HEADER)
    if session_id is None:
        raise Refusal(400, "Mcp-Session-Id is missing")
    if not _SESSION_ID.fullmatch(session_id):
        raise Refusal(400, "Mcp-Session-Id is malformed")
    return session_id.decode("ascii")


async def _read(receive: Receive, limit: int) -> bytes:
    pieces = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise _Disconnected
        piece = message.get("body", b"")
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise Refusal(413, "Content Too Large")
        if not message.get("more_body", False):
            return b"".join(pieces)


def without_lone_surrogates(body: bytes) -> bytes:
    """Return the JSON text ``body`` with escaped lone surrogates as U+FFFD.

    The SDK refuses them, and a refusal disconnects the client.
    """
    return _ESCAPES.sub(
        lambda found: b"\\ufffd" if found[1] is not None else found[0], body
    )


def _parsed(body: bytes) -> tuple[Any, bytes]:
    """Return the value of ``body``, and a JSON text for it without lone surrogates.

    Raise ValueError if it is not a JSON text.
    """
    try:
        return from_json(body), body
    except ValueError:
        body = without_lone_surrogates(body)
        return from_json(body), body


def _message(body: bytes) -> tuple[dict[str, Any], bytes]:
    """Return the message in ``body``, empty if it is malformed, and its JSON text."""
    try:
        message, body = _parsed(body)
    except ValueError:
        return {}, body
    return _object(message), body


def _object(value: object) -> dict[str, Any]:
    """Return ``value`` if it is a JSON object, or else an empty one."""
    return value if isinstance(value, dict) else {}


def _taken_arguments(message: dict[str, Any]) -> dict[str, Any] | None:
    """Remove the arguments of a tool from ``message``, and return them.

    Return None if there are none, or if they are malformed.
    """
    params = _object(message.get("params"))
    arguments = params.get("arguments")
    if message.get("method") != "tools/call" or not isinstance(arguments, dict):
        return None
    del params["arguments"]
    return arguments


def _version(initialize: dict[str, Any]) -> str | None:
    """Return the version of the client, or None if it is missing or malformed."""
    client = _object(_object(initialize.get("params")).get("clientInfo"))
    version = client.get("version")
    is_proper = isinstance(version, str) and _VERSION.fullmatch(version)
    return version if is_proper else None


def _with_known_version(initialize: dict[str, Any], body: bytes) -> bytes:
    params = _object(initialize.get("params"))
    if params.get("protocolVersion") in INITIALIZE_VERSIONS:
        return body
    params["protocolVersion"] = INITIALIZE_VERSIONS[-1]
    return to_json(initialize)


def _replayed(body: bytes, receive: Receive) -> Receive:
    first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return first.pop() if first else await receive()

    return replay


async def _refuse(refusal: Refusal, receive: Receive, send: Send) -> None:
    logger.info("HTTP out: %d %s", refusal.status, refusal.text)
    # Closing a connection with unread data resets it, and the client may lose the
    # answer; and the reader of hypercorn blocks when its queue is full.
    drain = asyncio.ensure_future(_drain(receive))
    try:
        await _respond(refusal.status, refusal.text, refusal.headers, send, drain)
    finally:
        drain.cancel()


async def _drain(receive: Receive) -> None:
    while (await receive()).get("more_body", False):
        pass


async def _respond(
    status: int,
    text: str,
    headers: Headers,
    send: Send,
    drain: asyncio.Future[None] | None = None,
    media: bytes = b"text/plain; charset=utf-8",
) -> None:
    body = text.encode()
    all_headers = [
        (b"content-type", media),
        (b"content-length", str(len(body)).encode()),
        *headers,
    ]
    await send(
        {"type": "http.response.start", "status": status, "headers": all_headers}
    )
    await _send_body(body, True, send)
    if drain is not None:
        await asyncio.wait([drain], timeout=_DRAIN_LIMIT)
    await _send_body(b"", False, send)


async def _send_body(body: bytes, more_body: bool, send: Send) -> None:
    await send({"type": "http.response.body", "body": body, "more_body": more_body})
