# SPDX-License-Identifier: GPL-3.0-or-later
"""Count the lines of a project that have a word, as a text search would."""

import os
import re
import subprocess
import time
from collections.abc import Iterator

_LARGEST = 1024 * 1024
_SKIPPED = {"node_modules", "__pycache__"}


def count_lines(word: str, directory: str, limit: float) -> tuple[dict[str, int], bool]:
    """Return the number of lines with ``word`` in each file below ``directory``.

    Return also whether all files were searched within ``limit`` seconds.
    """
    end = time.monotonic() + limit
    encoded = word.encode()
    pattern = re.compile(
        (rb"(?<!\w)" if encoded[:1].isalnum() else b"")
        + re.escape(encoded)
        + (rb"(?!\w)" if encoded[-1:].isalnum() else b"")
    )
    counts: dict[str, int] = {}
    for path in _files(directory, limit):
        if time.monotonic() > end:
            return counts, False
        count = _count(path, encoded, pattern)
        if count:
            counts[path] = count
    return counts, True


def _count(path: str, word: bytes, pattern: re.Pattern[bytes]) -> int:
    try:
        # Opening a pipe would block.
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST:
            return 0
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return 0
    if word not in data or b"\0" in data[:1024]:
        return 0
    return sum(1 for line in data.split(b"\n") if pattern.search(line))


def _files(directory: str, limit: float) -> Iterator[str]:
    """Yield the files below ``directory``, without those that git ignores."""
    try:
        listed = subprocess.run(
            [
                "git",
                "-c",
                "core.fsmonitor=false",
                "ls-files",
                "-z",
                "-co",
                "--exclude-standard",
            ],
            cwd=directory,
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=limit,
        )
    except (OSError, subprocess.SubprocessError):
        for parent, names, files in os.walk(directory):
            names[:] = [
                name
                for name in names
                if name not in _SKIPPED and not name.startswith(".")
            ]
            for name in files:
                yield os.path.join(parent, name)
    else:
        for encoded in filter(None, listed.stdout.split(b"\0")):
            yield os.path.join(directory, os.fsdecode(encoded))
