# SPDX-License-Identifier: GPL-3.0-or-later
"""A protocol between a CLI and an editor.

A further protocol is a module with a subclass; its CLIs are rows of `clients`.
No other module knows the name of a tool or of a notification.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from .types import File, Json


class Tool(NamedTuple):
    """A tool that a CLI may call."""

    name: str
    description: str
    arguments: Sequence[str]
    """Names of its arguments, which are strings and required."""
    flags: Sequence[str] = ()
    """Names of further arguments, which are booleans and optional."""


class Reviews(NamedTuple):
    """The reviews and prompts of the session that calls a tool, see `Diffs`."""

    session_id: str
    open: Callable[[str, str], Awaitable[bool]]
    close: Callable[[str], Awaitable[str | None]]
    decided: Callable[[str, str], Awaitable[bool | None]]
    connected_for: Callable[[], float]
    end_prompt: Callable[[str, bool], None]
    written: Callable[[str], None]


class Protocol(ABC):
    """How a CLI calls an editor, and what it must be sent."""

    tools: Sequence[Tool]
    """The tools that the CLI may call."""
    keeps_proposals: bool = False
    """Whether the CLI sends an open proposal again when there is another server.

    Then only the user rejects a diff; the end of the server does not.  The CLI closes
    each diff for which it does not wait any more.
    """

    @abstractmethod
    async def call(self, reviews: Reviews, tool: str, arguments: Json) -> str:
        """Return the text of the answer to a tool call, or raise MalformedArgument."""

    @abstractmethod
    def context(self, files: Sequence[File]) -> Json:
        """Return the notification of the open ``files``."""

    def outcome(self, path: str, content: str | None, reason: str = "") -> Json | None:
        """Return the outcome of the diff of ``path``: the CLI writes ``content``.

        None rejects it, for the ``reason`` of the user: the CLI writes nothing.  Return
        None if `call` has the outcome.
        """
        return None

    def prompt(self, prompt_id: str, text: str) -> Json | None:
        """Return the notification that submits ``text`` as a prompt, if the CLI can.

        The CLI calls a tool when it has taken the prompt, or has not.
        """
        return None

    @abstractmethod
    def discovery(self, port: int, bearer: str, roots: Sequence[str]) -> Json:
        """Return the discovery file of a server that knows the client by ``bearer``."""
