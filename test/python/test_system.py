# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between systems; with GC_SYSTEM=portable, those of macOS."""

import asyncio
import os
import re
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from gemini_companion_epc.connections import Connections
from gemini_companion_epc.exceptions import StartError

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


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), BOUND)


def test_two_processes_listen_at_a_port_and_lose_no_client() -> None:
    async def scene() -> None:
        connections = Connections(0)
        connections.listen()
        first = connections.listener
        first.setblocking(False)
        successor = Connections(connections.port)
        assert successor.port == connections.port
        successor.listen()
        second = successor.listener
        second.settimeout(BOUND)
        loop = asyncio.get_running_loop()
        accepted: list[socket.socket] = []

        def accept() -> None:
            accepted.append(first.accept()[0])

        with ExitStack() as clients:
            for _ in range(50):
                clients.enter_context(_connect(connections.port))
            loop.add_reader(first, accept)
            await connections.stop_listening()
            for _ in range(50 - len(accepted)):
                clients.enter_context(second.accept()[0])
            clients.enter_context(_connect(connections.port))
            clients.enter_context(second.accept()[0])
            for one in accepted:
                one.close()
        second.close()

    asyncio.run(scene())


@contextmanager
def _no_descriptor_free() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        with suppress(OSError):
            while True:
                held.append(os.dup(0))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)


def test_a_port_that_cannot_be_bound_is_a_sentence_with_the_reason() -> None:
    with (
        _no_descriptor_free(),
        pytest.raises(StartError, match=r"Cannot bind a port .*: Too many open files"),
    ):
        Connections(0)
