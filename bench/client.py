# SPDX-License-Identifier: GPL-3.0-or-later
"""A CLI that measures, with blocking sockets and prepared requests.

The same client is used for ours and for the comparator, so its own cost is the
same on both sides.
"""

from __future__ import annotations

import itertools
import json
import math
import socket
import time
from collections.abc import Callable
from typing import Any

VERSION = "2025-06-18"
BOUND = 120.0
PIECE = 1 << 20


class Broken(Exception):
    """A step failed or gave a wrong result, so nothing can be measured."""


def until(probe: Callable[[], object], what: str) -> None:
    """Wait until ``probe`` returns a true value; ``what`` describes it in errors."""
    deadline = time.monotonic() + BOUND
    while not probe():
        if time.monotonic() > deadline:
            raise Broken(f"not in time: {what}")
        time.sleep(0.005)  # between two checks, outside of what is measured


class Input:
    """Reader of a socket that decodes the framing of HTTP."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._data = bytearray()
        self._chunked = bytearray()
        self._deadline = math.inf

    def head(self) -> tuple[int, dict[str, str]]:
        """Return the status and the headers of an answer, which begins a wait."""
        self._deadline = time.monotonic() + BOUND
        first, *lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return int(first.split(" ")[1]), headers

    def body(self, headers: dict[str, str]) -> bytes:
        """Return the whole body of the answer with ``headers``."""
        if "chunked" not in headers.get("transfer-encoding", ""):
            return self.exactly(int(headers.get("content-length", "0")))
        whole = bytearray()
        while piece := self.chunk():
            whole += piece
        return bytes(whole)

    def chunk(self) -> bytes:
        """Return one chunk, empty at the end."""
        size = int(self._until(b"\r\n"), 16)
        piece = self.exactly(size)
        self._until(b"\r\n")
        return piece

    def event(self, deadline: float = 0) -> dict[str, Any]:
        """Return the next notification of an event stream.

        It must arrive before ``deadline``, by default within ``BOUND``; comments and
        pings do not extend that.
        """
        self._deadline = deadline or time.monotonic() + BOUND
        while True:
            end = self._chunked.find(b"\n")
            while end < 0:
                start = len(self._chunked)
                piece = self.chunk()
                if not piece:
                    raise Broken("the event stream has ended")
                self._chunked += piece
                end = self._chunked.find(b"\n", start)
            line = bytes(self._chunked[:end])
            del self._chunked[: end + 1]
            if line.startswith(b"data: "):
                found: dict[str, Any] = json.loads(line[6:])
                return found

    def _until(self, mark: bytes) -> bytes:
        end = self._data.find(mark)
        while end < 0:
            start = max(0, len(self._data) - len(mark))
            self._read()
            end = self._data.find(mark, start)
        found = bytes(self._data[:end])
        del self._data[: end + len(mark)]
        return found

    def exactly(self, size: int) -> bytes:
        while len(self._data) < size:
            self._read()
        found = bytes(self._data[:size])
        del self._data[:size]
        return found

    def _read(self) -> None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Broken("nothing more came in time")
        self._connection.settimeout(min(left, BOUND))
        try:
            piece = self._connection.recv(PIECE)
        except TimeoutError:
            raise Broken("nothing more came in time") from None
        if not piece:
            raise Broken("the connection was closed")
        self._data += piece


class Client:
    """One CLI: a connection for requests, kept if the server keeps it, and a stream."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._token = token
        self._ids = itertools.count(1)
        self.session_id = ""
        self._posts: socket.socket | None = None
        self._answers: Input
        self.stream: socket.socket
        self.events: Input

    def connect(self) -> Client:
        """Do what the CLI does when it connects."""
        self.initialize()
        status, _ = self.send(self.request("notifications/initialized", None))
        if status != 202:
            raise Broken(f"initialized was answered {status}")
        self.open_stream()
        self.check()
        return self

    def check(self) -> None:
        """Check that the session is alive."""
        names = [tool["name"] for tool in self.ask("tools/list", {})["tools"]]
        if sorted(names) != ["closeDiff", "openDiff"]:
            raise Broken(f"the tools are {names}")

    def initialize(self) -> None:
        """Open the session."""
        info = {"name": "bench", "version": "1"}
        params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": info}
        if self.ask("initialize", params)["protocolVersion"] != VERSION:
            raise Broken("another protocol version")

    def open_stream(self) -> None:
        """Open the event stream."""
        self.stream = self._connect()
        self.stream.sendall(self._head("GET", 0))
        self.events = Input(self.stream)
        status, _ = self.events.head()
        if status != 200:
            raise Broken(f"GET was answered {status}")

    def until(self, method: str) -> dict[str, Any]:
        """Return the parameters of the next notification of ``method``."""
        deadline = time.monotonic() + BOUND
        while (event := self.events.event(deadline))["method"] != method:
            pass
        params: dict[str, Any] = event["params"]
        return params

    def cursor(self) -> dict[str, int]:
        """Return the position of point in the next context that has one."""
        while True:
            state = self.until("ide/contextUpdate")["workspaceState"]
            files = state["openFiles"]
            if files and "cursor" in files[0]:
                cursor: dict[str, int] = files[0]["cursor"]
                return cursor

    def request(self, method: str, params: dict[str, Any] | None) -> bytes:
        """Return the bytes of a request; a notification if ``params`` is None."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message |= {"id": next(self._ids), "params": params}
        body = json.dumps(message, ensure_ascii=False).encode()
        return self._head("POST", len(body)) + body

    def call(self, tool: str, **arguments: Any) -> bytes:
        """Return the bytes of a request that calls ``tool`` with ``arguments``."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def send(self, request: bytes) -> tuple[int, bytes]:
        """Send ``request``; return the status and the body of its answer."""
        status, _, body = self._post(request)
        return status, body

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request."""
        status, headers, body = self._post(self.request(method, params))
        self.session_id = headers.get("mcp-session-id", self.session_id)
        return result(status, body)

    def close_diff(self, path: str) -> str:
        """Close the diff of ``path`` and return its text."""
        answer = result(*self.send(self.call("closeDiff", filePath=path)))
        answer_text: dict[str, str] = json.loads(answer["content"][0]["text"])
        return answer_text["content"]

    def close(self) -> None:
        """Disconnect."""
        self._drop()
        if hasattr(self, "stream"):
            self.stream.close()

    def _post(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        if self._posts is None:
            self._posts = self._connect()
            self._answers = Input(self._posts)
        self._posts.sendall(request)
        status, headers = self._answers.head()
        body = self._answers.body(headers)
        if headers.get("connection") == "close":
            self._drop()
        return status, headers, body

    def _drop(self) -> None:
        if self._posts is not None:
            self._posts.close()
            self._posts = None

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self._port), BOUND)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _head(self, verb: str, size: int) -> bytes:
        lines = [
            f"{verb} /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self._port}",
            f"Authorization: Bearer {self._token}",
            "Accept: application/json, text/event-stream",
        ]
        if verb == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {size}"]
        if self.session_id:
            lines += [f"Mcp-Session-Id: {self.session_id}"]
            lines += [f"Mcp-Protocol-Version: {VERSION}"]
        return "\r\n".join([*lines, "", ""]).encode()


def result(status: int, body: bytes) -> dict[str, Any]:
    """Return the result in ``body``, JSON or one event."""
    if status != 200:
        raise Broken(f"answered {status} {body[:200]!r}")
    if not body.startswith(b"{"):
        lines = body.split(b"\n")
        (body,) = [line[6:] for line in lines if line.startswith(b"data: {")]
    answer = json.loads(body)
    if "result" not in answer or answer["result"].get("isError"):
        raise Broken(f"answered {str(answer)[:200]}")
    found: dict[str, Any] = answer["result"]
    return found
