# SPDX-License-Identifier: GPL-3.0-or-later
"""The schema of the notifications that Gemini CLI accepts."""

import math
import re
from typing import Any


def refusal(notification: dict[str, Any]) -> str | None:
    """Return what the client would refuse in ``notification``, or None."""
    params = notification.get("params")
    if not isinstance(params, dict):
        return "params is not an object"
    method = notification.get("method")
    if method == "ide/contextUpdate":
        return _context_problem(params)
    if method == "ide/diffAccepted":
        return _text_problem(params, "filePath") or _text_problem(params, "content")
    if method == "ide/diffRejected":
        return _text_problem(params, "filePath")
    return f"unknown method {method}"


def _context_problem(params: dict[str, object]) -> str | None:
    state = params.get("workspaceState")
    if not isinstance(state, dict):
        return "workspaceState is not an object"
    files = state.get("openFiles")
    if not isinstance(files, list):
        return "openFiles is not a list"
    if not isinstance(state.get("isTrusted", False), bool):
        return "isTrusted is not a boolean"
    for file in files:
        if found := _file_problem(file):
            return found
    return None


def _file_problem(file: object) -> str | None:
    if not isinstance(file, dict):
        return "a file is not an object"
    if found := _text_problem(file, "path") or _number_problem(file, "timestamp"):
        return found
    if "selectedText" in file and (found := _text_problem(file, "selectedText")):
        return found
    if "isActive" in file and not isinstance(file["isActive"], bool):
        return "isActive is not a boolean"
    if "cursor" not in file:
        return None
    cursor = file["cursor"]
    if not isinstance(cursor, dict):
        return "cursor is not an object"
    return _number_problem(cursor, "line") or _number_problem(cursor, "character")


def _text_problem(values: dict[str, object], key: str) -> str | None:
    value = values.get(key)
    if not isinstance(value, str):
        return f"{key} is not a string"
    if re.search("[\ud800-\udfff]", value):
        return f"{key} holds a lone surrogate"
    return None


def _number_problem(values: dict[str, object], key: str) -> str | None:
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"{key} is not a number"
    if not math.isfinite(value):
        return f"{key} is not finite"
    return None
