# SPDX-License-Identifier: GPL-3.0-or-later
"""The events that a linked CLI reports by its hooks, and the shapes that they have.

A CLI whose events have another shape has a class of its own in its module.
"""

from abc import ABC, abstractmethod
from typing import Literal, NamedTuple, TypeAlias

from .types import Facts

TurnEvent: TypeAlias = Literal["prompt", "edit", "end", "question"]
"""What happens in a turn: its prompt, the use of a tool, its end, a question."""


class Turn(NamedTuple):
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


class Hooks(ABC):
    """How a CLI reports events by hooks, and reads the answers."""

    @abstractmethod
    def directory(self, event: Facts) -> str:
        """Return the directory of the CLI, or raise MalformedArgument."""

    @abstractmethod
    def read(self, event: Facts) -> Turn | Edited | None:
        """Return what ``event`` reports, None if it is to be ignored.

        Raise MalformedArgument if it has not the shape of an event.
        """

    @abstractmethod
    def addition(self, event: Facts, text: str) -> Facts:
        """Return the answer to ``event`` that adds ``text`` to the model's context."""
