# SPDX-License-Identifier: GPL-3.0-or-later
"""Which process is at the other end of a connection, and when one ends."""

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
    """Return the process that is connected from PORT to SERVER_PORT, if known.

    Reads what all processes have open: milliseconds at best, so not in the
    event loop.  Other users' processes stay unknown, and on some systems all.
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
    """Do the same without an object for each socket of the machine.

    Of those alone that wait for their end there may be thousands.
    """
    inode = _inode(port, server_port)
    if inode is None:
        return None
    # What has just connected is mostly among the last that were started.
    pids: list[int] = psutil.pids()
    for pid in reversed(pids):
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
            for descriptor in descriptors:
                # It may have been closed meanwhile.
                with suppress(OSError):
                    if os.readlink(descriptor.path) == f"socket:[{inode}]":
                        return pid
    return None


def _inode(port: int, server_port: int) -> str | None:
    """Return the number of the socket in the kernel's table, see proc(5)."""
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
    """Return whether COMMAND runs Gemini CLI under an ACP client."""
    return any(word.split("=")[0] in _ACP_OPTIONS for word in command)


def lives(pid: int) -> bool:
    """Return whether there is a process PID, which may be any number at all."""
    try:
        return bool(psutil.pid_exists(pid))
    except OverflowError:
        return False


def watch_process(pid: int, gone: Callable[[], None]) -> None:
    """Have the running event loop call GONE when the process PID has ended.

    One that is not there now belongs to another machine or container.
    """
    if not lives(pid):
        logger.info("The process %d of Emacs cannot be seen from here", pid)
        return
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            _watch_by_descriptor(os.pidfd_open(pid), gone)
            return
    _poll(psutil.Process(pid), gone)


def _watch_by_descriptor(descriptor: int, gone: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()

    def ended() -> None:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        gone()

    loop.add_reader(descriptor, ended)


def _poll(process: psutil.Process, gone: Callable[[], None]) -> None:
    if process.is_running():
        loop = asyncio.get_running_loop()
        loop.call_later(_POLL_INTERVAL, _poll, process, gone)
    else:
        gone()
