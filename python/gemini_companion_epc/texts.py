# SPDX-License-Identifier: GPL-3.0-or-later
"""Private files for texts that are too large for EPC.

The process that reads a file deletes it.
"""

import logging
import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from sexpdata import Symbol

from .common import is_own, this_host
from .epc_server import Sexp
from .processes import has_exited
from .types import EmacsError, StartError

logger = logging.getLogger(__name__)

LARGE_TEXT = 256 * 1024
"""Minimum size of a text that is passed by a file."""

# Others may have names with numbers, and processes with the same ones.
_PREFIX = f"gemini-companion-{sha256(this_host().encode()).hexdigest()[:12]}-"
_NAME = re.compile(rf"{_PREFIX}(\d+)-.*", re.ASCII)


def prefix() -> str:
    """Return how the names of this process's files begin.

    Raise StartError if there is no temporary directory.
    """
    try:
        directory = tempfile.gettempdir()
    except OSError as error:
        raise StartError(
            f"Cannot use a temporary directory: {error.strerror or error}; "
            "free disk space, or check TMPDIR"
        ) from None
    return os.path.join(directory, f"{_PREFIX}{os.getpid()}-")


def pack(text: str) -> Sexp:
    """Return ``text`` for Emacs, in a new file if it is large, or raise EmacsError."""
    if len(text) < LARGE_TEXT:
        return text
    try:
        descriptor, name = tempfile.mkstemp(prefix=os.path.basename(prefix()))
        with os.fdopen(descriptor, "wb") as file:
            file.write(text.encode(errors="replace"))
    except OSError as error:
        raise EmacsError(error.strerror or str(error)) from None
    return [Symbol(":file"), name]


def take(name: str) -> str:
    """Return the text in the file ``name``, and delete it, or raise EmacsError."""
    if not _plain(name).startswith(_plain(prefix())):
        raise EmacsError("a text file must have the prefix of the server")
    try:
        content = Path(name).read_bytes()
        os.unlink(name)
    except OSError as error:
        raise EmacsError(f"cannot read a text: {error.strerror or error}") from None
    return content.decode("utf-8", errors="replace")


def _plain(name: str) -> str:
    # On Windows, Emacs uses slashes and a lower-case drive letter.
    return os.path.normcase(os.path.abspath(name))


def wait_for_exit(pid: int, limit: float) -> None:
    """Wait until ``pid`` has exited, if it has files, for at most ``limit`` seconds.

    Others see that a process has closed its pipes a moment before it has exited.
    """
    names = f"{_PREFIX}{pid}-*"
    end = time.monotonic() + limit
    while (
        any(Path(prefix()).parent.glob(names))
        and not has_exited(pid)
        and time.monotonic() < end
    ):
        time.sleep(0.01)


def sweep(own_pid: int = 0) -> None:
    """Remove the files of servers that were killed, and those of ``own_pid``."""
    for path in Path(prefix()).parent.glob(f"{_PREFIX}*"):
        name = _NAME.fullmatch(path.name)
        if name and (int(name[1]) == own_pid or has_exited(int(name[1]))):
            # The file may belong to another user.
            with suppress(OSError):
                if not is_own(path.lstat()):
                    continue
                if path.is_dir() and not path.is_symlink():
                    # Copies of remote files, left by an Emacs that was killed.
                    shutil.rmtree(path)
                else:
                    path.unlink()
                logger.info("Removed a file of a dead server: %s", path.name)
