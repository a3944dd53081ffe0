# SPDX-License-Identifier: GPL-3.0-or-later
"""The events that a linked CLI reports by its hooks, and their shapes.

A CLI whose events have another shape has a class for them in its module.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from .types import Facts, MalformedArgument, string

LONGEST_QUESTION = 2_000_000
"""The maximum number of characters of a question for Emacs, as a text."""

TurnEvent: TypeAlias = Literal["prompt", "edit", "end", "question"]
"""What happens in a turn: its prompt, the use of a tool, its end, a question."""


class Step(NamedTuple):
    """A step of a turn."""

    event: TurnEvent
    prompt: str = ""
    """The text of the prompt, if ``event`` is that."""


class Edited(NamedTuple):
    """An edit that a CLI has written."""

    file: str
    """Its name, as the CLI has it: absolute, or in the directory of the event."""
    before: str | None
    """The text before it, None for a new file."""
    after: str


class Called(NamedTuple):
    """A call of a tool that may write files: it begins, or has ended."""

    has_ended: bool
    key: str
    """The same in both events of a call."""
    name: str
    """The command of a shell, or else the name of the tool."""
    is_background: bool = False
    """Whether what it has started goes on after its end."""
    may_be_refused: bool = False
    """Whether the CLI asks the user after this event, as its call begins."""


class Choice(NamedTuple):
    """A question of the model, and the answers that it offers."""

    question: str
    header: str
    options: Sequence[tuple[str, str]]
    """Labels and descriptions."""
    is_multiple: bool


QuestionKind: TypeAlias = Literal["permission", "plan", "inquiry"]
"""The kind of a question: for permission, for approval of a plan, or by the model."""


@dataclass(frozen=True)
class Question:
    """A question of a CLI to the user."""

    tool: str
    """The name of the tool for the user."""
    command: str | None = None
    """The whole command of a shell."""
    arguments: Mapping[str, object] = field(default_factory=dict, hash=False)
    """All other arguments of the tool, by name."""
    is_partial: bool = False
    """Whether the tool has arguments that the CLI does not report."""
    kind: QuestionKind = "permission"
    plan: str | None = None
    """The text of a plan."""
    choices: Sequence[Choice] = ()
    """The questions of the model."""

    @property
    def may_be_allowed(self) -> bool:
        """Whether Emacs may answer by a yes."""
        return self.kind == "permission"

    def as_text(self) -> str:
        """Return the question as JSON in ASCII, which nothing on its way changes."""
        arguments = [[name, _shown(value)] for name, value in self.arguments.items()]
        facts = {
            "tool": self.tool,
            "command": self.command,
            "arguments": arguments,
            "partial": self.is_partial,
            "kind": self.kind,
            "plan": self.plan,
            "choices": [choice._asdict() for choice in self.choices],
        }
        return json.dumps(facts)


def choices_in(questions: object) -> list[Choice]:
    """Return the ``questions`` of a model, as Gemini CLI and Qwen Code report them.

    The list is empty if a question has an unexpected form.
    """
    choices = []
    for item in questions if isinstance(questions, list) else []:
        question, options = field_of(item, "question"), field_of(item, "options", [])
        if not isinstance(question, str) or not isinstance(options, list):
            return []
        labels = [
            (
                str(field_of(option, "label", "")),
                str(field_of(option, "description", "")),
            )
            for option in options
        ]
        header = str(field_of(item, "header", ""))
        is_multiple = field_of(item, "multiSelect") is True
        choices.append(Choice(question, header, labels, is_multiple))
    return choices


def call_key(*parts: object) -> str:
    """Return a key of a call from what both of its events have."""
    return json.dumps(parts, sort_keys=True)


def field_of(value: object, name: str, default: object = None) -> object:
    """Return the field ``name`` of ``value``, or ``default`` if it has none."""
    field = value.get(name) if isinstance(value, dict) else None
    return default if field is None else field


def _shown(value: object) -> str:
    """Return ``value`` of an argument as the user reads it."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


class Hooks(ABC):
    """How a CLI reports events by hooks, and reads the answers."""

    @abstractmethod
    def directory(self, event: Facts) -> str:
        """Return the directory of the CLI, or raise MalformedArgument."""

    @abstractmethod
    def read(self, event: Facts) -> Step | Edited | None:
        """Return what ``event`` reports, None if it is to be ignored.

        Raise MalformedArgument if it has not the shape of an event.
        """

    def announced(self, event: Facts) -> str | None:
        """Return the file that the CLI is about to write, in ``event``, or None.

        Its name is as in `Edited`.
        """
        return None

    def called(self, event: Facts) -> Called | None:
        """Return the call of a tool that ``event`` reports to begin or end, or None.

        The tools that report their edits, and those that only read, are left out.
        """
        return None

    def is_prompt(self, event: Facts) -> bool:
        """Return whether ``event`` is a prompt, to which its answer may add."""
        step = self.read(event)
        return isinstance(step, Step) and step.event == "prompt"

    def is_result(self, event: Facts) -> bool:
        """Return whether ``event`` is the end of a tool, to whose result may be added.

        This may be true for an event that `read` refuses, as the tool has failed.
        """
        return False

    def question(self, event: Facts) -> Question | None:
        """Return what the CLI asks the user in ``event``, or None.

        Edits, which have reviews, are left out where the event tells them.
        """
        return None

    def has_ended(self, event: Facts) -> bool:
        """Return whether what the CLI asked has ended, as ``event`` reports.

        The events of `read` also report this.
        """
        return False

    def answer(self, decision: Facts) -> Facts | None:
        """Return the answer to the event of `question` that has ``decision``.

        For decisions, see `permissions.decision_in`.  None means that a hook of the CLI
        cannot answer.
        """
        return None

    @abstractmethod
    def addition(self, event: Facts, text: str) -> Facts:
        """Return the answer to ``event`` that adds ``text`` to the model's context."""


class Reports(Hooks):
    """The events of an extension of this package, without hooks.

    An event has the ``directory`` of the CLI, and what it is: a "prompt" with its
    ``prompt``, an "edit" with ``file``, ``before`` and ``after``, a tool that is
    "called" and "returned" with ``id`` and ``name``, or the "end".  The answer has a
    ``text`` for the model.
    """

    def directory(self, event: Facts) -> str:
        return string(event, "directory")

    def called(self, event: Facts) -> Called | None:
        steps = {"called": False, "returned": True}
        has_ended = steps.get(str(event.get("event")))
        if has_ended is None:
            return None
        return Called(has_ended, string(event, "id"), string(event, "name"))

    def read(self, event: Facts) -> Step | Edited | None:
        step = event.get("event")
        if step == "prompt":
            return Step("prompt", string(event, "prompt"))
        if step == "end":
            return Step("end")
        if step != "edit":
            return None
        before = event.get("before")
        if not isinstance(before, str | None):
            raise MalformedArgument("before must be a string")
        return Edited(string(event, "file"), before, string(event, "after"))

    def addition(self, event: Facts, text: str) -> Facts:
        return {"text": text}
