# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Event

from .model import Context, Model, Part, say
from .scratch import Scratch
from .terminal import Screen
from .tools import Tools
from .wait import eventually

SETTINGS = {
    "ide": {"enabled": True, "hasSeenNudge": True},
    "security": {
        "auth": {"selectedType": "gemini-api-key"},
        "folderTrust": {"enabled": False},
    },
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "ui": {"hideTips": True, "dynamicWindowTitle": False},
}
QUESTION = "Apply this change?"
PLACEHOLDER = "Type your message"
ANSWER = "\u2726"
CONNECTED = "Connected to Emacs"
HEADER = "Gemini CLI v"
SIZE = (110, 45)
# Seconds after which what was typed is typed again.
AGAIN = 10.0


def type_until(
    send: Callable[[], None], is_taken: Callable[[], object], what: str
) -> None:
    """Call ``send``, again until ``is_taken``.

    The CLI shows a prompt, a text or a question shortly before it takes keys for
    it, and drops those that come earlier.
    """
    send()
    typed = time.monotonic()

    def taken() -> bool:
        nonlocal typed
        if is_taken():
            return True
        if time.monotonic() - typed > AGAIN:
            send()
            typed = time.monotonic()
        return False

    eventually(taken, what)


def pause_before_enter() -> None:
    """Wait 50 ms: for 30 ms after a text, the CLI takes Enter for part of a paste."""
    Event().wait(0.05)


def configure(scratch: Scratch, **changes: object) -> None:
    write_settings(scratch.home / ".gemini", {**SETTINGS, **changes})


def write_settings(directory: Path, settings: Mapping[str, object]) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


def script(tools: Tools, scratch: Scratch, model: Model, name: str) -> Path:
    values = {
        "GEMINI_API_KEY": "fake",
        "GEMINI_CLI_NO_RELAUNCH": "1",
        "GOOGLE_GEMINI_BASE_URL": model.url,
        "GEMINI_DEBUG_LOG_FILE": str(scratch.root / f"{name}.log"),
    }
    command = f"'{tools.gemini}' -m gemini-2.5-flash"
    return write_program(scratch.root / name, values, command)


def write_program(path: Path, values: Mapping[str, str], command: str) -> Path:
    lines = ["#!/bin/sh", *(f"export {key}='{value}'" for key, value in values.items())]
    lines.append(f'exec {command} "$@"\n')
    path.write_text("\n".join(lines), encoding="utf-8")
    path.chmod(0o755)
    return path


