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

    Reads the sockets of all processes: tens of milliseconds, so not in the
    event loop.  Other users' processes stay unknown, and on some systems all.
    """
    with suppress(psutil.Error, OSError):
        for connection in psutil.net_connections(kind="tcp4"):
            if (
                connection.pid is not None
                and connection.laddr
                and connection.raddr
                and connection.laddr.port == port
                and connection.raddr.port == server_port
            ):
                return _process(connection.pid)
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
