# SPDX-License-Identifier: GPL-3.0-or-later
"""What was asked, typed, answered and run in a judged run, and the verdict about it.

All who take part append records to one file, see recorder.py, so they are in the order
of time.  A command that ran needs exactly one explanation: a key in Emacs that showed
exactly that text, or a key in the terminal that showed its dialog.
"""

import json
import os
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recorder import record

Record = dict[str, Any]

ALLOW = "C-c C-c"
"""The keys that allow a question in Emacs."""


def escaped(command: str) -> str:
    """Return ``command`` as Emacs has to show it, with what is not seen as escapes."""
    return "".join(map(_shown, command))


def _shown(char: str) -> str:
    if char in " \n" or unicodedata.category(char) not in {
        *("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp", "Zs", "Mn", "Mc", "Me")
    }:
        return char
    escapes = {"\t": "\\t", "\r": "\\r"}
    number = ord(char)
    return escapes.get(char) or (f"\\U{number:08X}" if number > 0xFFFF
                               else f"\\u{number:04X}")  # fmt: skip


@dataclass(eq=False)
class Question:
    """A command that a CLI was told to run, a text that no other question has."""

    number: int
    kind: str
    command: str
    token: str
    """What it writes, which is at its beginning and at its end."""
    keys: list[Record] = field(default_factory=list)
    """The keys that were typed to answer it, or while its dialog was shown."""
    asked: Record | None = None
    hook: Record | None = None
    """What its hook has printed."""
    ran: list[Record] = field(default_factory=list)
    is_excused: bool = False
    """Whether its CLI was killed or interrupted, so that a yes may be lost."""

    @property
    def behavior(self) -> str:
        """What the hook has answered: "allow", "deny", or "" if the CLI is to ask."""
        return self._decided("behavior")

    @property
    def message(self) -> str:
        """What the hook has answered with "deny", for the model, or ""."""
        return self._decided("message")

    def _decided(self, name: str) -> str:
        if self.hook is None or not self.hook["text"].strip():
            return ""
        try:
            answer = json.loads(self.hook["text"])
            return str(answer["hookSpecificOutput"]["decision"][name])
        except (ValueError, LookupError, TypeError):
            return ""


