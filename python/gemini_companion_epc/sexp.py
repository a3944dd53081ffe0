# SPDX-License-Identifier: GPL-3.0-or-later
"""Conversion between S-expressions and values.

The parser of sexpdata is used, with its errors corrected.
"""

import re
from typing import Any, TypeAlias

import sexpdata
from sexpdata import Symbol

from .config import new_token
from .exceptions import MalformedArgument
from .places import Spec
from .types import Facts, clean

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


def is_text(value: Sexp) -> bool:
    """Return whether ``value`` is a string; a symbol is none."""
    return isinstance(value, str) and not isinstance(value, Symbol)


def is_integer(value: Sexp) -> bool:
    """Return whether ``value`` is an integer; a boolean is none."""
    return isinstance(value, int) and not isinstance(value, bool)


def as_integer(value: Sexp, name: str) -> int:
    """Return ``value``, the argument ``name``.

    Raise MalformedArgument if it is not an integer.
    """
    if not is_integer(value):
        raise MalformedArgument(f"{name} must be an integer")
    return int(value)


def as_text(value: Sexp, name: str) -> str:
    """Return ``value``, the argument ``name``, without lone surrogates.

    Raise MalformedArgument if it is not a string.
    """
    if not is_text(value):
        raise MalformedArgument(f"{name} must be a string")
    return clean(value)


def as_plist(value: Sexp) -> dict[str, Sexp]:
    """Return the property list ``value`` as a dictionary.

    Raise MalformedArgument if it is not a property list.
    """
    if not isinstance(value, list) or len(value) % 2:
        raise MalformedArgument("a property list is required")
    keys = value[::2]
    if not all(isinstance(key, Symbol) for key in keys):
        raise MalformedArgument("a property list is required")
    return {key.value(): item for key, item in zip(keys, value[1::2], strict=True)}


def file_from(value: Sexp) -> Facts:
    """Return the file that the property list ``value`` describes.

    It is spelled as in the protocol.  Raise MalformedArgument if it is malformed.
    """
    plist = as_plist(value)
    file: Facts = {
        "path": as_text(plist.get(":path"), ":path"),
        "timestamp": as_integer(plist.get(":timestamp"), ":timestamp"),
    }
    if plist.get(":active"):
        file["isActive"] = True
    if plist.get(":line"):
        file["cursor"] = {
            "line": as_integer(plist[":line"], ":line"),
            "character": as_integer(plist.get(":character"), ":character"),
        }
    if plist.get(":selected-text"):
        file["selectedText"] = as_text(plist[":selected-text"], ":selected-text")
    return file


def context_from(value: Sexp) -> list[Facts]:
    """Return the files that the list ``value`` describes.

    Raise MalformedArgument if it is malformed.
    """
    if not isinstance(value, list):
        raise MalformedArgument("FILES must be a list")
    return [file_from(item) for item in value]


def roots_from(value: Sexp) -> tuple[str, ...]:
    """Return the workspace roots in the list ``value``.

    Raise MalformedArgument if it is not a list of strings.
    """
    if not isinstance(value, list):
        raise MalformedArgument("ROOTS must be a list")
    return tuple(as_text(root, "a root") for root in value)


def place_from(value: Sexp) -> Spec:
    """Return the place that the property list ``value`` describes.

    Raise MalformedArgument if it is malformed.
    """
    plist = as_plist(value)

    def texts(key: str) -> tuple[str, ...]:
        values = plist.get(key)
        return tuple(as_text(one, key) for one in values) if values else ()

    shared = texts(":shared")
    return Spec(
        name=as_text(plist.get(":name"), ":name"),
        command=texts(":command"),
        mirror=as_text(plist.get(":mirror"), ":mirror"),
        directories=texts(":directories"),
        files=texts(":files"),
        shared=tuple(zip(shared[::2], shared[1::2], strict=True)),
        port=as_integer(plist.get(":port") or 0, ":port"),
        token=as_text(plist.get(":token") or new_token(), ":token"),
    )
