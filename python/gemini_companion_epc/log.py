# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the log goes: what matters to stderr, every event to a file.

Each event is one line, with the sizes of texts and never the texts themselves.
"""

import logging
import os
import sys
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler

_FORMAT = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
_FILE_SIZE = 1024 * 1024
_FILES_KEPT = 3


class _PrivateFile(RotatingFileHandler):
    """A rotating log that only this user can read."""

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        descriptor = os.open(self.baseFilename, flags, 0o600)
        return open(descriptor, "a", encoding="utf-8", errors="backslashreplace")


def to_stderr() -> None:
    """Write what matters to stderr, of which Emacs keeps the end."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.INFO)
    handler.setFormatter(_FORMAT)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("mcp").setLevel(logging.WARNING)


def to_file(name: str) -> None:
    """Write every event to the file NAME, too; OSError if that cannot be."""
    handler = _PrivateFile(name, maxBytes=_FILE_SIZE, backupCount=_FILES_KEPT)
    handler.setFormatter(_FORMAT)
    logging.getLogger().addHandler(handler)
    logging.getLogger(__package__).setLevel(logging.DEBUG)
