# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs on a screen, in tmux sessions."""

import re
import shlex
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Timer

from .scratch import Scratch
from .wait import BOUND, eventually

OPTIONS = ("-u", "-f", "/dev/null", "-C")
IDLE = ("new-session", "-s", "control", "exec cat")


class Tmux:
    """One tmux server, which only this test uses."""

    def __init__(self, scratch: Scratch) -> None:
        # A client in control mode reads commands from its input.  One for each
        # command would take much of the time of a busy machine.
        self._client = subprocess.Popen(
            ["tmux", "-S", str(scratch.run / "tmux"), *OPTIONS, *IDLE],
            env=scratch.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )
        assert self._answer()[0], "no tmux server"
        self.terminals: list[Terminal] = []

    def start(
        self,
        name: str,
        argv: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        size: tuple[int, int],
    ) -> "Terminal":
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
        """Run a tmux command, without newlines, and return what it prints."""
        assert self._client.stdin
        late = Timer(BOUND, self._client.kill)
        late.start()
        try:
            self._client.stdin.write(shlex.join(arguments) + "\n")
            self._client.stdin.flush()
            is_well, printed = self._answer()
        except BrokenPipeError:
            is_well, printed = False, "tmux has exited"
        late.cancel()
        assert not check or is_well, f"{arguments}: {printed}"
        return printed

    def close(self) -> None:
        if self._client.poll() is None:
            self._client.communicate("kill-server\n", BOUND)
        for pipe in filter(None, (self._client.stdin, self._client.stdout)):
            with suppress(BrokenPipeError):
                pipe.close()

    def _answer(self) -> tuple[bool, str]:
        """Return whether the command worked, and what it printed.

        That is between two lines with the same number; other lines are about
        the sessions.
        """
        assert self._client.stdout
        printed: list[str] = []
        number = None
        for line in self._client.stdout:
            word, _, rest = line.partition(" ")
            if number is None and word == "%begin":
                number = rest
            elif rest == number and word in {"%end", "%error"}:
                return word == "%end", "".join(printed)
            elif number is not None:
                printed.append(line)
        return False, "tmux has exited"


class Screen(ABC):
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
        return self.wait_for_match(re.escape(text))

    def wait_for_match(self, pattern: str) -> str:
        def matching() -> str:
            screen = self.screen()
            return screen if re.search(pattern, screen) else ""

        return eventually(matching, f"{pattern!r} on {self.name}'s screen")

    def wait_until_gone(self, text: str) -> None:
        eventually(lambda: text not in self.screen(), f"{text!r} gone from {self.name}")


class Terminal(Screen):
    def __init__(self, tmux: Tmux, name: str) -> None:
        self._tmux = tmux
        self.name = name
        # A name alone is also tried as the beginning of a window's.
        self._target = f"={name}:"

    def screen(self) -> str:
        return self._tmux.call("capture-pane", "-p", "-t", self._target, check=False)

    def resize(self, size: tuple[int, int]) -> None:
        columns, rows = map(str, size)
        self._tmux.call("resize-window", "-t", self._target, "-x", columns, "-y", rows)

    def is_open(self) -> bool:
        sessions = self._tmux.call("list-sessions", "-F", "#S", check=False)
        return self.name in sessions.split()

    def keys(self, *keys: str) -> None:
        self._tmux.call("send-keys", "-t", self._target, *keys)

    def written(self) -> None:
        """Wait until the program can read what was typed.

        By the time that tmux answers a command, it has written the keys of those
        before.
        """
        self._tmux.call("display-message", "-p")

    def text(self, text: str) -> None:
        self._tmux.call("send-keys", "-t", self._target, "-l", text)
