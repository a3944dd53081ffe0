# SPDX-License-Identifier: GPL-3.0-or-later
"""Qwen Code, a fork of Gemini CLI."""

import re
import shlex
from collections.abc import Mapping
from typing import ClassVar

from .client import Client
from .common import ASKING_MODES
from .companion import COMPANION
from .gemini import GeminiHooks
from .hooks import Edited, Question, Step, TurnEvent
from .types import Facts

PERMISSION = "PermissionRequest"
PRE_TOOL = "PreToolUse"
SHELL = "run_shell_command"
PLAN = "exit_plan_mode"
EDITS = {"edit", "write_file", "notebook_edit"}
"""The tools that have a review in Emacs."""
# Parsing a long text takes time.
_SED = re.compile(r"sed\s.{,1000}", re.DOTALL)
_IN_PLACE = re.compile(r"-[Er]*i[Er]*|--in-place=?")
_FLAG = re.compile(r"-[Er]+|--regexp-extended|-e|--expression|")


class QwenHooks(GeminiHooks):
    """The events of Qwen Code."""

    events: ClassVar[Mapping[str, TurnEvent]] = {
        "UserPromptSubmit": "prompt",
        "Stop": "end",
        "Notification": "question",
    }

    inquiry = "ask_user_question"
    asks_after_call = False

    tool_events: ClassVar[Mapping[str, bool]] = {
        PRE_TOOL: False,
        "PostToolUse": True,
        "PostToolUseFailure": True,
    }

    def announced(self, event: Facts) -> str | None:
        tool_input = event.get("tool_input")
        if event.get("hook_event_name") != PRE_TOOL or not isinstance(tool_input, dict):
            return None
        if event.get("permission_mode") in ASKING_MODES["qwen"]:
            # The user has already accepted in the terminal; an answer would ask again.
            return None
        file = tool_input.get("file_path")
        return file if isinstance(file, str) else None

    def question(self, event: Facts) -> Question | None:
        tool, arguments = event.get("tool_name"), event.get("tool_input")
        if event.get("hook_event_name") != PERMISSION or not isinstance(tool, str):
            return None
        if tool in EDITS or not isinstance(arguments, dict):
            return None
        if tool == self.inquiry:
            return self._inquiry(event)
        if tool == PLAN:
            plan = arguments.get("plan")
            is_text = isinstance(plan, str)
            return Question("Plan", kind="plan", plan=plan) if is_text else None
        if tool != SHELL:
            return Question(tool, None, arguments)
        others = dict(arguments)
        command = others.pop("command", None)
        if not isinstance(command, str):
            return None
        # A review answers an edit.
        return None if _is_edit(command) else Question("Shell", command, others)

    def answer(self, decision: Facts) -> Facts | None:
        if not decision:
            return {}
        output = {"hookEventName": PERMISSION, "decision": decision}
        return {"hookSpecificOutput": output}

    def read(self, event: Facts) -> Step | Edited | None:
        if event.get("hook_event_name") in (PERMISSION, PRE_TOOL):
            return None
        read = super().read(event)
        kind = event.get("notification_type")
        if isinstance(read, Step) and kind == "auth_success":
            return None
        if isinstance(read, Step) and kind == "idle_prompt":
            # After Esc and after an error, Qwen Code sends this, but no "Stop".
            return read._replace(event="end")
        return read

    def is_new(self, display: Facts, response: Facts) -> bool:
        # Only the text for the model shows that the file is new.
        said = str(response.get("llmContent"))
        return super().is_new(display, response) or said.startswith(
            "Successfully created"
        )


def _is_edit(command: str) -> bool:
    """Return whether Qwen Code asks about ``command`` as about an edit.

    That is `sed -i` of one file with one substitution.
    """
    if not _SED.fullmatch(command):
        return False
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)[1:]
    except ValueError:
        return False
    others = [word for word in words if not _IN_PLACE.fullmatch(word)]
    texts = [word for word in others if not _FLAG.fullmatch(word)]
    is_in_place = len(others) < len(words)
    return is_in_place and len(texts) == 2 and texts[0].startswith("s")


QWEN = Client(
    name="qwen",
    title="Qwen Code",
    program=r"(.*/)?qwen|.*/qwen-code/(dist/)?cli(-entry)?\.js",
    file_name=lambda pid, port: f"{port}.lock",
    protocol=COMPANION,
    acp_options=("--acp", "--experimental-acp"),
    reconnect="/ide enable",
    search_tool="grep_search",
    awaits_tools=True,
    hooks=QwenHooks(),
    takes_any_root=True,
)
