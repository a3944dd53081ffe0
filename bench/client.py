# SPDX-License-Identifier: GPL-3.0-or-later
"""A CLI that measures, with prepared requests.

The same client is used for ours and for the comparator, so its own cost is the
same on both sides.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any

VERSION = "2025-06-18"
BOUND = 120.0


class Broken(Exception):
    """A step failed or gave a wrong result, so nothing can be measured."""


def until(
    probe: Callable[[], object], what: str, bound: float = BOUND, pause: float = 0.005
) -> None:
    """Wait until ``probe`` returns a true value; ``what`` describes it in errors."""
    deadline = time.monotonic() + bound
    while not probe():
        if time.monotonic() > deadline:
            raise Broken(f"not in time: {what}")
        time.sleep(pause)  # between two checks, outside of what is measured


class Client:
    """One CLI: a connection for requests, kept if the server keeps it, and a stream."""

    def __init__(self, port: int, token: str) -> None:
        self._token = token
        self._ids = itertools.count(1)
        self.session_id = ""
        self._posts = HTTPConnection("127.0.0.1", port, BOUND)
        self._stream = HTTPConnection("127.0.0.1", port, BOUND)
        self._answer: HTTPResponse | None = None

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
        self._stream.request("GET", "/mcp", headers=self._headers())
        self._answer = self._stream.getresponse()
        if self._answer.status != 200:
            raise Broken(f"GET was answered {self._answer.status}")

    def until(self, method: str) -> dict[str, Any]:
        """Return the parameters of the next notification of ``method``."""
        try:
            for event in _events(self._answer):
                if event["method"] == method:
                    params: dict[str, Any] = event["params"]
                    return params
        except TimeoutError:
            raise Broken(f"no {method} came in time") from None
        raise Broken("the event stream has ended")

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
        return json.dumps(message, ensure_ascii=False).encode()

    def call(self, tool: str, **arguments: Any) -> bytes:
        """Return the bytes of a request that calls ``tool`` with ``arguments``."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def send(self, request: bytes) -> tuple[int, bytes]:
        """Send ``request``; return the status and the body of its answer."""
        headers = {**self._headers(), "Content-Type": "application/json"}
        try:
            self._posts.request("POST", "/mcp", request, headers)
            answer = self._posts.getresponse()
            self.session_id = answer.getheader("mcp-session-id", self.session_id)
            return answer.status, answer.read()
        except (OSError, HTTPException) as error:
            raise Broken(f"a request was not answered: {error!r}") from None

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request."""
        return result(*self.send(self.request(method, params)))

    def close_diff(self, path: str) -> str:
        """Close the diff of ``path`` and return its text."""
        answer = result(*self.send(self.call("closeDiff", filePath=path)))
        answer_text: dict[str, str] = json.loads(answer["content"][0]["text"])
        return answer_text["content"]

    def close(self) -> None:
        """Disconnect."""
        self._posts.close()
        self._stream.close()
        if self._answer:
            self._answer.close()

    def _headers(self) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json, text/event-stream",
        }
        if self.session_id:
            headers["Mcp-Session-Id"] = self.session_id
            headers["Mcp-Protocol-Version"] = VERSION
        return headers


def _events(answer: HTTPResponse | None) -> Iterator[dict[str, Any]]:
    """Yield the notifications in ``answer``, an event stream."""
    while answer and (line := answer.readline()):
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


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
    value: dict[str, Any] = answer["result"]
    return value
