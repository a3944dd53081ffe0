# SPDX-License-Identifier: GPL-3.0-or-later
"""Logging to stderr and to a file.

Each event is one line, with the sizes of texts but never the texts themselves.  A
traceback follows it on lines of its own.
"""

import logging
import os
import sys
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
_FILE_SIZE = 1024 * 1024
_FILES_KEPT = 3


class _Lines(logging.Formatter):
    """Formatter that writes each event on one line, before its traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        return super().formatMessage(record).replace("\r", "\\r").replace("\n", "\\n")


class _SharedFile(RotatingFileHandler):
    """Rotating log file of several Emacsen."""

    def shouldRollover(self, record: logging.LogRecord) -> bool:
        with suppress(OSError):
            named, stream = os.stat(self.baseFilename), self.stream
            # Another one may have renamed the file.
            if stream and not os.path.samestat(named, os.fstat(stream.fileno())):
                self.stream = self._open()
                stream.close()
        return bool(super().shouldRollover(record))


def to_stderr() -> None:
    """Log to stderr, the end of which Emacs keeps."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines(_FORMAT))
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("mcp").setLevel(logging.WARNING)


def to_file(name: str) -> None:
    """Also log to the file ``name``.

    Create its directory if it does not exist.  Raise OSError if the file cannot be
    written.
    """
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    handler = _SharedFile(
        name,
        maxBytes=_FILE_SIZE,
        backupCount=_FILES_KEPT,
        encoding="utf-8",
        errors="backslashreplace",
    )
    handler.setFormatter(_Lines(_FORMAT))
    logging.getLogger().addHandler(handler)
