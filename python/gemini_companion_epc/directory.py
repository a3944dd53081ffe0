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

from .exceptions import MalformedArgument, StartError
from .processes import lives
from .sexp import Sexp
from .system import is_own, write_private

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
        if len(self._text) < LARGE_TEXT:
            return self._text
        return [Symbol(":file"), str(self._directory.write(self._text))]


class PrivateDirectory:
    """A temporary directory that only this user can read.

    Raise StartError if it cannot be created.
    """

    def __init__(self) -> None:
        try:
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-"))
        except OSError as error:
            raise StartError(
                f"Cannot create a temporary directory: {error.strerror or error}; "
                "free disk space, or check TMPDIR"
            ) from None
        self._numbers = count(1)

    def write(self, text: str) -> Path:
        """Write ``text`` to a new file, and return its name.

        Raise OSError if that is not possible.
        """
        path = self.path / f"server-{next(self._numbers)}"
        # It, or its parent, may have been cleaned up.
        with suppress(FileExistsError):
            self.path.mkdir(mode=0o700, parents=True)
        _check_owner(self.path)
        write_private(path, text.encode(errors="replace"))
        return path

    def take(self, name: str) -> str:
        """Return the text in the file ``name`` in this directory, and delete it.

        Raise MalformedArgument if it is not there.
        """
        path = Path(os.path.realpath(name))
        if path.parent != Path(os.path.realpath(self.path)):
            raise MalformedArgument("a text file must be in the private directory")
        try:
            _check_owner(path.parent)
            _check_owner(path)
            content = path.read_bytes()
            path.unlink()
        except OSError as error:
            raise MalformedArgument(
                f"cannot read a text file: {error.strerror or error}"
            ) from None
        return content.decode("utf-8", errors="replace")

    def remove(self) -> None:
        """Remove the directory with its files."""
        shutil.rmtree(self.path, ignore_errors=True)


def sweep() -> None:
    """Remove the directories of this user's servers that were killed."""
    with suppress(OSError):
        for path in Path(tempfile.gettempdir()).iterdir():
            name = _NAME.fullmatch(path.name)
            if name and not lives(int(name[1])) and is_own(path.lstat()):
                logger.info("Removing the directory of a dead server: %s", path.name)
                shutil.rmtree(path, ignore_errors=True)


def _check_owner(path: Path) -> None:
    """Raise PermissionError if ``path`` belongs to another user.

    That user may have replaced a directory that was cleaned up.
    """
    if not is_own(path.lstat()):
        raise PermissionError(f"{path} belongs to another user")
