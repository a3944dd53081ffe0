# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that a CLI starts to ask Emacs: an MCP server on stdio, or a hook.

The arguments are CLIENT, and for a hook one option: --hook; --prompt, if the answer
may add to a prompt; --notice, if the CLI waits for the hook before it asks the user;
--call, before it runs a tool; --review, before it writes a file, and --plan, if only a
plan is to be reviewed; or --permission, if the hook waits for the user.
The bridge searches for Emacs again at each request, so it survives a restart of Emacs.

The bridge runs without this package, beside the module `common`.  It imports little,
since a CLI waits for the hook after each edit.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING or __package__:
    from .common import (
        ASK,
        ASKING_MODES,
        PORTS,
        RENAME,
        TIMEOUT_FACTOR,
        UNKNOWN_RENAME,
        content_of,
        directory_in,
        is_left_behind,
        is_own_listener,
        object_in,
        server_in,
    )
else:
    from common import (
        ASK,
        ASKING_MODES,
        PORTS,
        RENAME,
        TIMEOUT_FACTOR,
        UNKNOWN_RENAME,
        content_of,
        directory_in,
        is_left_behind,
        is_own_listener,
        object_in,
        server_in,
    )

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Facts: TypeAlias = dict[str, Any]
    RequestId: TypeAlias = str | int | float

HOOKS = (
    "--hook", "--prompt", "--notice", "--call", "--review", "--plan", "--permission"
)  # fmt: skip
if TYPE_CHECKING or not set(sys.argv).intersection(HOOKS):
    import threading

HOOK_SECONDS = 5 * TIMEOUT_FACTOR
REVIEW_SECONDS = 8 * TIMEOUT_FACTOR
NOTICE_SECONDS = 1 * TIMEOUT_FACTOR
CALL_SECONDS = 2 * TIMEOUT_FACTOR
PERMISSION_SECONDS = 86000
# The server gives a sign of life every two seconds.
SILENT_SECONDS = 5 * TIMEOUT_FACTOR
CONNECTED_SECONDS = 0.5 * TIMEOUT_FACTOR
LIST_SECONDS = 5 * TIMEOUT_FACTOR
ANSWER_SECONDS = 20 * TIMEOUT_FACTOR
SCAN_SECONDS = 2
# Qwen Code ends a call without progress after five minutes.
PROGRESS_SECONDS = 60

INSTRUCTIONS = (
    "Emacs answers from a running language server: prefer it to a text search for "
    "references and definitions of a symbol, and to edits for renaming one."
)
NO_EMACS = (
    "No Emacs has this directory open with gemini-companion-mode on; open one of its "
    "files in Emacs."
)
SLOW_EMACS = "Emacs did not answer in time."
VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")
PROMPT = {"name": "emacs-not-found", "description": NO_EMACS}


class Refused(ValueError):
    """A server does not exist, or does not answer this request."""


class Absent(Refused):
    """Nothing listens at the port: the server has exited or crashed."""


class NoEmacs(Exception):
    """No Emacs answers for this directory; the message is for the model."""


# Find Emacs


# The statuses, as of `Refused`, of a server that does not answer for a directory.
NOT_HERE = ((b"400",), (b"404",))


def discovery_files(client: str) -> list[tuple[str, int]]:
    """Return the names and times of the files in the directory for discovery."""
    files = []
    try:
        entries = [*os.scandir(directory_in(client, os.environ))]
    except OSError:
        return []
    for entry in entries:
        try:
            files.append((entry.path, entry.stat(follow_symlinks=False).st_mtime_ns))
        except OSError:
            continue
    return files


def servers(client: str) -> list[tuple[int, str]]:
    """Return port and token of each Emacs: first that of this CLI, then the newest."""
    wanted = os.environ.get(PORTS.get(client, ""))
    rated = []
    for path, time in discovery_files(client):
        content = content_of(path)
        try:
            port, token = server_in(content)
        except (LookupError, ValueError, TypeError, AttributeError):
            continue
        if is_left_behind(content):
            continue
        rated.append((str(port) == wanted, time, port, token))
    return [(port, token) for *_, port, token in sorted(rated, reverse=True)]


# Ask Emacs


class Call:
    """A call of a tool, which the CLI may cancel."""

    def __init__(self) -> None:
        self.waits = False
        """Whether it waits for the user.  The server then gives signs of life."""
        self.is_cancelled = False
        self._connection: socket.socket | None = None

    def attach(self, connection: socket.socket) -> None:
        """Make a cancellation shut down ``connection``, which asks Emacs."""
        self._connection = connection
        if self.is_cancelled:
            self.cancel()

    def cancel(self) -> None:
        """End the call: notify Emacs, and send the CLI no answer."""
        self.is_cancelled = True
        try:
            if self._connection is not None:
                self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:  # it has ended
            pass


