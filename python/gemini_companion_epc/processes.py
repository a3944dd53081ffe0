# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of the clients: find them, and watch for their exit."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress

import psutil

from .types import Process

logger = logging.getLogger(__name__)

_ACP_OPTIONS = {"--acp", "--experimental-acp"}
_POLL_INTERVAL = 1.0


def process_of(port: int, server_port: int) -> Process | None:
    """Return the process that is connected from ``port`` to ``server_port``.

    Return None if it is unknown, as those of other users are.  This reads the
    open files of all processes, which takes milliseconds: do not call it in the
    event loop.
    """
    find = _find_by_inode if sys.platform == "linux" else _find_in_all
    with suppress(psutil.Error, OSError):
        pid = find(port, server_port)
        return None if pid is None else _process(pid)
    return None


def _find_in_all(port: int, server_port: int) -> int | None:
    for connection in psutil.net_connections(kind="tcp4"):
        if (
            connection.pid is not None
            and connection.laddr
            and connection.raddr
            and connection.laddr.port == port
            and connection.raddr.port == server_port
        ):
            return int(connection.pid)
    return None


def _find_by_inode(port: int, server_port: int) -> int | None:
    """Return the same as `_find_in_all`, without an object for each socket.

    There may be thousands of sockets in the state TIME_WAIT.
    """
    inode = _inode(port, server_port)
    if inode is None:
        return None
    # A process that has just connected was probably started recently.
    pids: list[int] = psutil.pids()
    for pid in reversed(pids):
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
            for descriptor in descriptors:
                with suppress(OSError):  # it was closed in the meantime
                    if os.readlink(descriptor.path) == f"socket:[{inode}]":
                        return pid
    return None


def _inode(port: int, server_port: int) -> str | None:
    """Return the inode of the socket from ``/proc/net/tcp``, see proc(5)."""
    local, remote = f":{port:04X}", f":{server_port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as table:
        for line in table:
            if local in line and remote in line:
                _, own, other, _, _, _, _, _, _, inode, *_ = line.split()
                if own.endswith(local) and other.endswith(remote):
                    return None if inode == "0" else inode
    return None


def _process(pid: int) -> Process:
    process = psutil.Process(pid)
    directory = None
    command: list[str] = []
    with suppress(psutil.Error, OSError):
        directory = process.cwd()
    with suppress(psutil.Error, OSError):
        command = process.cmdline()
    return Process(pid, directory or None, is_acp(command))


def is_acp(command: list[str]) -> bool:
    """Return whether ``command`` runs Gemini CLI under an ACP client."""
    return any(word.split("=")[0] in _ACP_OPTIONS for word in command)


def lives(pid: int) -> bool:
    """Return whether a process ``pid`` exists; ``pid`` may be any number."""
    try:
        return bool(psutil.pid_exists(pid))
    except OverflowError:
        return False


class ProcessWatch:
    """A watch that calls ``gone`` on the running event loop when ``pid`` exits."""

    def __init__(self, pid: int, gone: Callable[[], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._gone = gone
        self._descriptor: int | None = None
        self._timer: asyncio.Handle | None = None
        if sys.platform == "linux":
            with suppress(OSError, AttributeError):
                self._descriptor = os.pidfd_open(pid)
                self._loop.add_reader(self._descriptor, self._ended)
                return
        try:
            self._poll(psutil.Process(pid))
        except psutil.NoSuchProcess:
            self._timer = self._loop.call_soon(self._ended)

    def close(self) -> None:
        """End the watch."""
        if self._descriptor is not None:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = None
        if self._timer is not None:
            self._timer.cancel()

    def _poll(self, process: psutil.Process) -> None:
        if _runs(process):
            self._timer = self._loop.call_later(_POLL_INTERVAL, self._poll, process)
        else:
            self._ended()

    def _ended(self) -> None:
        self.close()
        self._gone()


def _runs(process: psutil.Process) -> bool:
    try:
        # A parent may reap it late.
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
