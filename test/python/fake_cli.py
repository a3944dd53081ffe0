# SPDX-License-Identifier: GPL-3.0-or-later
"""A Gemini CLI for tests, on plain http.client.

Run as ``fake_cli.py PORT TOKEN``, it connects, and answers each line of its input,
[TOOL, ARGUMENTS], by the result; that of "next" is the next notification.
"""

import http.client
import itertools
import json
import os
import queue
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from uuid import uuid4

BOUND = 120.0
VERSION = "2025-06-18"
Peer = socket.socket | None
Answer = tuple[int, dict[str, str], bytes]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Events:
    def __init__(self, cli: "FakeCli", session_id: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", cli.port, BOUND)
        headers = cli.headers(session_id, accept="text/event-stream")
        self._cli = cli
        if cli.last_event:
            headers["Last-Event-ID"] = cli.last_event
        self._connection.request("GET", "/mcp", headers=headers)
        self._socket = self._connection.sock
        self.response = self._connection.getresponse()
        assert self.response.status == 200
        self._socket.settimeout(None)
        self._received: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.is_graceful = False
        self.comments = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def next(self, timeout: float | None = BOUND) -> dict[str, Any]:
        event = self._received.get(timeout=timeout)
        assert event is not None, (
            "the event stream has ended, "
            f"{'' if self.is_graceful else 'not '}gracefully"
        )
        return event

    def nothing_yet(self) -> bool:
        """Return whether no event has been received within a moment; keep it."""
        try:
            self._received.queue[0]
        except IndexError:
            time.sleep(0.05)
            return True
        return False

    def nothing(self) -> bool:
        try:
            return self._received.get(timeout=0.1) is None
        except queue.Empty:
            return True

    def end(self) -> bool:
        """Wait for the end of the stream; return whether it was graceful."""
        while self._received.get(timeout=BOUND) is not None:
            pass
        return self.is_graceful

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join(BOUND)
        self._connection.close()

    def _read(self) -> None:
        try:
            for line in self._lines():
                if line.startswith(b":"):
                    self.comments += 1
                elif line.startswith(b"id: "):
                    self._cli.last_event = line[4:].decode().strip()
                elif line.startswith(b"data: "):
                    self._received.put(json.loads(line[6:]))
            self.is_graceful = True
        except (OSError, http.client.HTTPException, ValueError):
            pass
        finally:
            self.response.close()
            self._received.put(None)

    def _lines(self) -> Iterator[bytes]:
        # readline takes an abrupt close for the last chunk.
        rest: list[bytes] = []
        while data := self.response.read1(65536):
            *lines, last = data.split(b"\n")
            for line in lines:
                yield b"".join(rest) + line
                rest.clear()
            rest.append(last)


class FakeCli:
    """One CLI; its session is opened by `connect`."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.token = token
        self.session_id = ""
        self.last_event = ""
        """The ID of the last event that had one."""
        self._ids = itertools.count(1)
        self._streams: list[Events] = []

    def headers(
        self, session_id: str = "", accept: str = "application/json, text/event-stream"
    ) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": accept,
            "Content-Type": "application/json",
        }
        if session_id:
            headers["Mcp-Session-Id"] = session_id
            headers["Mcp-Protocol-Version"] = VERSION
        return headers

    def request(
        self,
        method: str,
        body: bytes | str | None = None,
        headers: dict[str, str] | None = None,
        path: str = "/mcp",
        peer: Peer = None,
    ) -> Answer:
        """Return status, headers and body of one request, sent to ``peer`` if given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, BOUND)
        connection.sock = peer
        try:
            connection.request(
                method,
                path,
                body,
                headers=self.headers(self.session_id) if headers is None else headers,
            )
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            assert fields["connection"] == "close"
            return response.status, fields, response.read()
        finally:
            connection.close()

    def post(self, message: Any, peer: Peer = None) -> Answer:
        return self.request("POST", json.dumps(message).encode(), peer=peer)

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": next(self._ids), "method": method}
        status, headers, body = self.post({**message, "params": params})
        assert status == 200, (status, body)
        self.session_id = headers.get("mcp-session-id", self.session_id)
        answer: dict[str, Any] = json.loads(body)
        return answer

    def initialize(self, version: str = VERSION) -> dict[str, Any]:
        info = {"name": "fake", "version": "1"}
        facts = {"protocolVersion": version, "capabilities": {}, "clientInfo": info}
        return self.ask("initialize", facts)

    def connect(self) -> Events:
        self.initialize()
        done = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert self.post(done)[0] == 202
        return self.listen()

    def listen(self) -> Events:
        events = Events(self, self.session_id)
        self._streams.append(events)
        return events

    def stall(self) -> socket.socket:
        """Return the connection of an event stream that is not read."""
        headers = {**self.headers(self.session_id), "Host": f"127.0.0.1:{self.port}"}
        lines = [f"{key}: {value}" for key, value in headers.items()]
        peer = socket.create_connection(("127.0.0.1", self.port), BOUND)
        peer.sendall("\r\n".join(["GET /mcp HTTP/1.1", *lines, "", ""]).encode())
        return peer

    def tool(self, name: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def open_diff(self, path: str, text: str) -> None:
        result = self.tool("openDiff", filePath=path, newContent=text)["result"]
        assert result["content"] == [], result
        assert not result.get("isError"), result

    def close_diff(self, path: str) -> dict[str, Any]:
        answer = self.tool("closeDiff", filePath=path, suppressNotification=True)
        (item,) = answer["result"]["content"]
        assert item["type"] == "text"
        decoded: dict[str, Any] = json.loads(item["text"])
        return decoded

    def close(self) -> None:
        for events in self._streams:
            events.close()


class FakeCopilot(FakeCli):
    """A Copilot CLI, which names its process and its session; a call may last."""

    def __init__(self, port: int, token: str) -> None:
        super().__init__(port, token)
        self.pool = ThreadPoolExecutor(8)
        self.name = uuid4().hex
        self.id = f"{os.getpid()}-{self.name}"

    def headers(
        self, session_id: str = "", accept: str = "application/json, text/event-stream"
    ) -> dict[str, str]:
        named = {"X-Copilot-PID": str(os.getpid()), "X-Copilot-Session-Id": self.name}
        return {**super().headers(session_id, accept), **named}

    def later(self, tool: str, **arguments: str) -> "Future[Any]":
        def call() -> Any:
            return json.loads(
                self.tool(tool, **arguments)["result"]["content"][0]["text"]
            )

        return self.pool.submit(call)

    def review(self, path: str, text: str, name: str) -> "Future[Any]":
        return self.later(
            "open_diff", original_file_path=path, new_file_contents=text, tab_name=name
        )


def main() -> None:
    cli = FakeCli(int(sys.argv[1]), sys.argv[2])
    events = cli.connect()
    print("true", flush=True)
    for line in sys.stdin:
        tool, arguments = json.loads(line)
        answer = events.next() if tool == "next" else cli.tool(tool, **arguments)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
