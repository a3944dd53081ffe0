# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between systems; with GC_SYSTEM=portable, those of macOS."""

import asyncio
import re
import socket
from pathlib import Path

import pytest

from gemini_companion_epc.connections import Listener, listen
from gemini_companion_epc.system import Handover

pytestmark = pytest.mark.system

BOUND = 120.0
PACKAGE = Path(__file__).parents[2] / "python" / "gemini_companion_epc"


def test_no_other_module_knows_the_system() -> None:
    asks = re.compile(r"sys\.platform|os\.name|hasattr\((os|socket|signal)|/proc/")
    found = {
        path.name for path in PACKAGE.glob("*.py") if asks.search(path.read_text())
    }
    # The bridge is a program that runs without the package.
    assert found - {"bridge.py"} == {"system.py"}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory whose name is too long for a Unix socket."""
    path = tmp_path / ("long" * 50)
    path.mkdir()
    return path


async def _greeting(listener: Listener) -> bytes:
    """Return what the next client of ``listener`` sends."""
    loop = asyncio.get_running_loop()
    listener.setblocking(False)
    connection, _ = await loop.sock_accept(listener)
    with connection:
        connection.setblocking(False)
        return await loop.sock_recv(connection, 100)


def _connect(port: int, text: bytes) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), BOUND)
    client.sendall(text)
    return client


def test_a_successor_accepts_what_the_predecessor_has_not(directory: Path) -> None:
    async def scene() -> None:
        first, _ = listen(0)
        handover = Handover(first, directory)
        second, is_busy = await asyncio.to_thread(listen, first.port, str(directory))
        assert (second.port, is_busy) == (first.port, False)
        with second, first:
            with _connect(first.port, b"to both"):
                assert await _greeting(first) == b"to both"
            with _connect(first.port, b"waiting"):
                handover.close()
                first.end()
                assert await _greeting(second) == b"waiting"
            with _connect(second.port, b"later"):
                assert await _greeting(second) == b"later"

    asyncio.run(scene())


def test_the_port_is_free_when_all_that_had_it_are_gone(directory: Path) -> None:
    async def scene() -> None:
        first, _ = listen(0)
        port = first.port
        handover = Handover(first, directory)
        second, _ = await asyncio.to_thread(listen, port, str(directory))
        with first:
            handover.close()
            first.end()
            second.close()
            third, is_busy = listen(port, str(directory))
            third.close()
        assert not is_busy

    asyncio.run(scene())


@pytest.mark.parametrize("name", ["", "missing", "file"])
def test_where_nothing_is_offered_a_port_is_bound(directory: Path, name: str) -> None:
    (directory / "successor").touch()
    (directory / "file").touch()
    listener, is_busy = listen(0, str(directory / name))
    with listener:
        assert listener.port
        assert not is_busy