def ask(client: str, body: bytes, limit: float, call: Call | None = None) -> bytes:
    """Return the answer to ``body``, an object, of the first Emacs that gives one.

    An Emacs refuses at once what it cannot answer, such as a directory that is not
    open there.  Of several, the one to which the CLI is connected comes first, and
    last those that do not even say whether they are.  If ``call`` waits for the user,
    no other one is asked in place of one that ends meanwhile, as that may have done
    what the user wants.  Raise NoEmacs if there is none.
    """
    end = monotonic() + limit
    waits = call is not None and call.waits
    silent = SILENT_SECONDS if waits else PERMISSION_SECONDS
    for server, _ in nearest(client):
        try:
            return post(*server, body, end - monotonic(), silent, call)
        except TimeoutError:
            raise NoEmacs(SLOW_EMACS) from None
        except Refused:
            continue
        except (OSError, ValueError):
            if waits:
                raise NoEmacs(SLOW_EMACS) from None
    raise NoEmacs(NO_EMACS)


def nearest(client: str) -> list[tuple[tuple[int, str], int]]:
    """Return the `servers` of ``client`` with the `distance` of each, sorted by it.

    Those after the one to which the CLI is connected count as 1, as does a single one.
    """
    all_servers = servers(client)
    distances: dict[tuple[int, str], int] = {}
    for server in all_servers if len(all_servers) > 1 else []:
        distances[server] = distance(server)
        if distances[server] == 0:
            break
    pairs = [(server, distances.get(server, 1)) for server in all_servers]
    return sorted(pairs, key=lambda pair: pair[1])


def distance(server: tuple[int, str]) -> int:
    """Return 0 if the CLI is connected to ``server``, 1 if not, 2 if it is silent."""
    body = b'{"method": "connected", "pid": %d}' % os.getppid()
    try:
        post(*server, body, CONNECTED_SECONDS)
    except TimeoutError:
        return 2
    except (OSError, ValueError):
        return 1
    return 0


