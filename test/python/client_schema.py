# SPDX-License-Identifier: GPL-3.0-or-later
"""The schema of the notifications that Gemini CLI accepts."""

import json
from typing import Any

from jsonschema import (  # type: ignore[import-untyped]
    Draft202012Validator,
    ValidationError,
)

TEXT, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "number", "boolean"))


def _object(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": [*required], "properties": properties}


CURSOR = _object("line", "character", line=NUMBER, character=NUMBER)
FILE = _object(
    "path",
    "timestamp",
    path=TEXT,
    timestamp=NUMBER,
    selectedText=TEXT,
    isActive=BOOLEAN,
    cursor=CURSOR,
)
STATE = _object(
    "openFiles", openFiles={"type": "array", "items": FILE}, isTrusted=BOOLEAN
)
VALIDATORS = {
    method: Draft202012Validator(schema)
    for method, schema in {
        "ide/contextUpdate": _object("workspaceState", workspaceState=STATE),
        "ide/diffAccepted": _object("filePath", "content", filePath=TEXT, content=TEXT),
        "ide/diffRejected": _object("filePath", filePath=TEXT),
    }.items()
}


def refusal(notification: dict[str, Any]) -> str | None:
    """Return what the client would refuse in ``notification``, or None."""
    try:
        VALIDATORS[notification["method"]].validate(notification["params"])
        # No infinite number and no lone surrogate.
        json.dumps(notification, ensure_ascii=False, allow_nan=False).encode()
    except (KeyError, ValueError, ValidationError) as error:
        return repr(error)
    return None
