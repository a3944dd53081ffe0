# SPDX-License-Identifier: GPL-3.0-or-later
"""A scripted model on loopback, which also keeps what it was asked."""

from __future__ import annotations

import json
import re
import threading
from collections import deque
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Part = dict[str, Any]
Context = dict[str, Any]


def say(text: str) -> Part:
    """Return a turn in which the model says TEXT."""
    return {"text": text}


def write_file(path: object, content: str) -> Part:
    """Return a turn in which the model wants PATH to hold CONTENT."""
    return _call("write_file", file_path=str(path), content=content)


def replace(path: object, old: str, new: str) -> Part:
    """Return a turn in which the model wants OLD replaced by NEW in PATH."""
    return _call(
        "replace",
        file_path=str(path),
        instruction="Replace it.",
        old_string=old,
        new_string=new,
    )


def _call(name: str, **arguments: str) -> Part:
    return {"functionCall": {"name": name, "args": arguments}}


def _answer(part: Part) -> bytes:
    candidate = {
        "content": {"parts": [part], "role": "model"},
        "finishReason": "STOP",
        "index": 0,
    }
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()


class Model:
    """Answer the CLI's requests from a queue of turns."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self._turns: deque[Part] = deque()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.1,)).start()

    @property
    def url(self) -> str:
        """The address for GOOGLE_GEMINI_BASE_URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *turns: Part) -> None:
        """Answer the next requests with TURNS, and forget older turns."""
        self._turns = deque(turns)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def context(self) -> Context:
        """Return the editor context as the last request tells it."""
        context: Context = {}
        for told in _told(self.requests[-1]):
            context = _followed(context, told)
        return context

    def _next(self, request: dict[str, Any]) -> Part:
        self.requests.append(request)
        return self._turns.popleft() if self._turns else say("nothing to say")

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                request = json.loads(self.rfile.read(length) or b"{}")
                if ":streamGenerateContent" in self.path:
                    part = model._next(request)
                    event = b"data: " + _answer(part) + b"\r\n\r\n"
                    self._send("text/event-stream", event)
                elif ":countTokens" in self.path:
                    self._send("application/json", b'{"totalTokens": 1}')
                else:
                    self._send("application/json", _answer(say("{}")))

            def _send(self, kind: str, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler


def _told(request: dict[str, Any]) -> Iterator[Context]:
    """Yield every editor context that REQUEST's history holds, oldest first."""
    for message in request["contents"]:
        for part in message.get("parts", []):
            text = part.get("text", "")
            if "user's editor context" in text:
                block = re.search(r"```json\n(.*)\n```", text, re.DOTALL)
                assert block, text
                yield json.loads(block[1])


def _followed(context: Context, told: Context) -> Context:
    """Return what CONTEXT is once TOLD, which is a context or its changes."""
    changes = told.get("changes")
    if changes is None:
        return told
    active = dict(context.get("activeFile") or {})
    paths = [path for path in (active.get("path"),) if path]
    paths += context.get("otherOpenFiles", [])
    paths = [path for path in paths if path not in changes.get("filesClosed", [])]
    paths += changes.get("filesOpened", [])
    if "activeFileChanged" in changes:
        active = dict(changes["activeFileChanged"])
        if active["path"] is None:
            active = {}
    if "cursorMoved" in changes:
        active["cursor"] = changes["cursorMoved"]["cursor"]
    if "selectionChanged" in changes:
        active["selectedText"] = changes["selectionChanged"]["selectedText"]
    others = [path for path in paths if path != active.get("path")]
    return {
        **({"activeFile": active} if active else {}),
        **({"otherOpenFiles": others} if others else {}),
    }
