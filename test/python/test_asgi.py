# SPDX-License-Identifier: GPL-3.0-or-later
import json
import re
import socket
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Alone, CliOf, ServeAlone, Start, until
from fake_cli import BOUND, PING, FakeCli
from gemini_companion_epc.asgi import without_lone_surrogates
from gemini_companion_epc.types import clean
from scene import context_of, paths_of


@pytest.mark.skipif(sys.platform != "linux", reason="others have one address")
def test_another_address_here_is_unauthorized(alone: Alone, cli: FakeCli) -> None:
    address = "127.0.0.1", alone.port
    with socket.create_connection(address, BOUND, ("127.0.0.2", 0)) as peer:
        assert cli.request("POST", json.dumps(PING), peer=peer)[0] == 401


@pytest.mark.parametrize("path", ["/mcp", "/tools"])
def test_a_body_that_is_too_large_is_refused(
    alone: Alone, cli: FakeCli, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("gemini_companion_epc.asgi.LARGEST_BODY", 100_000)
    alone.linked.turn(True)
    for size, is_refused in ((100_000, False), (100_001, True), (10_000_000, True)):
        status = cli.request("POST", b" " * size, path=path)[0]
        assert (status == 413) == is_refused


@pytest.mark.skipif(sys.platform != "linux", reason="others have no such file")
def test_a_body_that_is_too_large_is_not_kept(start: Start, cli_of: CliOf) -> None:
    emacs = start()
    cli = cli_of(emacs)
    cli.initialize()
    status = Path("/proc", str(emacs.process.pid), "status")

    def most() -> int:
        (size,) = re.findall(r"VmHWM:\s+(\d+) kB", status.read_text())
        return int(size) // 1024

    before = most()
    assert cli.request("POST", bytes(400_000_000))[0] == 413
    assert most() < before + 200


def test_a_body_that_is_no_request_is_bad(cli: FakeCli) -> None:
    status, _, answer = cli.post({**PING, "method": "initialize", "params": {}})
    assert (status, answer.split()[0::4]) == (400, [b"Mcp-Session-Id", b"initialize"])
    batch = json.dumps([PING])
    for body in ("", "{", "[]", "1", '"a"', batch, "\xff", '{"id": 1}', 60000 * "["):
        for session_id in ("", "some"):
            headers = cli.headers(session_id)
            assert cli.request("POST", body.encode("latin-1"), headers)[0] == 400


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (rb'"\ud83d\ude00 \uD83D\uDE00"', "\U0001f600 \U0001f600"),
        (rb'"\uDFFFx \ude00\ud83d"', "\ufffdx \ufffd\ufffd"),
        (rb'"\ud800\ud83d\ude00"', "\ufffd\U0001f600"),
        (rb'"\\ud800 \\\ud800"', "\\ud800 \\\ufffd"),
    ],
)
def test_lone_surrogates_only_are_rewritten(body: bytes, expected: str) -> None:
    assert json.loads(without_lone_surrogates(body)) == expected


@given(st.text(st.characters()))
def test_any_text_comes_out_clean(text: str) -> None:
    body = json.dumps({text: [text]}).encode()
    value = json.loads(without_lone_surrogates(body))
    assert value == {clean(text): [clean(text)]}
    assert without_lone_surrogates(body).decode()


def test_a_stream_goes_on_until_another_opens(alone: Alone, cli: FakeCli) -> None:
    first = cli.connect()
    alone.do(alone.sessions.broadcast, context_of("/a"))
    assert first.response.getheader("content-type") == "text/event-stream"
    assert first.response.getheader("mcp-session-id") == cli.session_id
    assert first.response.getheader("connection") == "close"
    assert paths_of(first.next()) == ["/a"]
    alone.do(alone.sessions.broadcast, context_of("/b"))
    assert paths_of(first.next()) == ["/b"]
    second = cli.listen()
    assert first.end()
    assert second.nothing()
    alone.do(alone.sessions.broadcast, context_of("/b"))
    assert paths_of(second.next()) == ["/b"]
    until(lambda: alone.emacs.sessions[-1] == [cli.session_id])


def test_a_silent_stream_has_comments(serve_alone: ServeAlone, cli_of: CliOf) -> None:
    alone = serve_alone(comment_interval=0.02)
    events = cli_of(alone).connect()
    until(lambda: events.comments >= 3)
    assert events.nothing()


def test_a_stalled_client_delays_no_other(alone: Alone, cli_of: CliOf) -> None:
    stalled, awake = cli_of(alone), cli_of(alone)
    stalled.initialize()
    with stalled.stall() as peer:
        until(lambda: alone.emacs.sessions)
        stalled.open_diff("/a", "x")
        alone.do(alone.diffs.decide, 1, "x" * 20_000_000)
        events = awake.connect()
        for number in range(50):
            alone.do(alone.sessions.broadcast, context_of(f"/{number}"))
            assert paths_of(events.next()) == [f"/{number}"]
        peer.shutdown(socket.SHUT_RDWR)
    until(lambda: alone.emacs.sessions[-1] == [awake.session_id])


@pytest.mark.parametrize(
    "request_head",
    [
        "GET /mcp HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
        "GET /mcp HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n",
    ],
)
def test_no_other_protocol_is_spoken(alone: Alone, request_head: str) -> None:
    with socket.create_connection(("127.0.0.1", alone.port), BOUND) as peer:
        peer.sendall(f"{request_head}Host: 127.0.0.1\r\n\r\n".encode())
        answer = b"".join(iter(lambda: peer.recv(100), b""))
        assert answer[:12] in (b"HTTP/1.1 403", b"HTTP/1.1 400")


def test_an_unfinished_request_is_closed(serve_alone: ServeAlone) -> None:
    alone = serve_alone(headers_time=0.05)
    with socket.create_connection(("127.0.0.1", alone.port), BOUND) as peer:
        peer.sendall(b"POST /mcp HTTP/1.1\r\n")
        assert peer.recv(1) == b""
