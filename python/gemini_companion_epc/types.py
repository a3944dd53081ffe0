# SPDX-License-Identifier: GPL-3.0-or-later
"""Immutable values that pass between Emacs and the CLIs, and the errors."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Address: TypeAlias = tuple[str, int]
Json: TypeAlias = dict[str, object]
"""An object that is written as JSON."""
Facts: TypeAlias = dict[str, Any]
"""An object as a peer sends or reads it: JSON, or a plist by EPC."""
CloseReason: TypeAlias = Literal[
    "closed", "lost", "interrupted", "disconnected", "exited"
]

_REMOTE = re.compile(r"/[A-Za-z0-9-]+:[^/]*:")
LONGEST_NAME = 4096
"""Maximum number of bytes of the name of a file."""
# Emacs cannot visit a file in more directories, and takes seconds to notice it.
DEEPEST = 100
_SURROGATE = re.compile("[\ud800-\udfff]")


class StartError(Exception):
    """The server cannot start; the message is shown to the user."""


class EmacsError(Exception):
    """Emacs answered a call with an error, or not at all."""


class EmacsGone(EmacsError):
    """Emacs has not answered a call, and the server no longer waits for it."""


class RemoteError(Exception):
    """Another host is not connected, or cannot do what it was asked for."""


class CopiesError(RemoteError):
    """The files of a host cannot be copied; the message has the reason."""


class NoAnswer(Exception):
    """A call about files, named by a key, has not returned for a number of seconds."""

    def __init__(self, key: str, seconds: float) -> None:
        super().__init__(f"A file system does not answer ({key})")
        self.seconds = seconds


class MalformedArgument(Exception):
    """A peer sent an argument of the wrong type or format."""


def clean(text: str) -> str:
    """Return ``text`` with lone surrogates replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def string(arguments: Mapping[str, object], name: str) -> str:
    """Return the argument ``name``; raise MalformedArgument if it is no string."""
    value = arguments.get(name)
    if not isinstance(value, str):
        raise MalformedArgument(f"{name} must be a string")
    return value


def file_name(value: str, argument: str) -> str:
    """Return ``value``, an absolute name on this host, or raise MalformedArgument."""
    is_odd = not os.path.isabs(value) or "\0" in value or _REMOTE.match(value)
    is_long = len(value.encode(errors="replace")) > LONGEST_NAME
    if is_odd or is_long or value.count("/") > DEEPEST:
        raise MalformedArgument(f"{argument} must be an absolute path on this machine")
    return value


@dataclass(frozen=True)
class File:
    """An open file, with what Emacs reports about it; lines and columns are from 1."""

    path: str
    timestamp: int
    active: bool = False
    line: int = 0
    character: int = 0
    selected_text: str = ""
    start_line: int = 0
    start_character: int = 0


@dataclass(frozen=True)
class Process:
    """The process of a CLI."""

    pid: int
    directory: str | None = None
    is_acp: bool = False
    identity: int = field(default=0, compare=False)
    """A number that differs for the next process with this PID."""


@dataclass(frozen=True)
class Diff:
    """A proposal that awaits its outcome.

    ``path`` is exactly what the CLI sent, ``local_name`` the name of the file in Emacs,
    if that differs.
    """

    id: int
    session_id: str
    path: str
    proposal: str = field(repr=False)
    local_name: str = ""
