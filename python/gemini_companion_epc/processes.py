# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of the clients: find and describe them."""

from contextlib import suppress

import psutil

from .clients import CLIENTS
from .system import pid_of
from .types import Facts, Process

_ACP_OPTIONS = {"--acp", "--experimental-acp"}


def process_of(peer: tuple[str, int], server_port: int) -> Process | None:
    """Return the process that is connected from ``peer`` to ``server_port``.

    Return None if it is unknown, as for other users' processes.  This reads much
    about all processes: do not call it in the event loop.
    """
    pid = pid_of(peer, server_port)
    with suppress(psutil.Error):
        return None if pid is None else _process(pid)
    return None


def _process(pid: int) -> Process:
    process = psutil.Process(pid)
    directory = None
    command: list[str] = []
    with suppress(psutil.Error, OSError):
        directory = process.cwd()
    with suppress(psutil.Error, OSError):
        command = process.cmdline()
    is_acp = any(word.split("=")[0] in _ACP_OPTIONS for word in command)
    return Process(pid, directory or None, is_acp, hash(process))


def describe(pid: int) -> Facts:
    """Return the working directory of process ``pid``.

    With it is where each client would search discovery files in its environment.
    The dictionary lacks what is unknown, as it is for processes of other users.
    """
    plist: Facts = {"pid": pid}
    with suppress(psutil.Error, OSError, ValueError):
        process = psutil.Process(pid)
        plist["directory"] = process.cwd()
        environ = process.environ()
        plist["discovery"] = [
            [client.name, str(client.directory(environ))] for client in CLIENTS
        ]
    return plist


def ancestors(pid: object) -> list[int]:
    """Return ``pid`` and the processes above it, none if it does not exist."""
    if not isinstance(pid, int):
        return []
    with suppress(psutil.Error, OSError, OverflowError, ValueError):
        return [pid, *(parent.pid for parent in psutil.Process(pid).parents())]
    return []


def has_exited(pid: int) -> bool:
    """Return whether process ``pid`` has exited, even if its parent has not noticed.

    ``pid`` may be any number.
    """
    try:
        return bool(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)
    except (psutil.NoSuchProcess, ValueError):
        return True
    except (psutil.Error, OSError):
        return False
