# SPDX-License-Identifier: GPL-3.0-or-later
"""Gemini CLI."""

from collections.abc import Mapping
from typing import ClassVar

from .client import Client
from .companion import COMPANION
from .hooks import (
    Called,
    Edited,
    Hooks,
    Question,
    Step,
    TurnEvent,
    call_key,
    choices_in,
    field_of,
)
from .types import Facts, MalformedArgument, string

BEFORE_TOOL = "BeforeTool"


class GeminiHooks(Hooks):
    """The events of Gemini CLI; those of Qwen Code have the same shape."""

    events: ClassVar[Mapping[str, TurnEvent]] = {
        "BeforeAgent": "prompt",
        "AfterAgent": "end",
        "Notification": "question",
    }
    """The events that are steps of a turn; others report edits."""

    inquiry = "ask_user"
    """The tool by which the model asks the user a question."""

    def directory(self, event: Facts) -> str:
        return string(event, "cwd")

    def read(self, event: Facts) -> Step | Edited | None:
        if event.get("hook_event_name") == BEFORE_TOOL:
            return None
        step = self.events.get(str(event.get("hook_event_name")))
        if step is None:
            return self._edited(event)
        prompt = str(event.get("submitted_prompt") or event.get("prompt", "")).strip()
        if step == "prompt" and not prompt:
            # Qwen Code also reports the results of tools.
            step = "edit"
        return Step(step, prompt)

    tool_events: ClassVar[Mapping[str, bool]] = {BEFORE_TOOL: False, "AfterTool": True}
    """The events before and after a tool, and whether it has ended."""

    def is_result(self, event: Facts) -> bool:
        return self.tool_events.get(str(event.get("hook_event_name"))) is True

    asks_after_call = True
    """Whether the event before a tool comes before the question about it."""

    reporting_tools = "write_file", "replace", "edit", "notebook_edit"
    """The tools of which an event is an edit."""

    def called(self, event: Facts) -> Called | None:
        has_ended = self.tool_events.get(str(event.get("hook_event_name")))
        tool, arguments = event.get("tool_name"), event.get("tool_input")
        if has_ended is None or tool in (*self.reporting_tools, self.inquiry):
            return None
        identity = event.get("tool_use_id") or arguments
        key = call_key(event.get("session_id"), tool, identity)
        name = str(field_of(arguments, "command") or tool)
        is_background = field_of(arguments, "is_background") is True
        return Called(has_ended, key, name, is_background, self.asks_after_call)

    def _edited(self, event: Facts) -> Edited:
        """Return the edit in ``event``, or raise MalformedArgument."""
        try:
            display = event["tool_response"]["returnDisplay"]
            file = display.get("filePath") or event["tool_input"]["file_path"]
            is_new = self.is_new(display, event["tool_response"])
            before = None if is_new else display["originalContent"]
            after = display["newContent"]
            event["hook_event_name"]
        except (KeyError, TypeError, AttributeError):
            raise MalformedArgument("event must be an edit") from None
        if not isinstance(file, str):
            raise MalformedArgument("the name of the file must be a string")
        if not isinstance(after, str) or not isinstance(before, str | None):
            raise MalformedArgument("the texts of an edit must be strings")
        return Edited(file, before, after)

    def announced(self, event: Facts) -> str | None:
        arguments = event.get("tool_input")
        if event.get("hook_event_name") != BEFORE_TOOL or not isinstance(
            arguments, dict
        ):
            return None
        file = arguments.get("file_path")
        return file if isinstance(file, str) else None

    def question(self, event: Facts) -> Question | None:
        if event.get("hook_event_name") == BEFORE_TOOL:
            return self._inquiry(event)
        details = event.get("details")
        if event.get("notification_type") == "ToolPermission" and (
            isinstance(details, dict) and details.get("type") == "exit_plan_mode"
        ):
            return Question("Plan", is_partial=True)
        is_permission = event.get("notification_type") == "ToolPermission"
        if not is_permission or not isinstance(details, dict):
            return None
        kind, command = details.get("type"), details.get("command")
        if kind == "exec" and isinstance(command, str):
            return Question("Shell", command)
        if kind == "mcp":
            # The arguments are reported by another event, which cannot be joined.
            tool = f"{details.get('serverName')}/{details.get('toolName')}"
            return Question(tool, is_partial=True)
        if kind == "info" and not details.get("urls"):
            # For example, the question whether to enter the plan mode.
            title = details.get("title")
            prompt = {"prompt": details.get("prompt")}
            return Question(title, None, prompt) if isinstance(title, str) else None
        if kind == "info":
            names = "prompt", "urls"
            return Question("URL", None, {name: details.get(name) for name in names})
        return None

    def _inquiry(self, event: Facts) -> Question | None:
        """Return the questions of the model in ``event``, or None.

        The notification that follows does not contain their texts.
        """
        tool_input = event.get("tool_input")
        if event.get("tool_name") != self.inquiry:
            return None
        choices = choices_in(field_of(tool_input, "questions"))
        return (
            Question("Question", kind="inquiry", choices=choices) if choices else None
        )

    def is_new(self, display: Facts, response: Facts) -> bool:
        """Return whether the edit that ``display`` shows has created the file."""
        return bool(display.get("isNewFile"))

    def addition(self, event: Facts, text: str) -> Facts:
        name = event["hook_event_name"]
        added = {"hookEventName": name, "additionalContext": text}
        return {"hookSpecificOutput": added}


GEMINI = Client(
    name="gemini",
    title="Gemini CLI",
    program=r"(.*/)?gemini(-cli)?(\.m?js)?",
    file_name=lambda pid, port: f"gemini-ide-server-{pid}-{port}.json",
    protocol=COMPANION,
    acp_options=("--acp", "--experimental-acp"),
    states_version=True,
    has_plain_token=True,
    reconnect="/ide enable",
    search_tool="grep_search",
    awaits_tools=True,
    hooks=GeminiHooks(),
)
