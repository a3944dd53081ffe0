# SPDX-License-Identifier: GPL-3.0-or-later
import http.client
import json
import socket
from typing import Any

import psutil
import pytest

from conftest import BOUND, Alone, CliOf, ServeAlone, until
from fake_cli import PING


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


def test_a_connection_that_the_client_has_closed_goes_at_once(
    serve_alone: ServeAlone, cli_of: CliOf
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


def test_every_answer_closes_its_connection(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    for method, message, headers, status in (
        ("POST", PING, {}, 200),
        ("POST", note, {}, 202),
        ("POST", PING, {"Authorization": "Bearer wrong"}, 401),
        ("PUT", PING, {}, 405),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", alone.port, timeout=BOUND)
        headers = {**cli.headers("some"), **headers}
        connection.request(method, "/mcp", json.dumps(message), headers)
        peer = connection.sock
        assert peer is not None
        with peer, peer.makefile("rb") as raw:
            # The stream ends although the client does not close its side.
            head, _, _ = raw.read().partition(b"\r\n\r\n")
        assert f" {status} ".encode() in head
        assert b"connection: close" in head.lower().split(b"\r\n")
