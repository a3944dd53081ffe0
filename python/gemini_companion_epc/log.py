# SPDX-License-Identifier: GPL-3.0-or-later
"""Logging to stderr and to a file.

An event has the sizes of texts but never the texts themselves.
"""

import logging
from logging.handlers import RotatingFileHandler
from pathlib import Path

_FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"
_FILE_SIZE = 1024 * 1024
_FILES_KEPT = 3


def to_stderr() -> None:
    """Log to stderr, the end of which Emacs keeps."""
    logging.basicConfig(level=logging.INFO, format=_FORMAT)
    logging.getLogger("mcp").setLevel(logging.WARNING)


def to_file(name: str) -> None:
    """Also log to the file ``name``.

    Create its directory if it does not exist.  Raise OSError if the file cannot be
    written.
    """
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    handler = RotatingFileHandler(
        name,
        maxBytes=_FILE_SIZE,
        backupCount=_FILES_KEPT,
        encoding="utf-8",
        errors="backslashreplace",
    )
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.getLogger().addHandler(handler)
