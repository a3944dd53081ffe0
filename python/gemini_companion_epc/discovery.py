# SPDX-License-Identifier: GPL-3.0-or-later
"""The discovery files, by which each CLI finds this server."""

import json
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock

from .client import Client
from .clients import CLIENTS
from .common import content_of, is_own, this_host
from .port import UnixPort
from .processes import has_exited
from .system import NotOwn, make_own_directory
from .types import Json

logger = logging.getLogger(__name__)

# Seconds in which a file is written.
_WRITE = 0.3


@dataclass(eq=False, repr=False)
class DiscoveryFiles:
    """The files of all clients, written and removed together.

    What reads or writes files may wait for a mount that does not answer, so it is
    called in threads, and each step of an update has a lock: another thread leaves out
    the steps in which earlier ones wait.
    """

    _pid: int
    _port: int
    _token: str
    _environ: Mapping[str, str]
    _unix_port: UnixPort
    """The socket to which the files of clients with ``has_socket`` lead."""

    _roots: Sequence[str] = field(init=False, default=())
    """The workspace roots, which have true names."""
    _temporaries: Sequence[str] = field(init=False, default=())
    """Temporary directories where CLIs of this Emacs search."""
    _extra: set[Path] = field(init=False, default_factory=set)
    """The files in ``_temporaries`` that were written."""
    _in_path: set[str] = field(init=False, default_factory=set)
    """The names of the clients whose programs were found."""
    _locks: defaultdict[str, Lock] = field(
        init=False, default_factory=lambda: defaultdict(Lock)
    )
    """Locks by step of an update."""
    _is_over: bool = field(init=False, default=False)

    def names(self) -> list[list[str]]:
        """Return names of clients and of their files, written or not.

        The first one of a client is where this server itself would search.
        """
        return [
            *([client.name, str(self._path(client))] for client in CLIENTS),
            *([_ELSEWHERE.name, str(path)] for path in sorted(self._extra)),
        ]

    def search_also(self, temporaries: Sequence[str]) -> None:
        """Write the files in the temporary directories ``temporaries`` as well.

        CLIs of this Emacs with another environment search there; earlier ones
        that are not among them are dropped.  The next update writes.
        """
        self._temporaries = temporaries

    def directories(self, client: Client) -> set[str]:
        """Return the true names of the directories that have a file of ``client``."""
        return {
            _true_name(str(Path(path).parent))
            for name, path in self.names()
            if name == client.name
        }

    def update(self, roots: Sequence[str]) -> list[str]:
        """Write the files that differ with ``roots``; return problems as sentences."""
        self._roots = roots
        # A cleanup may have removed a file, or a client may be new.
        steps: dict[str, Callable[[], list[str]]] = {
            "PATH": self._search_path,
            "TMPDIR": self._update_elsewhere,
            **{client.title: partial(self._update_own, client) for client in CLIENTS},
        }
        problems: list[str] = []
        for key, step in steps.items():
            if self._locks[key].acquire(blocking=False):
                try:
                    problems += step()
                finally:
                    self._locks[key].release()
        return problems

    def waits_for(self) -> str:
        """Return the steps in which threads wait, as a text."""
        return ", ".join(key for key, lock in self._locks.items() if lock.locked())

    def _search_path(self) -> list[str]:
        """Find the programs of the clients."""
        self._in_path = {
            client.name for client in CLIENTS if client.is_in_path(self._environ)
        }
        return []

    def may_connect(self, client: Client) -> bool:
        """Return whether ``client`` is installed, and its socket may be served."""
        if client.has_socket and not self._unix_port.may_listen:
            return False
        return client.has_run(self._environ) or client.name in self._in_path

    def _update_own(self, client: Client) -> list[str]:
        """Write the file where this server itself would search for it."""
        if not self.may_connect(client):
            return []
        problems = _unusable_roots(client, self._roots)
        problem = self._publish(client, self._path(client))
        if problem:
            problems.append(f"{problem}; a new {client.title} cannot find this Emacs")
        return problems

    def _update_elsewhere(self) -> list[str]:
        """Write the files in other temporary directories; remove unwanted ones.

        A discovery file has the token: in a workspace root, a program that reads or
        copies the project would get it.  The roots have true names.
        """
        wanted: set[Path] = set()
        problems: list[str] = []
        name = self._path(_ELSEWHERE).name
        own = _true_name(str(_ELSEWHERE.directory(self._environ)))
        for temporary in self._temporaries:
            true = Path(_true_name(temporary))
            path = Path(_directory_in(temporary), name)
            if _true_name(str(path.parent)) == own:
                continue
            if path not in self._extra:
                self._sweep(_ELSEWHERE, path.parent)
            if any(true.is_relative_to(root) for root in self._roots):
                problems.append(
                    f"{temporary} is in a workspace root; set TMPDIR to another one"
                )
                self._extra.add(path)
            else:
                wanted.add(path)
        for path in self._extra - wanted:
            with suppress(OSError):
                path.unlink()
        self._extra = wanted
        problems += (self._publish(_ELSEWHERE, path) for path in sorted(wanted))
        return [
            f"{problem}; a {_ELSEWHERE.title} with that TMPDIR cannot find this Emacs"
            for problem in problems
            if problem
        ]

    def _publish(self, client: Client, path: Path) -> str:
        """Write ``path`` for ``client`` if it differs; return a problem or ""."""
        payload = self._payload(client)
        try:
            if client.searches_temporary:
                _make_directory(path.parent.parent)
            _make_directory(path.parent)
        except OSError as error:
            return f"Cannot write {path}: {error.strerror or error}"
        try:
            if client.socket_name:
                self._unix_port.listen(client.socket_name(), client.home_variable)
        except OSError as error:
            return str(error)
        try:
            current, content = content_of(path), json.dumps(payload).encode()
            if current == payload or self._is_over:
                return ""
            if client.has_socket and current.get("pid") == os.getpid():
                # Another file would disconnect it.
                path.write_bytes(content)
            else:
                _replace(path, content)
        except OSError as error:
            return f"Cannot write {path}: {error.strerror or error}"
        return ""

    def remove(self) -> None:
        """Remove the files that name this server, and write no more."""
        self._is_over = True
        files = {client.title: {self._path(client)} for client in CLIENTS}
        for key, paths in {**files, "TMPDIR": self._extra}.items():
            # Whoever has it for long cannot write on that file system.
            if self._locks[key].acquire(timeout=_WRITE):
                for path in paths:
                    with suppress(OSError):
                        path.unlink()

    def sweep(self) -> None:
        """Remove the files of this user's dead Emacsen, and others of this Emacs."""
        for client in CLIENTS:
            self._sweep(client, self._path(client).parent)

    def _sweep(self, client: Client, directory: Path) -> None:
        """Remove such files from ``directory``."""
        own = self._path(client).name
        with suppress(OSError):
            if not is_own(directory.lstat()):
                return
            for path in directory.glob(client.file_name("*", "*")):
                if path.name != own and _is_stale(path, self._pid):
                    logger.info("Removing a stale discovery file: %s", path)
                    path.unlink()

    def _path(self, client: Client) -> Path:
        name = client.file_name(self._pid, self._port)
        return client.directory(self._environ) / name

    def _payload(self, client: Client) -> Json:
        return {
            **client.discovery(self._port, self._token, self._roots),
            # Qwen Code deletes a file without it; the others ignore it.
            "ppid": self._pid,
            "host": this_host(),
        }


