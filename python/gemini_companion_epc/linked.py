# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether CLIs are linked to Emacs, which then answers their questions.

The module `questions` is imported when Emacs reports that it has linked CLIs.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .config import Config
from .emacs import Emacs
from .types import EmacsError, Facts

if TYPE_CHECKING:
    from .questions import Questions

_LONGEST_FAILURE = 4096
_LONGEST_LINE = 200


@dataclass(eq=False, repr=False)
class Linked:
    """The answers to linked CLIs, and the workspace roots in which CLIs may ask."""

    _config: Config
    _emacs: Emacs
    _on_directory: Callable[[Sequence[int], str], None]
    """See `Questions`."""
    roots: Sequence[str] = ()
    """True names."""
    questions: "Questions | None" = field(default=None, init=False)
    """None while no CLI is linked."""
    _watch: "asyncio.Task[None] | None" = field(default=None, init=False)
    _failures: set[str] = field(default_factory=set, init=False)
    """The failures of hooks of which Emacs has warned."""

    def set_roots(self, roots: Sequence[str]) -> None:
        """Take the workspace roots ``roots``, which have true names."""
        # On Windows, Emacs has slashes in them.
        self.roots = [os.path.normpath(root) for root in roots]

    def turn(self, is_on: object, failures: str = "") -> None:
        """Start or stop answering the questions of linked CLIs.

        Their hooks write to the file ``failures``.
        """
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        if is_on and failures:
            self._watch = asyncio.get_running_loop().create_task(
                self._watch_failures(failures)
            )
        if is_on and self.questions is None:
            from .questions import Questions

            self.questions = Questions(
                self._config,
                self._emacs,
                lambda: tuple(self.roots),
                self._on_directory,
            )
        elif not is_on and self.questions is not None:
            self.questions.permissions.give_back()
            self.questions.timeline.end()
            self.questions = None

    async def restore(self, facts: Facts, text: str) -> object:
        """See `Timeline.restore`."""
        if self.questions is None:
            raise EmacsError("the snapshots were deleted")
        return await self.questions.timeline.restore(facts, text)

    async def _watch_failures(self, file: str) -> None:
        """Warn of what hooks write to ``file``, and delete it."""
        while True:
            if failure := failure_in(file):
                message = (
                    f"A hook has failed ({failure}), so an edit may have no marks; "
                    "look at the environment of the CLI, such as the file .env"
                )
                if message not in self._failures:
                    self._failures.add(message)
                    self._emacs.warn(message)
            await asyncio.sleep(self._config.failure_check)

    def ready(self, pids: Sequence[int]) -> None:
        """See `Timeline.ready`."""
        if self.questions is not None:
            self.questions.timeline.ready(pids)

    def end(self) -> None:
        """Let CLIs ask in their terminals, as the server stops."""
        if self.questions is not None:
            self.questions.permissions.end()
            self.questions.timeline.end()


def failure_in(file: str) -> str:
    """Delete ``file``, to which hooks have written, and return its last failure.

    That is the hook, its status, and the last line of its errors, if any.
    """
    try:
        # Each run of a hook opens it.
        if not os.path.getsize(file):
            return ""
        with open(file, "rb") as content:
            content.seek(-min(_LONGEST_FAILURE, os.path.getsize(file)), os.SEEK_END)
            lines = content.read().decode(errors="replace").split("\n")
        os.unlink(file)
    except OSError:
        return ""
    lines = [_shown(line.strip()) for line in lines if line.strip()]
    hooks = [n for n, line in enumerate(lines) if ": exit status " in line]
    if not hooks:
        return ""
    hook = hooks[-1]
    cause = lines[hook - 1] if hook and hook - 1 not in hooks else ""
    return f"{lines[hook]}: {cause}" if cause else lines[hook]


def _shown(line: str) -> str:
    """Return ``line``, of a program, as the user may read it."""
    printable = (char if char.isprintable() else "\ufffd" for char in line)
    return "".join(printable)[:_LONGEST_LINE]
