# SPDX-License-Identifier: GPL-3.0-or-later
import http.client
import json
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import BOUND, Alone, until
from fake_cli import VERSION, FakeCli
from gemini_companion_epc.asgi import without_lone_surrogates
from gemini_companion_epc.connections import MAX_WAITING
from gemini_companion_epc.types import clean

CliOf = Callable[[Any], FakeCli]
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def _context(path: str) -> list[dict[str, Any]]:
    return [{"path": path, "timestamp": 1}]


def _paths(event: dict[str, Any]) -> list[str]:
    assert event["method"] == "ide/contextUpdate"
    files = event["params"]["workspaceState"]["openFiles"]
    return [file["path"] for file in files]


# Authentication


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic {0}", "{0}", "bearer {0}"],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT"])
def test_anything_but_the_bearer_is_unauthorized(
    alone: Alone, cli_of: CliOf, authorization: str | None, method: str
) -> None:
    cli = cli_of(alone)
    headers = {"Content-Type": "application/json"}
    if authorization is not None:
        headers["Authorization"] = authorization.format(alone.token)
    for path in ("/mcp", "/other"):
        status, _, body = cli.request(method, b"{}", headers, path)
        assert (status, body) == (401, b"Unauthorized")


@pytest.mark.skipif(sys.platform != "linux", reason="others have one address")
def test_another_address_of_this_machine_is_unauthorized(
    alone: Alone, cli_of: CliOf
) -> None:
    cli = cli_of(alone)
    address = "127.0.0.1", alone.port
    with socket.create_connection(address, BOUND, ("127.0.0.2", 0)) as peer:
        assert cli.request("POST", json.dumps(PING), peer=peer)[0] == 401


@pytest.mark.parametrize("origin", ["null", "http://localhost", "https://evil"])
def test_any_origin_is_forbidden(alone: Alone, cli_of: CliOf, origin: str) -> None:
    cli = cli_of(alone)
    headers = {**cli.headers(), "Origin": origin}
    assert cli.request("POST", b"{}", headers)[0] == 403


@pytest.mark.parametrize(
    "host", ["evil", "evil:{0}", "127.0.0.1", "127.0.0.1:1", "[::1]:{0}"]
)
def test_an_unknown_host_is_forbidden(alone: Alone, cli_of: CliOf, host: str) -> None:
    cli = cli_of(alone)
    headers = {**cli.headers(), "Host": host.format(alone.port)}
    assert cli.request("POST", b"{}", headers)[0] == 403


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "host.docker.internal"])
def test_the_hosts_that_the_client_dials_are_let_in(
    alone: Alone, cli_of: CliOf, host: str
) -> None:
    cli = cli_of(alone)
    headers = {**cli.headers("one"), "Host": f"{host}:{alone.port}"}
    assert cli.request("POST", json.dumps(PING), headers)[0] == 200


@pytest.mark.parametrize("version", ["13", "12"])
def test_a_websocket_is_refused(alone: Alone, version: str) -> None:
    request = (
        "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Version: {version}\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", alone.port), BOUND) as peer:
        peer.sendall(request.encode())
        assert b" 403 " in b"".join(iter(lambda: peer.recv(100), b""))


def _connect(server: Alone) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), BOUND)


def _is_open(peer: socket.socket) -> bool:
    peer.settimeout(0.05)
    try:
        return peer.recv(1) != b""
    except TimeoutError:
        return True


