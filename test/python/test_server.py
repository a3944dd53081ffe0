# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole process, between a small Emacs and small CLIs."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from sexpdata import Symbol

from conftest import CliOf, Start, run_python, until
from fake_cli import BOUND
from fake_emacs import NO_ANSWER, FakeEmacs, ReturnedError, plist
from scene import paths_of

RUNS = "hypercorn: Running on"


def _discovery(emacs: FakeEmacs) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(_discovery_file(emacs).read_text())
    return facts


def _discovery_file(emacs: FakeEmacs) -> Path:
    return Path(emacs.hello["discovery"][0][1])


def _left_nothing(emacs: FakeEmacs) -> None:
    assert emacs.wait() == 0
    assert not _discovery_file(emacs).exists()
    assert not list(emacs.tmp.glob("gemini-companion-*"))


@pytest.mark.skipif(sys.platform != "linux", reason="others cannot set the limit")
def test_a_lack_of_files_fills_no_log_and_passes(start: Start, cli_of: CliOf) -> None:
    emacs = start()
    cli_of(emacs).initialize()
    process = psutil.Process(emacs.process.pid)
    limits = process.rlimit(psutil.RLIMIT_NOFILE)
    process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds() + 3, limits[1]))
    address = "127.0.0.1", emacs.port
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(socket.create_connection(address, BOUND))
        emacs.epc.until("warn", lambda args: "Too many files" in args[0])
    process.rlimit(psutil.RLIMIT_NOFILE, limits)
    cli_of(emacs).initialize()
    assert len(emacs.log) < 50


def test_roots_reach_clients_and_clients_emacs(
    start: Start, cli_of: CliOf, tmp_path: Path
) -> None:
    emacs = start(file_check=0.01)
    assert _discovery(emacs)["workspacePath"] == ""
    for _ in range(2):
        # As a cleaner does it.
        shutil.rmtree(emacs.tmp / "gemini", ignore_errors=True)
        until(_discovery_file(emacs).exists)
    for roots in ([tmp_path, emacs.tmp], [tmp_path]):
        emacs.call("roots-update", [str(root) for root in roots])
        discovery = _discovery(emacs)
        assert discovery["workspacePath"] == os.pathsep.join(
            map(os.path.realpath, roots)
        )
        assert (discovery["port"], discovery["authToken"]) == (emacs.port, emacs.token)
    cli = cli_of(emacs)
    cli.connect()
    facts = {"id": cli.session_id, "pid": os.getpid(), "directory": os.getcwd()}

    def has_facts(args: list[Any]) -> bool:
        discovery = plist(args[0][0])
        return {**facts, "version": "1"}.items() <= discovery.items()

    emacs.epc.until("sessions-update", has_facts)


@pytest.mark.parametrize("has_run_elsewhere", [False, True])
def test_a_cli_that_starts_for_the_first_time_finds_emacs_soon(
    start: Start, has_run_elsewhere: bool
) -> None:
    emacs = start(file_check=3600)
    files = {name: Path(path) for name, path in emacs.hello["discovery"]}
    # As Copilot CLI, without its socket, whose name has a limit.
    file = files["qwen"]
    assert not file.parent.parent.exists()
    if has_run_elsewhere:
        file.parent.parent.mkdir(parents=True)
    emacs.call("cli-started", "qwen")
    file.parent.parent.mkdir(parents=True, exist_ok=True)
    until(file.exists)


