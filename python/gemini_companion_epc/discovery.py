# SPDX-License-Identifier: GPL-3.0-or-later
"""The discovery files, by which each CLI finds this server."""

import json
import logging
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from .clients import CLIENTS, IDE_INFO, Client
from .exceptions import DiscoveryError
from .processes import lives
from .system import IS_WINDOWS, is_own, write_private

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Discovery:
    """The data with which one client connects to this server."""

    client: Client
    pid: int
    port: int
    roots: tuple[str, ...]
    token: str = field(repr=False)

    def path(self, environ: Mapping[str, str]) -> Path:
        """Return the file by which the client finds this server."""
        directory = self.client.directory(environ)
        return directory / self.client.file_name(self.pid, self.port)

    def payload(self) -> dict[str, object]:
        """Return the content of the file in the protocol's spelling."""
        return {
            "port": self.port,
            "workspacePath": self.client.workspace_path(self.roots),
            "authToken": self.client.bearer(self.token),
            "ideInfo": IDE_INFO,
            # Qwen Code deletes a file without it; Gemini CLI ignores it.
            "ppid": self.pid,
        }


class DiscoveryFiles:
    """The files of all clients, written and removed together."""

    def __init__(
        self, pid: int, port: int, token: str, environ: Mapping[str, str]
    ) -> None:
        self._environ = environ
        self._all = [Discovery(client, pid, port, (), token) for client in CLIENTS]

    def names(self) -> list[list[str]]:
        """Return the name of each client and of its file, written or not."""
        return [[one.client.name, str(one.path(self._environ))] for one in self._all]

    def update(self, roots: tuple[str, ...]) -> list[str]:
        """Write all files with ``roots``; return the problems as sentences.

        They must be true names, see `true_names`.
        """
        self._all = [replace(one, roots=roots) for one in self._all]
        problems = [
            f"{one.client.title} cannot connect from {root}: its name contains "
            f"{os.pathsep}"
            for one in self._all
            if one.client.is_installed(self._environ)
            for root in roots
            if not one.client.can_take(root)
        ]
        return problems + self._write(self._all)

    def restore(self) -> list[str]:
        """Write the files that are missing; return the problems as sentences.

        A cleanup of temporary files may have removed one, or a client may have
        been installed in the meantime.
        """
        return self._write(
            one for one in self._all if _read(one.path(self._environ)) != one.payload()
        )

    def _write(self, wanted: Iterable[Discovery]) -> list[str]:
        problems = []
        for one in wanted:
            if one.client.is_installed(self._environ):
                try:
                    write(one, self._environ)
                except DiscoveryError as error:
                    problems.append(str(error))
        return problems

    def remove(self) -> None:
        """Remove the files that name this server.

        The previous process may have written one that could not be replaced.
        """
        for one in self._all:
            path, own = one.path(self._environ), one.payload()
            found = _read(path)
            if all(found.get(key) == own[key] for key in ("port", "authToken")):
                with suppress(OSError):
                    path.unlink()

    def sweep(self) -> None:
        """Remove the stale files of this user's Emacsen, and no others.

        Stale are the files of dead Emacsen, and others of this Emacs.
        """
        for one in self._all:
            own = one.path(self._environ)
            with suppress(OSError):
                for path in own.parent.glob(one.client.file_name("*", "*")):
                    if path != own and _is_stale(_read(path), one.pid):
                        logger.info("Removing a stale discovery file: %s", path.name)
                        path.unlink()


def true_names(roots: Iterable[str]) -> tuple[str, ...]:
    """Return the true names of those ``roots`` that are local directories."""
    return tuple(
        dict.fromkeys(
            os.path.realpath(root)
            for root in roots
            if os.path.isabs(root) and "\0" not in root and os.path.isdir(root)
        )
    )


def write(discovery: Discovery, environ: Mapping[str, str]) -> Path:
    """Write the file of ``discovery`` atomically and return its name.

    Raise DiscoveryError if that is not possible.
    """
    path = discovery.path(environ)
    # Clients ignore this name, so they never read an incomplete file.
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    content = json.dumps(discovery.payload()).encode()
    try:
        if not discovery.client.needs_home:
            _make_directory(path.parent.parent)
        _make_directory(path.parent)
        draft.unlink(missing_ok=True)
        write_private(draft, content)
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise DiscoveryError(
            f"Cannot write {path}: {error.strerror or error}; "
            f"a new {discovery.client.title} cannot find this Emacs"
        ) from error
    return path


def _make_directory(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not is_own(found):
        raise DiscoveryError(
            f"{path} belongs to another user; set TMPDIR to a directory of your "
            "own for Emacs and the CLI"
        )
    if not stat.S_ISDIR(found.st_mode):
        raise DiscoveryError(
            f"{path} is not a directory; remove it, or a new CLI cannot find this Emacs"
        )
    if not IS_WINDOWS and found.st_mode & 0o022:
        path.chmod(0o700)


def _is_stale(content: dict[str, object], own_pid: int) -> bool:
    # Each of our files has it, see `Discovery.payload`.
    pid = content.get("ppid")
    is_ours = content.get("ideInfo") == IDE_INFO
    return is_ours and isinstance(pid, int) and (pid == own_pid or not lives(pid))


def _read(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
