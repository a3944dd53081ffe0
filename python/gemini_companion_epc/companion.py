# SPDX-License-Identifier: GPL-3.0-or-later
"""The companion protocol of Gemini CLI and Qwen Code.

A notification that the client's schema refuses disconnects the client for good:
absent keys are omitted, never null, and texts hold no lone surrogates.
"""

import json
import os
from collections.abc import Sequence

from .protocol import Protocol, Reviews, Tool
from .types import File, Json, file_name, string

IDE_INFO = {"name": "emacs", "displayName": "Emacs"}

_OPEN = Tool(
    "openDiff",
    "Open a review of the proposed content of a file in Emacs.",
    ["filePath", "newContent"],
)
_CLOSE = Tool(
    "closeDiff",
    "Close the review of a file and return the text of the proposal.",
    ["filePath"],
    ["suppressNotification"],  # nothing is notified when a CLI closes a review
)


_WRITTEN = Tool(
    "fileWritten",
    "Report that a file was written without a review.",
    ["filePath"],
)
_PROMPT_ENDED = Tool(
    "promptEnded",
    "Report whether a prompt of Emacs was taken.",
    ["id"],
    ["isTaken"],
)


class Companion(Protocol):
    """The companion protocol."""

    tools: Sequence[Tool] = _OPEN, _CLOSE

    async def call(self, reviews: Reviews, tool: str, arguments: Json) -> str:
        path = file_name(string(arguments, "filePath"), "filePath")
        if tool == _OPEN.name:
            await reviews.open(path, string(arguments, "newContent"))
            return ""
        text = await reviews.close(path)
        answer = {} if text is None else {"content": text}
        return json.dumps(answer, ensure_ascii=False)

    def context(self, files: Sequence[File]) -> Json:
        state = {"openFiles": [_spelled(file) for file in files]}
        return _notification("ide/contextUpdate", workspaceState=state)

    def outcome(self, path: str, content: str | None, reason: str = "") -> Json:
        if content is None:
            return _notification("ide/diffRejected", filePath=path)
        return _notification("ide/diffAccepted", filePath=path, content=content)

    def discovery(self, port: int, bearer: str, roots: Sequence[str]) -> Json:
        # Only Qwen Code reads an array, see `Client.takes_any_root`.
        is_odd = any(os.pathsep in root for root in roots)
        joined = json.dumps(list(roots)) if is_odd else os.pathsep.join(roots)
        return {
            "port": port,
            "workspacePath": joined,
            "authToken": bearer,
            "ideInfo": IDE_INFO,
        }


class Extended(Companion):
    """The protocol of CLIs for which an extension of this package speaks.

    Additions are optional keys and further notifications, so that an extension of
    another version ignores what it does not know.
    """

    tools = _OPEN, _CLOSE, _WRITTEN, _PROMPT_ENDED
    keeps_proposals = True

    async def call(self, reviews: Reviews, tool: str, arguments: Json) -> str:
        if tool == _WRITTEN.name:
            reviews.written(file_name(string(arguments, "filePath"), "filePath"))
        elif tool == _PROMPT_ENDED.name:
            prompt_id, is_taken = string(arguments, "id"), arguments.get("isTaken")
            reviews.end_prompt(prompt_id, is_taken is True)
        else:
            return await super().call(reviews, tool, arguments)
        return ""

    def outcome(self, path: str, content: str | None, reason: str = "") -> Json:
        if content is None and reason:
            return _notification("ide/diffRejected", filePath=path, reason=reason)
        return super().outcome(path, content)

    def prompt(self, prompt_id: str, text: str) -> Json:
        return _notification("ide/prompt", id=prompt_id, text=text)


COMPANION = Companion()
EXTENDED = Extended()


def _spelled(file: File) -> Json:
    spelled: Json = {"path": file.path, "timestamp": file.timestamp}
    if file.active:
        spelled["isActive"] = True
    if file.line:
        spelled["cursor"] = {"line": file.line, "character": file.character}
    if file.selected_text:
        spelled["selectedText"] = file.selected_text
    return spelled


def _notification(method: str, **params: object) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}
