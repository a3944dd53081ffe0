# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that a CLI starts, as a process of its own."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from conftest import Alone, ServeAlone, dead_pid, edit, until
from extension import FACTOR, announce, command, extension
from fake_cli import BOUND
from gemini_companion_epc import bridge as program
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.common import ASK, UNKNOWN_RENAME, this_host
from gemini_companion_epc.discovery import DiscoveryFiles
from gemini_companion_epc.port import UnixPort
from gemini_companion_epc.questions import TOOLS
from gemini_companion_epc.types import Facts, Process


def discovery(
    tmp: Path, port: int, token: str, roots: tuple[str, ...] = (), emacs_pid: int = 1
) -> Path:
    homes = {"TMPDIR": str(tmp), "QWEN_HOME": str(tmp / "qwen")}
    files = DiscoveryFiles(emacs_pid, port, token, homes, UnixPort(port))
    assert files.update(roots) == []
    announce(tmp, port, dict(reversed(files.names())))
    return Path(files.names()[0][1])


class Bridge:
    client = "gemini"

    def __init__(
        self,
        directory: Path,
        tmp: Path,
        *arguments: str,
        quick: bool = False,
        **env: str,
    ) -> None:
        self._process = subprocess.Popen(
            command(tmp, self.client, *arguments, quick=quick),
            cwd=directory,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._last_id = 0

    def ask(self, method: object, **params: Any) -> Any:
        self._last_id += 1
        self.send(id=self._last_id, method=method, params=params)
        while (answer := self.read()).get("id") != self._last_id:
            pass
        return answer["result"] if "result" in answer else answer["error"]

    def send(self, **message: Any) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def write(self, line: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self._process.stdout
        return dict(json.loads(self._process.stdout.readline()))

    def call(self, name: str, **arguments: Any) -> str:
        (part,) = self.ask("tools/call", name=name, arguments=arguments)["content"]
        return str(part["text"])

    def end(self, text: str = "") -> str:
        """Send ``text``, close stdin and return what is printed then."""
        output, errors = self._process.communicate(text.encode(), BOUND)
        assert (self._process.returncode, errors) == (0, b"")
        return output.decode()


def beside(tmp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the bridge in this process be that of the extension."""
    monkeypatch.setattr(program, "__file__", str(extension(tmp) / "bridge.py"))


@pytest.fixture
def start_bridge(tmp_path: Path) -> Iterator[Callable[..., Bridge]]:
    started: list[Bridge] = []

    def start_bridge(directory: Path, **env: Any) -> Bridge:
        started.append(Bridge(directory, tmp_path, **env))
        return started[-1]

    yield start_bridge
    for bridge in started:
        bridge.end()


def test_tools_are_those_of_the_emacs_that_has_the_directory(
    alone: Alone, tmp_path: Path, start_bridge: Callable[..., Bridge]
) -> None:
    root = tmp_path / "root"
    below = root / "below"
    below.mkdir(parents=True)
    (tmp_path / "rootless").mkdir()
    discovery(tmp_path, alone.port, alone.token)
    alone.linked.roots = [str(root)]
    alone.answer({"rows": [[str(below / "a.py"), 1, 0]]})
    bridge = start_bridge(below)
    assert bridge.ask("tools/list") == {"tools": TOOLS}
    assert bridge.ask("prompts/list") == {"prompts": []}
    assert bridge.call("diagnostics") == "a.py: 1 errors, 0 warnings"
    assert bridge.ask("resources/list")["code"] == -32601
    bridge.send(id=0, method="tools/call", params=["diagnostics"])
    assert "Unknown tool" in json.dumps(bridge.read())
    assert start_bridge(tmp_path / "rootless").ask("tools/list") == {"tools": []}


def test_without_emacs_there_is_a_prompt_that_says_why(
    tmp_path: Path, start_bridge: Callable[..., Bridge]
) -> None:
    bridge = start_bridge(tmp_path)
    assert bridge.ask("tools/list") == {"tools": []}
    (prompt,) = bridge.ask("prompts/list")["prompts"]
    (message,) = bridge.ask("prompts/get", name=prompt["name"])["messages"]
    assert "No Emacs" in message["content"]["text"]
    assert "No Emacs" in bridge.call("diagnostics")


def test_a_slow_emacs_is_not_a_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "ANSWER_SECONDS", 0.1)
    beside(tmp_path, monkeypatch)
    with socket.create_server(("127.0.0.1", 0)) as slow:
        discovery(tmp_path, slow.getsockname()[1], "x")
        bridge, call = program.Bridge("gemini"), program.Call()
        result = bridge._call_tool({"name": "diagnostics"}, call)
    assert result["content"][0]["text"] == "Emacs did not answer in time."


def test_the_best_of_several_emacsen_is_asked_first(
    serve_alone: ServeAlone, tmp_path: Path, start_bridge: Callable[..., Bridge]
) -> None:
    def emacs(name: str, time: int, root: str) -> Alone:
        alone = serve_alone()
        alone.answer({"rows": [[f"/{name}", 1, 0]]})
        alone.linked.roots = [root]
        os.utime(discovery(tmp_path, alone.port, alone.token), (time, time))
        return alone

    old, new, other = (
        emacs(name, time, root)
        for name, time, root in (
            ("old", 1, str(tmp_path)), ("new", 2, str(tmp_path)), ("other", 3, "/other")
        )
    )  # fmt: skip
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        discovery(tmp_path, unused.getsockname()[1], "x")
        assert "/new" in start_bridge(tmp_path).call("diagnostics")
        # The CLI, of which this process is a part, was started in that Emacs.
        started_in(old, os.getppid())
        assert "/old" in start_bridge(tmp_path).call("diagnostics")
        started_in(old, 0)
        started_in(other, os.getppid())
        assert "/new" in start_bridge(tmp_path).call("diagnostics")
        assert not other.emacs.asked
        assert len(new.emacs.asked) == 2
        # It is connected to this one.
        started_in(old, os.getppid())
        session = new.do(new.sessions.open, "one", CLIENTS[0])
        session.process = Process(os.getpid())
        assert "/new" in start_bridge(tmp_path).call("diagnostics")


def started_in(alone: Alone, pid: int) -> None:
    """Let ``pid`` be that of the Emacs of ``alone``."""
    object.__setattr__(alone.config, "emacs_pid", pid)


@pytest.mark.parametrize("is_dripping", [False, True])
def test_an_emacs_that_hangs_does_not_hide_another(
    alone: Alone, tmp_path: Path, is_dripping: bool
) -> None:
    def drip() -> None:
        with contextlib.suppress(OSError):
            while connection := hanging.accept()[0]:
                with contextlib.suppress(OSError), connection:
                    while is_dripping or connection.recv(1000):
                        connection.sendall(b"H")
                        ended.wait(0.1)

    file, ended = tmp_path / "a.py", threading.Event()
    alone.answer({"path": str(file), "count": 1, "errors": [[3, "bad", None]]})
    discovery(tmp_path, alone.port, alone.token)
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        threading.Thread(target=drip, daemon=True).start()
        port = hanging.getsockname()[1]
        newest = discovery(tmp_path, port, "x", (str(tmp_path),))
        os.utime(newest, (10**10, 10**10))
        began = time.monotonic()
        assert "new error" in str(run_hook(tmp_path, event(file)))
        assert time.monotonic() - began < FACTOR * program.HOOK_SECONDS
        hanging.shutdown(socket.SHUT_RDWR)
    ended.set()


def test_a_message_that_is_no_request_is_answered(
    tmp_path: Path, start_bridge: Callable[..., Bridge]
) -> None:
    bridge = start_bridge(tmp_path)
    for text in ("{", "[" * 100_000, "\udcff", "", '{"id": 1}}'):
        bridge.write(text.encode(errors="surrogateescape"))
        assert bridge.read()["error"]["code"] == -32700
    for text in ("[]", '{"id": {}, "method": "ping"}', '{"id": null, "method": ""}'):
        bridge.write(text.encode())
        assert bridge.read()["error"]["code"] == -32600
    bridge.send(method="notifications/cancelled", params={"requestId": []})
    assert bridge.ask(["ping"])["code"] == -32601
    assert bridge.ask("ping") == {}


class OddServer:
    """A server that answers each request with a text, JSON or not."""

    def __init__(self, tmp: Path) -> None:
        self.text, self.count = "", 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        discovery(tmp, self._listener.getsockname()[1], "x")
        self._answering = threading.Thread(target=self._answer_each)
        self._answering.start()

    def _answer_each(self) -> None:
        with contextlib.suppress(OSError):
            while connection := self._listener.accept()[0]:
                with connection, contextlib.suppress(OSError):
                    while b'"pid"' not in connection.recv(65536):
                        pass
                    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + self.text.encode())
                    self.count += 1

    def end(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._answering.join()
        self._listener.close()


@pytest.fixture
def odd_server(tmp_path: Path) -> Iterator[OddServer]:
    server = OddServer(tmp_path)
    yield server
    server.end()


ODD_ANSWERS = ["5", "[1]", '"x"', "null", "{", "[" * 100_000]


@pytest.mark.parametrize("text", [*ODD_ANSWERS, "{}", '{"tools": 5}'])
def test_an_odd_answer_to_a_request_is_an_error_and_the_watch_goes_on(
    odd_server: OddServer,
    tmp_path: Path,
    start_bridge: Callable[..., Bridge],
    text: str,
) -> None:
    bridge = start_bridge(tmp_path, quick=True)
    odd_server.text = '{"tools": []}'
    assert bridge.ask("tools/list") == {"tools": []}
    odd_server.text = text
    for method in ("tools/list", "prompts/list"):
        assert bridge.ask(method)["code"] == -32603
    if text in ODD_ANSWERS:
        assert bridge.ask("tools/call", name="diagnostics")["code"] == -32603
        assert bridge.call("rename_symbol", **RENAME) == UNKNOWN_RENAME
    count = odd_server.count
    until(lambda: odd_server.count > count)
    odd_server.text = '{"tools": [{}]}'
    assert bridge.read()["method"] == "notifications/tools/list_changed"
    assert bridge.ask("tools/list") == {"tools": [{}]}


def test_a_request_for_which_there_is_no_thread_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fail)
    program.Bridge("gemini")._begin("one", "ping", {})
    answer = json.loads(capsys.readouterr().out)
    assert (answer["id"], answer["error"]["code"]) == ("one", -32603)


@pytest.mark.parametrize("wanted", ["2024-11-05", "2025-06-18", "2099-01-01", 5, None])
def test_a_version_of_the_protocol_is_one_that_is_spoken(
    tmp_path: Path, start_bridge: Callable[..., Bridge], wanted: object
) -> None:
    answered = start_bridge(tmp_path).ask("initialize", protocolVersion=wanted)
    is_spoken = str(wanted)[:4] in ("2024", "2025")
    assert answered["protocolVersion"] == (wanted if is_spoken else "2025-06-18")


def test_a_later_version_of_the_protocol_is_refused_with_those_that_are_spoken(
    tmp_path: Path, start_bridge: Callable[..., Bridge]
) -> None:
    bridge = start_bridge(tmp_path)
    meta = {program.VERSION_FIELD: "2026-07-28"}
    for method, params in (
        ("server/discover", {"_meta": meta}),
        ("server/discover", {}),
        ("tools/list", {"_meta": meta}),
    ):
        error = bridge.ask(method, **params)
        assert error["code"] == -32022
        assert error["data"]["supported"] == list(program.VERSIONS)
        assert error["data"]["requested"] == ("2026-07-28" if params else "")


@pytest.mark.anyio
async def test_a_client_of_a_later_version_goes_back_to_one_that_is_spoken(
    tmp_path: Path,
) -> None:
    name, *arguments = command(tmp_path, "gemini")
    server = StdioServerParameters(command=name, args=arguments, cwd=tmp_path)
    async with Client(server, mode="auto") as client:
        assert client.protocol_version == "2025-06-18"
        assert (await client.list_tools()).tools == []


def event(file: Path, **display: object) -> str:
    """Return what Gemini CLI sends to a hook after it has written ``file``."""
    return json.dumps({**edit(str(file), **display), "cwd": str(file.parent)})


def run_hook(tmp: Path, text: str) -> Any:
    return json.loads(Bridge(tmp, tmp, "--hook").end(text))


def test_the_hook_adds_what_emacs_answers(alone: Alone, tmp_path: Path) -> None:
    discovery(tmp_path, alone.port, alone.token)
    file = tmp_path / "a.py"
    alone.answer({"path": str(file), "count": 1, "errors": [[3, "bad", None]]})
    output = run_hook(tmp_path, event(file))["hookSpecificOutput"]
    assert output["hookEventName"] == "AfterTool"
    assert output["additionalContext"].endswith("fix it):\n3: error: bad")
    run_hook(tmp_path, event(file, isNewFile=True))
    edits = [asked for asked in alone.emacs.asked if asked[0] == "edited"]
    (_, facts, old), (*_, new) = edits
    assert (facts["client"], facts["path"]) == ("gemini", str(file))
    assert list(old) == ["old", "new"]
    assert new[0] is None
    alone.answer({})
    assert run_hook(tmp_path, event(file)) == {}


def test_the_result_of_a_tool_has_what_emacs_adds(alone: Alone, tmp_path: Path) -> None:
    discovery(tmp_path, alone.port, alone.token)
    file = tmp_path / "a.py"

    def asked() -> list[str]:
        return alone.emacs.asked_of("edited", "addition", "read")

    def added(event: Facts) -> str:
        alone.emacs.asked.clear()
        output = run_hook(tmp_path, json.dumps(event))["hookSpecificOutput"]
        return str(output["additionalContext"])

    errors = {"path": str(file), "count": 1, "errors": [[3, "bad", None]]}
    alone.answer({**errors, "text": "undone"})
    edited = json.loads(event(file))
    assert added(edited).endswith("3: error: bad\n\nundone")
    assert asked() == ["edited", "addition", "read"]
    # An edit that has failed, and a command.
    failed = {**edited, "tool_response": {"error": {"message": "not found"}}}
    command = {**edited, "tool_name": "run_shell_command", "tool_input": {}}
    for result in (failed, command):
        assert added(result) == "undone"
        assert asked() == ["addition", "read"]


@pytest.mark.parametrize(
    ("bridge", "prompt"),
    [
        (Bridge, {"hook_event_name": "BeforeAgent", "prompt": "go"}),
        (Bridge, {"hook_event_name": "AfterAgent", "prompt": "go"}),
    ],
)
def test_what_emacs_adds_to_a_prompt_is_confirmed_once_it_is_printed(
    alone: Alone, tmp_path: Path, bridge: type[Bridge], prompt: Facts
) -> None:
    def asked() -> list[str]:
        return alone.emacs.asked_of("turn", "addition", "read")

    discovery(tmp_path, alone.port, alone.token)
    text = json.dumps({**prompt, "cwd": str(tmp_path)})
    alone.answer({"text": "undone"})
    output = json.loads(bridge(tmp_path, tmp_path, "--prompt").end(text))
    if prompt["hook_event_name"] == "AfterAgent":
        assert (output, asked()) == ({}, ["turn"])
        return
    assert output["hookSpecificOutput"]["additionalContext"] == "undone"
    assert asked() == ["turn", "addition", "read"]
    # A bridge of an earlier version, in a CLI that runs, would not confirm it.
    alone.emacs.asked.clear()
    assert json.loads(bridge(tmp_path, tmp_path, "--notice").end(text)) == {}
    assert asked() == ["turn"]
    alone.emacs.asked.clear()
    alone.answer({})
    assert json.loads(bridge(tmp_path, tmp_path, "--prompt").end(text)) == {}
    assert asked() == ["turn", "addition"]


def test_what_emacs_adds_to_a_prompt_is_not_confirmed_if_it_cannot_be_printed(
    alone: Alone, tmp_path: Path
) -> None:
    discovery(tmp_path, alone.port, alone.token)
    alone.answer({"text": "undone"})
    prompt = {"hook_event_name": "BeforeAgent", "prompt": "go", "cwd": str(tmp_path)}
    process = subprocess.Popen(
        command(tmp_path, "gemini", "--prompt"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin
    assert process.stdout
    # The CLI has given up.
    process.stdout.close()
    process.stdin.write(json.dumps(prompt).encode())
    process.stdin.close()
    assert process.wait(BOUND) != 0
    assert alone.emacs.asked_of("addition", "read") == ["addition"]


def test_the_hook_ends_when_emacs_does(alone: Alone, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as dying:
        discovery(tmp_path, dying.getsockname()[1], "x")
        hook = Bridge(tmp_path, tmp_path, "--hook")
        hook.send()
        with ThreadPoolExecutor() as pool:
            ended = pool.submit(hook.end)
            with dying.accept()[0]:
                dying.close()
            assert ended.result() == "{}"


def test_the_hook_is_silent_in_doubt(alone: Alone, tmp_path: Path) -> None:
    edited = event(tmp_path / "a.py")
    assert run_hook(tmp_path, edited) == {}
    discovery(tmp_path, alone.port, alone.token)
    assert run_hook(tmp_path, edited) == {}
    alone.linked.turn(True)
    for text in ("", "{}", "[]", '{"tool_response": 1}', "null"):
        assert run_hook(tmp_path, text) == {}


def review(tmp: Path, file: Path, option: str = "--review") -> Any:
    """Return the answer of the hook before Gemini CLI writes ``file``."""
    hook = Bridge(tmp, tmp, option)
    return json.loads(hook.end(json.dumps(announcement(tmp, file))))


def announcement(directory: Path, file: Path) -> Facts:
    """Return what Gemini CLI, in ``directory``, sends before it writes ``file``."""
    return {
        "hook_event_name": "BeforeTool",
        "cwd": str(directory),
        "tool_name": "write_file",
        "tool_input": {"file_path": str(file), "content": "new"},
    }


class BridgeOfQwen(Bridge):
    client = "qwen"


def review_qwen(tmp: Path, mode: str) -> Any:
    """Return the answer of the hook before Qwen Code, in ``mode``, writes a file."""
    announced = {
        "hook_event_name": "PreToolUse",
        "cwd": str(tmp),
        "permission_mode": mode,
        "tool_name": "write_file",
        "tool_input": {"file_path": str(tmp / "a.py"), "content": "new"},
    }
    hook = BridgeOfQwen(tmp, tmp, "--review")
    return json.loads(hook.end(json.dumps(announced)))


ASKS = {"decision": "ask"}


def test_a_rule_of_emacs_decides_whether_the_cli_asks(
    alone: Alone, tmp_path: Path
) -> None:
    discovery(tmp_path, alone.port, alone.token)
    for answer, expected in (("always", ASKS), ("-", {}), (None, ASKS)):
        alone.answer({"review": answer})
        assert review(tmp_path, Path("a.py")) == expected
    kind, facts, texts = alone.emacs.asked[-1]
    assert (kind, facts["path"], list(texts)) == ("review", str(tmp_path / "a.py"), [])
    # What cannot be asked about may be what a rule is for.
    assert review(tmp_path, Path("a\0.py")) == ASKS


def test_a_rule_of_emacs_makes_qwen_code_ask_where_it_does_not(
    alone: Alone, tmp_path: Path
) -> None:
    asks = ASK["qwen"]
    modes: dict[str, Facts] = {"default": {}, "plan": {}}
    modes |= dict.fromkeys(["auto", "auto-edit", "yolo", "new"], asks)
    # The server of an Emacs with rules has crashed.
    crashed = rules(tmp_path, os.getpid())
    for mode, expected in modes.items():
        assert review_qwen(tmp_path, mode) == expected
    crashed.unlink()
    tmp_path.joinpath("qwen").mkdir()
    discovery(tmp_path, alone.port, alone.token)
    alone.answer({"review": "always"})
    for mode, expected in modes.items():
        assert review_qwen(tmp_path, mode) == expected
    assert len(alone.emacs.asked) == 4
    alone.answer({"review": "-"})
    assert review_qwen(tmp_path, "yolo") == {}


def test_a_plan_is_reviewed_unless_emacs_says_that_it_is_none(
    serve_alone: ServeAlone, tmp_path: Path
) -> None:
    file = tmp_path / "plans" / "a.md"
    others = [tmp_path / "plans" / "a.py", tmp_path / "plans.md" / "a.md"]
    assert review(tmp_path, file, "--plan") == {}
    # Emacs has crashed.
    crashed = discovery(tmp_path, closed_port(), "x", emacs_pid=dead_pid())
    assert review(tmp_path, file, "--plan") == {}
    crashed.unlink()
    # Only its server has.
    crashed = discovery(tmp_path, closed_port(), "x")
    assert review(tmp_path, file, "--plan") == ASKS
    for other in others:
        assert review(tmp_path, other, "--plan") == {}
    crashed.unlink()
    here = serve_alone(review_limit=0.2)
    here.linked.turn(True)
    discovery(tmp_path, here.port, here.token)
    for answer, expected in (("always", ASKS), ("-", {})):
        here.answer({"review": answer})
        assert review(tmp_path, file, "--plan") == expected
    assert review(tmp_path, Path("plans/a\0.md"), "--plan") == ASKS
    # It hangs.
    silence = asyncio.Event()

    async def silent() -> Facts:
        await silence.wait()
        return {}

    here.emacs.on_question = silent
    assert review(tmp_path, file, "--plan") == ASKS
    for other in others:
        assert review(tmp_path, other, "--plan") == {}


def hostile_environment(tmp: Path) -> dict[str, Any]:
    """Return what a file .env in a project may set, with files in ``tmp``."""
    (tmp / "evil").mkdir(exist_ok=True)
    for name in ("json", "socket", "os", "common", "bridge", "sitecustomize"):
        (tmp / "evil" / f"{name}.py").write_text("raise SystemExit(0)\n")
    evil = str(tmp / "evil")
    homes = "TMPDIR TMP TEMP HOME USERPROFILE QWEN_HOME PYTHONHOME XDG_RUNTIME_DIR"
    names = "PYTHONPATH PYTHONSTARTUP PYTHONPYCACHEPREFIX PYTHONUSERBASE PATH PWD"
    odd = "GC_TIMEOUT_FACTOR PYTHONIOENCODING PYTHONHASHSEED LC_ALL GC_LISP"
    switches = "PYTHONINSPECT PYTHONVERBOSE PYTHONOPTIMIZE PYTHONDEVMODE PYTHONUTF8"
    return {
        **dict.fromkeys(homes.split(), evil),
        **dict.fromkeys(names.split(), evil),
        **dict.fromkeys(odd.split(), "x"),
        **dict.fromkeys(switches.split(), "1"),
        "PYTHONWARNINGS": "error",
        "NODE_OPTIONS": "--no-such-option",
        "GEMINI_CLI_IDE_SERVER_PORT": "1",
    }


def test_the_environment_of_a_project_changes_no_answer(
    alone: Alone, tmp_path: Path
) -> None:
    discovery(tmp_path, alone.port, alone.token)
    alone.answer({"review": "always"})
    project, environment = tmp_path / "evil", hostile_environment(tmp_path)
    announced = json.dumps(announcement(project, project / "plans" / "a.md"))
    for option in ("--review", "--plan"):
        hook = Bridge(project, tmp_path, option, **environment)
        assert json.loads(hook.end(announced)) == ASKS
        assert alone.emacs.asked.pop()[0] == "review"


def test_a_cli_asks_if_no_emacs_says_that_it_has_no_rule(
    serve_alone: ServeAlone, tmp_path: Path
) -> None:
    file = tmp_path / "a.py"
    # Emacs was killed, and its files are left: the CLI is as if it were not linked.
    left = [
        discovery(tmp_path, closed_port(), "x", emacs_pid=dead_pid()),
        rules(tmp_path, dead_pid()),
    ]
    assert review(tmp_path, file) == {}
    for path in left:
        path.unlink()
    # It may run on another host, or in another container.
    elsewhere = rules(tmp_path, dead_pid(), host="elsewhere")
    assert review(tmp_path, file) == ASKS
    elsewhere.unlink()
    # Its server has crashed, or is about to write its first discovery file.
    with_rules = rules(tmp_path, os.getpid())
    assert review(tmp_path, file) == ASKS
    crashed = discovery(tmp_path, closed_port(), "x")
    assert review(tmp_path, file) == ASKS
    crashed.unlink()
    with_rules.unlink()

    here = serve_alone(review_limit=0.2)
    here.linked.turn(True)
    file_here = discovery(tmp_path, here.port, here.token)
    # The directory is excluded or belongs to no project.
    here.linked.roots = [str(tmp_path / "other")]
    rules(tmp_path, os.getpid(), gemini=str(file_here))
    assert review(tmp_path, file) == {}
    # The Emacs of that directory may be the one that has crashed.
    crashed = discovery(tmp_path, closed_port(), "x")
    assert review(tmp_path, file) == ASKS
    crashed.unlink()

    # It hangs.
    here.linked.roots = [str(tmp_path)]
    silence = asyncio.Event()

    async def silent() -> Facts:
        await silence.wait()
        return {}

    here.emacs.on_question = silent
    assert review(tmp_path, file) == ASKS
    file_here.unlink()

    # Its server hangs.
    with socket.create_server(("127.0.0.1", 0)) as hung:
        discovery(tmp_path, hung.getsockname()[1], "x")
        hook = Bridge(tmp_path, tmp_path, "--review")
        assert json.loads(hook.end(event(file))) == ASKS


def rules(tmp: Path, pid: int, host: str = "", **files: str) -> Path:
    """Write the file of an Emacs with rules, whose discovery files are ``files``."""
    return announce(tmp, pid, files, "rules", ppid=pid, host=host or this_host())


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def hold_answer(alone: Alone, facts: Facts) -> asyncio.Event:
    """Answer each question to Emacs with ``facts`` once the event is set."""
    go_on = asyncio.Event()

    async def slowly() -> Facts:
        await go_on.wait()
        return facts

    alone.emacs.on_question = slowly
    return go_on


def ask_slowly(
    alone: Alone, tmp_path: Path, start_bridge: Callable[..., Bridge], call_id: int
) -> tuple[asyncio.Event, Bridge]:
    """Ask a question that Emacs answers once the event is set."""
    discovery(tmp_path, alone.port, alone.token)
    alone.linked.turn(True)
    go_on = hold_answer(alone, {"rows": []})
    bridge = start_bridge(tmp_path)
    bridge.send(id=call_id, method="tools/call", params={"name": "diagnostics"})
    until(lambda: alone.emacs.asked)
    return go_on, bridge


def test_a_slow_question_does_not_keep_others_waiting(
    alone: Alone, tmp_path: Path, start_bridge: Callable[..., Bridge]
) -> None:
    go_on, bridge = ask_slowly(alone, tmp_path, start_bridge, 0)
    assert bridge.ask("ping") == {}
    alone.answer({"rows": [["/a", 0, 0]]})
    assert "no errors" in bridge.call("diagnostics")
    alone.do(go_on.set)


def test_a_question_that_is_cancelled_is_not_answered(
    alone: Alone, tmp_path: Path, start_bridge: Callable[..., Bridge]
) -> None:
    go_on, bridge = ask_slowly(alone, tmp_path, start_bridge, 7)
    for request in (8, None, [7]):
        bridge.send(method="notifications/cancelled", params={"requestId": request})
    bridge.send(method="notifications/cancelled", params={"requestId": 7})
    bridge.send(method="notifications/cancelled")
    # It waits for its threads.
    assert '"id": 7' not in bridge.end()
    alone.do(go_on.set)


RENAME = {"file": "a.py", "symbol": "one", "new_name": "uno"}


def test_a_rename_waits_for_the_user_and_ends_when_it_is_cancelled(
    serve_alone: ServeAlone, tmp_path: Path, start_bridge: Callable[..., Bridge]
) -> None:
    alone = serve_alone(ping_interval=0.05, question_limit=0.01)
    discovery(tmp_path, alone.port, alone.token)
    alone.linked.turn(True)
    go_on = hold_answer(alone, {"refused": "refused", "reason": "no"})
    bridge = start_bridge(tmp_path)
    call = {"name": "rename_symbol", "arguments": RENAME}
    bridge.send(id=1, method="tools/call", params=call)
    until(lambda: alone.emacs.asked)
    assert bridge.ask("ping") == {}
    alone.do(go_on.set)
    (part,) = bridge.read()["result"]["content"]
    assert "the user refused" in part["text"]
    assert part["text"].endswith("Reason of the user: no")
    go_on.clear()
    alone.emacs.asked.clear()
    bridge.send(id=2, method="tools/call", params=call)
    until(lambda: alone.emacs.asked)
    bridge.send(method="notifications/cancelled", params={"requestId": 2})
    withdrawn = alone.emacs.reported["withdrawn"]
    until(lambda: withdrawn)
    assert withdrawn == [alone.emacs.asked[0][1]["id"]]
    assert bridge.ask("ping") == {}


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"silence_limit": 0.01, "rename_silence_limit": 3600}, "the user refused"),
        ({"silence_limit": 3600, "rename_silence_limit": 0.1}, UNKNOWN_RENAME),
    ],
)
def test_a_rename_waits_while_emacs_is_busy_but_not_forever(
    serve_alone: ServeAlone,
    tmp_path: Path,
    start_bridge: Callable[..., Bridge],
    limits: Facts,
    text: str,
) -> None:
    alone = serve_alone(ping_interval=0.05, **limits)
    discovery(tmp_path, alone.port, alone.token)
    alone.linked.turn(True)
    pings: list[None] = []

    async def ping() -> None:
        pings.append(None)
        await asyncio.Event().wait()

    alone.emacs.ping = ping  # type: ignore[method-assign]
    go_on = hold_answer(alone, {"refused": "refused"})
    bridge = start_bridge(tmp_path)
    call = {"name": "rename_symbol", "arguments": RENAME}
    bridge.send(id=1, method="tools/call", params=call)
    until(lambda: pings)
    if text == "the user refused":
        alone.do(go_on.set)
    (part,) = bridge.read()["result"]["content"]
    assert text in part["text"]


def test_what_became_of_a_rename_is_unknown_if_emacs_ends(
    tmp_path: Path, start_bridge: Callable[..., Bridge]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        discovery(tmp_path, listener.getsockname()[1], "token")

        def end_each() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    connection.recv(65536)
                    connection.close()

        ends = threading.Thread(target=end_each)
        ends.start()
        bridge = start_bridge(tmp_path)
        for name, text in (
            ("rename_symbol", UNKNOWN_RENAME),
            ("diagnostics", program.NO_EMACS),
        ):
            assert bridge.call(name, **RENAME) == text
        bridge.end()
        listener.shutdown(socket.SHUT_RDWR)
        ends.join()


def test_the_progress_of_a_rename_is_reported_if_that_is_wanted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(program, "PROGRESS_SECONDS", 0.001)
    bridge, ended = program.Bridge("gemini"), threading.Event()
    bridge._report({}, ended)
    waiting = threading.Thread(
        target=bridge._report, args=({"progressToken": "x"}, ended)
    )
    waiting.start()
    printed: list[str] = []

    def has_two() -> bool:
        printed.extend(capsys.readouterr().out.splitlines())
        return len(printed) > 1

    until(has_two)
    ended.set()
    waiting.join()
    first, second = (json.loads(line)["params"] for line in printed[:2])
    assert (first["progressToken"], first["progress"]) == ("x", 1)
    assert second["progress"] == 2


@pytest.mark.parametrize("port", [-1, 0, 65536, 10**30, float("inf"), "x", None, [1]])
def test_a_port_that_is_none_hides_no_emacs(
    alone: Alone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: object
) -> None:
    beside(tmp_path, monkeypatch)
    good = discovery(tmp_path, alone.port, alone.token)
    for kind in ("port", "lock"):
        content: Facts = {"ideInfo": {"name": "emacs"}, "authToken": "x", "port": port}
        if kind == "lock":
            headers = {"Host": f"127.0.0.1:{port}", "Authorization": "Bearer x"}
            content = {"headers": headers, "ideName": "Emacs"}
        bad = good.with_name(f"gemini-ide-server-2-{kind}.json")
        bad.write_text(json.dumps(content))
    assert program.servers("gemini") == [(alone.port, alone.token)]


def test_a_file_of_an_emacs_that_has_exited_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside(tmp_path, monkeypatch)
    emacs = subprocess.Popen([sys.executable, "-c", ""])
    # A program that answers nothing has its port now.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        path = discovery(tmp_path, silent.getsockname()[1], "x")
        content = json.loads(path.read_text())
        assert program.servers("gemini") == [(silent.getsockname()[1], "x")]
        path.write_text(json.dumps({**content, "ppid": emacs.pid}))
        if sys.platform == "linux":  # elsewhere a zombie counts as running
            os.waitid(os.P_PID, emacs.pid, os.WEXITED | os.WNOWAIT)
            assert program.servers("gemini") == []
        emacs.wait()
        assert program.servers("gemini") == []
        # Another host may have the same home directory, and other processes.
        there = {**content, "ppid": emacs.pid, "host": "other"}
        path.write_text(json.dumps(there))
        assert program.servers("gemini") == [(silent.getsockname()[1], "x")]


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="needs Linux and root"
)
@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0"])
def test_another_user_at_the_port_gets_nothing(address: str) -> None:
    code = (
        "import os, socket, sys\n"
        "os.setuid(65534)\n"
        f"server = socket.create_server(({address!r}, 0))\n"
        "print(server.getsockname()[1], flush=True)\n"
        "print(len(server.accept()[0].recv(65536)), flush=True)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        port = int(other.stdout.readline())
        with pytest.raises(program.Refused):
            program.post(port, "token", b"text", BOUND)
        assert other.stdout.readline() == "0\n"
