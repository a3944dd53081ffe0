# SPDX-License-Identifier: GPL-3.0-or-later
"""GitHub Copilot CLI and its protocol.

A review is a call that lasts until its answer.  The CLI then writes the text that it
has proposed, even if the user has edited the text in Emacs.
"""

import asyncio
import json
import os
import re
import stat
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from time import monotonic

from .client import Client
from .common import directory_in, this_host
from .hooks import Called, Choice, Edited, Hooks, Question, Step, call_key, field_of
from .protocol import Protocol, Reviews, Tool
from .threads import in_thread
from .types import Facts, File, Json, NoAnswer, file_name, string

_PATH, _TEXT, _NAME = "original_file_path", "new_file_contents", "tab_name"
_OPEN = Tool("open_diff", "Open a review of an edit in Emacs.", [_PATH, _TEXT, _NAME])
_CLOSE = Tool("close_diff", "Close the review that was opened with a name.", [_NAME])

# Copilot CLI reconnects to a server whose discovery file has a new time.
_BEGAN = int(1000 * time.time())
# While Copilot CLI connects, it opens and closes a review up to three times, so a
# closing waits this many seconds for the next opening.
_REOPENING = 2
# Seconds from its event stream to the last of these openings, on a busy machine.
_CONNECTING = 10
# Seconds after an answer in which the same proposal is the same review; later, or once
# the file was written, the model proposes it again.
_ANSWERED = 2


def socket_name() -> str:
    """Return the name of the socket of this process, in a private directory."""
    # Hosts may have one home, and processes with the same numbers.
    host = sha256(this_host().encode()).hexdigest()[:12]
    return os.path.join(
        directory_in("copilot", os.environ), host, f"{os.getpid()}.sock"
    )


@dataclass
class _Review:
    """A review, from the call that opens it until its answer has expired."""

    session_id: str
    path: str
    proposal: str
    is_open: bool = True
    """Whether the call waits, and the CLI has not closed the review by its name."""
    reopened: float | None = None
    """The time at which it was opened although it was open, of a monotonic clock."""
    is_accepted: bool | None = None
    """The answer of the user, None if there is none (yet)."""
    counts_until: float = 0
    """The time until which the same proposal gets the same answer."""
    stamp: tuple[int, int, int] | None = None
    """The stamp of the file at the answer."""

    async def answer(self, is_accepted: bool | None) -> None:
        """Record the answer, which counts for a moment if the CLI has just connected.

        The CLI may then send the same call again, although the user has answered.
        """
        self.is_accepted = is_accepted
        now = monotonic()
        is_connecting = self.reopened is not None and now - self.reopened < _CONNECTING
        if is_connecting and is_accepted is not None:
            with suppress(NoAnswer):
                self.stamp = await in_thread(self.path, _stamp, self.path)
                self.counts_until = now + _ANSWERED

    async def answers(self, other: "_Review") -> bool:
        """Return whether ``other`` gets the answer to this review."""
        is_same = (self.session_id, self.path, self.proposal) == (
            other.session_id, other.path, other.proposal
        )  # fmt: skip
        if not is_same or monotonic() >= self.counts_until:
            return False
        with suppress(NoAnswer):
            return self.stamp == await in_thread(self.path, _stamp, self.path)
        return False


