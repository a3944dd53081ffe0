# SPDX-License-Identifier: GPL-3.0-or-later
"""A process in the place of Qwen Code: it asks by its hook before it runs a command.

Its arguments are the line of the shell for the hook, the directory of the project, and
the kind: for "plans", it asks about plans and questions of the model in place of
commands, whose texts are then those of the commands.
It reads lines of JSON: {"ask": [COMMAND...]} for the commands of one answer of the
model; {"key": "yes" | "no"}, which answers the dialog that it shows; {"key": "escape"}.
It prints {"dialog": COMMAND}, and {"idle": true} once it has run the allowed commands.

As Qwen Code does, it asks about one command after the other, and runs none before all
have been decided; Escape ends the turn, and the process group of the hook.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from typing import Any

from recorder import record

HOOK, DIRECTORY, KIND = sys.argv[1:4]


def tell(**facts: object) -> None:
    print(json.dumps(facts), flush=True)


def asked_of(text: str) -> dict[str, Any]:
    """Return the tool and its input by which the model asks about ``text``."""
    if KIND != "plans":
        arguments = {"command": text, "description": "Do it"}
        return {"tool_name": "run_shell_command", "tool_input": arguments}
    if len(text) % 2:
        return {"tool_name": "exit_plan_mode", "tool_input": {"plan": text}}
    options = [{"label": label, "description": text} for label in ("red", "blue")]
    question = {"question": text, "header": "Pick", "options": options}
    return {"tool_name": "ask_user_question", "tool_input": {"questions": [question]}}


class Asker:
    """The commands of one answer at a time, and the keys of the user."""

    def __init__(self) -> None:
        self._keys: queue.Queue[str] = queue.Queue()
        self._hook: subprocess.Popen[bytes] | None = None
        self._interrupted = threading.Event()

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "ask" in message:
                self._interrupted.clear()
                threading.Thread(target=self._turn, args=(message["ask"],)).start()
            elif message["key"] == "escape":
                self._interrupt()
            else:
                self._keys.put(message["key"])

    def _interrupt(self) -> None:
        self._interrupted.set()
        self._keys.put("no")
        if self._hook:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._hook.pid, signal.SIGTERM)

    def _turn(self, commands: list[str]) -> None:
        allowed = []
        for command in commands:
            if not self._interrupted.is_set() and self._allowed(command):
                allowed.append(command)
        for command in allowed:
            if not self._interrupted.is_set():
                record("ran", command=command)
        record("idle", pid=os.getpid(), interrupted=self._interrupted.is_set())
        tell(idle=True)

    def _allowed(self, command: str) -> bool:
        behavior = self._answer(command)
        if behavior or self._interrupted.is_set():
            return behavior == "allow"
        while not self._keys.empty():
            self._keys.get()
        record("dialog", pid=os.getpid(), command=command)
        tell(dialog=command)
        key = self._keys.get()
        if key == "no":  # it ends the turn
            self._interrupted.set()
        return key == "yes"

    def _answer(self, command: str) -> str:
        """Return the behavior that the hook prints, "" if the user is to be asked."""
        event: dict[str, Any] = {
            "hook_event_name": "PermissionRequest",
            "cwd": DIRECTORY,
            **asked_of(command),
        }
        self._hook = subprocess.Popen(
            ["bash", "-c", HOOK],
            cwd=DIRECTORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        printed, _ = self._hook.communicate(json.dumps(event).encode())
        try:
            decision = json.loads(printed)["hookSpecificOutput"]["decision"]
            return str(decision["behavior"])
        except (ValueError, LookupError, TypeError):
            return ""


Asker().run()
