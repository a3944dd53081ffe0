# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
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
# Its answers to a command of /ide, the last one if it does not have that now.
NO_COMMAND = "requires a subcommand"
IDE_ANSWERS = f"Connected to|Connecting|Disconnected|{NO_COMMAND}"
HEADER = "Gemini CLI v"
SIZE = (110, 45)
# Seconds after which what was typed is typed again.
AGAIN = 10.0


def type_until(
    send: Callable[[], None],
    is_taken: Callable[[], object],
    what: str,
    again: float = AGAIN,
) -> None:
    """Call ``send``, and ``again`` after that time until ``is_taken``.

    The CLI shows a prompt, a text or a question shortly before it takes keys for
    it, and drops those that come earlier.
    """
    send()
    typed = time.monotonic()

    def taken() -> bool:
        nonlocal typed
        if is_taken():
            return True
        if time.monotonic() - typed > again:
            send()
            typed = time.monotonic()
        return False

    eventually(taken, what)


def pause_before_enter() -> None:
    """Wait 50 ms: for 30 ms after a text, the CLI takes Enter for part of a paste."""
    Event().wait(0.05)


def last_start(matches: Iterable[re.Match[str]]) -> int:
    """Return where the last of ``found`` begins, or -1."""
    return max((match.start() for match in matches), default=-1)


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
    # A regular expression for what the prompt begins with, and what is there while it
    # is empty.
    mark = ">"
    placeholder = PLACEHOLDER
    question = QUESTION

    def __init__(self, terminal: Screen, model: Model) -> None:
        self.terminal = terminal
        self.model = model
        self._prompts = 0
        self._typed: list[str] = []
        # When a text was entered last.
        self._entered = 0.0

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
                self._enter(text, is_sent)

        type_until(enter, is_sent, f"{text!r} sent")

    def ide(self, what: str) -> str:
        """Give the command /ide ``what``; return its last answer on the screen.

        Give it again until the CLI has it: "enable" once it has noticed that it is not
        connected, which it may do later than Emacs or the server, and "disable" while
        it is connected.
        """
        command = f"/ide {what}"
        # The prompt is drawn last, below the answer.
        answered = rf"(?s){command}(?!.*{command}).*({IDE_ANSWERS}).*{self.mark} "

        def answer() -> str:
            type_until(
                lambda: self._enter(command),
                lambda: self._is_sent(command),
                f"{command!r} sent",
            )
            screen = self.terminal.wait_for_match(answered)
            match = re.search(answered, screen)
            return match[1] if match and match[1] != NO_COMMAND else ""

        return eventually(answer, f"{command!r} is a command of the CLI")

    def enable(self) -> None:
        """Let the CLI connect that has lost its connection, until it says so.

        The last attempt to open the lost one again, within 2.5 seconds, also ends a new
        one when it fails.
        """
        eventually(lambda: self.ide("enable") == "Connected to", "it is connected")

    def _enter(self, text: str, is_sent: Callable[[], object] = lambda: False) -> None:
        """Type ``text`` and Enter, unless it is sent meanwhile: /quit ends the CLI."""
        takes = f"{self.terminal.name} takes a text"
        eventually(lambda: is_sent() or self._takes_text(), takes)
        if is_sent():
            return
        self._typed.append(text)

        def put() -> None:
            self.terminal.keys(*["BSpace"] * len(text))  # of a part that was taken
            self.terminal.text(text)

        is_typed = f"{text!r} typed"
        type_until(put, lambda: is_sent() or self._is_typed(text), is_typed)
        pause_before_enter()
        self.terminal.keys("Enter")
        self._entered = time.monotonic()

    def _takes_text(self) -> bool:
        """Return whether the prompt is the last that the screen shows to answer.

        Below a question there is none, and a digit that is typed is a choice of it.
        Emacs may know that the question has ended before the CLI does.
        """
        screen = self.screen()
        prompts = re.finditer(rf"{self.mark}(?! \d\. )(?=\s|\Z)", screen)
        choices = re.finditer(r"(?m)^\W*\d\. ", screen)
        return last_start(prompts) > last_start(choices)

    def _is_typed(self, text: str) -> bool:
        """Return whether ``text`` is in the prompt, and not only in one before it.

        Qwen Code marks the completion of a command that is chosen as it does a prompt.
        """
        *_, before, last = ["", *re.split(f"{self.mark} ", self.screen())]
        return last.startswith(text) or (
            text.startswith("/")
            and last.startswith(text[1:])
            and before.startswith(text)
        )

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
            self._prompts = 0
            self.model.requests.clear()

    def _is_clear(self) -> bool:
        """Return whether nothing of a conversation is on the screen.

        What is typed before that is lost.  Press Enter again if it chose a completion.
        """
        Event().wait(0.2)
        screen = self.screen()
        if self.placeholder in screen:
            return not any(text in screen for text in (ANSWER, *self._typed))
        if "/clear" in screen and time.monotonic() - self._entered > 2:
            self.terminal.keys("Enter")
            self._entered = time.monotonic()
        return False

    def _takes_keys(self) -> bool:
        """Type a letter, and return whether it is in the prompt.

        The CLI may drop what is typed just after the screen was cleared.
        """
        self.terminal.text("x")
        Event().wait(0.2)
        return self._has_x(self.screen())

    def _has_x(self, screen: str) -> bool:
        return re.search(f"{self.mark} x", screen) is not None

    def _is_empty(self) -> bool:
        self.terminal.keys("BSpace")
        Event().wait(0.05)
        screen = self.screen()
        return self.placeholder in screen and not self._has_x(screen)

    def prompt(self) -> None:
        self._prompts += 1
        text = f"prompt {self._prompts} please"
        request_count = len(self.model.requests)
        self.type(text, lambda: len(self.model.requests) > request_count)

    def ask(self) -> str:
        """Send a prompt and return the screen with the edit's question."""
        self.prompt()
        return self.terminal.wait_for(self.question)

    def ide_status(self) -> str:
        """Return the screen with the final answer to /ide status."""

        def final_status() -> str:
            return "" if self.ide("status") == "Connecting" else self.screen()

        return eventually(final_status, "the CLI is no longer connecting")

    def answer(self, choice: str) -> None:
        """Answer a question with ``choice``, a word of its label, until it is taken.

        The question is gone then, or the model is asked again: term may go on to show
        a question that the CLI has drawn over.
        """
        number = self.number(choice)
        request_count = len(self.model.requests)
        type_until(
            lambda: self.terminal.keys(number),
            lambda: (
                not self._number(choice) or len(self.model.requests) > request_count
            ),
            f"{choice!r} taken",
        )

    def interrupt(self, key: str = "C-c", shown: str = "") -> None:
        """Press ``key`` until the question, or what is ``shown``, is gone."""
        shown = shown or self.question
        # Emacs may know of a question before the CLI has drawn it.
        self.terminal.wait_for(shown)
        type_until(
            lambda: self.terminal.keys(key),
            lambda: shown not in self._below_last_prompt(),
            f"{key} taken",
        )

    def _below_last_prompt(self) -> str:
        """Return the end of the screen: above, term may show what was drawn over."""
        screen = self.screen()
        return screen.rpartition(self._typed[-1])[2] if self._typed else screen

    def number(self, choice: str) -> str:
        return eventually(lambda: self._number(choice), f"{choice!r} to choose")

    def _number(self, choice: str) -> str:
        match = re.search(rf"(\d)\. [^\n]*{choice}", self.screen())
        return match[1] if match else ""

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

    def has_context(self, context: Context) -> None:
        """Wait until ``context`` reaches the model in a new conversation.

        The CLI does not show what it has of Emacs, so it is asked until it has that.
        Later in a conversation, it sends only what has changed since.
        """
        last: list[Context] = []

        def has() -> bool:
            self.reset()
            self.is_free()
            last[:] = [self.model.context()]
            return last == [context]

        try:
            eventually(has, f"the CLI has the context {context}")
        except AssertionError as problem:
            raise AssertionError(f"{problem}\nIt has {last}") from problem


def in_container() -> dict[str, str]:
    """Return the variables for a CLI in a container that has its Emacs, too."""
    marks = ("/.dockerenv", "/run/.containerenv")
    return {"REMOTE_CONTAINERS": "1"} if any(map(os.path.exists, marks)) else {}
