# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that a CLI starts to ask Emacs: an MCP server on stdio, or a hook.

The arguments are CLIENT, and for a hook one option: --hook; --prompt, if the answer
may add to a prompt; --notice, if the CLI waits for the hook before it asks the user;
--call, before it runs a tool; --review, before it writes a file, and --plan, if only a
plan is to be reviewed; or --permission, if the hook waits for the user.
The bridge searches for Emacs again at each request, so it survives a restart of Emacs.

The bridge runs without this package, beside the module `common`.  It imports little,
since a CLI waits for the hook after each edit.

A CLI gives its hooks the environment of a project, such as its file .env, so nothing
here depends on the environment.  Each Emacs has a file in the directory of the bridge,
which names its discovery files.
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
        RENAME,
        UNKNOWN_RENAME,
        content_of,
        is_left_behind,
        is_own_listener,
        may_be_plan,
        object_in,
        server_in,
    )
else:
    from common import (
        ASK,
        ASKING_MODES,
        RENAME,
        UNKNOWN_RENAME,
        content_of,
        is_left_behind,
        is_own_listener,
        may_be_plan,
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

HOOK_SECONDS = 5
REVIEW_SECONDS = 8
NOTICE_SECONDS = 1
CALL_SECONDS = 2
PERMISSION_SECONDS = 86000
# The server gives a sign of life every two seconds.
SILENT_SECONDS = 5
CONNECTED_SECONDS = 0.5
LIST_SECONDS = 5
ANSWER_SECONDS = 20
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
# The error of MCP for a request in a version without a handshake, and the field in
# which such a request has its version.
UNSUPPORTED_VERSION = -32022
VERSION_FIELD = "io.modelcontextprotocol/protocolVersion"
PROMPT = {"name": "emacs-not-found", "description": NO_EMACS}


class Refused(ValueError):
    """A server does not exist, or does not answer this request."""


class NoEmacs(Exception):
    """No Emacs answers for this directory; the message is for the model."""


# Find Emacs


# The statuses, as of `Refused`, of a server that does not answer for a directory.
NOT_HERE = ((b"400",), (b"404",))


def emacsen(kind: str = "emacs") -> list[Facts]:
    """Return the contents of the files of ``kind`` that each Emacs has beside this one.

    An Emacs that has rules for edits also has one of the kind "rules".
    """
    try:
        entries = [*os.scandir(os.path.dirname(os.path.abspath(__file__)))]
    except OSError:
        return []
    prefix = f"{kind}-"
    return [content_of(file.path) for file in entries if file.name.startswith(prefix)]


def discovery_file(emacs: Facts, client: str) -> str:
    """Return the name of the discovery file for ``client`` in a file of ``emacs``."""
    try:
        return str(emacs["files"][client])
    except (LookupError, TypeError):
        return ""


def discovery_files(client: str) -> list[tuple[int, str]]:
    """Return the times and the names of the discovery files of each Emacs."""
    files = []
    for emacs in emacsen():
        path = discovery_file(emacs, client)
        try:
            time = os.stat(path, follow_symlinks=False).st_mtime_ns
        except (OSError, ValueError):
            continue
        files.append((time, path))
    return files


def server_of(path: str) -> tuple[int, str] | None:
    """Return port and token in the discovery file ``path``, None if Emacs has ended."""
    content = content_of(path)
    try:
        return None if is_left_behind(content) else server_in(content)
    except (LookupError, ValueError, TypeError, AttributeError):
        return None


def servers(client: str) -> list[tuple[int, str]]:
    """Return port and token of each Emacs that runs, the newest first."""
    files = sorted(discovery_files(client), reverse=True)
    return [server for _, path in files if (server := server_of(path))]


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

    Those after the one to which the CLI is connected count as 2, as does a single one.
    """
    all_servers = servers(client)
    distances: dict[tuple[int, str], int] = {}
    for server in all_servers if len(all_servers) > 1 else []:
        distances[server] = distance(server)
        if distances[server] == 0:
            break
    pairs = [(server, distances.get(server, 2)) for server in all_servers]
    return sorted(pairs, key=lambda pair: pair[1])


def distance(server: tuple[int, str]) -> int:
    """Return 0 if the CLI is connected to ``server``, 1 if its Emacs has started it.

    Return 3 if ``server`` is silent, else 2.
    """
    body = b'{"method": "connected", "pid": %d}' % os.getppid()
    try:
        return int(post(*server, body, CONNECTED_SECONDS) != b"{}")
    except TimeoutError:
        return 3
    except (OSError, ValueError):
        return 2


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
        raise Refused from None  # the server has exited or crashed
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


def asks_itself(client: str, event: Facts) -> bool:
    """Return whether the CLI asks in its mode about the edit of ``event``.

    Gemini CLI does not report its mode, and asks once.
    """
    return event.get("permission_mode") in ASKING_MODES.get(client, ())


def edit_in(body: bytes) -> tuple[Facts, str]:
    """Return the event in ``body`` and the file that it names, {} and "" if none."""
    try:
        event = object_in(body)["event"]
        return event, str(event["tool_input"]["file_path"])
    except (ValueError, TypeError, KeyError):
        return {}, ""


def run_review(client: str, only_plans: bool) -> None:
    """Print whether the CLI is to ask before the edit of the event on stdin.

    It is run while an Emacs has rules for that, or if ``only_plans``, for what may be a
    plan.  If none of those that run knows the directory, none of their rules is for the
    file.  If one that runs does not answer, the CLI asks: a rule may be for the file.
    If none runs any longer, the mode of the CLI decides.
    """
    body = event("event", "only_plans" if only_plans else "")
    has_failed, refused = False, set()
    end = monotonic() + REVIEW_SECONDS
    for server, _ in nearest(client):
        try:
            answer = object_in(post(*server, body, end - monotonic()))
        except Refused as problem:
            if problem.args in NOT_HERE:
                refused.add(server)
            else:
                has_failed = True
        except (OSError, ValueError):
            has_failed = True
        else:
            print(json.dumps(answer))
            return
    # The server of an Emacs that runs may have crashed.
    for emacs in [] if only_plans else emacsen("rules"):
        server_there = server_of(discovery_file(emacs, client))
        has_failed |= not is_left_behind(emacs) and server_there not in refused
    announced, file = edit_in(body)
    is_possible = may_be_plan(file) or not only_plans
    asks = has_failed and is_possible and not asks_itself(client, announced)
    print(json.dumps(ASK[client] if asks else {}))


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
        self._seen: list[tuple[int, str]] = []
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
        prompt = {"role": "user", "content": {"type": "text", "text": NO_EMACS}}
        answers: dict[str, Callable[[Facts], Facts]] = {
            "initialize": self._initialize,
            "ping": lambda _: {},
            "tools/list": self._list_tools,
            "tools/call": lambda params: self._call_tool(params, call),
            # Without any tool and prompt, Gemini CLI prints a warning at each start.
            "prompts/list": lambda _: {"prompts": [] if self._tools() else [PROMPT]},
            "prompts/get": lambda _: {"messages": [prompt]},
        }
        requested = version_in(params)
        if method == "server/discover" or requested not in (None, *VERSIONS):
            # A client that also speaks an earlier version goes on with that.
            data = {"supported": VERSIONS, "requested": requested or ""}
            message = "Unsupported protocol version"
            self._fail(request_id, UNSUPPORTED_VERSION, message, data)
        elif isinstance(method, str) and method in answers:
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

    def _fail(
        self, request_id: object, code: int, message: str, data: object = None
    ) -> None:  # fmt: skip
        error: Facts = {"code": code, "message": message}
        if data is not None:
            error["data"] = data
        self._send({"id": request_id, "error": error})

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


def version_in(params: object) -> object:
    """Return the version of MCP of a request with ``params``, None if it has none."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get(VERSION_FIELD) if isinstance(meta, dict) else None


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
