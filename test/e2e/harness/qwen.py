# SPDX-License-Identifier: GPL-3.0-or-later
import re
from pathlib import Path

from .emacs import Emacs
from .gemini import (
    CONNECTED,
    PLACEHOLDER,
    Gemini,
    type_until,
    write_program,
    write_settings,
)
from .model import Model
from .scratch import Scratch
from .tools import Tools
from .wait import eventually

UI = {
    "hideTips": True,
    # Qwen Code would ask the model four times a turn: what the user may type next, and
    # (see below) what to remember.  The model of the tests knows neither, and each
    # takes a second.
    "enableFollowupSuggestions": False,
}
PLAIN_UI = {
    **UI,
    # Qwen Code measures each letter of its banner, all of different colors, whenever it
    # draws its screen: nearly two seconds of a processor at the start.
    "hideBanner": True,
    # For a scroll bar that comes and goes, and phrases that wrap, it draws each line
    # again, and so does Emacs in a terminal.
    "showScrollbar": False,
    "accessibility": {"enableLoadingPhrases": False},
}
SETTINGS = {
    "ide": {"enabled": True, "hasSeenNudge": True},
    "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
    "tools": {"approvalMode": "default"},
    "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
    "privacy": {"usageStatisticsEnabled": False},
    "ui": PLAIN_UI,
    "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False},
}

CLIENTS = "(mapcar #'gemini-companion-session-client (gemini-companion-sessions))"


def configure(scratch: Scratch, **changes: object) -> None:
    write_settings(scratch.home / ".qwen", {**SETTINGS, **changes})


def script(tools: Tools, scratch: Scratch, model: Model, name: str) -> Path:
    values = {
        "OPENAI_API_KEY": "fake",
        "OPENAI_MODEL": "model",
        "OPENAI_BASE_URL": f"{model.url}/v1",
    }
    return write_program(scratch.root / name, values, tools.qwen)


class Qwen(Gemini):
    # In the mode yolo it is a star.
    mark = "[*>]"
    _mode = "default"

    def wait_until_connected(self) -> None:
        """Wait until it takes prompts and has connected.

        It does that for 15 s at the most, in which a busy machine may not start it.
        """
        # Above the last prompt, term may show what the CLI has drawn over.
        screen = self.terminal.wait_for_match(
            rf"(?s){PLACEHOLDER}(?!.*(?:{PLACEHOLDER}|IDE connecting))"
        )
        if self.has_given_up(screen):
            # While it gives up, that fails.
            self.ide("enable")

    def begin(self, mode: str) -> None:
        """Begin the approval mode ``mode`` by the command."""
        # Unlike it, the command that the CLI names at its start has one space.
        command = f"/approval-mode  {mode}"
        said = rf"{command}\s+\W+Approval mode set to"
        self.type(command, lambda: re.search(said, self.screen()))
        self._mode = mode

    def reset(self) -> None:
        # A prompt that was interrupted before an answer is there again.
        type_until(
            lambda: self.terminal.keys("C-u"),
            lambda: self.placeholder in self.screen(),
            "the prompt is empty",
        )
        if self._mode != Qwen._mode:
            self.begin(Qwen._mode)
        super().reset()

    def has_given_up(self, screen: str) -> bool:
        """Return whether it does not connect; it says so even if it does later."""
        return "IDE connection unavailable" in screen and CONNECTED not in screen


def stays_connected(emacs: Emacs, cli: Qwen, *others: str) -> None:
    """Wait for ``cli`` and ``others``; a busy machine may have let it give up."""

    def are_connected() -> bool:
        cli.wait_until_connected()
        # When it gives up, Emacs may still know its session.
        connected = sorted(emacs.value(CLIENTS) or []) == [*others, "qwen"]
        return connected and not cli.has_given_up(cli.screen())

    eventually(are_connected, "Qwen Code is connected")