_ELSEWHERE = next(client for client in CLIENTS if client.searches_temporary)
"""The client that searches in the temporary directory of its own environment."""


def _unusable_roots(client: Client, roots: Sequence[str]) -> list[str]:
    """Return a sentence for each of ``roots`` that ``client`` cannot use."""
    return [
        f"{client.title} cannot connect from {root}: its name contains {os.pathsep}"
        for root in roots
        if not client.can_take(root)
    ]


def _directory_in(temporary: str) -> str:
    """Return the directory that is searched if the temporary one is ``temporary``."""
    names = ("TMPDIR", "TEMP")  # Windows has the second one
    return str(_ELSEWHERE.directory(dict.fromkeys(names, temporary)))


def _true_name(path: str) -> str:
    return os.path.realpath(path)


def _replace(path: Path, content: bytes) -> None:
    # Clients ignore this name, so they never read an incomplete file.
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        # Another user may have written in the directory before, and knows the name.
        with draft.open("xb") as file:
            file.write(content)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _make_directory(path: Path) -> None:
    try:
        make_own_directory(path)
    except NotOwn as error:
        remedy = "set TMPDIR to a directory of your own for Emacs and the CLI"
        raise OSError(f"{error} ({remedy})") from None


def _is_stale(path: Path, own_pid: int) -> bool:
    content = content_of(path)
    # Each of our files has them, see `DiscoveryFiles._payload`.  On another host with
    # the same home directory, the process may be a living one.
    pid = content.get("ppid")
    if content.get("host") != this_host() or not isinstance(pid, int):
        return False
    return pid == own_pid or has_exited(pid, path.lstat().st_mtime)
