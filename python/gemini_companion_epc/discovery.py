# SPDX-License-Identifier: GPL-3.0-or-later
"""The discovery files, by which each CLI finds this server."""

import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .bridge import HOMES, content_of, is_own
from .clients import CLIENTS, Client
from .processes import has_exited
from .system import NotOwn, make_own_directory, this_host
from .types import Json

logger = logging.getLogger(__name__)


@dataclass(eq=False, repr=False)
class DiscoveryFiles:
    """The files of all clients, written and removed together."""

    _pid: int
    _port: int
    _token: str
    _environ: Mapping[str, str]
    listen: Callable[[], None] | None = field(init=False, default=None)
    """Function that listens at the Unix socket, once this process may serve.

    It raises an OSError whose message names the socket and a remedy.
    """

    def names(self) -> list[list[str]]:
        """Return the name of each client and of its file, written or not."""
        return [[client.name, str(self._path(client))] for client in CLIENTS]

    def update(self, roots: Sequence[str]) -> list[str]:
        """Write the files that differ with ``roots``; return problems as sentences."""
        # A cleanup may have removed a file, or a client may be new.
        problems = []
        for client in CLIENTS:
            is_usable = self.listen is not None or not client.has_socket
            if not is_usable or not client.is_installed(self._environ):
                continue
            problems += [
                f"{client.title} cannot connect from {root}: its name contains "
                f"{os.pathsep}"
                for root in roots
                if not client.can_take(root)
            ]
            if problem := self._publish(client, roots):
                problems.append(
                    f"{problem}; a new {client.title} cannot find this Emacs"
                )
        return problems

    def _publish(self, client: Client, roots: Sequence[str]) -> str:
        """Write the file of ``client`` if it differs; return a problem or ""."""
        path, payload = self._path(client), self._payload(client, roots)
        try:
            if client.name not in HOMES:
                _make_directory(path.parent.parent)
            _make_directory(path.parent)
        except OSError as error:
            return f"Cannot write {path}: {error.strerror or error}"
        try:
            if client.has_socket and self.listen:
                self.listen()
        except OSError as error:
            return str(error)
        try:
            found, content = content_of(path), json.dumps(payload).encode()
            if found == payload:
                return ""
            if client.has_socket and found.get("pid") == os.getpid():
                # Another file would disconnect it.
                path.write_bytes(content)
            else:
                _replace(path, content)
        except OSError as error:
            return f"Cannot write {path}: {error.strerror or error}"
        return ""

    def remove(self) -> None:
        """Remove the files that name this server."""
        for client in CLIENTS:
            with suppress(OSError):
                self._path(client).unlink()

    def sweep(self) -> None:
        """Remove the files of this user's dead Emacsen, and others of this Emacs."""
        for client in CLIENTS:
            own = self._path(client)
            with suppress(OSError):
                if not is_own(own.parent.lstat()):
                    continue
                for path in own.parent.glob(client.file_name("*", "*")):
                    if path != own and _is_stale(path, self._pid):
                        logger.info("Removing a stale discovery file: %s", path.name)
                        path.unlink()

    def _path(self, client: Client) -> Path:
        name = client.file_name(self._pid, self._port)
        return client.directory(self._environ) / name

    def _payload(self, client: Client, roots: Sequence[str]) -> Json:
        return {
            **client.discovery(self._port, self._token, roots),
            # Qwen Code deletes a file without it; the others ignore it.
            "ppid": self._pid,
            "host": this_host(),
        }


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
