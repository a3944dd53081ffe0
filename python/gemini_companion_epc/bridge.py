# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that a CLI starts to ask Emacs: an MCP server on stdio, or a hook.

Run as ``bridge.py CLIENT`` or ``bridge.py CLIENT --hook``.  A CLI starts one for
each session and one for each edit, so it uses few modules of the standard library
and none of this package; typing alone would take milliseconds.  It searches for
Emacs again at each request, so it does not notice when Emacs is restarted.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOOK_SECONDS = 5
ANSWER_SECONDS = 20
SCAN_SECONDS = 2

INSTRUCTIONS = (
    "Emacs answers from a running language server: prefer it to a text search for "
    "references and definitions of a symbol."
)
NO_EMACS = (
    "No Emacs has this directory open with gemini-companion-mode on; open a file of "
    "it in Emacs."
)
PROMPT = {"name": "emacs-not-found", "description": NO_EMACS}


class NoEmacs(Exception):
    """No Emacs answers for this directory."""


# Find Emacs


def directory_of(client: str) -> str:
    """Return the directory of the discovery files of ``client``."""
    if client == "qwen":
        home = os.environ.get("QWEN_HOME") or os.path.join("~", ".qwen")
        return os.path.join(os.path.expanduser(home), "ide")
    names = ("TEMP", "TMP") if os.name == "nt" else ("TMPDIR", "TMP", "TEMP")
    found = [os.environ[name] for name in names if os.environ.get(name)]
    return os.path.join([*found, "/tmp"][0], "gemini", "ide")


PATTERNS = {
    "gemini": (r"gemini-ide-server-\d+-\d+\.json", "GEMINI_CLI_IDE_SERVER_PORT"),
    "qwen": (r"\d+\.lock", "QWEN_CODE_IDE_SERVER_PORT"),
}


def discovery_files(client: str) -> list[tuple[str, int]]:
    """Return the names and times of the discovery files of this user."""
    directory = directory_of(client)
    found = []
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    for name in names:
        path = os.path.join(directory, name)
        if re.fullmatch(PATTERNS[client][0], name):
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if not hasattr(os, "getuid") or status.st_uid == os.getuid():
                found.append((path, status.st_mtime_ns))
    return found


