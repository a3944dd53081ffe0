# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts as people have them: each tenth line is not all ASCII."""

from __future__ import annotations

from hashlib import sha256

# In bytes, with the newline.
LINE = 36


def line(place: int, word: str = "line") -> str:
    """Return the line number PLACE, which begins with WORD."""
    letters = "xx" if place % 10 else "é"
    head = f"{word} {place:07d} "
    return head + letters + "x" * (LINE - 3 - len(head)) + "\n"


def lines(count: int, word: str = "line") -> list[str]:
    """Return the first COUNT lines that begin with WORD."""
    return [line(place, word) for place in range(count)]


def of_size(size: int) -> str:
    """Return a text of SIZE bytes."""
    return "".join(lines(size // LINE)) + "x" * (size % LINE)


def digest(text: str) -> str:
    """Return what no other text than TEXT has."""
    return sha256(text.encode()).hexdigest()
