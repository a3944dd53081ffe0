# SPDX-License-Identifier: GPL-3.0-or-later
"""A scripted model on loopback, which also records the requests."""

import json
import re
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

from .wait import BOUND

Part = dict[str, Any]
Context = dict[str, Any]


def say(text: str) -> Part:
    return {"text": text}


def fail() -> Part:
    """Return a turn in which the model refuses the request."""
    return {"status": 400}


def write_file(path: object, content: str) -> Part:
    return call("write_file", file_path=str(path), content=content)


def read_file(path: object) -> Part:
    return call("read_file", file_path=str(path))


def edit(path: object, old: str, new: str) -> Part:
    """Return a turn in which a model of Qwen Code edits ``path``."""
    return call("edit", file_path=str(path), old_string=old, new_string=new)


def replace(path: object, old: str, new: str) -> Part:
    return call(
        "replace",
        file_path=str(path),
        instruction="Replace it.",
        old_string=old,
        new_string=new,
    )


def call(name: str, /, **arguments: Any) -> Part:
    return {"functionCall": {"name": name, "args": arguments}}


def together(*parts: Part) -> Part:
    """Return one turn in which the model makes the calls of all ``parts``."""
    return {"parts": list(parts)}


def _answer(part: Part) -> bytes:
    candidate = {
        "content": {"parts": part.get("parts", [part]), "role": "model"},
        "finishReason": "STOP",
        "index": 0,
    }
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return json.dumps({"candidates": [candidate], "usageMetadata": usage}).encode()


def _openai_answer(part: Part, is_stream: bool) -> bytes:
    """Return ``part`` as the OpenAI API has it, which Qwen Code speaks."""
    message: dict[str, Any] = {"role": "assistant", "content": part.get("text")}
    calls = [
        each["functionCall"]
        for each in part.get("parts", [part])
        if "functionCall" in each
    ]
    message["tool_calls"] = [
        {
            "index": index,
            "id": uuid4().hex,  # Qwen Code runs a call once
            "type": "function",
            "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
        }
        for index, call in enumerate(calls)
    ]
    answer = {
        "id": "answer",
        "object": "chat.completion.chunk" if is_stream else "chat.completion",
        "created": 1,
        "model": "model",
        "choices": [
            {
                "index": 0,
                "delta" if is_stream else "message": message,
                "finish_reason": "tool_calls" if calls else "stop",
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    text = json.dumps(answer).encode()
    return b"data: " + text + b"\n\ndata: [DONE]\n\n" if is_stream else text


class Model:
    """Answer the CLI's requests from a queue of turns."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answers = threading.Event()
        """Cleared while requests are to wait."""
        self.answers.set()
        self._turns: deque[Part] = deque()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.1,)).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def script(self, *turns: Part) -> None:
        """Answer the next requests with ``turns``, in place of older turns."""
        self._turns = deque(turns)

    def answer_those(self) -> None:
        """Answer the requests that wait, and let those after them wait."""
        waiting, self.answers = self.answers, threading.Event()
        waiting.set()

    def is_to_say(self, text: str) -> bool:
        return any(text in turn.get("text", "") for turn in tuple(self._turns))

    def close(self) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()

    def results(self) -> list[str]:
        return [
            str(part["functionResponse"]["response"].get("output"))
            for message in self.requests[-1]["contents"]
            for part in message.get("parts", [])
            if "functionResponse" in part
        ]

    def last_message(self) -> str:
        """Return the last message of the last request, as JSON."""
        request = self.requests[-1]
        return json.dumps((request.get("messages") or request["contents"])[-1])

    def context(self) -> Context:
        """Return the editor context with which the conversation began."""
        for message in self.requests[-1]["contents"]:
            for part in message.get("parts", []):
                text = part.get("text", "")
                if "user's editor context" in text:
                    block = re.search(r"```json\n(.*)\n```", text, re.DOTALL)
                    assert block, text
                    return dict(json.loads(block[1]))
        return {}

    def _next(self, request: dict[str, Any]) -> Part:
        turn = self._turns.popleft() if self._turns else say("no turn left")
        answers = self.answers
        self.requests.append(request)
        # A request that is cancelled meanwhile takes no turn of the next one.
        answers.wait(BOUND)
        return turn

    def _aside(self, text: str) -> Part:
        """Answer a request that continues no conversation, such as for a summary."""
        self.answers.wait(BOUND)
        return say(text)

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
                    self._send("text/event-stream", event, part)
                elif self.path.endswith("/chat/completions"):
                    is_stream = bool(request.get("stream"))
                    if _is_turn(request):
                        part = model._next(request)
                    else:
                        # Qwen Code reports the end of a command in the background, and
                        # asks again for 20 s where the answer to that is empty.
                        is_qwen = "QwenCode" in self.headers.get("User-Agent", "")
                        is_report = is_qwen and request.get("tools")
                        part = model._aside("noted" if is_report else "")
                    self._send(
                        "text/event-stream" if is_stream else "application/json",
                        _openai_answer(part, is_stream),
                        part,
                    )
                elif ":countTokens" in self.path:
                    self._send("application/json", b'{"totalTokens": 1}')
                else:
                    self._send("application/json", _answer(model._aside("{}")))

            def _send(self, kind: str, body: bytes, part: Part | None = None) -> None:
                self.send_response((part or {}).get("status", 200))
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing."""

        return Handler


def _is_turn(request: dict[str, Any]) -> bool:
    """Return whether ``request`` continues the conversation.

    Qwen Code also asks for suggestions, and for facts to remember.
    """
    messages = request["messages"]
    answers = [
        n for n, message in enumerate(messages) if message["role"] == "assistant"
    ]
    recent = messages[answers[-1] + 1 :] if answers else messages
    # Pi has the context of Emacs after the prompt.
    recent = [
        message for message in recent if "<editor name=" not in str(message["content"])
    ]
    is_prompt = re.search(
        r"prompt \d+ please|Comments on your changes",
        json.dumps([message["content"] for message in recent]),
    )
    is_result = any(message["role"] == "tool" for message in recent)
    return bool(request.get("tools") and (is_prompt or is_result))
