# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that differs by operating system.

Only `common`, which also runs without this package, has definitions of its own.
"""

import asyncio
import ctypes
import os
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from glob import glob
from pathlib import Path

import psutil

from .common import is_own, socket_between
from .types import Address

IS_WINDOWS = sys.platform == "win32"

_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")


class NotOwn(OSError):
    """A directory belongs to another user; the message names it."""


def make_own_directory(path: Path) -> None:
    """Make the directory ``path`` unless it exists, for this user only.

    Others may have made it, or a link of its name, where everybody may write.  Raise
    NotOwn if it belongs to another user, and another OSError if it is no directory.
    """
    with suppress(FileExistsError):
        path.mkdir(parents=True)
    status = path.lstat()
    if not is_own(status):
        raise NotOwn(f"{path} belongs to another user")
    if not stat.S_ISDIR(status.st_mode):
        raise OSError(f"{path} is not a directory (remove it)")
    if not IS_WINDOWS and status.st_mode & 0o022:
        path.chmod(0o700)


def extended_attributes(path: str) -> dict[str, bytes] | None:
    """Return the extended attributes of ``path``, or None where Python has none."""
    if sys.platform != "linux":
        return None
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


def birth_time(path: str) -> int | None:
    """Return when the file ``path`` was made, in nanoseconds, None if unknown.

    This is about a link itself.  A file keeps the time when it is renamed.
    """
    if sys.platform != "linux":
        try:
            return int(getattr(os.lstat(path), "st_birthtime") * 1e9)  # noqa: B009
        except (OSError, AttributeError):
            return None
    if (statx := _statx()) is None:
        return None
    # As in statx(2): AT_FDCWD, AT_SYMLINK_NOFOLLOW and STATX_BTIME.
    answer = ctypes.create_string_buffer(256)
    if statx(-100, os.fsencode(path), 0x100, 0x800, answer) != 0:
        return None
    (mask,) = struct.unpack_from("I", answer)
    time, nanoseconds = struct.unpack_from("qI", answer, 80)
    return time * 10**9 + nanoseconds if mask & 0x800 else None


@lru_cache
def _statx() -> Callable[..., int] | None:
    """Return the function of the C library, None if it has none."""
    function: Callable[..., int] | None = getattr(ctypes.CDLL(None), "statx", None)
    return function


def on_signals(stop: Callable[[], None]) -> None:
    """Call ``stop`` on the running event loop when a signal asks to terminate."""
    loop = asyncio.get_running_loop()
    for number in filter(None, (getattr(signal, name, None) for name in _SIGNALS)):
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))


# TCP


def acknowledge(connection: socket.socket) -> None:
    """Acknowledge data that ``connection`` received at once; the system resets this."""
    if sys.platform == "linux":
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def share_port(listener: socket.socket) -> None:
    """Allow ``listener`` to bind a port at which this user's server listens."""
    # A successor listens before its predecessor stops, so no connection is refused.
    # On Windows the option takes the port from the process that has it.
    if not IS_WINDOWS:
        # Connections of a process that has ended linger.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


# The process at the other end of a connection

# RuntimeError: a table has changed while psutil read it.
_UNKNOWN = (psutil.Error, OSError, RuntimeError)


def is_own_peer(peer: Address, port: int, likely: Sequence[int]) -> bool:
    """Return whether a process of this user is connected from ``peer`` to ``port``."""
    # On systems without such a table, a search may take seconds.
    inode = _own_socket(peer, port)
    if inode is None:
        return peer_process(peer, port, likely) is not None
    return inode != 0


def peer_process(
    peer: Address, port: int, likely: Sequence[int]
) -> psutil.Process | None:
    """Return this user's process connected from ``peer``, if any; ``likely`` first."""
    inode = _own_socket(peer, port)
    if inode == 0:
        return None
    has_it = partial(_is_connected, [peer, ("127.0.0.1", port)])
    if inode is not None:
        has_it = partial(_has_socket, inode)
    with suppress(*_UNKNOWN):
        pids = filter(has_it, _pids(likely))
        process = next(map(psutil.Process, pids), None)
        # A new child has the sockets of its parent until it runs another program.
        while process and has_it(process.ppid()) and (parent := process.parent()):
            process = parent
        return process
    return None


def _pids(likely: Sequence[int]) -> Iterator[int]:
    yield from likely
    # The process has just connected, so it was probably started recently.
    yield from sorted(set(psutil.pids()).difference(likely), reverse=True)


def _own_socket(peer: Address, port: int) -> int | None:
    """Return the inode of this user's socket that is connected from ``peer``.

    Return 0 if there is none, and None if this system cannot tell.
    """
    answer = socket_between(peer, ("127.0.0.1", port))
    if not answer:
        return None if answer is None else 0
    ports = struct.pack(">HH", peer[1], port)
    uid, inode = struct.unpack_from("=II", answer, 80)
    # The socket may be one that listens at the port of the peer.  A socket that its
    # process has closed has no inode, and may show any user.
    return int(inode) if answer[20:24] == ports and uid == os.geteuid() else 0


def tree(pid: int) -> Iterator[int]:
    """Yield process ``pid`` and its descendants, as far as Linux shows them."""
    yield pid
    for name in glob(f"/proc/{pid}/task/*/children"):
        with suppress(OSError):
            for child in Path(name).read_text().split():
                yield from tree(int(child))


def _has_socket(inode: int, pid: int) -> bool:
    """Return whether ``pid`` is a process of this user with the socket ``inode``."""
    directory = f"/proc/{pid}/fd"
    with suppress(OSError):
        if is_own(os.stat(directory)):
            for name in os.listdir(directory):
                with suppress(OSError):  # closed in the meantime
                    if os.readlink(f"{directory}/{name}") == f"socket:[{inode}]":
                        return True
    return False


def _is_connected(ends: list[Address], pid: int) -> bool:
    """Return whether ``pid`` is a process of this user connected with ``ends``."""
    with suppress(*_UNKNOWN):
        process = psutil.Process(pid)
        return is_own_process(process) and any(
            ends == [(host.removeprefix("::ffff:"), port) for host, port in both]
            for connection in process.net_connections(kind="tcp")
            if all(both := (connection.laddr, connection.raddr))
        )
    return False


def is_own_process(process: psutil.Process) -> bool:
    """Return whether ``process`` belongs to this user."""
    with suppress(psutil.Error):
        return IS_WINDOWS or bool(process.uids().effective == os.geteuid())
    return False
