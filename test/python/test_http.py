# SPDX-License-Identifier: GPL-3.0-or-later
import http.client
import json
import socket
from collections.abc import Callable
from typing import Any

import psutil
import pytest

from conftest import BOUND, Alone, until
from fake_cli import PING, FakeCli

CliOf = Callable[[Any], FakeCli]


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
