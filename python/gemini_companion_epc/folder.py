# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of this process for the texts that are too large for EPC."""

import logging
import os
import re
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from .exceptions import MalformedArgument
from .processes import lives
from .types import encode

logger = logging.getLogger(__name__)

_PREFIX = "gemini-companion-"
_PIECE = 256 * 1024
_NAME = re.compile(rf"{_PREFIX}(\d+)-\w+", re.ASCII)


class PrivateFolder:
    """A folder that only this user reads; without one, `path` is None."""

    def __init__(self) -> None:
        self.path: Path | None = None
        self.fault = ""
        try:
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        except OSError as error:
            self.fault = error.strerror or str(error)
        self._lock = threading.Lock()
        self._written = 0

    def write(self, text: str) -> Path | None:
        """Write TEXT to a new file and return its name, None if it fails."""
        if self.path is None:
            return None
        with self._lock:
            self._written += 1
            path = self.path / f"server-{self._written}"
        self.restore()
        try:
            if not _is_ours(self.path):
                raise PermissionError(f"{self.path} belongs to another user")
            _write_private(path, text)
        except OSError as error:
            logger.warning("A large text cannot be written: %s", error)
            with suppress(OSError):
                path.unlink()
            return None
        return path

    def take(self, name: str) -> str:
        """Return the text of the file NAME of this folder and delete it."""
        path = Path(os.path.realpath(name))
        if self.path is None or path.parent != Path(os.path.realpath(self.path)):
            raise MalformedArgument("a text file must be in the private folder")
        try:
            # Somebody may have put another folder where a cleaner took ours.
            if not _is_ours(path.parent) or not _is_ours(path):
                raise PermissionError("it belongs to another user")
            content = path.read_bytes()
            path.unlink()
        except OSError as error:
            raise MalformedArgument(
                f"a text file cannot be read: {error.strerror or error}"
            ) from None
        return content.decode("utf-8", errors="replace")

    def restore(self) -> None:
        """Make the folder again if a cleaner of temporary files took it."""
        if self.path is not None:
            with suppress(OSError):
                self.path.mkdir(mode=0o700)

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)


def _write_private(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        # To encode 10 MB at once would hold up the event loop for 8 ms.
        for start in range(0, len(text), _PIECE):
            file.write(encode(text[start : start + _PIECE]))


def sweep() -> None:
    """Remove the folders of this user's servers that were killed."""
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).iterdir():
            name = _NAME.fullmatch(path.name)
            if name and not lives(int(name[1])) and _is_ours(path):
                logger.info("Removing the folder of a dead server: %s", path.name)
                shutil.rmtree(path, ignore_errors=True)


def _is_ours(path: Path) -> bool:
    return not hasattr(os, "geteuid") or path.lstat().st_uid == os.geteuid()