def test_a_flood_of_connections_excludes_no_client(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    events = cli.connect()
    with ExitStack() as strangers:
        for number in range(MAX_WAITING + 50):
            newest = strangers.enter_context(_connect(alone))
            newest.sendall(b"POST /mcp HTTP/1.1\r\n" if number % 2 else b"")
        assert cli.ask("ping", {})["result"] == {}
        assert _is_open(newest)
    alone.do(alone.sessions.broadcast, _context("/a"))
    assert _paths(events.next()) == ["/a"]


def test_the_oldest_of_too_many_connections_is_closed(alone: Alone) -> None:
    with _connect(alone) as oldest, ExitStack() as strangers:
        for _ in range(MAX_WAITING):
            newest = strangers.enter_context(_connect(alone))
        until(lambda: not _is_open(oldest))
        assert _is_open(newest)


def test_a_connection_without_a_request_is_closed_in_time(
    serve_alone: Callable[..., Alone],
) -> None:
    alone = serve_alone(headers_time=0.05)
    with socket.create_connection(("127.0.0.1", alone.port), BOUND) as peer:
        peer.sendall(b"POST /mcp HTTP/1.1\r\n")
        assert peer.recv(1) == b""


def test_a_connection_that_the_client_has_closed_goes_at_once(
    serve_alone: Callable[..., Alone], cli_of: CliOf
) -> None:
    alone = serve_alone(headers_time=1000)
    cli = cli_of(alone)
    cli.initialize()
    process = psutil.Process()
    until(lambda: not _accepted(process, alone.port))
    for _ in range(20):
        assert cli.ask("ping", {})["result"] == {}
    until(lambda: not _accepted(process, alone.port))


def _accepted(process: psutil.Process, port: int) -> list[Any]:
    return [
        one
        for one in process.net_connections(kind="tcp4")
        if one.laddr.port == port and one.raddr
    ]


def test_connections_that_have_ended_do_not_count(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    with _connect(alone) as waiting:
        for _ in range(MAX_WAITING + 50):
            assert cli.request("GET", headers={})[0] == 401
        assert _is_open(waiting)


@pytest.mark.parametrize(
    "request_head",
    [
        "GET /mcp HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n",
    ],
)
def test_no_client_is_upgraded_to_http_2(alone: Alone, request_head: str) -> None:
    with socket.create_connection(("127.0.0.1", alone.port), 5) as peer:
        peer.sendall(request_head.encode() + b"Host: 127.0.0.1\r\n\r\n")
        assert peer.recv(12) in (b"HTTP/1.1 403", b"HTTP/1.1 400")


# Requests


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/", 404),
        ("POST", "/mcp/", 404),
        ("PUT", "/mcp", 405),
        ("HEAD", "/mcp", 405),
    ],
)
def test_only_the_path_and_methods_of_the_client_exist(
    alone: Alone, cli_of: CliOf, method: str, path: str, expected: int
) -> None:
    status, headers, _ = cli_of(alone).request(method, path=path)
    assert status == expected
    assert (status != 405) or headers["allow"] == "GET, POST, DELETE"


@pytest.mark.parametrize(
    "body",
    ["", "{", "[]", "1", "{}", '"a"', f"[{json.dumps(PING)}]", "\xff", '{"id": 1}'],
)
@pytest.mark.parametrize("session_id", ["", "some"])
def test_a_body_that_is_no_request_is_bad(
    alone: Alone, cli_of: CliOf, body: str, session_id: str
) -> None:
    cli = cli_of(alone)
    headers = cli.headers(session_id)
    assert cli.request("POST", body.encode("latin-1"), headers)[0] == 400


