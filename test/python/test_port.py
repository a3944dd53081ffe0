# SPDX-License-Identifier: GPL-3.0-or-later
import asyncio
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from conftest import Alone, dead_pid, until
from fake_cli import BOUND, PING, FakeCli
from gemini_companion_epc import port as module
from gemini_companion_epc.copilot import socket_name
from gemini_companion_epc.port import MAX_WAITING, Port, UnixPort
from gemini_companion_epc.types import StartError
from scene import context_of, paths_of


def _connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), BOUND)


def _is_open(peer: socket.socket) -> bool:
    peer.settimeout(0.05)
    try:
        return peer.recv(1) != b""
    except TimeoutError:
        return True


def _unix_port(alone: Alone) -> UnixPort:
    port = UnixPort(alone.port)
    alone.do(port.serve)
    return port


def test_a_flood_of_connections_excludes_no_client(alone: Alone, cli: FakeCli) -> None:
    events = cli.connect()
    with _connect(alone.port) as oldest, ExitStack() as strangers:
        newest = oldest
        for number in range(MAX_WAITING + 50):
            newest = strangers.enter_context(_connect(alone.port))
            newest.sendall(b"POST /mcp HTTP/1.1\r\n" if number % 2 else b"")
        assert cli.ask("ping", {})["result"] == {}
        until(lambda: not _is_open(oldest))
        assert _is_open(newest)
    alone.do(alone.sessions.broadcast, context_of("/a"))
    assert paths_of(events.next()) == ["/a"]


def test_a_port_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "share_port", lambda listener: os.stat("/none"))
    with pytest.raises(StartError, match="Cannot bind a port on"):
        Port(0)


@pytest.mark.anyio
async def test_two_processes_listen_at_a_port_and_lose_no_client() -> None:
    port = Port(0)
    port.listen()
    first = port.listener
    first.setblocking(False)
    successor = Port(port.number)
    assert successor.number == port.number
    successor.listen()
    second = successor.listener
    second.settimeout(BOUND)
    loop = asyncio.get_running_loop()
    accepted: list[socket.socket] = []

    def accept() -> None:
        accepted.append(first.accept()[0])

    with ExitStack() as clients:
        for _ in range(50):
            clients.enter_context(_connect(port.number))
        loop.add_reader(first, accept)
        await port.stop_listening()
        for _ in range(50 - len(accepted)):
            clients.enter_context(second.accept()[0])
        clients.enter_context(_connect(port.number))
        clients.enter_context(second.accept()[0])
        for connection in accepted:
            connection.close()
    second.close()


def test_a_private_socket_leads_to_the_port(
    alone: Alone, cli: FakeCli, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The name leaves room for that of a socket.
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setenv("COPILOT_HOME", os.path.join(short, "c"))
        path = Path(socket_name())
        path.parent.mkdir(parents=True)
        port = _unix_port(alone)
        for _ in range(2):
            port.listen(socket_name(), "COPILOT_HOME")
        modes = [stat.S_IMODE(name.stat().st_mode) for name in (path, path.parent)]
        assert modes == [0o600, 0o700]
        cli.initialize()
        for _ in range(2):
            peer = socket.socket(socket.AF_UNIX)
            peer.settimeout(BOUND)
            peer.connect(os.fspath(path))
            assert cli.post(PING, peer)[0] == 200
        # A cleanup has removed it.
        path.unlink()
        port.listen(socket_name(), "COPILOT_HOME")
        assert path.exists()
        port.close()
        assert not path.exists()
        # A thread that writes discovery files may come later.
        port.listen(socket_name(), "COPILOT_HOME")
        assert not path.exists()


@pytest.fixture
def socket_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The socket of this process, with a name that is short enough for one."""
    with tempfile.TemporaryDirectory(dir="/tmp") as short:
        monkeypatch.setenv("COPILOT_HOME", os.path.join(short, "c"))
        path = Path(socket_name())
        path.parent.mkdir(parents=True)
        yield path


def test_a_socket_that_a_killed_process_with_this_pid_left_is_replaced(
    alone: Alone, cli: FakeCli, socket_path: Path
) -> None:
    others = [socket_path.with_name(f"{number}.sock") for number in (dead_pid(), 1)]
    for socket_file in (socket_path, *others):
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(os.fspath(socket_file))
    socket_path.with_name(f"{10**30}.sock").mkdir()
    port = _unix_port(alone)
    port.listen(socket_name(), "COPILOT_HOME")
    cli.initialize()
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(BOUND)
        peer.connect(os.fspath(socket_path))
        assert cli.post(PING, peer)[0] == 200
    assert [socket_file.exists() for socket_file in others] == [False, True]
    port.close()


def test_a_socket_that_cannot_be_made_is_named_with_the_remedy(
    alone: Alone, socket_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = _unix_port(alone)
    socket_path.mkdir()
    with pytest.raises(OSError, match="is a directory") as problem:
        port.listen(socket_name(), "COPILOT_HOME")
    assert all(
        word in str(problem.value) for word in (f"{socket_path}:", "COPILOT_HOME")
    )
    socket_path.rmdir()
    port.listen(socket_name(), "COPILOT_HOME")
    # Nothing is raised at the end, whatever has the name.
    socket_path.unlink()
    socket_path.mkdir()
    port.close()
    socket_path.rmdir()
    port = _unix_port(alone)
    monkeypatch.setenv("COPILOT_HOME", os.fspath(socket_path.with_name("x" * 100)))
    with pytest.raises(OSError, match="too long") as problem:
        port.listen(socket_name(), "COPILOT_HOME")
    assert all(word in str(problem.value) for word in ("xxx/ide/", "COPILOT_HOME"))
    port.close()
