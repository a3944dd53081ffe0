# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs on a screen, in tmux sessions."""

from __future__ import annotations

import re
import shlex
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path

from .scratch import Scratch
from .tools import Tools
from .wait import BOUND, eventually


class Tmux:
    """One tmux server, which only this test uses."""

    def __init__(self, tools: Tools, scratch: Scratch) -> None:
        self._command = [tools.tmux, "-u", "-f", "/dev/null", "-S"]
        self._command.append(str(scratch.run / "tmux"))
        self._environment = scratch.environment
        self.terminals: list[Terminal] = []
        # A server that exits when its last program does may take a new one along.
        self.call("start-server", ";", "set-option", "-s", "exit-empty", "off")

    def start(
        self,
        name: str,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        size: tuple[int, int],
    ) -> Terminal:
        """Run ``argv`` in a new terminal of ``size`` (columns, rows)."""
        assigned = [f"{key}={value}" for key, value in environment.items()]
        line = shlex.join(["env", *assigned, *argv])
        columns, rows = map(str, size)
        self.call("new-session", "-d", "-s", name, "-c", str(cwd),
                  "-x", columns, "-y", rows, f"exec {line}")  # fmt: skip
        terminal = Terminal(self, name)
        self.terminals.append(terminal)
        return terminal

    def call(self, *arguments: str, check: bool = True) -> str:
        """Run a tmux command and return what it prints."""
        done = subprocess.run(
            [*self._command, *arguments],
            env=self._environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=BOUND,
        )
        assert not check or done.returncode == 0, f"{arguments}: {done.stderr}"
        return done.stdout

    def close(self) -> None:
        """Stop the server and all programs in it."""
        self.call("kill-server", check=False)


class Screen(ABC):
    """A screen that can be typed into and read."""

    name: str

    @abstractmethod
    def screen(self) -> str:
        """Return what the screen shows."""

    @abstractmethod
    def keys(self, *keys: str) -> None:
        """Press ``keys``, spelled as tmux spells them."""

    @abstractmethod
    def text(self, text: str) -> None:
        """Type ``text`` literally."""

    def wait_for(self, text: str) -> str:
        """Return the screen once ``text`` is on it."""
        return self.wait_for_match(re.escape(text))

    def wait_for_match(self, pattern: str) -> str:
        """Return the screen once ``pattern`` is on it."""

        def matching() -> str:
            screen = self.screen()
            return screen if re.search(pattern, screen) else ""

        return eventually(matching, f"{pattern!r} on {self.name}'s screen")

    def wait_until_gone(self, text: str) -> None:
        """Wait until ``text`` is no longer on the screen."""
        eventually(
            lambda: text not in self.screen(),
            f"{text!r} gone from {self.name}'s screen",
        )


class Terminal(Screen):
    """A program in a tmux session."""

    def __init__(self, tmux: Tmux, name: str) -> None:
        self._tmux = tmux
        self.name = name
        # A name alone is also tried as the beginning of a window's.
        self._target = f"={name}:"

    def screen(self) -> str:
        """Return what the screen shows."""
        return self._tmux.call("capture-pane", "-p", "-t", self._target, check=False)

    def resize(self, size: tuple[int, int]) -> None:
        """Change the size to ``size`` (columns, rows)."""
        columns, rows = map(str, size)
        self._tmux.call("resize-window", "-t", self._target, "-x", columns, "-y", rows)

    def is_open(self) -> bool:
        """Return whether the program is running."""
        sessions = self._tmux.call("list-sessions", "-F", "#S", check=False)
        return self.name in sessions.split()

    def keys(self, *keys: str) -> None:
        """Press ``keys``, spelled as tmux spells them."""
        self._tmux.call("send-keys", "-t", self._target, *keys)

    def written(self) -> None:
        """Wait until the program can read what was typed.

        By the time that tmux answers a command, it has written the keys of those
        before.
        """
        self._tmux.call("display-message", "-p")

    def text(self, text: str) -> None:
        """Type ``text`` literally."""
        self._tmux.call("send-keys", "-t", self._target, "-l", text)