@pytest.mark.parametrize(
    ("method", "message", "headers", "status"),
    [
        ("POST", PING, {}, 200),
        ("POST", {"jsonrpc": "2.0", "method": "notifications/initialized"}, {}, 202),
        ("POST", [], {}, 400),
        ("POST", PING, {"Authorization": "Bearer wrong"}, 401),
        ("DELETE", PING, {}, 404),
    ],
)
def test_every_answer_closes_its_connection(
    alone: Alone,
    cli_of: CliOf,
    method: str,
    message: Any,
    headers: dict[str, str],
    status: int,
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", alone.port, timeout=BOUND)
    headers = {**cli_of(alone).headers("some"), **headers}
    connection.request(method, "/mcp", json.dumps(message), headers)
    peer = connection.sock
    assert peer is not None
    with peer, peer.makefile("rb") as raw:
        # The stream ends although the client does not close its side.
        head, _, _ = raw.read().partition(b"\r\n\r\n")
    assert f" {status} ".encode() in head
    assert b"connection: close" in head.lower().split(b"\r\n")


def test_the_connection_of_an_event_stream_is_not_kept(
    alone: Alone, cli_of: CliOf
) -> None:
    events = cli_of(alone).connect()
    assert events.response.status == 200
    assert events.response.getheader("Connection") == "close"


def test_deep_nesting_is_bad(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    assert cli.request("POST", b"[" * 60000, cli.headers("some"))[0] == 400


def test_a_body_must_be_json(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    headers = {**cli.headers("some"), "Content-Type": "text/plain"}
    assert cli.request("POST", json.dumps(PING), headers)[0] == 415


@pytest.mark.parametrize("version", ["2026-07-28", "nonsense", ""])
def test_a_later_era_of_the_protocol_is_refused(
    alone: Alone, cli_of: CliOf, version: str
) -> None:
    cli = cli_of(alone)
    headers = {**cli.headers("some"), "Mcp-Protocol-Version": version}
    assert cli.request("POST", json.dumps(PING), headers)[0] == 400
    assert cli.request("GET", None, headers)[0] == 400


def test_a_large_body_is_refused_before_it_is_read(
    serve_alone: Callable[..., Alone], cli_of: CliOf
) -> None:
    alone = serve_alone(body_limit=1000)
    cli = cli_of(alone)
    text = "x" * 5_000_000
    assert cli.request("POST", text, cli.headers("some"))[0] == 413
    cli.session_id = "some"
    assert cli.ask("ping", {})["result"] == {}


def test_a_body_without_a_length_is_limited_too(
    serve_alone: Callable[..., Alone], cli_of: CliOf
) -> None:
    alone = serve_alone(body_limit=1000)
    cli = cli_of(alone)
    headers = cli.headers("some")
    chunks: Any = (b"x" * 600 for _ in range(3))
    assert cli.request("POST", chunks, headers)[0] == 413


def test_a_refusal_of_a_large_body_reaches_a_client_without_the_bearer(
    alone: Alone, cli_of: CliOf
) -> None:
    cli = cli_of(alone)
    status, _, body = cli.request("POST", "x" * 5_000_000, {})
    assert (status, body) == (401, b"Unauthorized")


def test_a_body_must_come_in_time(
    serve_alone: Callable[..., Alone], cli_of: CliOf
) -> None:
    alone = serve_alone(body_time=0.05)
    cli = cli_of(alone)
    lines = [f"{key}: {value}" for key, value in cli.headers("some").items()]
    head = "\r\n".join(["POST /mcp HTTP/1.1", f"Host: 127.0.0.1:{alone.port}", *lines])
    with socket.create_connection(("127.0.0.1", alone.port), 5) as peer:
        peer.sendall(head.encode() + b"\r\nContent-Length: 10\r\n\r\n{")
        assert b" 408 " in peer.recv(100)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (rb'"\ud83d\ude00"', rb'"\ud83d\ude00"'),
        (rb'"\uD83D\uDE00"', rb'"\uD83D\uDE00"'),
        (rb'"\ud800"', rb'"\ufffd"'),
        (rb'"\uDFFFx"', rb'"\ufffdx"'),
        (rb'"\ud800\ud83d\ude00"', rb'"\ufffd\ud83d\ude00"'),
        (rb'"\ude00\ud83d"', rb'"\ufffd\ufffd"'),
        (rb'"\\ud800"', rb'"\\ud800"'),
        (rb'"\\\ud800"', rb'"\\\ufffd"'),
        (rb'"\n\"\ud800"', rb'"\n\"\ufffd"'),
        (rb'"\ud7ff\ue000"', rb'"\ud7ff\ue000"'),
    ],
)
def test_lone_surrogates_are_rewritten_and_pairs_survive(
    body: bytes, expected: bytes
) -> None:
    assert without_lone_surrogates(body) == expected
    json.loads(expected)


@given(st.text(st.characters()))
def test_any_text_comes_out_clean(text: str) -> None:
    body = json.dumps({"text": text, text: 1}).encode()
    found = json.loads(without_lone_surrogates(body))
    assert found["text"] == clean(text)
    assert without_lone_surrogates(body).decode("ascii")


# Sessions


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("2024-10-07", "2025-06-18"),
        ("2025-11-25", "2025-06-18"),
        ("2026-07-28", "2025-06-18"),
    ],
)
def test_no_answer_is_newer_than_the_client(
    alone: Alone, cli_of: CliOf, asked: str, answered: str
) -> None:
    cli = cli_of(alone)
    result = cli.initialize(asked)["result"]
    assert result["protocolVersion"] == answered
    assert result["serverInfo"]["name"] == "gemini-companion"
    assert len(cli.session_id) == 32


@pytest.mark.parametrize(
    ("client", "version"),
    [
        ({"name": "cli", "version": "0.61.0"}, "0.61.0"),
        ({"name": "cli", "version": "0.62.0-nightly.1+a"}, "0.62.0-nightly.1+a"),
        ({"name": "cli", "version": "a b"}, None),
        ({"name": "cli", "version": "1" * 65}, None),
        ({"name": "cli", "version": ""}, None),
    ],
)
def test_version_and_begin_of_a_session_are_reported_to_emacs(
    alone: Alone, cli_of: CliOf, client: dict[str, str], version: str | None
) -> None:
    begin = int(1000 * time.time())
    cli = cli_of(alone)
    params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}
    cli.ask("initialize", params)
    cli.open_diff("/a", "x")
    facts = alone.emacs.facts
    assert facts.get("version") == version
    assert begin <= facts["since"] <= 1000 * time.time()


def test_a_connection_goes_as_the_client_does_it(alone: Alone, cli_of: CliOf) -> None:
    alone.do(alone.sessions.broadcast, _context("/a"))
    cli = cli_of(alone)
    events = cli.connect()
    assert events.response.status == 200
    assert events.response.getheader("content-type") == "text/event-stream"
    assert events.response.getheader("mcp-session-id") == cli.session_id
    assert _paths(events.next()) == ["/a"]
    alone.do(alone.sessions.broadcast, _context("/b"))
    assert _paths(events.next()) == ["/b"]
    alone.emacs.until(lambda emacs: emacs.sessions == [[cli.session_id]])


