# SPDX-License-Identifier: GPL-3.0-or-later
"""The questions of a model to Emacs, and the events of the CLI: schemas and limits.

The bridge, which a CLI starts, posts them to the path ``/tools``.  Emacs finds
the answers; this module checks the arguments.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

from .client import Client
from .common import ASK, RENAME, UNKNOWN_RENAME, may_be_plan
from .config import Config
from .emacs import Emacs
from .hooks import LONGEST_QUESTION, Edited, Hooks, Question, Step
from .model_texts import (
    LONGEST_ANSWER,
    LONGEST_LINE,
    TEXTS,
    errors_text,
    rename_text,
)
from .permissions import Permissions
from .processes import Watched, ancestors
from .threads import in_thread
from .timeline import Timeline
from .types import (
    EmacsError,
    Facts,
    MalformedArgument,
    NoAnswer,
    clean,
    file_name,
    string,
)

logger = logging.getLogger(__name__)

_WORD = {"type": "string", "minLength": 1}
_COUNT = {"type": "integer", "minimum": 0}
_LINE = {"type": "integer", "minimum": 1}
_HINTS = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
_CHANGES = {"readOnlyHint": False, "destructiveHint": True, "openWorldHint": False}
_OCCURRENCE = {
    "file": {**_WORD, "description": "File that uses the symbol"},
    "symbol": {**_WORD, "description": "Its name, as it is written in the file"},
    "line": {**_LINE, "description": "Line of the symbol in the file"},
}


def _tool(
    name: str,
    text: str,
    required: list[str],
    hints: Facts = _HINTS,
    **properties: object,
) -> Facts:
    return {
        "name": name,
        "description": text,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": False,
        },
        "annotations": hints,
    }


TOOLS = [
    _tool(
        "references",
        "Find all uses of a symbol by the language server that runs in Emacs: exact, "
        "unlike a text search. Name a file in which the symbol occurs. A line number "
        "without text is a line that contains only the symbol.",
        ["file", "symbol"],
        **_OCCURRENCE,
        after={**_COUNT, "description": "Number of lines already shown"},
    ),
    _tool(
        "definition",
        "Show where a symbol is defined, with its signature, documentation and source, "
        "by the language server that runs in Emacs.",
        ["file", "symbol"],
        **_OCCURRENCE,
    ),
    _tool(
        "diagnostics",
        "List the errors and warnings that Emacs has for a file; without a file, count "
        "them in each file.",
        [],
        file={**_WORD, "description": "File to list them of"},
    ),
    # Only for a CLI that waits; see `Client.awaits_tools`.
    _tool(
        RENAME,
        "Rename a symbol in all files by the language server that runs in Emacs, "
        "instead of by edits. The user reviews it in Emacs first; the answer says "
        "what was written.",
        ["file", "symbol", "new_name"],
        _CHANGES,
        **_OCCURRENCE,
        new_name={**_WORD, "maxLength": 200, "description": "Its new name"},
    ),
]
TOOLS_WITHOUT_RENAME = [tool for tool in TOOLS if tool["name"] != RENAME]
_SCHEMAS = {tool["name"]: tool["inputSchema"] for tool in TOOLS}


@dataclass(eq=False, repr=False)
class Questions:
    """The questions of models, which Emacs answers."""

    _config: Config
    _emacs: Emacs
    _roots: Callable[[], Sequence[str]]
    """Function that returns the workspace roots, where CLIs may ask."""
    _on_directory: Callable[[Sequence[int], str], None]
    """Function called with PIDs of a CLI and the directory in which it works."""

    def __post_init__(self) -> None:
        self.permissions = Permissions(self._config, self._emacs)
        self.timeline = Timeline(self._config, self._emacs, self._roots)
        self._prompted: dict[str, str] = {}
        """The time of the last prompt of each conversation, as its CLI spells it."""

    async def answer(self, client: Client, request: Facts) -> Facts:
        """Answer a request of the bridge of ``client``, or raise MalformedArgument."""
        method = request.get("method")
        if method == "read":
            cli = await self._cli(client, request)
            await self._hook("read", cli, limit=self._config.edit_limit)
            return {}
        if method == "event" and client.hooks:
            return await self._event(client, client.hooks, request)
        directory = await self._directory(string(request, "directory"))
        if method == "list":
            return {"tools": TOOLS if client.awaits_tools else TOOLS_WITHOUT_RENAME}
        if method == "call":
            return await self._call(client, request, directory)
        raise MalformedArgument(f"method is unknown: {method}")

    # Events

    async def _event(self, client: Client, hooks: Hooks, request: Facts) -> Facts:
        event = request.get("event")
        if not isinstance(event, dict):
            raise MalformedArgument("event must be an object")
        directory = await self._directory(hooks.directory(event))
        confirms = request.get("confirms") is True
        is_result = confirms and hooks.is_result(event)
        if call := hooks.called(event):
            cli = await self._cli(client, request, directory)
            await self.timeline.called(cli, directory, call)
            if call.has_ended and call.may_be_refused:
                await self._hook("ended", cli, limit=self._config.notice_limit)
            return await self._addition(cli, hooks, event) if is_result else {}
        try:
            step = hooks.read(event)
        except MalformedArgument:
            # An edit that has failed, maybe since the user has undone the last one.
            if not is_result:
                raise
            cli = await self._cli(client, request, directory)
            return await self._addition(cli, hooks, event)
        if isinstance(step, Step) and self._is_late(step, event):
            return {}
        question = await self._question(client, hooks, event)
        announced = hooks.announced(event)
        has_ended = hooks.has_ended(event)
        if not (step or question or announced or has_ended):
            return {}
        cli = await self._cli(client, request, directory)
        if announced is not None:
            path = os.path.join(directory, announced)
            facts = {**cli, "path": path}
            asks_if_failed = request.get("only_plans") is not True or may_be_plan(path)
            must_ask = await self._must_ask(facts, asks_if_failed)
            return ASK[client.name] if must_ask else {}
        if has_ended:
            await self._hook("ended", cli, limit=self._config.notice_limit)
        if question:
            await self._ask_in_terminal({**cli, "directory": directory}, question)
        if isinstance(step, Edited):
            text = await self._edited(cli, step, directory)
            return await self._addition(cli, hooks, event, text, is_result)
        if step is not None and not await self._report(cli, step, directory):
            return {}
        is_prompt = confirms and hooks.is_prompt(event)
        return await self._addition(cli, hooks, event) if is_prompt else {}

    def _is_late(self, step: Step, event: Facts) -> bool:
        """Return whether ``step`` ends a turn before one whose prompt was reported.

        Qwen Code does not wait for the process that reports ``event``.
        """
        session, time = event.get("session_id"), event.get("timestamp")
        if not isinstance(session, str) or not isinstance(time, str):
            return False
        if step.event == "prompt":
            self._prompted[session] = time
        return step.event == "end" and time < self._prompted.get(session, "")

    async def _report(self, cli: Facts, step: Step, directory: str) -> bool:
        """Report ``step`` of a turn to Emacs, and return whether Emacs has answered."""
        if step.event in ("prompt", "end"):
            self.timeline.turn(cli, directory, step.event == "prompt")
        prompt = clean(step.prompt.partition("\n")[0][:LONGEST_LINE])
        # Gemini CLI asks the user only after the hook of a question has returned.
        is_question = step.event == "question"
        limit = self._config.notice_limit if is_question else self._config.edit_limit
        facts = {**cli, "event": step.event, "prompt": prompt}
        return await self._hook("turn", facts, limit=limit) is not None

    async def _ask_in_terminal(self, facts: Facts, question: Question) -> None:
        """Report to Emacs that a CLI asks ``question`` in its terminal."""
        text = question.as_text()
        if len(text) <= LONGEST_QUESTION:
            moment = self._config.notice_limit
            await self._hook("permission", facts, text, limit=moment)

    async def _cli(
        self, client: Client, request: Facts, directory: str | None = None
    ) -> Facts:
        """Return the facts by which Emacs recognizes the CLI of ``request``.

        Record its ``directory``: Copilot CLI changes it by a command, but not that of
        its process.
        """
        pids = await asyncio.to_thread(ancestors, request.get("pid"), client)
        if directory is not None:
            self._on_directory(pids, directory)
        return {"client": client.name, "pids": pids}

    async def _addition(
        self,
        facts: Facts,
        hooks: Hooks,
        event: Facts,
        text: str = "",
        asks: bool = True,
    ) -> Facts:
        """Return the answer to ``event``, a prompt or the result of a tool.

        It has ``text`` and, if ``asks``, what Emacs adds.  The client confirms by a
        request ``read`` that the CLI has taken it.
        """
        texts = [text]
        if asks:
            limit = self._config.addition_limit
            answer = await self._hook("addition", facts, limit=limit)
            added = (answer or {}).get("text")
            if isinstance(added, str):
                texts.append(clean(added)[:LONGEST_ANSWER])
        whole = "\n\n".join(text for text in texts if text)
        return hooks.addition(event, whole) if whole else {}

    async def permission(self, client: Client, request: Facts) -> AsyncIterator[bytes]:
        """Return what the hook reads that waits for an answer to a permission.

        Raise MalformedArgument before anything is read.
        """
        event, pid, hooks = request.get("event"), request.get("pid"), client.hooks
        if not isinstance(event, dict) or hooks is None:
            raise MalformedArgument("event must be an object, of a CLI that has hooks")
        directory = await self._directory(hooks.directory(event))
        question, cli = await self._question(client, hooks, event), Watched(pid)
        facts = await self._cli(client, request, directory)
        facts["directory"] = directory

        async def answer() -> Facts:
            if question is None or hooks.answer({}) is None:
                return {}
            decision = await self.permissions.ask(facts, question, cli)
            return hooks.answer(decision) or {}

        return self.permissions.stream(answer())

    def renames(self, client: Client, request: Facts) -> bool:
        """Return whether ``client`` asks for a rename, which waits for the user."""
        is_call = request.get("method") == "call"
        return is_call and client.awaits_tools and request.get("name") == RENAME

    async def rename(self, client: Client, request: Facts) -> AsyncIterator[bytes]:
        """Return what the bridge reads that waits for the end of a rename.

        Raise MalformedArgument before anything is read.
        """
        directory = await self._directory(string(request, "directory"))
        cli = Watched(request.get("pid"))
        return self.permissions.stream(self._rename(client, request, directory, cli))

    async def _rename(
        self, client: Client, request: Facts, directory: str, cli: Watched
    ) -> Facts:
        try:
            checked = _checked(RENAME, request.get("arguments"), directory)
        except MalformedArgument as error:
            return {**_content(str(error)), "isError": True}
        logger.info("question: %s", RENAME)
        question_id = uuid4().hex
        new = checked.pop("new_name")
        facts = {
            **checked,
            **await self._cli(client, request),
            "new": new,
            "id": question_id,
            "directory": directory,
        }

        async def answer() -> Facts:
            try:
                return await self._emacs.ask("rename", facts, ())
            except EmacsError:
                return {}

        limit = self._config.rename_silence_limit
        outcome = await self.permissions.wait(question_id, answer(), cli, limit)
        if not outcome:
            return _content(UNKNOWN_RENAME)
        text = outcome.get("problem") or rename_text(
            outcome, directory, checked["symbol"], new
        )
        return _content(text)

    async def _must_ask(self, facts: Facts, asks_if_failed: bool) -> bool:
        """Return whether a rule of the user wants a review of the edit of ``facts``.

        Return ``asks_if_failed`` if Emacs hangs or cannot be asked about the name, as
        it may have a rule.
        """
        try:
            file_name(facts["path"], "the file")
        except MalformedArgument:
            return asks_if_failed
        limit = self._config.review_limit
        answer = await self._hook("review", facts, limit=limit)
        if answer is None:
            return asks_if_failed
        return answer.get("review") != "-"

    async def _edited(self, facts: Facts, edit: Edited, directory: str) -> str:
        """Return the errors that ``edit`` introduced, as a text for the model or ""."""
        path = file_name(os.path.join(directory, edit.file), "the file")
        logger.info("edited: %d characters", len(edit.after))
        facts = {**facts, "path": path}
        limit = self._config.edit_limit
        texts = edit.before, edit.after
        answer = await self._hook("edited", facts, *texts, limit=limit)
        return errors_text(answer, directory) if answer else ""

    async def _hook(
        self, kind: str, facts: Facts, *texts: str | None, limit: float
    ) -> Facts | None:
        """Return the answer of Emacs, None if there is none in ``limit`` seconds."""
        try:
            answer = self._emacs.ask(kind, facts, texts)
            return await asyncio.wait_for(answer, limit)
        except (EmacsError, asyncio.TimeoutError):
            return None

    async def _directory(self, directory: str) -> str:
        """Return the true name of ``directory``.

        Raise MalformedArgument if it is outside the roots, or does not answer.
        """
        checked = file_name(directory, "the directory")
        try:
            true_name = str(await in_thread(checked, os.path.realpath, checked))
        except NoAnswer as error:
            raise MalformedArgument(str(error)) from None
        name = os.path.join(true_name, "")
        if not name.startswith(tuple(os.path.join(root, "") for root in self._roots())):
            raise MalformedArgument("the directory is outside the workspace roots")
        return true_name

    async def _question(
        self, client: Client, hooks: Hooks, event: Facts
    ) -> Question | None:
        """Return what the CLI asks in ``event``, or None; it may be in a file."""
        try:
            return await in_thread(f"home of {client.title}", hooks.question, event)
        except NoAnswer:
            return None

    # Questions

    async def _call(self, client: Client, request: Facts, directory: str) -> Facts:
        name = str(request.get("name"))
        try:
            if name not in TEXTS:
                raise MalformedArgument(f"Unknown tool: {name}")
            checked = _checked(name, request.get("arguments"), directory)
        except MalformedArgument as error:
            return {**_content(str(error)), "isError": True}
        logger.info("question: %s", name)
        try:
            answer = self._emacs.ask(name, checked, ())
            facts = await asyncio.wait_for(answer, self._config.question_limit)
            text = facts.get("problem") or TEXTS[name](facts, directory, checked)
        except asyncio.TimeoutError:
            limit = f"{self._config.question_limit:g}"
            text = f"Emacs did not answer within {limit} s"
            # A text search does not find errors.
            if name != "diagnostics" and client.search_tool:
                text += f"; use {client.search_tool}"
        except EmacsError as error:
            text = f"Emacs cannot answer: {error}"
        return _content(text)


# Arguments


def _checked(name: str, arguments: object, directory: str) -> Facts:
    """Return ``arguments`` with an absolute file name, or raise MalformedArgument."""
    # It takes a while to import.
    from jsonschema import ValidationError, validate  # type: ignore[import-untyped]

    try:
        validate(arguments, _SCHEMAS[name])
    except ValidationError as error:
        raise MalformedArgument(f"{error.json_path}: {error.message:.200}") from None
    assert isinstance(arguments, dict)
    checked = dict(arguments)
    if "file" in checked:
        # Emacs would take (:file NAME) for the name of a text in a private file.
        path = os.path.normpath(os.path.join(directory, checked.pop("file")))
        checked["path"] = file_name(path, "file")
    return checked


def _content(text: str) -> Facts:
    return {"content": [{"type": "text", "text": clean(text)}]}