def servers(client: str, directory: str) -> list[tuple[int, str]]:
    """Return port and token of each Emacs with ``directory`` open, the best first."""
    wanted = os.environ.get(PATTERNS[client][1])
    found = []
    for path, time in discovery_files(client):
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            port, token = int(content["port"]), str(content["authToken"])
            is_ours = content["ideInfo"]["name"] == "emacs"
            roots = roots_of(content["workspacePath"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if is_ours and any(is_below(directory, root) for root in roots):
            found.append((str(port) == wanted, time, port, token))
    return [(port, token) for _, _, port, token in sorted(found, reverse=True)]


def roots_of(text: str) -> list[str]:
    """Return the workspace roots in ``text``, the workspacePath of a file."""
    if text.startswith("["):
        return [str(root) for root in json.loads(text)]
    return [root for root in text.split(os.pathsep) if root]


def is_below(directory: str, root: str) -> bool:
    """Return whether ``directory`` is ``root`` or below it."""
    root, directory = os.path.realpath(root), os.path.realpath(directory)
    return directory == root or directory.startswith(root.rstrip(os.sep) + os.sep)


# Ask Emacs


def ask(client: str, request: dict[str, Any], limit: float) -> dict[str, Any]:
    """Return the answer to ``request`` of the first Emacs that gives one.

    Raise NoEmacs if there is none.
    """
    request = {"directory": os.getcwd(), "pid": os.getppid(), **request}
    for port, token in servers(client, request["directory"]):
        try:
            return post(port, token, json.dumps(request).encode(), limit)
        except (OSError, ValueError, IndexError):
            continue
    raise NoEmacs


def post(port: int, token: str, body: bytes, limit: float) -> dict[str, Any]:
    """Return the answer of the server at ``port`` to ``body``.

    Raise OSError or ValueError if there is none.
    """
    head = (
        f"POST /tools HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", port), limit) as connection:
        connection.sendall(head.encode() + body)
        data = b"".join(iter(lambda: connection.recv(65536), b""))
    status, _, answer = data.partition(b"\r\n\r\n")
    if status.split()[1] != b"200":
        raise ValueError("refused")
    return dict(json.loads(answer))


# Hook


def hook(client: str) -> dict[str, Any]:
    """Return the answer to the event of a hook on stdin."""
    event = json.load(sys.stdin.buffer)
    display = event["tool_response"]["returnDisplay"]
    path = display.get("filePath") or event["tool_input"]["file_path"]
    before = None if display.get("isNewFile") else display.get("originalContent")
    request = {
        "method": "edited",
        "file": os.path.join(event["cwd"], path),
        "before": before,
        "after": display["newContent"],
        "directory": event["cwd"],
    }
    text = ask(client, request, HOOK_SECONDS).get("text")
    if not text:
        return {}
    name = event["hook_event_name"]
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def run_hook(client: str) -> None:
    """Print the answer of the hook, ``{}`` if anything fails."""
    try:
        answer = hook(client)
    except (NoEmacs, OSError, ValueError, KeyError, TypeError, AttributeError):
        answer = {}
    print(json.dumps(answer))


# MCP


class Bridge:
    """An MCP server on stdio, which asks Emacs."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._has_tools: bool | None = None
        self._seen: list[tuple[str, int]] = []

    def run(self) -> None:
        """Answer requests until stdin is closed."""
        ended = threading.Event()
        threading.Thread(target=self._watch, args=(ended,), daemon=True).start()
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and "id" in message and "method" in message:
                arguments = (message["id"], message["method"], message.get("params"))
                threading.Thread(target=self._answer, args=arguments).start()
        ended.set()

    def _watch(self, ended: threading.Event) -> None:
        """Report that the tools have appeared or gone."""
        while not ended.wait(SCAN_SECONDS):
            listed, files = self._has_tools, discovery_files(self._client)
            if listed is None or (listed and files == self._seen):
                continue
            self._seen = files
            if bool(self._tools()) != listed:
                self._has_tools = not listed
                self._send({"method": "notifications/tools/list_changed"})

    def _answer(self, request_id: object, method: str, params: Any) -> None:
        answers = {
            "initialize": self._initialize,
            "ping": lambda params: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
        }
        if method in answers:
            result = answers[method](params or {})
            self._send({"id": request_id, "result": result})
        else:
            error = {"code": -32601, "message": f"Unknown method: {method}"}
            self._send({"id": request_id, "error": error})

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message})
        with self._lock:
            try:
                print(line, flush=True)
            except OSError:
                os._exit(0)

    def _tools(self) -> list[Any]:
        try:
            return list(ask(self._client, {"method": "list"}, 5)["tools"])
        except (NoEmacs, KeyError):
            return []

    def _initialize(self, params: Any) -> dict[str, Any]:
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {"listChanged": True}, "prompts": {}},
            "serverInfo": {"name": "emacs", "version": "1"},
            "instructions": INSTRUCTIONS,
        }

    def _list_tools(self, params: Any) -> dict[str, Any]:
        self._seen = discovery_files(self._client)
        tools = self._tools()
        self._has_tools = bool(tools)
        return {"tools": tools}

    def _call_tool(self, params: Any) -> dict[str, Any]:
        request = {
            "method": "call",
            "name": params.get("name"),
            "arguments": params.get("arguments") or {},
        }
        try:
            return ask(self._client, request, ANSWER_SECONDS)
        except NoEmacs:
            return {"content": [{"type": "text", "text": NO_EMACS}]}

    def _list_prompts(self, params: Any) -> dict[str, Any]:
        # Without any tool and prompt, Gemini CLI prints a warning at each start.
        return {"prompts": [] if self._tools() else [PROMPT]}

    def _get_prompt(self, params: Any) -> dict[str, Any]:
        content = {"type": "text", "text": NO_EMACS}
        return {"messages": [{"role": "user", "content": content}]}


def main() -> None:
    """Run the bridge, or the hook."""
    client, *options = sys.argv[1:]
    if options == ["--hook"]:
        run_hook(client)
    else:
        Bridge(client).run()


if __name__ == "__main__":
    main()