def post(
    port: int,
    token: str,
    body: bytes,
    limit: float,
    silent: float = PERMISSION_SECONDS,
    call: Call | None = None,
) -> bytes:
    """Return the answer of the server at ``port`` to ``body``.

    After a crash of Emacs, its port may be that of another user's program, which must
    get neither the token nor a text.  Raise OSError or ValueError if there is no answer
    in ``limit`` seconds, if nothing comes for ``silent`` seconds, or if ``call`` is
    cancelled; Refused if the server refuses the request, or is not of this user.
    """
    end = monotonic() + limit
    head = (
        f"POST /tools HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {token}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    data, piece = b"", b" "
    try:
        connection = socket.create_connection(
            ("127.0.0.1", port), max(min(limit, silent), 0.01)
        )
    except ConnectionRefusedError:
        raise Absent from None
    with connection:
        if call is not None:
            call.attach(connection)
        if not is_own_listener(port):
            raise Refused("another user listens there")
        connection.sendall(head.encode() + body)
        while piece:
            connection.settimeout(max(min(end - monotonic(), silent), 0.01))
            data += (piece := connection.recv(65536))
    status, _, answer = data.partition(b"\r\n\r\n")
    code = status.split()[1:2]
    if code != [b"200"]:
        raise (Refused(*code) if status.startswith(b"HTTP/") else ValueError)
    return answer


# Hook


def event(method: str, flag: str = "") -> bytes:
    """Return the request ``method`` with the event of a hook, which is on stdin.

    The ``flag`` of the request, if not empty, is true.
    """
    return b'{"method": "%s", "pid": %d, %s"event": %s}' % (
        method.encode(),
        os.getppid(),
        b'"%s": true, ' % flag.encode() if flag else b"",
        sys.stdin.buffer.read(),
    )


def run_hook(client: str, limit: float, flag: str = "") -> bytes:
    """Print the answer to the event of a hook on stdin, ``{}`` if there is none.

    Return it.  For ``flag``, see `event`.
    """
    try:
        answer = ask(client, event("event", flag), limit)
    except NoEmacs:
        answer = b"{}"
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    return answer


def run_confirmed(client: str) -> None:
    """Print what to add to the prompt or the result on stdin, and confirm that."""
    if run_hook(client, HOOK_SECONDS, "confirms") != b"{}":
        body = b'{"method": "read", "pid": %d}' % os.getppid()
        try:
            ask(client, body, HOOK_SECONDS)
        except NoEmacs:
            return  # Emacs then adds it to the next one


def asks_itself(client: str, body: bytes) -> bool:
    """Return whether the CLI asks in its mode about the edit of the event in ``body``.

    Gemini CLI does not report its mode, and asks once.
    """
    try:
        mode = object_in(body)["event"]["permission_mode"]
    except (ValueError, TypeError, KeyError):
        return False
    return mode in ASKING_MODES.get(client, ())


def run_review(client: str, only_plans: bool) -> None:
    """Print whether the CLI is to ask before the edit of the event on stdin.

    It is run while an Emacs has rules for that.  If none of those that run knows the
    directory, none of their rules is for the file.  If an Emacs does not answer, or has
    ended without deleting its file of rules, the CLI asks: a rule may be for the file.
    But if no Emacs has rules and ``only_plans`` are reviewed, its mode then decides.
    """
    body = event("event", "only_plans" if only_plans else "")
    failed = {} if only_plans or asks_itself(client, body) else ASK[client]
    end = monotonic() + REVIEW_SECONDS
    has_failed, has_refused = False, False
    for server, _ in nearest(client):
        try:
            answer = object_in(post(*server, body, end - monotonic()))
        except Absent:
            has_failed = True
        except Refused as refused:
            if refused.args in NOT_HERE:
                has_refused = True
            else:
                has_failed = True
        except (OSError, ValueError):
            has_failed = True
        else:
            print(json.dumps(answer))
            return
    print(json.dumps({} if has_refused and not has_failed else failed))


def run_permission(client: str) -> None:
    """Print the answer of the user in Emacs to the event on stdin, or ``{}``.

    Only the Emacs to which the CLI is connected is asked, else the first that does not
    refuse.  Another one is not asked in place of one that ends or hangs meanwhile: the
    CLI then asks in its terminal.
    """
    body, answer = event("permission"), {}
    for server, far in nearest(client):
        try:
            reply = post(*server, body, PERMISSION_SECONDS, SILENT_SECONDS)
            answer = object_in(reply)
        except Refused:
            if far:
                continue
        except (OSError, ValueError):
            pass
        break
    print(json.dumps(answer))


# MCP


class Bridge:
    """An MCP server on stdio, which asks Emacs."""

    def __init__(self, client: str) -> None:
        self._client = client
        self._directory = os.getcwd()
        self._lock = threading.Lock()
        self._has_tools: bool | None = None
        self._seen: list[tuple[str, int]] = []
        self._calls: dict[RequestId, Call] = {}

    def run(self) -> None:
        """Answer requests until stdin is closed."""
        ended = threading.Event()
        threading.Thread(target=self._watch, args=(ended,), daemon=True).start()
        for line in sys.stdin.buffer:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                self._fail(None, -32700, "Parse error")
                continue
            if not isinstance(message, dict):
                self._fail(None, -32600, "Invalid request")
            elif message.get("method") == "notifications/cancelled":
                self._cancel(message.get("params"))
            elif "id" in message and "method" in message:
                if isinstance(message["id"], (str, int, float)):
                    self._begin(message["id"], message["method"], message.get("params"))
                else:
                    self._fail(None, -32600, "Invalid request")
        ended.set()

    def _begin(self, request_id: RequestId, method: object, params: object) -> None:
        """Answer a request in a thread."""
        # It may be cancelled before its thread runs.
        call = self._calls[request_id] = Call()
        arguments = call, request_id, method, params
        answering = threading.Thread(target=self._answer, args=arguments)
        try:
            answering.start()
        except RuntimeError as error:  # there are too many threads
            self._fail(request_id, -32603, f"Internal error: {error}")

    def _cancel(self, params: object) -> None:
        request = params.get("requestId") if isinstance(params, dict) else None
        if isinstance(request, (str, int, float)):
            call = self._calls.get(request)
            if call is not None:
                call.cancel()

    def _watch(self, ended: threading.Event) -> None:
        """Report that the tools have appeared or disappeared."""
        while not ended.wait(SCAN_SECONDS):
            listed, files = self._has_tools, discovery_files(self._client)
            if listed is None or (listed and files == self._seen):
                continue
            try:
                has_tools = bool(self._tools())
            except Exception:  # it tries again
                continue
            self._seen = files
            if has_tools != listed:
                self._has_tools = has_tools
                self._send({"method": "notifications/tools/list_changed"})

    def _answer(
        self, call: Call, request_id: RequestId, method: object, params: object
    ) -> None:  # fmt: skip
        message = {"role": "user", "content": {"type": "text", "text": NO_EMACS}}
        answers: dict[str, Callable[[Facts], Facts]] = {
            "initialize": self._initialize,
            "ping": lambda _: {},
            "tools/list": self._list_tools,
            "tools/call": lambda params: self._call_tool(params, call),
            # Without any tool and prompt, Gemini CLI prints a warning at each start.
            "prompts/list": lambda _: {"prompts": [] if self._tools() else [PROMPT]},
            "prompts/get": lambda _: {"messages": [message]},
        }
        if isinstance(method, str) and method in answers:
            try:
                result = answers[method](params if isinstance(params, dict) else {})
            except Exception as error:
                # Otherwise, the CLI would wait for an answer without end.
                self._fail(request_id, -32603, f"Internal error: {error!r}")
            else:
                if not call.is_cancelled:
                    self._send({"id": request_id, "result": result})
        else:
            self._fail(request_id, -32601, f"Unknown method: {method}")
        self._calls.pop(request_id, None)

    def _fail(self, request_id: object, code: int, message: str) -> None:
        self._send({"id": request_id, "error": {"code": code, "message": message}})

    def _send(self, message: Facts) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message})
        with self._lock:
            try:
                print(line, flush=True)
            except OSError:
                os._exit(0)

    def _ask(
        self, limit: float, call: Call | None = None, **request: object
    ) -> Facts:  # fmt: skip
        request.update(directory=self._directory, pid=os.getppid())
        body = json.dumps(request).encode()
        return object_in(ask(self._client, body, limit, call))

    def _tools(self) -> list[object]:
        """Return the tools, none without Emacs, or raise ValueError."""
        try:
            tools = self._ask(LIST_SECONDS, method="list").get("tools")
        except NoEmacs:
            return []
        if not isinstance(tools, list):
            raise ValueError("no list of tools")
        return tools

    def _initialize(self, params: Facts) -> Facts:
        wanted = params.get("protocolVersion")
        return {
            "protocolVersion": wanted if wanted in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {"listChanged": True}, "prompts": {}},
            "serverInfo": {"name": "emacs", "version": "1"},
            "instructions": INSTRUCTIONS,
        }

    def _list_tools(self, params: Facts) -> Facts:
        self._seen = discovery_files(self._client)
        tools = self._tools()
        self._has_tools = bool(tools)
        return {"tools": tools}

    def _call_tool(self, params: Facts, call: Call) -> Facts:
        name, arguments = params.get("name"), params.get("arguments") or {}
        call.waits, ended = name == RENAME, threading.Event()
        limit = PERMISSION_SECONDS if call.waits else ANSWER_SECONDS
        if call.waits:
            facts = params.get("_meta"), ended
            threading.Thread(target=self._report, args=facts, daemon=True).start()
        try:
            return self._ask(limit, call, method="call", name=name, arguments=arguments)
        except NoEmacs as error:
            text = str(error)
            if call.waits and text == SLOW_EMACS:
                text = UNKNOWN_RENAME
        except ValueError:  # Emacs has ended, or has answered something else
            if not call.waits:
                raise
            text = UNKNOWN_RENAME
        finally:
            ended.set()
        return {"content": [{"type": "text", "text": text}]}

    def _report(self, meta: object, ended: threading.Event) -> None:
        """Report progress of a call that waits for the user, if the CLI wants that."""
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        progress = 0
        while token is not None and not ended.wait(PROGRESS_SECONDS):
            progress += 1
            facts = {
                "progressToken": token,
                "progress": progress,
                "message": "The user reviews the rename in Emacs",
            }
            self._send({"method": "notifications/progress", "params": facts})


def main() -> None:
    """Run the bridge, or the hook."""
    client, *options = sys.argv[1:]
    if options in (["--hook"], ["--prompt"]):
        run_confirmed(client)
    elif options == ["--notice"]:
        run_hook(client, NOTICE_SECONDS)
    elif options == ["--call"]:
        run_hook(client, CALL_SECONDS)
    elif options == ["--review"]:
        run_review(client, only_plans=False)
    elif options == ["--plan"]:
        run_review(client, only_plans=True)
    elif options == ["--permission"]:
        run_permission(client)
    else:
        Bridge(client).run()