def test_a_mount_that_does_not_answer_stops_no_session(
    start: Start, cli_of: CliOf, dead_mount: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # There, the server searches for CLIs that have not run.
    monkeypatch.setenv("PATH", str(dead_mount))
    monkeypatch.setenv("QWEN_HOME", str(dead_mount / "qwen"))
    emacs = start(file_check=0.1, mount_limit=0.1)
    emacs.epc.until("warn", lambda args: "answer (PATH, Qwen Code)" in args[0])
    cli = cli_of(emacs)
    events = cli.connect()
    for number in range(3):
        emacs.call("roots-update", [str(dead_mount / "project")])
        emacs.context({"path": f"/{number}", "timestamp": 1})
        assert paths_of(events.next()) == [f"/{number}"]
        cli.open_diff(f"/{number}", "x")
        assert emacs.expect("open-diff")[2] == f"/{number}"
    # Only programs of CLIs that have never run cannot be found.
    assert _discovery(emacs)["workspacePath"] == str(dead_mount / "project")
    emacs.call("stop")
    _left_nothing(emacs)


def test_what_cannot_be_written_is_reported_and_the_server_runs(
    start: Start, tmp_path: Path
) -> None:
    tmp = tmp_path / "planted"
    tmp.mkdir()
    (tmp / "gemini").symlink_to(tmp_path)
    emacs = start(tmp=tmp, log_file="/dev/null/server.log")
    assert "Cannot write the log" in emacs.expect("warn")[0]
    assert "not a directory" in emacs.expect("warn")[0]
    assert not _discovery_file(emacs).exists()
    assert emacs.call("stop") is True
    assert emacs.wait() == 0
    # Without a client, it is not even loaded.
    assert RUNS not in "".join(emacs.log)


def test_a_socket_that_cannot_be_removed_leaves_nothing_else(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The name leaves room for that of a socket.
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setenv("COPILOT_HOME", short)
        emacs = start()
        emacs.call("serve")
        (path,) = Path(short).glob("ide/*/*.sock")
        path.unlink()
        path.mkdir()
        emacs.call("stop")
        _left_nothing(emacs)
        assert not list(Path(short).glob("ide/*.lock"))


def test_a_socket_that_cannot_be_made_is_named_in_the_warning(
    start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setenv("COPILOT_HOME", str(long))
    emacs = start()
    emacs.call("serve")
    warning = emacs.expect("warn")[0]
    assert f"the socket {long}/ide/" in warning
    assert f"{emacs.process.pid}.sock: " in warning
    assert "COPILOT_HOME" in warning


def test_a_token_that_may_be_known_stays_ours(start: Start, cli_of: CliOf) -> None:
    first = start()
    events = cli_of(first).connect()
    first.process.kill()
    # A client that finds an error in the stream counts as disconnected.
    assert events.end()
    first.wait()
    second = start(port=first.port, token=first.token, is_exposed=True)
    assert second.hello["is-exposed"]
    cli_of(second).connect()


def test_a_port_that_is_taken_is_replaced_with_the_token(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        emacs = start(port=port, token="a-token")
        assert emacs.port != port
        assert emacs.token != "a-token"
        assert f"Port {port} is in use" in emacs.expect("warn")[0]


@pytest.mark.parametrize(
    ("method", "is_answered"), [("stop", False), ("hand-over", True)]
)
def test_a_stop_answers_a_close_diff_that_waits_for_emacs(
    start: Start, cli_of: CliOf, method: str, is_answered: bool
) -> None:
    emacs = start()
    cli = cli_of(emacs)
    events = cli.connect()
    emacs.epc.answers["close-diff"] = lambda diff_id, reason: NO_ANSWER
    cli.open_diff("/a", "proposal")
    answers: list[Any] = []
    asking = threading.Thread(target=lambda: answers.append(cli.close_diff("/a")))
    asking.start()
    emacs.expect("close-diff")
    # A server that stops waits for an answer for a moment only.
    (uid,) = emacs.epc.unanswered
    answer = [Symbol("return"), uid, "edited"]
    emacs.send_call(method, *[answer] * is_answered)
    assert events.end()
    asking.join(BOUND)
    assert answers == [{"content": "edited" if is_answered else "proposal"}]
    assert emacs.wait() == 0


@pytest.mark.parametrize("method", ["stop", "hand-over"])
def test_a_review_that_emacs_opens_late_is_no_failure(
    start: Start, cli_of: CliOf, method: str
) -> None:
    emacs = start(request_limit=0.01, end_limit=0.01)
    cli = cli_of(emacs)
    cli.connect()
    emacs.epc.answers["open-diff"] = lambda *_: NO_ANSWER
    with ThreadPoolExecutor() as pool:
        opening = pool.submit(cli.open_diff, "/a", "x")
        emacs.expect("open-diff")
        emacs.call(method)
        opening.result(BOUND)
    assert emacs.wait() == 0
    assert "warn" not in [name for name, _ in emacs.epc.calls.queue]


def _succeed(start: Start, first: FakeEmacs, **how: Any) -> FakeEmacs:
    """Start the successor of ``first``, which does not serve yet."""
    line = {"port": first.port, "token": first.token, "is_successor": True}
    second = start(False, tmp=first.tmp, **line, **how)
    second.hello_only()
    return second


def test_a_successor_takes_over_without_a_gap(start: Start, cli_of: CliOf) -> None:
    first = start()
    cli = cli_of(first)
    events = cli.connect()
    cli.open_diff("/a", "proposal")
    shutil.rmtree(first.tmp)
    # Its clients must not wait while it loads what serves them.
    second = _succeed(start, first, forked=False)
    assert (second.port, second.token) == (first.port, first.token)
    diff_id, session, path, text = first.expect("open-diff")
    first.call("hand-over")
    assert events.end()
    assert events.nothing()
    assert first.wait() == 0
    discovery = _discovery(second)
    assert (discovery["port"], discovery["authToken"]) == (first.port, first.token)
    with ThreadPoolExecutor() as pool:
        closing = pool.submit(cli.close_diff, "/a")
        second.call("adopt-diff", diff_id, session, path, text)
        second.call("adopt-diff", 7, session, "/b", "x")
        second.epc.answers["close-diff"] = lambda diff_id, reason: "edited"
        second.call("serve")
        assert closing.result(BOUND) == {"content": "edited"}
    events = cli.listen()
    second.call("diff-accepted", 7, "edited")
    assert events.next()["params"] == {"filePath": "/b", "content": "edited"}
    cli.open_diff("/c", "x")
    assert second.expect("open-diff")[0] not in (diff_id, 7)


def test_a_server_without_clients_leaves_all_to_its_successor(
    start: Start, cli_of: CliOf
) -> None:
    first = start(end_limit=BOUND, exit_limit=BOUND)
    first.epc.answers["outcome-written"] = lambda *_: NO_ANSWER
    second = _succeed(start, first)
    second.call("serve")
    first.call("hand-over")
    # It ends once this is answered.
    first.expect("outcome-written")
    for _ in range(20):
        cli_of(second).initialize()
    first.epc.send([Symbol("return"), *first.epc.unanswered, True])
    assert first.wait() == 0


def test_a_stop_during_a_hand_over_rejects(start: Start, cli_of: CliOf) -> None:
    emacs = start()
    cli = cli_of(emacs)
    events = cli.connect()
    cli.open_diff("/a", "x")
    # A connection on which nothing was sent.
    with socket.create_connection(("127.0.0.1", emacs.port), BOUND):
        successor = _succeed(start, emacs)
        # It waits for its successor, so it finds both at once.
        emacs.process.send_signal(signal.SIGSTOP)
        emacs.send_call("hand-over")
        emacs.hang_up()
        emacs.process.send_signal(signal.SIGCONT)
        successor.hang_up()
        assert events.next()["method"] == "ide/diffRejected"
        assert events.end()
        _left_nothing(emacs)


def test_a_hand_over_after_a_stop_changes_nothing(start: Start, cli_of: CliOf) -> None:
    emacs = start()
    cli = cli_of(emacs)
    events = cli.connect()
    cli.open_diff("/a", "x")
    emacs.send_call("stop", [Symbol("call"), 1, Symbol("hand-over"), []])
    assert events.next()["method"] == "ide/diffRejected"
    _left_nothing(emacs)


@pytest.mark.parametrize("limits", [{}, {"end_limit": BOUND, "exit_limit": 2}])
def test_a_stalled_client_does_not_prevent_a_stop(
    limits: dict[str, float], start: Start, cli_of: CliOf
) -> None:
    emacs = start(**limits)
    cli = cli_of(emacs)
    cli.initialize()
    with cli.stall():
        emacs.expect("sessions-update")
        cli.open_diff("/a", "x")
        path = Path(emacs.hello["files"] + "large")
        path.write_text("x" * 30_000_000)
        emacs.call("diff-accepted", emacs.expect("open-diff")[0], {"file": str(path)})
        Path(emacs.hello["files"] + "unread").touch()
        emacs.call("stop")
        _left_nothing(emacs)


@pytest.mark.parametrize("limits", [{}, {"exit_limit": 0}])
def test_an_emacs_that_closes_its_pipes_before_it_exits_leaves_no_copies(
    start: Start, limits: dict[str, float]
) -> None:
    with subprocess.Popen(["sleep", "1000"]) as dying:
        emacs = start(emacs_pid=dying.pid, **limits)
        files = emacs.hello["files"].replace(f"-{emacs.process.pid}-", f"-{dying.pid}-")
        copies = Path(files + "copies")
        for number in range(300):
            (copies / "home" / str(number)).mkdir(parents=True)
        emacs.hang_up()
        until(lambda: not _discovery_file(emacs).exists())
        dying.kill()
    _left_nothing(emacs)


def test_the_log_has_every_event_but_no_text_and_no_secret(
    start: Start, cli_of: CliOf, tmp_path: Path
) -> None:
    path = tmp_path / "new" / "server.log"
    emacs = start(log_file=str(path))
    cli = cli_of(emacs)
    events = cli.connect()
    emacs.context({"path": "/a", "timestamp": 1, "selected-text": "a selected text"})
    cli.ask("tools/list", {})
    cli.open_diff("/a", "a proposed text")
    emacs.call("diff-accepted", emacs.expect("open-diff")[0], "an edited text")
    while events.next()["method"] != "ide/diffAccepted":
        pass
    emacs.epc.answers["close-diff"] = lambda diff_id, reason: "a held text"
    cli.open_diff("/b", "a proposed text")
    cli.close_diff("/b")
    cli.request("GET", headers={"Authorization": "Bearer wrong"})
    with pytest.raises(ReturnedError):
        emacs.call("no-such-method")
    emacs.call("stop")
    assert emacs.wait() == 0
    log = path.read_text()
    for event in (
        "Emacs is connected",
        f"HTTP in: gemini {cli.session_id[:8]} GET",
        f"Diff: gemini {cli.session_id[:8]} 15 characters",
        f"Diff closed: gemini {cli.session_id[:8]} 11 characters",
        "HTTP out: 401 Unauthorized",
    ):
        assert event in log
    stderr = "".join(emacs.log)
    assert RUNS in stderr
    assert " DEBUG " not in stderr
    for hidden in (emacs.token, emacs.secret, " text"):
        assert hidden not in log
        assert hidden not in stderr


def test_what_is_made_is_private_whatever_the_umask(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "new" / "qwen"
    monkeypatch.setenv("QWEN_HOME", str(home))
    (tmp_path / "qwen").touch(0o700)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    paths_before = set(tmp_path.rglob("*"))
    previous = os.umask(0)
    try:
        emacs = start(tmp=tmp_path, log_file=str(tmp_path / "log" / "of" / "server"))
    finally:
        os.umask(previous)
    until((home / "ide" / f"{emacs.port}.lock").exists)
    made = set(tmp_path.rglob("*")) - paths_before
    assert {"gemini", "new", "of", "server"} < {path.name for path in made}
    assert {path.name for path in made if path.stat().st_mode & 0o077} == set()


def test_nothing_is_loaded_before_it_is_needed() -> None:
    program = """
import sys
from gemini_companion_epc import server

def loaded(*names):
    return [name for name in names if name in sys.modules]

print("the port:", loaded("mcp", "hypercorn", "pydantic", "starlette", "anyio"))
server.load_http()
from gemini_companion_epc.linked import Linked
from mcp_types import CallToolResult, ElicitResult
late = "gemini_companion_epc.outpost", "gemini_companion_epc.questions"
linked = Linked(None, None, None)
print("a client:", loaded(*late), linked.questions)
CallToolResult(content=[])
complete = CallToolResult.__pydantic_complete__, ElicitResult.__pydantic_complete__
print("a model:", *complete)
linked.turn(True)
print("links:", loaded(*late), type(linked.questions).__name__)
linked.turn(False)
print("none:", linked.questions)
"""
    assert run_python("-c", program).stdout.splitlines() == [
        "the port: []",
        "a client: [] None",
        "a model: True False",
        "links: ['gemini_companion_epc.questions'] Questions",
        "none: None",
    ]


@pytest.mark.anyio
async def test_a_client_of_a_later_version_goes_back_to_one_that_is_spoken(
    start: Start,
) -> None:
    emacs = start()
    headers = {"Authorization": f"Bearer {emacs.token}"}
    url = f"http://127.0.0.1:{emacs.port}/mcp"
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode="auto") as client:
            assert client.protocol_version == "2025-11-25"
            names = [tool.name for tool in (await client.list_tools()).tools]
    assert "openDiff" in names
