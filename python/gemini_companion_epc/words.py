# SPDX-License-Identifier: GPL-3.0-or-later
"""Count the lines of a project that contain a word, as a text search would."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

_LARGEST = 1024 * 1024
_GIT = ("git", "-c", "core.fsmonitor=false")
_SKIPPED = {"node_modules", "__pycache__"}


def count_lines(word: str, directory: str, limit: float) -> tuple[dict[str, int], bool]:
    """Return the number of lines with ``word`` in each file below ``directory``.

    Return also whether all text files were searched within ``limit`` seconds.
    """
    end = time.monotonic() + limit
    pattern = _whole(word.encode())
    counts: dict[str, int] = {}
    is_whole = True
    for path in _files(directory, limit):
        if time.monotonic() > end:
            return counts, False
        count = _count(path, pattern)
        if count is None:
            is_whole = False
        elif count:
            counts[path] = count
    return counts, is_whole


def _whole(word: bytes) -> re.Pattern[bytes]:
    """Return a regexp for ``word`` and the rest of its line, but not inside a word."""
    name = re.escape(word)
    # Ten times as fast as a regexp that does not begin with the word itself.
    return re.compile(rb"%b(?<!\w\B%b)(?!\B\w).*" % (name, name))


def _count(path: str, pattern: re.Pattern[bytes]) -> int | None:
    """Return the number of lines with ``pattern``, or None if the file is too large."""
    try:
        # Opening a pipe would block.
        if not os.path.isfile(path):
            return 0
        with open(path, "rb") as file:
            data = file.read(_LARGEST + 1)
    except OSError:
        return 0
    if b"\0" in data[:1024]:
        return 0
    return None if len(data) > _LARGEST else len(pattern.findall(data))


def _files(directory: str, limit: float) -> Iterator[str]:
    """Yield the files below ``directory``, without those that git ignores."""
    listed = b""
    with suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(
            [*_GIT, "ls-files", "-z", "-co", "--exclude-standard"],
            cwd=directory,
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=limit,
        ).stdout
    for encoded in filter(None, listed.split(b"\0")):
        yield os.path.join(directory, os.fsdecode(encoded))
    # An outer repository may ignore the whole directory.
    if not listed:
        for parent, names, files in os.walk(directory):
            names[:] = [
                name
                for name in names
                if name not in _SKIPPED and not name.startswith(".")
            ]
            for name in files:
                yield os.path.join(parent, name)
