# SPDX-License-Identifier: GPL-3.0-or-later
"""Logging to stderr and to a file.

An event has the sizes of texts but never the texts themselves.
"""

import logging
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler, WatchedFileHandler
from pathlib import Path

_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
_FILE_SIZE = 1024 * 1024
_FILES_KEPT = 3


class _SharedFile(RotatingFileHandler, WatchedFileHandler):
    """Rotating log file of several Emacsen, each of which may rename it."""

    dev = ino = -1

    def shouldRollover(self, record: logging.LogRecord) -> bool:
        self.reopenIfNeeded()
        return bool(super().shouldRollover(record))

    def _open(self) -> TextIOWrapper:
        # The user may delete the directory.
        Path(self.baseFilename).parent.mkdir(parents=True, exist_ok=True)
        return super()._open()


def to_stderr() -> None:
    """Log to stderr, of which Emacs keeps the last lines."""
    logging.basicConfig(level=logging.INFO, format=_FORMAT)
    logging.getLogger("mcp").setLevel(logging.WARNING)


def to_file(name: str) -> None:
    """Also log to the file ``name``, in a new directory if there is none.

    Raise OSError if it cannot be written.
    """
    handler = _SharedFile(
        name,
        maxBytes=_FILE_SIZE,
        backupCount=_FILES_KEPT,
        encoding="utf-8",
        errors="backslashreplace",
    )
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.getLogger().addHandler(handler)
