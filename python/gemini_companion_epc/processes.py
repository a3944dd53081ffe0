# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes of the clients: find and describe them."""

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from math import inf

import psutil

from .client import Client
from .clients import client_of, is_acp
from .system import is_own_process, peer_process, tree
from .types import Address, Facts, Process

_FAMILY = 50


def process_of(peer: Address, server_port: int, emacs_pid: int) -> Process | None:
    """Return this user's process connected from ``peer``, if any; this may be slow."""
    process = peer_process(peer, server_port, [*islice(tree(emacs_pid), _FAMILY)])
    return None if process is None else _described(process)


def process_with(pid: str) -> Process | None:
    """Return the process with ``pid``, as a header has it, or None."""
    with suppress(psutil.Error, OSError, OverflowError, ValueError):
        return _described(psutil.Process(int(pid)))
    return None


def _described(process: psutil.Process) -> Process:
    facts: Facts = {}
    with suppress(psutil.Error, OSError):
        facts = process.as_dict(["cwd", "cmdline"])
    command, directory = facts.get("cmdline") or [], facts.get("cwd") or None
    return Process(process.pid, directory, is_acp(command), hash(process))


def running(port: int, directories: Callable[[Client], set[str]]) -> list[Facts]:
    """Return descriptions of this user's clients; this server is at ``port``.

    ``directories`` returns the true names of those with its files for a client.
    """
    clis: dict[int, Facts] = {}
    parents = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if is_own_process(process) and (client := client_of(process.cmdline())):
                clis[process.pid] = _describe(
                    process, client, port, directories(client)
                )
                parents.add(process.ppid())
    # A client may run itself again in a child process.
    return [facts for pid, facts in clis.items() if pid not in parents]


def _describe(
    process: psutil.Process, client: Client, port: int, directories: set[str]
) -> Facts:
    """Return the known directories and connections of ``process``."""
    facts: Facts = {"pid": process.pid, "client": client.name}
    with suppress(psutil.Error, OSError):
        facts["directory"] = process.cwd()
        searched = client.directory(process.environ())
        if os.path.realpath(searched) not in directories:
            facts["searches"] = str(searched)
        names = " ".join(os.listdir(searched))
        editors = set(re.findall(r"(\d{1,9})\.(?:json|lock)\b", names)) - {str(port)}
        ends = (
            connection.raddr
            for connection in process.net_connections()
            if connection.raddr
        )
        if any(str(end.port) in editors for end in ends):
            facts["elsewhere"] = True
    return facts


def ancestors(pid: object, client: Client) -> list[int]:
    """Return ``pid`` and the processes above it, as far as they are of one CLI.

    The nearest CLI counts, and must be one of ``client``: a CLI may run another one by
    its shell tool.  Return all of them if none is known to be a CLI, and none if
    ``pid`` does not exist or is of another CLI.
    """
    if not isinstance(pid, int):
        return []
    with suppress(psutil.Error, OSError, OverflowError, ValueError):
        process = psutil.Process(pid)
        return _of_one_cli([process, *process.parents()], client)
    return []


def is_below(pid: object, ancestor: int) -> bool:
    """Return whether ``ancestor`` is among the processes above ``pid``."""
    if isinstance(pid, int):
        with suppress(psutil.Error, OSError, OverflowError, ValueError):
            return ancestor in (one.pid for one in psutil.Process(pid).parents())
    return False


def _of_one_cli(processes: Sequence[psutil.Process], client: Client) -> list[int]:
    """Return the numbers of ``processes``, each the parent of the one before."""
    pids, has_cli = [], False
    for process in processes:
        cli = None
        with suppress(psutil.Error, OSError):
            cli = client_of(process.cmdline())
        # A CLI may run itself again in a child process.
        if has_cli and cli is not client:
            break
        if cli is not None and cli is not client:
            return []
        has_cli = cli is not None
        pids.append(process.pid)
    return pids


class Watched:
    """The process that has started a hook, and the one above, which are watched.

    A CLI starts a hook by a shell.  Like the hook, that outlives a CLI that is killed.
    """

    def __init__(self, pid: object) -> None:
        self._processes: list[psutil.Process] = []
        if not isinstance(pid, int):
            return
        with suppress(psutil.Error, OSError, OverflowError, ValueError):
            process = psutil.Process(pid)
            above = process.parent()
            self._processes = [process, above] if above else [process]

    def has_exited(self) -> bool:
        """Return whether one of them has exited, or is not known."""
        return not self._processes or not all(map(_is_running, self._processes))


def _is_running(process: psutil.Process) -> bool:
    try:
        # By then, another process may have its number.
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except (psutil.Error, OSError):
        return True


def has_exited(pid: int, time: float = inf) -> bool:
    """Return whether process ``pid``, any number, has exited or is a zombie.

    The process meant is the one that ran at ``time``, in seconds since 1970.
    """
    try:
        process = psutil.Process(pid)
        # Either time may be rounded.
        is_new = time < inf and process.create_time() > time + 2
        return bool(is_new or process.status() == psutil.STATUS_ZOMBIE)
    except (psutil.NoSuchProcess, ValueError):
        return True
    except (psutil.Error, OSError):
        return False
