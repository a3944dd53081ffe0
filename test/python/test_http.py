# SPDX-License-Identifier: GPL-3.0-or-later
import socket

import pytest

from conftest import Alone, ServeAlone
from fake_cli import BOUND


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
