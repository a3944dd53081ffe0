# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything that differs by operating system.

Other modules use what is defined here, but for `bridge`, which runs without this
package.
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

import psutil

IS_WINDOWS = sys.platform == "win32"

_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")


def is_own(found: os.stat_result) -> bool:
    """Return whether a file with the status ``found`` belongs to this user."""
    return IS_WINDOWS or found.st_uid == os.geteuid()


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


def acknowledge(connection: socket.socket) -> None:
    """Acknowledge at once what was received on ``connection``.

    The kernel forgets this, so it must be called each time.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)


def share_port(listener: socket.socket) -> None:
    """Allow ``listener`` to bind a port at which this user's server listens.

    A successor listens before its predecessor stops, so no connection is refused.
    """
    # On Windows the option takes the port from the process that has it.
    if not IS_WINDOWS:
        # Connections of a process that has ended linger.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


# The process at the other end of a connection

# RuntimeError: a table has changed while psutil read it.
_UNKNOWN = (psutil.Error, OSError, RuntimeError)


def peer_process(peer: tuple[str, int], server_port: int) -> psutil.Process | None:
    """Return the process of this user that is connected from ``peer``, if found.

    The search takes milliseconds, and seconds on a slow machine.
    """
    server = "127.0.0.1", server_port
    with suppress(*_UNKNOWN):
        # The table of all connections is for root only on macOS.
        own = [one for one in psutil.process_iter() if is_own_process(one)]
        own.reverse()  # one that has just connected was probably started recently
        process = next((one for one in own if _is_connected(one, peer, server)), None)
        # What a process starts has its sockets, too, until it runs another program.
        while process and _is_connected(parent := process.parent(), peer, server):
            process = parent
        return process
    return None


def _is_connected(
    process: psutil.Process | None, peer: tuple[str, int], server: tuple[str, int]
) -> bool:
    """Return whether ``process`` is known to be connected so."""
    with suppress(*_UNKNOWN):
        return process is not None and any(
            (connection.laddr, connection.raddr) == (peer, server)
            for connection in process.net_connections(kind="tcp4")
        )
    return False


def is_own_process(process: psutil.Process) -> bool:
    """Return whether ``process`` belongs to this user."""
    with suppress(psutil.Error):
        return IS_WINDOWS or bool(process.uids().effective == os.geteuid())
    return False
