# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that differs by operating system.

Other modules use what is defined here, but for `bridge`, which runs without this
package.  With ``GC_SYSTEM=portable`` in the environment, nothing is used here that
only Linux has, so that tests on Linux show what happens on macOS.
"""

import asyncio
import os
import re
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import psutil

IS_WINDOWS = sys.platform == "win32"

_IS_LINUX = sys.platform == "linux" and os.environ.get("GC_SYSTEM") != "portable"
_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")


def is_own(found: os.stat_result) -> bool:
    """Return whether a file with the status ``found`` belongs to this user."""
    return IS_WINDOWS or found.st_uid == os.geteuid()


def write_private(path: Path, content: bytes) -> None:
    """Write ``content`` to the new file ``path``, which only this user can read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def on_signals(stop: Callable[[], None]) -> None:
    """Call ``stop`` on the running event loop when a signal asks to terminate."""
    loop = asyncio.get_running_loop()
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is None:
            continue
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))


# TCP

_DESCRIPTORS = 4096


def raise_descriptor_limit() -> None:
    """Allow this process as many open connections as the server keeps.

    On macOS a graphical Emacs and its processes may open 256 files, so accepting
    would fail before any connection is shed.
    """
    if sys.platform != "win32":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        unlimited = resource.RLIM_INFINITY
        wanted = _DESCRIPTORS if hard == unlimited else min(hard, _DESCRIPTORS)
        if soft != unlimited and soft < wanted:
            with suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def acknowledge(connection: socket.socket) -> None:
    """Acknowledge at once what was received on ``connection``.

    The kernel forgets this, so it must be called each time.
    """
    if _IS_LINUX:
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def may_bind_again(listener: socket.socket) -> None:
    """Allow ``listener`` to bind a port whose previous connections linger."""
    # On Windows the option takes the port from the process that has it.
    if not IS_WINDOWS:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


# The process at the other end of a connection

_LIKELY = re.compile("node|bun|deno|gemini|qwen", re.IGNORECASE)
_SEARCH_LIMIT = 2.0


def pid_of(port: int, server_port: int) -> int | None:
    """Return the process of this user that is connected from ``port``, if found.

    The search takes milliseconds, and seconds on a slow machine.
    """
    find = _find_by_inode if _IS_LINUX else _find_in_own
    return find(port, server_port)


def is_own_peer(port: int, server_port: int) -> bool:
    """Return whether a process of this user is connected from ``port``.

    It takes as long as `pid_of` where the system does not list the users.
    """
    if not _IS_LINUX:
        return _find_in_own(port, server_port) is not None
    entry = _entry(port, server_port)
    return entry is not None and entry[0] == os.geteuid()


def _find_in_own(port: int, server_port: int) -> int | None:
    """Search the connections of each process of this user.

    The table of all connections is for root only on macOS.
    """
    # A process that has just connected was probably started recently.
    own = [one for one in psutil.process_iter(["name", "uids"]) if _is_own_process(one)]
    own.sort(key=lambda one: (not _LIKELY.match(one.info["name"] or ""), -one.pid))
    # Processor time, as a search on a busy machine takes longer.
    end = time.thread_time() + _SEARCH_LIMIT
    for process in own:
        if time.thread_time() > end:
            break
        with suppress(psutil.Error, OSError):
            if _is_connected(process, port, server_port):
                # What it starts has its sockets, too, until it runs another program.
                parent = process.parent()
                while parent and _is_connected(parent, port, server_port):
                    process, parent = parent, parent.parent()
                return int(process.pid)
    return None


def _is_connected(process: psutil.Process, port: int, server_port: int) -> bool:
    return any(
        connection.raddr
        and connection.laddr.port == port
        and connection.raddr.port == server_port
        for connection in process.net_connections(kind="tcp4")
    )


def _is_own_process(process: psutil.Process) -> bool:
    uids = process.info.get("uids")
    return IS_WINDOWS or (uids is not None and uids.effective == os.geteuid())


def _find_by_inode(port: int, server_port: int) -> int | None:
    """Return the same as `_find_in_own`, without an object for each socket.

    There may be thousands of sockets in the state TIME_WAIT.
    """
    entry = _entry(port, server_port)
    if entry is None:
        return None
    _, inode = entry
    pids: list[int] = psutil.pids()
    for pid in reversed(pids):
        if _holds(pid, inode):
            # What a process starts has its sockets, too, until it runs another
            # program, or ends.
            with suppress(psutil.NoSuchProcess):
                while _holds(parent := psutil.Process(pid).ppid(), inode):
                    pid = parent
                return pid
    return None


def _holds(pid: int, inode: str) -> bool:
    """Return whether process ``pid`` has the socket ``inode`` open."""
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
        for descriptor in descriptors:
            with suppress(OSError):  # it was closed in the meantime
                if os.readlink(descriptor.path) == f"socket:[{inode}]":
                    return True
    return False


