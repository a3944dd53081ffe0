# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether CLIs are linked to Emacs, which then answers their questions.

The module `questions` is imported when Emacs reports that it has linked CLIs.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .config import Config
from .emacs import Emacs
from .types import EmacsError, Facts

if TYPE_CHECKING:
    from .questions import Questions


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

    def set_roots(self, roots: Sequence[str]) -> None:
        """Take the workspace roots ``roots``, which have true names."""
        # On Windows, Emacs has slashes in them.
        self.roots = [os.path.normpath(root) for root in roots]

    def turn(self, is_on: object) -> None:
        """Start or stop answering the questions of linked CLIs."""
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
            raise EmacsError("its snapshots were deleted")
        return await self.questions.timeline.restore(facts, text)

    def end(self) -> None:
        """Let CLIs ask in their terminals, as the server stops."""
        if self.questions is not None:
            self.questions.permissions.end()
            self.questions.timeline.end()
