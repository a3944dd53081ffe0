# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole process, between an Emacs and CLIs that are real but small."""

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fake_cli import Events, FakeCli
from fake_emacs import BOUND, NO_ANSWER, FakeEmacs, ReturnedError, Wire, plist

Start = Callable[..., FakeEmacs]
CliOf = Callable[[Any], FakeCli]


def _discovery(emacs: FakeEmacs) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(emacs.hello["discovery"]).read_text())
    return found


def _file(path: str, **more: Any) -> dict[str, Any]:
    return {"path": path, "timestamp": 1_700_000_000_000, **more}


def _stops(emacs: FakeEmacs, events: list[Events]) -> None:
    """Check that a stop rejected what was pending and left nothing behind."""
    for one in events:
        assert one.next()["method"] == "ide/diffRejected"
        assert one.end()
    assert emacs.wait() == 0
    assert not Path(emacs.hello["discovery"]).exists()
    assert not Path(emacs.hello["folder"]).exists()


def test_the_main_job_from_end_to_end(
    start: Start, cli_of: CliOf, tmp_path: Path
) -> None:
    emacs = start(roots=[str(tmp_path)])
    found = _discovery(emacs)
    assert (found["port"], found["authToken"]) == (emacs.port, emacs.token)
    assert found["workspacePath"] == os.path.realpath(tmp_path)
    cli = cli_of(emacs)
    events = cli.connect()
    assert plist(emacs.expect("sessions-update")[0][0]) == {"id": cli.session_id}
    emacs.context(
        _file("/a", active=True, line=11, character=21, **{"selected-text": "x"}),
        _file("/b"),
    )
    first, second = events.next()["params"]["workspaceState"]["openFiles"]
    assert first["cursor"] == {"line": 11, "character": 21}
    assert (first["isActive"], first["selectedText"]) == (True, "x")
    assert second == {"path": "/b", "timestamp": 1_700_000_000_000}
    cli.open_diff("/a", "proposal")
    diff_id, session, path, text = emacs.expect("open-diff")
    assert plist(session) == {"id": cli.session_id}
    assert (path, text) == ("/a", "proposal")
    emacs.call("diff-accepted", diff_id, "edited")
    assert events.next()["params"] == {"filePath": "/a", "content": "edited"}


def test_the_answer_in_the_terminal_gets_what_the_proposal_held(
    start: Start, cli_of: CliOf
) -> None:
    emacs = start()
    cli = cli_of(emacs)
    events = cli.connect()
    emacs.wire.answers["close-diff"] = lambda diff_id, reason: "edited"
    cli.open_diff("/a", "proposal")
    assert cli.close_diff("/a") == {"content": "edited"}
    assert events.nothing()


def test_ten_megabytes_go_there_and_back(start: Start, cli_of: CliOf) -> None:
    emacs = start()
    cli = cli_of(emacs)
    events = cli.connect()
    text = "ten bytes\n" * 1_000_000
    cli.open_diff("/a", text)
    diff_id, _, _, sent = emacs.expect("open-diff")
    path = Path(plist(sent)["file"])
    assert path.read_text() == text
    path.write_text(text + "edited")
    emacs.call("diff-accepted", diff_id, {"file": str(path)})
    assert events.next()["params"]["content"] == text + "edited"


def test_sixty_four_megabytes_are_accepted(start: Start, cli_of: CliOf) -> None:
    emacs = start()
    cli = cli_of(emacs)
    cli.connect()
    cli.open_diff("/a", "x" * (64 * 1024 * 1024))
    path = Path(plist(emacs.expect("open-diff")[3])["file"])
    assert path.stat().st_size == 64 * 1024 * 1024


def test_roots_rewrite_the_file_with_the_same_port_and_token(
    start: Start, tmp_path: Path
) -> None:
    emacs = start(roots=["/no/such/folder"])
    assert _discovery(emacs)["workspacePath"] == ""
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    for roots, expected in [([one, two], f"{one}{os.pathsep}{two}"), ([two], str(two))]:
        emacs.call("roots-update", [str(root) for root in roots])
        found = _discovery(emacs)
        assert found["workspacePath"] == expected
        assert (found["port"], found["authToken"]) == (emacs.port, emacs.token)


def test_a_root_that_cannot_be_written_is_said(start: Start, tmp_path: Path) -> None:
    odd = tmp_path / f"a{os.pathsep}b"
    odd.mkdir()
    emacs = start(roots=[str(odd)])
    assert str(odd) in emacs.expect("warn")[0]
    assert _discovery(emacs)["workspacePath"] == ""


def test_a_discovery_folder_that_is_refused_is_said_and_the_server_runs(
    start: Start, cli_of: CliOf, tmp_path: Path
) -> None:
    tmp = tmp_path / "planted"
    tmp.mkdir()
    (tmp / "gemini").symlink_to(tmp_path)
    emacs = start(tmp=tmp)
    assert "not a folder" in emacs.expect("warn")[0]
    assert emacs.hello["discovery"] == []
    cli_of(emacs).connect()


def test_port_and_token_are_kept(start: Start, cli_of: CliOf) -> None:
    first = start()
    cli = cli_of(first)
    events = cli.connect()
    first.call("stop")
    assert events.end()
    assert first.wait() == 0
    second = start(port=first.port, token=first.token)
    assert (second.port, second.token) == (first.port, first.token)
    events = cli.listen()
    second.context(_file("/a"))
    assert events.next()["method"] == "ide/contextUpdate"
    cli.open_diff("/a", "x")
    second.call("diff-rejected", second.expect("open-diff")[0])
    assert events.next()["method"] == "ide/diffRejected"


