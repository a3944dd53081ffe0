# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion between S-expressions and values."""

import re
from typing import Any, TypeAlias

import sexpdata
from sexpdata import Symbol

from .types import Facts

Sexp: TypeAlias = Any

_BACKSLASH = re.compile(rb"\\(?:\\|[0-7]{1,3})")


def parse(message: bytes) -> list[Sexp]:
    """Return the list in ``message``.

    Raise ValueError if it is not one list.
    """
    text = _BACKSLASH.sub(_unescaped, message)
    try:
        forms = sexpdata.parse(text.decode("utf-8", errors="replace"))
    except (
        ValueError,
        AttributeError,  # for a string without an end
        IndexError,
        RecursionError,
        sexpdata.ExpectClosingBracket,
        sexpdata.ExpectNothing,
        sexpdata.ExpectSExp,
    ) as error:
        raise ValueError(f"not an S-expression: {type(error).__name__}") from None
    if len(forms) != 1 or not isinstance(forms[0], list):
        raise ValueError("not one list")
    return forms[0]


def _unescaped(found: re.Match[bytes]) -> bytes:
    """Return the byte of an escape in octal digits, which sexpdata does not know.

    Emacs prints one that is not part of a character like this, and control characters
    with ``print-escape-control-characters``.
    """
    if found[0] == rb"\\":
        return found[0]
    code = int(found[0][1:], 8)
    return bytes([code]) if code < 0x80 else b"\xff"


def value_of(form: Sexp) -> Any:
    """Return ``form`` with its property lists as dictionaries."""
    if not isinstance(form, list):
        return form
    values = [value_of(item) for item in form]
    if values and isinstance(values[0], Symbol):
        keys = [key.value()[1:].replace("-", "_") for key in values[::2]]
        return dict(zip(keys, values[1::2], strict=True))
    return values


def file_from(facts: Facts) -> Facts:
    """Return the file that ``facts`` of Emacs describe, as the protocol spells it."""
    file: Facts = {"path": facts["path"], "timestamp": facts["timestamp"]}
    if facts.get("active"):
        file["isActive"] = True
    if facts.get("line"):
        file["cursor"] = {"line": facts["line"], "character": facts["character"]}
    if facts.get("selected_text"):
        file["selectedText"] = facts["selected_text"]
    return file