def _entry(port: int, server_port: int) -> tuple[int, str] | None:
    """Return the user and the inode in ``/proc/net/tcp``, see proc(5)."""
    local, remote = f":{port:04X}", f":{server_port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table:
            if local in line and remote in line:
                _, own, other, _, _, _, _, user, _, inode, *_ = line.split()
                if own.endswith(local) and other.endswith(remote):
                    return None if inode == "0" else (int(user), inode)
    return None


# The end of a process

_FIRST_WAIT = 0.5
_LONGEST_WAIT = 8.0


def wait_for_exit(pid: int) -> bool:
    """Wait for process ``pid`` to exit, in a thread; return whether it has."""
    if _IS_LINUX:
        # AttributeError: Python was built for an older kernel.
        with suppress(OSError, AttributeError):
            descriptor = os.pidfd_open(pid)
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll()
            os.close(descriptor)
            return True
    try:
        process, limit = psutil.Process(pid), _FIRST_WAIT
        # psutil waits until the parent has reaped the process.
        while process.status() != psutil.STATUS_ZOMBIE:
            try:
                process.wait(limit)
                return True
            except psutil.TimeoutExpired:
                limit = min(2 * limit, _LONGEST_WAIT)
    except psutil.NoSuchProcess:
        return True
    except (psutil.Error, OSError):
        return False
    return True


# The listening socket of a successor

_DOOR = "successor"
_HANDOVER_LIMIT = 1.0
_ACCEPT_PAUSE = 1.0


class Handover:
    """An offer of ``listener`` to a successor, at a name in ``directory``.

    Both processes then accept from one queue, so no connection is refused or
    reset, however long the handover takes.
    """

    def __init__(self, listener: socket.socket, directory: Path) -> None:
        self._listener = listener
        self._directory = directory
        self._serving: asyncio.Task[None] | None = None
        self.restore()

    def restore(self) -> None:
        """Repeat the offer if its name was cleaned up."""
        if not (self._directory / _DOOR).exists():
            self.close()
            with suppress(OSError):
                door = _open_door(self._directory)
                self._serving = asyncio.get_running_loop().create_task(
                    self._serve(door)
                )

    def close(self) -> None:
        """Withdraw the offer."""
        if self._serving is not None:
            self._serving.cancel()

    async def _serve(self, door: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        with door:
            door.setblocking(False)
            while True:
                try:
                    successor, _ = await loop.sock_accept(door)
                except OSError:
                    # Without a free descriptor it fails at once, each time, and
                    # nothing else in the event loop would run.
                    await asyncio.sleep(_ACCEPT_PAUSE)
                    continue
                with suppress(OSError, ValueError), successor:
                    await _give(self._listener, successor)


def take_over(directory: Path) -> int:
    """Return the listening socket that the process of ``directory`` offers.

    Raise OSError if it offers none.
    """
    try:
        return _take(directory)
    except (IndexError, ValueError):
        raise OSError("The previous process offers no socket") from None


def stop_listening(listener: socket.socket) -> None:
    """Close ``listener``, although the event loop has it and will close it again."""
    if IS_WINDOWS:
        listener.close()
        return
    asyncio.get_running_loop().remove_reader(listener)
    with socket.socket(socket.AF_UNIX) as other:
        os.dup2(other.fileno(), listener.fileno(), inheritable=False)


if sys.platform == "win32":

    def _open_door(directory: Path) -> socket.socket:
        door = socket.create_server(("127.0.0.1", 0))
        (directory / _DOOR).write_text(str(door.getsockname()[1]))
        return door

    async def _give(listener: socket.socket, successor: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        # Only the process with this PID can use the answer.
        pid = int(await loop.sock_recv(successor, 16))
        await loop.sock_sendall(successor, listener.share(pid))

    def _take(directory: Path) -> int:
        port = int((directory / _DOOR).read_text())
        with socket.create_connection(("127.0.0.1", port), _HANDOVER_LIMIT) as door:
            door.sendall(str(os.getpid()).encode())
            shared = b"".join(iter(partial(door.recv, 4096), b""))
        return socket.fromshare(shared).detach()

else:

    def _open_door(directory: Path) -> socket.socket:
        door = socket.socket(socket.AF_UNIX)
        try:
            with _inside(directory):
                door.bind(_DOOR)
            door.listen()
        except OSError:
            door.close()
            raise
        return door

    async def _give(listener: socket.socket, successor: socket.socket) -> None:
        socket.send_fds(successor, [b"."], [listener.fileno()])

    def _take(directory: Path) -> int:
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(_HANDOVER_LIMIT)
            with _inside(directory):
                door.connect(_DOOR)
            _, descriptors, _, _ = socket.recv_fds(door, 1, 1)
        return descriptors[0]

    @contextmanager
    def _inside(directory: Path) -> Iterator[None]:
        """Work in ``directory``: the names of Unix sockets have 104 bytes at most."""
        here = os.open(".", os.O_RDONLY)
        try:
            os.chdir(directory)
            yield
        finally:
            os.fchdir(here)
            os.close(here)