class Ledger:
    def __init__(self, directory: Path) -> None:
        self.file = directory / "records"
        self.file.touch()
        os.environ["JUDGE_RECORDS"] = str(self.file)
        self.questions: dict[str, Question] = {}
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.slowest: dict[str, float] = {}
        self.frames: list[str] = []
        self._read = 0
        self._hooks: dict[int, Question] = {}
        self._gone: set[Question] = set()

    def add(self, question: Question) -> None:
        self.questions[question.command] = question

    def problem(self, text: str) -> None:
        record("problem", text=text)
        self.problems.append(text)
        print(f"PROBLEM {text}", flush=True)

    def took(self, what: str, seconds: float) -> None:
        self.slowest[what] = max(seconds, self.slowest.get(what, 0))

    def update(self) -> None:
        """Take over what was recorded since the last call."""
        with self.file.open("rb") as file:
            file.seek(self._read)
            *lines, rest = file.read().split(b"\n")
            self._read = file.tell() - len(rest)
        for line in lines:
            self._take(json.loads(line))

    def _take(self, record: Record) -> None:
        if record["what"] == "hook-in":
            question = self.questions.get(_command_of(record["event"]))
            if question:
                question.asked = record
                self._hooks[record["pid"]] = question
        elif record["what"] == "hook-out" and record["pid"] in self._hooks:
            self._hooks.pop(record["pid"]).hook = record
        elif record["what"] == "ran":
            self._note_ran(record)
        elif record["what"] == "bash":
            self._note_bash(record)

    def asked_on(self, screen: str) -> list[Question]:
        """Return the questions that have not run whose tokens are on ``screen``."""
        return [question for question in self.questions.values()
                if question.token in screen and not question.ran]  # fmt: skip

    def _note_bash(self, record: Record) -> None:
        """Take what a CLI gives to bash: a command, in a frame that is always alike."""
        text = "\0".join(record["arguments"])
        commands = [command for command in self.questions if command in text]
        if not commands:
            return
        command = max(commands, key=len)
        before, _, after = text.partition(command)
        frame = re.sub(r"/tmp/\S+", "/tmp/FILE", f"{before}{{}}{after}")
        if frame not in self.frames:
            self.frames.append(frame)
            if len(self.frames) > 1:
                self.problem(f"{command!r} ran in another way: {frame!r}")
        self._note_ran({**record, "command": command})

    def _note_ran(self, record: Record) -> None:
        question = self.questions.get(record["command"])
        if question is None:
            self.problem(f"a command ran that nobody asked: {record['command']!r}")
            return
        question.ran.append(record)
        why = self._explanations(question)
        if len(question.ran) > 1 or len(why) != 1:
            self.problem(f"{question.token} ran {len(question.ran)} times, why: {why}")
        for each in why:
            self.counts[f"ran by {each}"] += 1

    def _explanations(self, question: Question) -> list[str]:
        """Return why ``question`` may have run."""
        explanations = []
        keys = question.keys
        if question.behavior == "allow":
            if any(key["key"] == ALLOW and key["shows"] for key in keys):
                explanations.append("a key in Emacs")
        elif any(map(self._is_used, (key for key in keys if key["key"] == "yes"))):
            explanations.append("a key in the terminal")
        return explanations

    @staticmethod
    def _is_used(key: Record) -> bool:
        """Return whether ``key`` has explained no other command, and use it."""
        if key.get("used"):
            return False
        key["used"] = True
        return True

    def open_hooks(self) -> list[Question]:
        """Return the questions whose hooks have printed nothing, and are to."""
        self.update()
        return [question for question in self._hooks.values()
                if question not in self._gone]  # fmt: skip

    def drop_hooks(self, questions: list[Question]) -> None:
        """Await no hooks of ``questions``, whose CLI has gone or has ended them."""
        self._gone.update(questions)

    def finish_plans(self) -> None:
        """Check that no plan or question was allowed, and what models were told."""
        self.update()
        for question in self.questions.values():
            said = [key["said"] for key in question.keys if "said" in key]
            if question.behavior == "allow":
                self.problem(f"{question.token} was allowed by its hook")
            if question.message and not any(text in question.message for text in said):
                self.problem(f"{question.token}: its model was told what nobody typed")

    def finish(self) -> None:
        """Check that what was allowed has run, and what was refused has not."""
        self.update()
        for question in self.questions.values():
            allowed = question.behavior == "allow"
            typed = [key for key in question.keys if key["key"] == ALLOW]
            if allowed and not any(key["shows"] for key in typed):
                self.problem(f"{question.token} was allowed without a key for its text")
            if allowed and not question.ran and not question.is_excused:
                self.problem(f"{question.token} was allowed and has not run")
            there = any(key["key"] == "yes" for key in question.keys)
            if there and not question.ran and not question.is_excused:
                self.problem(f"{question.token} was allowed there and has not run")

    def report(self) -> str:
        """Return the figures and the problems."""
        ran = sum(bool(question.ran) for question in self.questions.values())
        asked = sum(bool(question.asked) for question in self.questions.values())
        kinds = Counter(question.kind for question in self.questions.values())
        slow = [f"{what} {took:.1f} s" for what, took in self.slowest.items()]
        return "\n".join([
            f"{len(self.questions)} questions, {asked} reported by hooks, {ran} ran",
            "commands: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()),
            "what happened: "
            + ", ".join(f"{n} {what}" for what, n in self.counts.most_common()),
            "slowest dialog: " + ", ".join(slow),
            f"{len(self.problems)} problems",
            *self.problems,
        ])  # fmt: skip


def _command_of(event: Record) -> str:
    """Return the command of a shell in ``event`` of a hook that asks, or ""."""
    if event.get("hook_event_name") == "PermissionRequest":
        arguments = event["tool_input"]
        questions = arguments.get("questions") or [{}]
        return str(
            arguments.get("command")
            or arguments.get("plan")
            or questions[0].get("question", "")
        )
    details = event.get("details") or {}
    return str(details.get("command", ""))
