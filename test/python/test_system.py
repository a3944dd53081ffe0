# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between systems; with GC_SYSTEM=portable, those of macOS."""

import asyncio
import os
import re
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gemini_companion_epc.connections import Listener, listen
from gemini_companion_epc.exceptions import StartError
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


@contextmanager
def _no_descriptor_free(limit: float) -> Iterator[threading.Event]:
    """Use up all descriptors, for ``limit`` seconds at most.

    The event is set when they are free again.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    is_free = threading.Event()

    def free() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        is_free.set()

    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    timer = threading.Timer(limit, free)
    timer.start()
    try:
        with suppress(OSError):
            while True:
                held.append(os.dup(0))
        yield is_free
    finally:
        timer.cancel()
        free()
        for descriptor in held:
            os.close(descriptor)


def test_a_successor_waits_for_a_descriptor_and_others_do_not(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)

    async def scene() -> None:
        first, _ = listen(0)
        handover = Handover(first, directory)
        await asyncio.sleep(0)
        with first, socket.socket(socket.AF_UNIX) as successor:
            with _no_descriptor_free(10) as is_free:
                successor.connect("successor")
                # The event loop goes on.
                for _ in range(10):
                    await asyncio.sleep(0.01)
                assert not is_free.is_set()
            successor.settimeout(BOUND)
            _, (descriptor,), _, _ = await asyncio.to_thread(
                socket.recv_fds, successor, 1, 1
            )
            os.close(descriptor)
            handover.close()

    asyncio.run(scene())


def test_a_port_that_cannot_be_bound_is_a_sentence_with_the_reason() -> None:
    with (
        _no_descriptor_free(BOUND),
        pytest.raises(StartError, match=r"Cannot bind a port .*: Too many open files"),
    ):
        listen(0)
