# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that pass between Emacs and Gemini CLI: frozen, without input or output.

A notification that the client's schema refuses disconnects the client for good:
absent keys are omitted, never null, and texts hold no lone surrogates.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

Notification: TypeAlias = dict[str, object]
CloseReason: TypeAlias = Literal["closed", "lost", "disconnected", "exited"]

MAX_FILES = 10
MAX_SELECTED_UNITS = 16384

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Return TEXT with lone surrogates replaced by U+FFFD."""
    return text if _is_unicode(text) else _SURROGATE.sub("\ufffd", text)


def encode(text: str) -> bytes:
    """Return TEXT in UTF-8, with lone surrogates replaced by U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return clean(text).encode()


def _is_unicode(text: str) -> bool:
    # A search takes 20 ms for 10 MB, UTF-8 8 ms, and Latin-1, which fails at the
    # first other character, next to nothing.
    return _has_encoding(text, "latin-1") or _has_encoding(text, "utf-8")


def _has_encoding(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def cut_utf16(text: str, units: int) -> str:
    """Return at most UNITS UTF-16 code units of TEXT, splitting no pair."""
    if 2 * len(text) <= units:
        return text
    encoded = text.encode("utf-16-le")
    if len(encoded) <= 2 * units:
        return text
    return encoded[: 2 * units].decode("utf-16-le", errors="ignore")


@dataclass(frozen=True)
class Cursor:
    """A place in a file: 1-based, the character counted in UTF-16 units."""

    line: int
    character: int


@dataclass(frozen=True)
class File:
    """A file that is open in Emacs; its timestamp is in milliseconds."""

    path: str
    timestamp: int
    is_active: bool = False
    cursor: Cursor | None = None
    selected_text: str | None = None

    def payload(self) -> dict[str, object]:
        """Return the file in the protocol's spelling, absent keys left out."""
        payload: dict[str, object] = {"path": self.path, "timestamp": self.timestamp}
        if self.is_active:
            payload["isActive"] = True
            if self.cursor is not None:
                payload["cursor"] = {
                    "line": self.cursor.line,
                    "character": self.cursor.character,
                }
            if self.selected_text is not None:
                payload["selectedText"] = self.selected_text
        return payload


@dataclass(frozen=True)
class IdeContext:
    """The files that are open in Emacs, newest first, one active at most."""

    files: tuple[File, ...] = ()

    @classmethod
    def of(cls, files: Iterable[File]) -> "IdeContext":
        """Return the context of FILES, cut to what the client takes."""
        kept: list[File] = []
        has_active = False
        for file in list(files)[:MAX_FILES]:
            is_active = file.is_active and not has_active
            has_active = has_active or is_active
            kept.append(_fitted(file, is_active))
        return cls(tuple(kept))

    def notification(self, is_trusted: bool | None = None) -> Notification:
        """Return the ide/contextUpdate that tells this context.

        IS_TRUSTED overrides what the client knows of its folder, unless None.
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
    """The process of a CLI, as far as this machine tells."""

    pid: int
    directory: str | None = None
    is_acp: bool = False


@dataclass(frozen=True)
class SessionFacts:
    """What Emacs is to know of a session; since when, in milliseconds."""

    id: str
    process: Process | None = None
    since: int = 0
    version: str | None = None
    client: str | None = None


@dataclass(frozen=True)
class Diff:
    """A proposal that awaits its outcome; the path is as the CLI sent it."""

    id: int
    session_id: str
    path: str
    proposal: str = field(repr=False)


@dataclass(frozen=True)
class Accepted:
    """The outcome of a review whose text, a clean one, the CLI is to write."""

    path: str
    content: str = field(repr=False)

    def notification(self) -> Notification:
        """Return the ide/diffAccepted that tells this outcome."""
        return _notification(
            "ide/diffAccepted",
            {"filePath": self.path, "content": self.content},
        )


@dataclass(frozen=True)
class Rejected:
    """The outcome of a review that leaves the file as it is."""

    path: str

    def notification(self) -> Notification:
        """Return the ide/diffRejected that tells this outcome."""
        return _notification("ide/diffRejected", {"filePath": self.path})


Outcome: TypeAlias = Accepted | Rejected


def _notification(method: str, params: dict[str, object]) -> Notification:
    return {"jsonrpc": "2.0", "method": method, "params": params}