class Copilot(Protocol):
    """The protocol of GitHub Copilot CLI."""

    def __init__(self) -> None:
        self._reviews: dict[str, _Review] = {}
        """The reviews by name, which has random letters: open ones, and answered ones
        until their answers no longer count."""

    tools = _OPEN, _CLOSE

    async def call(self, reviews: Reviews, tool: str, arguments: Json) -> str:
        name = string(arguments, _NAME)
        if tool == _CLOSE.name:
            return await self._close(reviews, name)
        path = file_name(string(arguments, _PATH), _PATH)
        # The CLI sends the line ends of the file, which are no change.
        proposal = string(arguments, _TEXT).replace("\r\n", "\n")
        review = _Review(reviews.session_id, path, proposal)
        return await self._open(reviews, name, review)

    async def _open(self, reviews: Reviews, name: str, review: _Review) -> str:
        """Open ``review`` by ``name``, and return its answer when the user has it."""
        for previous in [*self._reviews.values()]:
            if await previous.answers(review):
                return _decided(previous.is_accepted)
        self._reviews[name] = review
        try:
            if await reviews.open(review.path, review.proposal):
                review.reopened = monotonic()
            # The CLI may have closed the review meanwhile.
            if review.is_open:
                await review.answer(await reviews.decided(review.path, review.proposal))
        finally:
            review.is_open = False
            self._forget_ended()
        return _decided(review.is_accepted)

    async def _close(self, reviews: Reviews, name: str) -> str:
        """Close the review with ``name``, if it is open, or reopened soon."""
        review = self._open_review(name)
        if review is None or reviews.connected_for() < _CONNECTING:
            # The CLI may open the review by another name, or later.
            await asyncio.sleep(_REOPENING)
            review = self._open_review(name)
        if review is not None:
            review.is_open = False
            await reviews.close(review.path)
        return _answer(already_closed=review is None, tab_name=name)

    def _open_review(self, name: str) -> _Review | None:
        """Return the open review with ``name``, or None."""
        review = self._reviews.get(name)
        return review if review is not None and review.is_open else None

    def _forget_ended(self) -> None:
        """Keep only the open reviews, and those whose answers still count."""
        now = monotonic()
        self._reviews = {
            name: review
            for name, review in self._reviews.items()
            if review.is_open or now < review.counts_until
        }

    def context(self, files: Sequence[File]) -> Json:
        file = next((file for file in files if file.active), File("", 0))
        start, end = _selection(file)
        params = {
            "text": file.selected_text,
            "filePath": file.path,
            "fileUrl": file.path and Path(file.path).as_uri(),
            "selection": {
                "start": start,
                "end": end,
                # Without `isEmpty', the model would receive an earlier selection.
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


LONGEST_PLAN = 400_000
"""Maximum number of bytes of the plan to send to Emacs."""


def _plan_of(session: object) -> str:
    """Return the plan that the CLI has written in its ``session``, "" without one."""
    if not isinstance(session, str) or not re.fullmatch(r"[\w-]+", session):
        return ""
    home = os.path.dirname(directory_in("copilot", os.environ))
    path = os.path.join(home, "session-state", session, "plan.md")
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(path, "rb", opener=lambda *to: os.open(to[0], to[1] | flags)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return ""
            return file.read(LONGEST_PLAN).decode("utf-8", "replace")
    except OSError:
        return ""


def _choices_in(arguments: Facts) -> list[Choice]:
    """Return the questions of the model in ``arguments``, those of its tool.

    The arguments are a message, and a schema whose properties are the answers.
    """
    message = str(arguments.get("message") or "")
    properties = field_of(arguments.get("requestedSchema"), "properties")
    if not isinstance(properties, dict) or not properties:
        return [Choice(message, "", [], False)] if message else []
    choices = []
    for number, (name, schema) in enumerate(properties.items()):
        items = field_of(schema, "items")
        values = field_of(schema, "enum", field_of(items, "enum", []))
        options = [
            (str(value), "") for value in (values if isinstance(values, list) else [])
        ]
        description = str(field_of(schema, "description", ""))
        header = str(field_of(schema, "title", name))
        question = message if number == 0 else description
        choices.append(Choice(question, header, options, items is not None))
    return choices


class CopilotHooks(Hooks):
    """The events of Copilot CLI for which it is linked.

    These are notifications, prompts, ends of turns, and events before and after tools.
    """

    INQUIRY, PLAN = "ask_user", "exit_plan_mode"

    # Prefixes of its messages.
    COMMAND, TOOL, PATH, EDIT = (
        "Run command: ",
        "Use MCP tool: ",
        "Path permission needed: ",
        "Edit file: ",
    )

    def directory(self, event: Facts) -> str:
        return string(event, "cwd")

    def read(self, event: Facts) -> Step | Edited | None:
        if "prompt" in event:
            return Step("prompt", str(event["prompt"]))
        return Step("end") if "stopReason" in event else None

    def has_ended(self, event: Facts) -> bool:
        return "toolResult" in event or "error" in event

    # The tools that write what a review has shown, and those that write nothing.
    REPORTING = "create", "edit", "apply_patch"

    def called(self, event: Facts) -> Called | None:
        tool, arguments = event.get("toolName"), event.get("toolArgs")
        others = (*self.REPORTING, self.INQUIRY, self.PLAN)
        if not isinstance(tool, str) or tool in others:
            return None
        key = call_key(event.get("sessionId"), tool, arguments)
        name = str(field_of(arguments, "command") or tool)
        is_background = field_of(arguments, "mode") == "async"
        return Called(self.has_ended(event), key, name, is_background, True)

    def _question_of_tool(self, event: Facts) -> Question | None:
        """Return the question or the plan in ``event``, sent before a tool, or None."""
        tool, arguments = event.get("toolName"), event.get("toolArgs")
        if self.has_ended(event) or not isinstance(arguments, dict):
            return None
        if tool == self.INQUIRY:
            choices = _choices_in(arguments)
            question = Question("Question", kind="inquiry", choices=choices)
            return question if choices else None
        if tool == self.PLAN:
            summary = str(arguments.get("summary"))
            plan = _plan_of(event.get("sessionId"))
            others = {"summary": summary} if plan else {}
            return Question("Plan", None, others, kind="plan", plan=plan or summary)
        return None

    def question(self, event: Facts) -> Question | None:
        if "toolName" in event:
            return self._question_of_tool(event)
        message = event.get("message")
        is_permission = event.get("notification_type") == "permission_prompt"
        if not is_permission or not isinstance(message, str):
            return None
        if message.startswith(self.COMMAND):
            return Question("Shell", message[len(self.COMMAND) :])
        if message.startswith(self.TOOL):
            return Question(message[len(self.TOOL) :], is_partial=True)
        if message.startswith(self.PATH):
            return Question("Path", None, {"path": message[len(self.PATH) :]})
        if message.startswith(self.EDIT):
            # A review answers it.
            return None
        return Question("Permission", None, {"message": message}, is_partial=True)

    def addition(self, event: Facts, text: str) -> Facts:
        return {"additionalContext": text}


COPILOT = Client(
    name="copilot",
    title="Copilot CLI",
    program=r"(.*/)?copilot|.*/@github/copilot/npm-loader\.js",
    file_name=lambda pid, port: f"emacs-{pid}-{port}.lock",
    protocol=Copilot(),
    acp_options=("--acp",),
    states_version=True,
    identity=("X-Copilot-PID", "X-Copilot-Session-Id"),
    socket_name=socket_name,
    hooks=CopilotHooks(),
    takes_any_root=True,
)