class Gemini:
    # What the prompt begins with, and what is there while it is empty.
    mark = ">"
    placeholder = PLACEHOLDER
    question = QUESTION

    def __init__(self, terminal: Screen, model: Model) -> None:
        self.terminal = terminal
        self.model = model
        self._prompts = 0
        self._typed: list[str] = []

    def screen(self) -> str:
        return self.terminal.screen()

    def wait_until_connected(self) -> None:
        """Wait for the context: the number of open files under the prompt."""
        self.terminal.wait_for_match(r"\d+ open files?")

    def type(self, text: str, is_sent: Callable[[], object]) -> None:
        def enter() -> None:
            screen = self.screen()
            # Above the text, term may show what the CLI has drawn over.
            if text in self._typed and "esc to cancel" in screen.rpartition(text)[2]:
                return  # it was sent, and a busy machine has not yet asked the model
            if text in screen:
                self.terminal.keys("Enter")
            else:
                self._enter(text)

        type_until(enter, is_sent, f"{text!r} sent")

    def ide(self, what: str) -> None:
        command = f"/ide {what}"
        type_until(
            lambda: self._enter(command),
            lambda: self._is_sent(command),
            f"{command!r} sent",
        )

    def _enter(self, text: str) -> None:
        self._typed.append(text)

        def put() -> None:
            self.terminal.keys(*["BSpace"] * len(text))  # of a part that was taken
            self.terminal.text(text)

        type_until(put, lambda: text in self.screen(), f"{text!r} typed")
        pause_before_enter()
        self.terminal.keys("Enter")

    def _is_sent(self, command: str) -> bool:
        """Return whether ``command`` is above the prompt.

        While it shows completions, the CLI takes Enter for a choice.
        """
        Event().wait(0.5)
        screen = self.screen()
        if self.placeholder not in screen:
            self.terminal.keys("Enter")
        return self.placeholder in screen and command in screen

    def reset(self) -> None:
        """Clear the screen and begin a new conversation, if there was one."""
        self.model.script()
        self.terminal.wait_for(self.placeholder)
        if self._typed or self.model.requests:
            self._enter("/clear")
            eventually(self._is_clear, "the screen is cleared")
            eventually(self._takes_keys, f"{self.terminal.name} takes keys")
            eventually(self._is_empty, "the prompt is empty")
            self._typed.clear()
            self.model.requests.clear()

    def _is_clear(self) -> bool:
        """Return whether nothing of a conversation is on the screen.

        What is typed before that is lost.  Press Enter again if it chose a completion.
        """
        Event().wait(0.2)
        screen = self.screen()
        if self.placeholder in screen:
            return not any(text in screen for text in (ANSWER, *self._typed))
        if "/clear" in screen:
            self.terminal.keys("Enter")
        return False

    def _takes_keys(self) -> bool:
        """Type a letter, and return whether it is in the prompt.

        The CLI may drop what is typed just after the screen was cleared.
        """
        self.terminal.text("x")
        Event().wait(0.2)
        return f"{self.mark} x" in self.screen()

    def _is_empty(self) -> bool:
        self.terminal.keys("BSpace")
        Event().wait(0.05)
        screen = self.screen()
        return self.placeholder in screen and f"{self.mark} x" not in screen

    def prompt(self) -> None:
        self._prompts += 1
        text = f"prompt {self._prompts} please"
        asked = len(self.model.requests)
        self.type(text, lambda: len(self.model.requests) > asked)

    def ask(self) -> str:
        """Send a prompt and return the screen with the edit's question."""
        self.prompt()
        return self.terminal.wait_for(self.question)

    def ide_status(self) -> str:
        """Return the screen with the answer to /ide status, once that is settled."""
        answer = "(?:Connected to|Disconnected|Connecting)"

        def settled() -> str:
            self.ide("status")
            # The prompt below it is drawn last.
            screen = self.terminal.wait_for_match(f"(?s){answer}.*{self.placeholder}")
            return "" if re.findall(answer, screen)[-1] == "Connecting" else screen

        return eventually(settled, "the CLI is no longer connecting")

    def answer(self, choice: str) -> None:
        """Answer a question with ``choice``, a word of its label, until it is taken.

        The question is gone then, or the model is asked again: term may go on to show
        a question that the CLI has drawn over.
        """
        number = self.number(choice)
        asked = len(self.model.requests)
        type_until(
            lambda: self.terminal.keys(number),
            lambda: not self._number(choice) or len(self.model.requests) > asked,
            f"{choice!r} taken",
        )

    def interrupt(self, key: str = "C-c", shown: str = "") -> None:
        """Press ``key`` until the question, or what is ``shown``, is gone."""
        type_until(
            lambda: self.terminal.keys(key),
            lambda: (shown or self.question) not in self.screen(),
            f"{key} taken",
        )

    def number(self, choice: str) -> str:
        return eventually(lambda: self._number(choice), f"{choice!r} to choose")

    def _number(self, choice: str) -> str:
        found = re.search(rf"(\d)\. [^\n]*{choice}", self.screen())
        return found[1] if found else ""

    def wait_for(self, text: str) -> str:
        """Return the screen once ``text`` is on it.

        While the CLI draws its screen again, term shows what was said before.
        """
        eventually(lambda: not self.model.is_to_say(text), f"{text!r} said")
        return self.terminal.wait_for(text)

    def finished(self, said: str, file: Path, text: str) -> None:
        """Wait for what was ``said`` last; check that ``file`` then holds ``text``."""
        self.wait_for(said)
        assert file.read_text() == text

    def is_free(self, *turns: Part) -> None:
        """Check that the CLI is free: a new prompt is answered, after ``turns``."""
        text = f"answer {self._prompts + 1}"
        self.model.script(*turns, say(text))
        self.prompt()
        self.wait_for(text)

    def last_message(self) -> str:
        """Return what reaches the model with a new prompt."""
        self.is_free()
        return self.model.last_message()

    def context(self) -> Context:
        """Return the editor context that reaches the model in a new conversation.

        Later, the CLI sends only what has changed since.
        """
        self.reset()
        self.is_free()
        return self.model.context()


def in_container() -> dict[str, str]:
    """Return the variables for a CLI in a container that has its Emacs, too."""
    marks = ("/.dockerenv", "/run/.containerenv")
    return {"REMOTE_CONTAINERS": "1"} if any(map(os.path.exists, marks)) else {}
