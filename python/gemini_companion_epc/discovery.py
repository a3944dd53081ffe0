# SPDX-License-Identifier: GPL-3.0-or-later
"""The discovery file: how Gemini CLI finds this server and is let in.

Name and payload are pure; writing, removing and sweeping are apart from them.
"""

import json
import logging
import os
import re
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from .exceptions import DiscoveryError
from .processes import lives

logger = logging.getLogger(__name__)

IDE_NAME = "emacs"

_FILE_NAME = re.compile(r"gemini-ide-server-(\d+)-\d+\.json", re.ASCII)
_DRAFT_NAME = re.compile(r"gemini-ide-server-\d+-\d+\.(\d+)\.tmp", re.ASCII)


@dataclass(frozen=True)
class Discovery:
    """What Gemini CLI needs to find this server and be let in."""

    pid: int
    port: int
    workspaces: tuple[str, ...]
    token: str = field(repr=False)

    def path(self, tmpdir: Path) -> Path:
        """Return where the client looks for the file, below its TMPDIR."""
        name = f"gemini-ide-server-{self.pid}-{self.port}.json"
        return folder(tmpdir) / name

    def payload(self) -> dict[str, object]:
        """Return the content of the file in the protocol's spelling."""
        return {
            "port": self.port,
            "workspacePath": os.pathsep.join(self.workspaces),
            "authToken": self.token,
            "ideInfo": {"name": IDE_NAME, "displayName": "Emacs"},
        }


def folder(tmpdir: Path) -> Path:
    """Return the folder of the discovery files below TMPDIR."""
    return tmpdir / "gemini" / "ide"


def node_tmpdir(environ: Mapping[str, str], is_windows: bool) -> Path:
    """Return what os.tmpdir() of Node returns in ENVIRON."""
    if is_windows:
        root = environ.get("SystemRoot") or environ.get("windir") or ""
        name = environ.get("TEMP") or environ.get("TMP") or root + "\\temp"
        return Path(name)
    names = (environ.get(variable) for variable in ("TMPDIR", "TMP", "TEMP"))
    return Path(next((name for name in names if name), "/tmp"))


def workspaces(roots: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the true names of ROOTS that can be written, and what cannot.

    The second tuple holds those that the separator of the file would split.
    """
    kept: dict[str, None] = {}
    refused: list[str] = []
    for root in roots:
        if not os.path.isabs(root) or "\0" in root or not os.path.isdir(root):
            continue
        true_name = os.path.realpath(root)
        if os.pathsep in true_name:
            refused.append(root)
        else:
            kept[true_name] = None
    return tuple(kept), tuple(refused)


def write(discovery: Discovery, tmpdir: Path) -> Path:
    """Write the file of DISCOVERY atomically and return its name."""
    path = discovery.path(tmpdir)
    # The client ignores other names, so it never reads half a file.
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    content = json.dumps(discovery.payload()).encode()
    try:
        _make_folder(path.parent.parent)
        _make_folder(path.parent)
        draft.unlink(missing_ok=True)
        _write_private(draft, content)
        os.replace(draft, path)
    except OSError as error:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise DiscoveryError(
            f"Cannot write {path}: {error.strerror or error}; "
            "a new Gemini CLI will not find this Emacs"
        ) from error
    return path


def _make_folder(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()
    if hasattr(os, "geteuid") and found.st_uid != os.geteuid():
        raise DiscoveryError(
            f"{path} belongs to another user; set TMPDIR to a folder of your "
            "own for Emacs and Gemini CLI"
        )
    if not stat.S_ISDIR(found.st_mode):
        raise DiscoveryError(
            f"{path} is not a folder; remove it, or a new Gemini CLI will not "
            "find this Emacs"
        )
    if os.name == "posix" and found.st_mode & 0o022:
        path.chmod(0o700)


def _write_private(path: Path, content: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)


def remove(path: Path, discovery: Discovery) -> None:
    """Remove PATH if it still holds the port and token of DISCOVERY."""
    found = _read(path)
    if found.get("port") != discovery.port:
        return
    if found.get("authToken") == discovery.token:
        path.unlink(missing_ok=True)


def is_whole(path: Path, discovery: Discovery) -> bool:
    """Return whether PATH holds what DISCOVERY tells."""
    return _read(path) == discovery.payload()


def sweep(tmpdir: Path, discovery: Discovery) -> None:
    """Remove the stale files of this user's Emacsen, and no others.

    Those are the files of dead Emacsen, and those of the Emacs of ``discovery``
    that name another port.
    """
    try:
        paths = sorted(folder(tmpdir).iterdir())
    except OSError:
        return
    for path in paths:
        if path == discovery.path(tmpdir):
            continue
        if _is_stale(path, discovery.pid) and _belongs_to_this_user(path):
            logger.info("Removing a stale discovery file: %s", path.name)
            with suppress(OSError):
                path.unlink()


def _is_stale(path: Path, own_pid: int) -> bool:
    if draft := _DRAFT_NAME.fullmatch(path.name):
        return not lives(int(draft[1]))
    name = _FILE_NAME.fullmatch(path.name)
    if name is None:
        return False
    pid = int(name[1])
    return (pid == own_pid or not lives(pid)) and _is_of_emacs(path)


def _is_of_emacs(path: Path) -> bool:
    ide = _read(path).get("ideInfo")
    return isinstance(ide, dict) and ide.get("name") == IDE_NAME


def _belongs_to_this_user(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    if not stat.S_ISREG(found.st_mode):
        return False
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def _read(path: Path) -> dict[str, object]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