def test_two_clients_have_two_sessions(alone: Alone, cli_of: CliOf) -> None:
    one, two = cli_of(alone), cli_of(alone)
    one_events, two_events = one.connect(), two.connect()
    assert one.session_id != two.session_id
    one.open_diff("/same", "1")
    two.open_diff("/same", "2")
    alone.do(alone.diffs.accept, 2, "second")
    alone.do(alone.diffs.reject, 1)
    assert two_events.next()["params"] == {"filePath": "/same", "content": "second"}
    assert one_events.next()["method"] == "ide/diffRejected"
    assert one_events.nothing()
    assert two_events.nothing()


def test_an_unknown_session_is_taken_in(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    cli.session_id = "from-before-a-restart"
    assert cli.ask("ping", {})["result"] == {}
    alone.do(alone.sessions.broadcast, _context("/a"))
    assert _paths(cli.listen().next()) == ["/a"]
    cli.open_diff("/a", "x")
    assert alone.emacs.opened[0].session_id == "from-before-a-restart"


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize("session_id", [None, "a b", "x" * 129])
def test_a_request_without_a_proper_session_is_bad(
    alone: Alone, cli_of: CliOf, method: str, session_id: str | None
) -> None:
    cli = cli_of(alone)
    headers = cli.headers()
    if session_id is not None:
        headers["Mcp-Session-Id"] = session_id
    assert cli.request(method, json.dumps(PING), headers)[0] == 400


def test_delete_ends_the_session(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    events = cli.connect()
    cli.open_diff("/a", "x")
    assert cli.request("DELETE")[0] == 200
    assert events.end()
    alone.emacs.until(lambda emacs: emacs.closed == [(1, "disconnected")])
    assert cli.request("DELETE")[0] == 404


def test_a_second_stream_takes_the_place_of_the_first(
    alone: Alone, cli_of: CliOf
) -> None:
    alone.do(alone.sessions.broadcast, _context("/a"))
    cli = cli_of(alone)
    first = cli.connect()
    second = cli.listen()
    assert second.response.status == 200
    assert first.end()
    assert _paths(second.next()) == ["/a"]
    cli.open_diff("/a", "x")
    alone.do(alone.diffs.reject, 1)
    assert second.next()["method"] == "ide/diffRejected"


def test_outcomes_wait_for_the_next_stream(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    events = cli.connect()
    for path in ("/a", "/b"):
        cli.open_diff(path, "x")
    events.close()
    alone.emacs.until(lambda emacs: emacs.sessions[-1] == [])
    alone.do(alone.diffs.accept, 2, "b")
    alone.do(alone.diffs.reject, 1)
    events = cli.listen()
    assert events.next()["params"] == {"filePath": "/b", "content": "b"}
    assert events.next()["params"] == {"filePath": "/a"}
    assert events.nothing()


def test_a_dead_client_takes_its_diffs_along(
    serve_alone: Callable[..., Alone], cli_of: CliOf
) -> None:
    alone = serve_alone(review_grace=0.05, session_grace=0.1)
    cli = cli_of(alone)
    events = cli.connect()
    cli.open_diff("/a", "x")
    events.close()
    alone.emacs.until(lambda emacs: emacs.closed == [(1, "disconnected")])
    alone.emacs.until(lambda emacs: emacs.sessions[-1] == [])


def test_a_silent_stream_has_comments(
    serve_alone: Callable[..., Alone], cli_of: CliOf
) -> None:
    alone = serve_alone(comment_interval=0.02)
    events = cli_of(alone).connect()
    assert events.nothing()
    assert events.comments >= 3


def test_a_stalled_client_delays_no_other(alone: Alone, cli_of: CliOf) -> None:
    stalled, awake = cli_of(alone), cli_of(alone)
    stalled.initialize()
    head = "\r\n".join(
        [
            "GET /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{alone.port}",
            f"Authorization: Bearer {alone.token}",
            f"Mcp-Session-Id: {stalled.session_id}",
        ]
    )
    with socket.create_connection(("127.0.0.1", alone.port), 5) as peer:
        peer.sendall(head.encode() + b"\r\n\r\n")
        alone.emacs.until(lambda emacs: emacs.sessions)
        stalled.open_diff("/a", "x")
        alone.do(alone.diffs.accept, 1, "x" * 20_000_000)
        events = awake.connect()
        for number in range(50):
            alone.do(alone.sessions.broadcast, _context(f"/{number}"))
            assert _paths(events.next()) == [f"/{number}"]
        peer.shutdown(socket.SHUT_RDWR)
    alone.emacs.until(lambda emacs: emacs.sessions[-1] == [awake.session_id])


def test_the_version_of_a_notification_is_accepted(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    cli.session_id = "some"
    assert cli.headers("some")["Mcp-Protocol-Version"] == VERSION
    status, _, body = cli.post(
        {"jsonrpc": "2.0", "method": "notifications/initialized"}
    )
    assert (status, body) == (202, b"")
