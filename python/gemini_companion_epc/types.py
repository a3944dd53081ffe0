# SPDX-License-Identifier: GPL-3.0-or-later
"""Immutable values that pass between Emacs and Gemini CLI.

A notification that the client's schema refuses disconnects the client for good:
absent keys are omitted, never null, and texts hold no lone surrogates.
"""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

Notification: TypeAlias = dict[str, object]
Facts: TypeAlias = dict[str, Any]
"""What Emacs and the server report to each other, which EPC sends as a plist."""
CloseReason: TypeAlias = Literal[
    "closed", "lost", "interrupted", "disconnected", "exited"
]

MAX_FILES = 10
MAX_SELECTED_UNITS = 16384

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Return ``text`` with lone surrogates replaced by U+FFFD."""
    try:
        # For 10 MB, a search takes 20 ms, encoding 8 ms.
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def encode(text: str) -> bytes:
    """Return ``text`` in UTF-8, with lone surrogates replaced by U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return clean(text).encode()


def cut_utf16(text: str, units: int) -> str:
    """Return at most ``units`` UTF-16 code units of ``text``, splitting no pair."""
    if 2 * len(text) <= units:
        return text
    encoded = text.encode("utf-16-le")
    if len(encoded) <= 2 * units:
        return text
    return encoded[: 2 * units].decode("utf-16-le", errors="ignore")


@dataclass(frozen=True)
class Cursor:
    """A position in a file: 1-based, ``character`` in UTF-16 code units."""

    line: int
    character: int


@dataclass(frozen=True)
class File:
    """A file that is open in Emacs; ``timestamp`` is in milliseconds."""

    path: str
    timestamp: int
    is_active: bool = False
    cursor: Cursor | None = None
    selected_text: str | None = None

    def payload(self) -> dict[str, object]:
        """Return the file as the protocol spells it, without absent keys."""
        payload: dict[str, object] = {"path": self.path, "timestamp": self.timestamp}
        if self.is_active:
            payload["isActive"] = True
            if self.cursor is not None:
                payload["cursor"] = asdict(self.cursor)
            if self.selected_text is not None:
                payload["selectedText"] = self.selected_text
        return payload


@dataclass(frozen=True)
class IdeContext:
    """The files that are open in Emacs, newest first, at most one active."""

    files: tuple[File, ...] = ()

    @classmethod
    def of(cls, files: Iterable[File]) -> "IdeContext":
        """Return the context of ``files``, within the limits of the client."""
        kept: list[File] = []
        has_active = False
        for file in list(files)[:MAX_FILES]:
            is_active = file.is_active and not has_active
            has_active = has_active or is_active
            kept.append(_fitted(file, is_active))
        return cls(tuple(kept))

    def notification(self, is_trusted: bool | None = None) -> Notification:
        """Return the ide/contextUpdate for this context.

        ``is_trusted`` overrides the trust of the client in its directory, unless
        it is None.
        """
        state: dict[str, object] = {
            "openFiles": [file.payload() for file in self.files]
        }
        if is_trusted is not None:
            state["isTrusted"] = is_trusted
        return _notification("ide/contextUpdate", {"workspaceState": state})


def _fitted(file: File, is_active: bool) -> File:
    text = file.selected_text
    if text is not None:
        text = cut_utf16(clean(text), MAX_SELECTED_UNITS)
    return replace(file, path=clean(file.path), is_active=is_active, selected_text=text)


@dataclass(frozen=True)
class Process:
    """The process of a CLI."""

    pid: int
    directory: str | None = None
    is_acp: bool = False


@dataclass(frozen=True)
class Diff:
    """A proposal that awaits its outcome; ``path`` is exactly what the CLI sent."""

    id: int
    session_id: str
    path: str
    proposal: str = field(repr=False)


@dataclass(frozen=True)
class Accepted:
    """The outcome of a review that was accepted; the CLI writes ``content``."""

    path: str
    content: str = field(repr=False)

    def notification(self) -> Notification:
        """Return the ide/diffAccepted for this outcome."""
        return _notification(
            "ide/diffAccepted",
            {"filePath": self.path, "content": self.content},
        )


@dataclass(frozen=True)
class Rejected:
    """The outcome of a review that was rejected; the CLI writes nothing."""

    path: str

    def notification(self) -> Notification:
        """Return the ide/diffRejected for this outcome."""
        return _notification("ide/diffRejected", {"filePath": self.path})


Outcome: TypeAlias = Accepted | Rejected


def _notification(method: str, params: dict[str, object]) -> Notification:
    return {"jsonrpc": "2.0", "method": method, "params": params}
