# SPDX-License-Identifier: GPL-3.0-or-later
"""The protocol of GitHub Copilot CLI.

A review is a call that lasts until its answer.  The CLI then writes the text that it
has proposed, whatever the user has made of it in Emacs.
"""

import asyncio
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import monotonic

from .bridge import directory_of
from .protocol import Protocol, Reviews, Tool
from .system import this_host
from .types import File, Json, file_name, string

_PATH, _TEXT, _NAME = "original_file_path", "new_file_contents", "tab_name"
_OPEN = Tool("open_diff", "Open a review of an edit in Emacs.", [_PATH, _TEXT, _NAME])
_CLOSE = Tool("close_diff", "Close the review that was opened with a name.", [_NAME])

# It connects again to another server when its file has another time.
_BEGAN = int(1000 * time.time())
# When it has connected again, it opens and closes a review three times.
_REOPENING = 1
# On a busy machine, the last time may be seconds after the first.
_CONNECTING = 10
# So long after an answer, the same proposal is the same review; later, or once the
# file was written, the model proposes it again.
_ANSWERED = 2


def socket_name() -> str:
    """Return the name of the socket of this process, in a private directory."""
    # Hosts may have one home, and processes with the same numbers.
    host = sha256(this_host().encode()).hexdigest()[:12]
    return os.path.join(directory_of("copilot"), host, f"{os.getpid()}.sock")


@dataclass(frozen=True)
class _Decision:
    """The answer to a review that the CLI sends again while it connects."""

    is_accepted: bool
    end: float
    """The time until which it counts, of a monotonic clock."""
    stamp: tuple[int, int, int] | None
    """That of the file at the answer."""

    def counts(self, path: str) -> bool:
        return monotonic() < self.end and _stamp(path) == self.stamp


class Copilot(Protocol):
    """The protocol of GitHub Copilot CLI."""

    def __init__(self) -> None:
        self._paths: dict[str, str] = {}
        """The file of each review by its name, which has random letters."""
        self._kept: dict[str, float] = {}
        """The names of the reviews that were open before, and when they came again."""
        self._recent: dict[tuple[str, str, str], _Decision] = {}
        """The last answers to these reviews, by session, file and proposal."""

    tools = _OPEN, _CLOSE

    async def call(self, reviews: Reviews, tool: str, arguments: Json) -> str:
        name = string(arguments, _NAME)
        if tool == _CLOSE.name:
            if name in self._kept or name not in self._paths:
                # It may be opened by another name, or later.
                await asyncio.sleep(_REOPENING)
            if opened := self._paths.pop(name, None):
                await reviews.close(opened)
            return _answer(already_closed=opened is None, tab_name=name)
        path = file_name(string(arguments, _PATH), _PATH)
        # It has the line ends of the file, which are no change.
        proposal = string(arguments, _TEXT).replace("\r\n", "\n")
        review = reviews.session_id, path, proposal
        recent = self._recent.pop(review, None)
        if recent is not None and recent.counts(path):
            self._recent[review] = recent
            return _decided(recent.is_accepted)
        is_accepted = None
        self._paths[name] = path
        try:
            if await reviews.open(path, proposal):
                self._kept[name] = monotonic()
            if name in self._paths:
                is_accepted = await reviews.decided(path, proposal)
            came = self._kept.get(name)
            if came is not None and is_accepted is not None:
                self._remember(review, came, is_accepted)
        finally:
            self._paths.pop(name, None)
            self._kept.pop(name, None)
        return _decided(is_accepted)

    def _remember(
        self, review: tuple[str, str, str], came: float, is_accepted: bool
    ) -> None:
        """Keep the answer to ``review``, which came again at ``came``, for a moment."""
        now = monotonic()
        self._recent = {key: one for key, one in self._recent.items() if now < one.end}
        if now - came < _CONNECTING:
            decision = _Decision(is_accepted, now + _ANSWERED, _stamp(review[1]))
            self._recent[review] = decision

    def context(self, files: Sequence[File]) -> Json:
        file = next((one for one in files if one.active), File("", 0))
        start, end = _selection(file)
        params = {
            "text": file.selected_text,
            "filePath": file.path,
            "fileUrl": file.path and Path(file.path).as_uri(),
            "selection": {
                "start": start,
                "end": end,
                # Without it, the model would be told of an earlier selection.
                "isEmpty": not file.selected_text,
            },
        }
        return {"jsonrpc": "2.0", "method": "selection_changed", "params": params}

    def discovery(self, port: int, bearer: str, roots: Sequence[str]) -> Json:
        # With `isTrusted', the CLI would not ask whether to trust the directory.
        return {
            "socketPath": socket_name(),
            "scheme": "unix",
            "headers": {
                "Authorization": f"Bearer {bearer}",
                "Host": f"127.0.0.1:{port}",
            },
            "pid": os.getpid(),
            "timestamp": _BEGAN,
            "workspaceFolders": list(roots),
            "ideName": "Emacs",
        }


def _stamp(path: str) -> tuple[int, int, int] | None:
    """Return what differs after a write of the file ``path``, None without a file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _decided(is_accepted: bool | None) -> str:
    return _answer(result="SAVED" if is_accepted else "REJECTED", trigger="emacs")


def _answer(**facts: object) -> str:
    return json.dumps({"success": True, "message": "", **facts}, ensure_ascii=False)


def _selection(file: File) -> tuple[dict[str, int], dict[str, int]]:
    """Return the start and the end of the selection in ``file``, both from 0."""
    line, character = file.start_line or file.line, file.start_character
    start = {"line": max(line - 1, 0), "character": max(character - 1, 0)}
    *before, last = file.selected_text.split("\n")
    length = len(last.encode("utf-16-le")) // 2
    end = {"line": start["line"] + len(before), "character": length}
    if not before:
        end["character"] += start["character"]
    return start, end
