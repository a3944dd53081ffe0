# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion between S-expressions and values.

The parser of sexpdata is used, with its errors corrected.
"""

import re
from typing import Any, TypeAlias

import sexpdata
from sexpdata import Symbol

from .types import Facts

Sexp: TypeAlias = Any

_OCTAL = re.compile(r"[0-7]{1,3}")


class _Parser(sexpdata.Parser):
    """The parser of sexpdata, which misreads some escapes in strings."""

    def parse_str(self, i: int) -> tuple[int, str]:
        chars: list[str] = []
        i += 1
        while (found := self.quote_or_escape_re.search(self.string, i)) is not None:
            chars.append(self.string[i : found.start()])
            i = found.end()
            if found.group() == '"':
                return i, "".join(chars)
            i = self._escape(i, chars)
        raise ValueError("unterminated string")

    def _escape(self, i: int, chars: list[str]) -> int:
        octal = _OCTAL.match(self.string, i)
        if octal is not None:
            code = int(octal.group(), 8)
            # Emacs prints a byte that is not part of a character like this.
            chars.append(chr(code) if code < 0x80 else "\ufffd")
            return octal.end()
        char = self.string[i : i + 1]
        if char not in (" ", "\n"):
            chars.append(sexpdata.String.unquote("\\" + char)[-1:])
        return i + 1


def parse(message: bytes) -> list[Sexp]:
    """Return the list in ``message``.

    Raise ValueError if it is not one list.
    """
    try:
        forms = _Parser(message.decode("utf-8", errors="replace")).parse()
    except (
        ValueError,
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


def is_integer(value: Sexp) -> bool:
    """Return whether ``value`` is an integer; a boolean is none."""
    return isinstance(value, int) and not isinstance(value, bool)


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
