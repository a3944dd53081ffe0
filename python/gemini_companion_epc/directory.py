# SPDX-License-Identifier: GPL-3.0-or-later
"""The private directory of this process, for texts that are too large for EPC."""

import logging
import os
import re
import shutil
import tempfile
from contextlib import suppress
from itertools import count
from pathlib import Path

from sexpdata import Symbol

from .exceptions import MalformedArgument
from .processes import lives
from .sexp import Sexp, as_plist, as_text, is_text
from .system import is_own, write_private
from .types import clean, encode

logger = logging.getLogger(__name__)

LARGE_TEXT = 256 * 1024
"""Size from which a text goes through a file."""

_PREFIX = "gemini-companion-"
_NAME = re.compile(rf"{_PREFIX}(\d+)-\w+", re.ASCII)


class Text:
    """A text for Emacs, which is sent in a file of ``directory`` if it is large.

    sexpdata converts it in the thread that writes.
    """

    def __init__(self, text: str, directory: "PrivateDirectory") -> None:
        self._text = text
        self._directory = directory

    def __to_lisp_as__(self) -> Sexp:
        if len(self._text) >= LARGE_TEXT:
            path = self._directory.write(self._text)
            if path is not None:
                return [Symbol(":file"), str(path)]
        return clean(self._text)


class PrivateDirectory:
    """A temporary directory that only this user can read.

    ``path`` is None if it cannot be created.
    """

    def __init__(self) -> None:
        self.path: Path | None = None
        try:
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        except OSError as error:
            logger.warning("Cannot create a temporary directory: %s", error)
        self._numbers = count(1)

    def read(self, value: Sexp) -> str:
        """Return the text ``value`` of Emacs, which may be in a file.

        Raise MalformedArgument if it is not a text.
        """
        if is_text(value):
            return clean(value)
        return self.take(as_text(as_plist(value).get(":file"), "TEXT"))

    def write(self, text: str) -> Path | None:
        """Write ``text`` to a new file; return its name, or None on failure."""
        if self.path is None:
            return None
        path = self.path / f"server-{next(self._numbers)}"
        self.restore()
        try:
            if not _is_ours(self.path):
                raise PermissionError(f"{self.path} belongs to another user")
            write_private(path, encode(text))
        except OSError as error:
            logger.warning("Cannot write a large text: %s", error)
            with suppress(OSError):
                path.unlink()
            return None
        return path

    def take(self, name: str) -> str:
        """Return the text of the file ``name`` in this directory, and delete it.

        Raise MalformedArgument if that is not possible.
        """
        path = Path(os.path.realpath(name))
        if self.path is None or path.parent != Path(os.path.realpath(self.path)):
            raise MalformedArgument("a text file must be in the private directory")
        try:
            # Another user may have replaced a directory that was cleaned up.
            if not _is_ours(path.parent) or not _is_ours(path):
                raise PermissionError("it belongs to another user")
            content = path.read_bytes()
            path.unlink()
        except OSError as error:
            raise MalformedArgument(
                f"cannot read a text file: {error.strerror or error}"
            ) from None
        return content.decode("utf-8", errors="replace")

    def restore(self) -> None:
        """Create the directory again if it, or its parent, was cleaned up."""
        if self.path is not None:
            with suppress(OSError):
                self.path.mkdir(mode=0o700, parents=True)

    def remove(self) -> None:
        """Remove the directory with its files."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)


def sweep() -> None:
    """Remove the directories of this user's servers that were killed."""
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).iterdir():
            name = _NAME.fullmatch(path.name)
            if name and not lives(int(name[1])) and _is_ours(path):
                logger.info("Removing the directory of a dead server: %s", path.name)
                shutil.rmtree(path, ignore_errors=True)


def _is_ours(path: Path) -> bool:
    return is_own(path.lstat())