def test_a_port_that_is_taken_is_replaced_and_said(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        emacs = start(port=port)
        assert emacs.port != port
        assert f"Port {port} is taken" in emacs.expect("warn")[0]


def test_a_client_that_comes_early_waits(start: Start, cli_of: CliOf) -> None:
    emacs = start(is_connected=False)
    (path,) = (emacs.tmp / "gemini" / "ide").iterdir()
    found = json.loads(path.read_text())
    cli = FakeCli(found["port"], found["authToken"])
    events = cli.connect()
    cli.open_diff("/a", "x")
    emacs.connect()
    assert emacs.expect("open-diff")[2] == "/a"
    events.close()


def test_another_version_and_a_stranger_do_not_stop_the_server(start: Start) -> None:
    emacs = start(is_connected=False)
    older, stranger = Wire(emacs.epc_port), Wire(emacs.epc_port)
    with pytest.raises(ReturnedError, match="install the same version"):
        older.call("hello", emacs.secret, "0.0.1")
    with pytest.raises(ReturnedError):
        stranger.call("hello", "wrong", "0.1.0")
    assert emacs.connect().call("roots-update", []) is True
    older.close()
    stranger.close()


# Stop


def _by_call(emacs: FakeEmacs) -> None:
    assert emacs.call("stop") is True


def _by_end_of_stdin(emacs: FakeEmacs) -> None:
    assert emacs.process.stdin is not None
    emacs.process.stdin.close()


def _by_leaving(emacs: FakeEmacs) -> None:
    emacs.wire.close()


def _by_signal(number: int) -> Callable[[FakeEmacs], None]:
    return lambda emacs: os.kill(emacs.process.pid, number)


@pytest.mark.parametrize(
    "stop",
    [
        _by_call,
        _by_end_of_stdin,
        _by_leaving,
        _by_signal(signal.SIGTERM),
        _by_signal(signal.SIGHUP),
        _by_signal(signal.SIGINT),
    ],
    ids=["call", "stdin", "connection", "SIGTERM", "SIGHUP", "SIGINT"],
)
def test_every_stop_rejects_and_leaves_nothing_behind(
    start: Start, cli_of: CliOf, stop: Callable[[FakeEmacs], None]
) -> None:
    emacs = start()
    one, two = cli_of(emacs), cli_of(emacs)
    events = [one.connect(), two.connect()]
    one.open_diff("/a", "x")
    two.open_diff("/a", "y")
    stop(emacs)
    _stops(emacs, events)


def test_a_stop_answers_a_close_diff_that_waits_for_emacs(
    start: Start, cli_of: CliOf
) -> None:
    emacs = start()
    cli = cli_of(emacs)
    events = cli.connect()
    emacs.wire.answers["close-diff"] = lambda diff_id, reason: NO_ANSWER
    cli.open_diff("/a", "proposal")
    told: list[Any] = []
    asking = threading.Thread(target=lambda: told.append(cli.close_diff("/a")))
    asking.start()
    emacs.expect("close-diff")
    emacs.call("stop")
    assert events.end()
    asking.join(BOUND)
    assert told == [{"content": "proposal"}]
    assert emacs.wait() == 0


def test_a_stalled_client_delays_a_stop_for_three_seconds_at_most(
    start: Start, cli_of: CliOf
) -> None:
    emacs = start()
    cli = cli_of(emacs)
    cli.initialize()
    with socket.create_connection(("127.0.0.1", emacs.port), BOUND) as peer:
        headers = {**cli.headers(cli.session_id), "Host": f"127.0.0.1:{emacs.port}"}
        lines = [f"{key}: {value}" for key, value in headers.items()]
        head = "\r\n".join(["GET /mcp HTTP/1.1", *lines])
        peer.sendall(head.encode() + b"\r\n\r\n")
        emacs.expect("sessions-update")
        cli.open_diff("/a", "x")
        path = Path(emacs.hello["folder"]) / "large"
        path.write_text("x" * 30_000_000)
        emacs.call("diff-accepted", emacs.expect("open-diff")[0], {"file": str(path)})
        began = time.monotonic()
        emacs.call("stop")
        assert emacs.wait() == 0
        assert time.monotonic() - began < 4
    assert not Path(emacs.hello["discovery"]).exists()
    assert not Path(emacs.hello["folder"]).exists()


def test_emacs_may_leave_before_the_http_server_is_up(start: Start) -> None:
    emacs = start()
    emacs.wire.close()
    assert emacs.wait() == 0
    assert not Path(emacs.hello["discovery"]).exists()


def test_the_log_holds_neither_token_nor_secret(start: Start, cli_of: CliOf) -> None:
    emacs = start()
    cli = cli_of(emacs)
    cli.connect()
    cli.request("GET", headers={"Authorization": "Bearer wrong"})
    with pytest.raises(ReturnedError):
        emacs.call("no-such-method")
    emacs.call("stop")
    emacs.wait()
    log = "".join(emacs.log)
    assert "HTTP port" in log
    assert emacs.token not in log
    assert emacs.secret not in log
