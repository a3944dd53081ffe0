# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts in which each tenth line has non-ASCII characters."""

from __future__ import annotations

# In bytes, with the newline.
LINE = 36


def line(place: int, word: str = "line") -> str:
    """Return the line number ``place``, which begins with ``word``."""
    letters = "xx" if place % 10 else "é"
    head = f"{word} {place:07d} "
    return head + letters + "x" * (LINE - 3 - len(head)) + "\n"


def lines(count: int, word: str = "line") -> list[str]:
    """Return the first ``count`` lines that begin with ``word``."""
    return [line(place, word) for place in range(count)]


def of_size(size: int) -> str:
    """Return a text of ``size`` bytes."""
    return "".join(lines(size // LINE)) + "x" * (size % LINE)
