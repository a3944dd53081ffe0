# SPDX-License-Identifier: GPL-3.0-or-later
"""Immutable values that pass between Emacs and Gemini CLI.

A notification that the client's schema refuses disconnects the client for good:
absent keys are omitted, never null, and texts hold no lone surrogates.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Notification: TypeAlias = dict[str, object]
Facts: TypeAlias = dict[str, Any]
"""What Emacs and the server report to each other, which EPC sends as a plist."""
CloseReason: TypeAlias = Literal[
    "closed", "lost", "interrupted", "disconnected", "exited"
]

_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str) -> str:
    """Return ``text`` with lone surrogates replaced by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def context_update(files: Sequence[Facts]) -> Notification:
    """Return the ide/contextUpdate with ``files``, as the protocol spells them."""
    return _notification("ide/contextUpdate", {"workspaceState": {"openFiles": files}})


def outcome(path: str, content: str | None) -> Notification:
    """Return the outcome of the diff of ``path``: the CLI writes ``content``.

    None rejects it: the CLI writes nothing.
    """
    if content is None:
        return _notification("ide/diffRejected", {"filePath": path})
    return _notification("ide/diffAccepted", {"filePath": path, "content": content})


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

    ``path`` is exactly what the CLI sent, ``here`` the name of the file in Emacs, if
    that is another one.
    """

    id: int
    session_id: str
    path: str
    proposal: str = field(repr=False)
    here: str = ""


def _notification(method: str, params: dict[str, object]) -> Notification:
    return {"jsonrpc": "2.0", "method": method, "params": params}
