# SPDX-License-Identifier: GPL-3.0-or-later
"""A new user, with an empty home directory."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .emacs import BARE, EARLY_INIT, lisp
from .gemini import in_container
from .terminal import Terminal
from .wait import eventually
from .world import World

SIZE = (110, 45)

# The user's own settings: the package archives, as in the manual.
INIT = """
(setq package-archives '({archives})
      ;; To check one starts an agent of GnuPG, which would stay.
      package-check-signature nil)
"""

# How this machine reaches the package registries.
_REGISTRY = ("PIP_", "UV_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class NewUser:
    """A new user, who types into a real Emacs and reads its screen."""

    def __init__(self, world: World, file: Path, settings: str) -> None:
        self._world = world
        scratch, tools = world.scratch, world.tools
        self._home = scratch.home
        shutil.rmtree(scratch.home)
        directory = scratch.home / ".emacs.d"
        directory.mkdir(parents=True)
        self._settings = scratch.home / ".gemini" / "settings.json"
        self._settings.parent.mkdir()
        self._settings.write_text(settings, encoding="utf-8")
        archives = " ".join(
            f"({lisp(name)} . {lisp(place)})" for name, place in tools.archives.items()
        )
        directory.joinpath("early-init.el").write_text(
            EARLY_INIT.replace("package-enable-at-startup nil", ""), encoding="utf-8"
        )
        directory.joinpath("init.el").write_text(
            INIT.format(archives=archives), encoding="utf-8"
        )
        path = os.pathsep.join([os.path.dirname(tools.gemini), os.environ["PATH"]])
        registry = {
            name: value
            for name, value in os.environ.items()
            if name.upper().startswith(_REGISTRY)
        }
        self.emacs: Terminal = world.tmux.start(
            "new-user",
            [tools.emacs, *BARE, "-nw", str(file)],
            scratch.project,
            {"PATH": path, "GEMINI_API_KEY": "fake", **in_container(), **registry},
            SIZE,
        )
        self.see(file.name)

    def keep(self, file: str) -> str:
        """Copy ``file`` into the home, and return its short name."""
        return f"~/{Path(shutil.copy(file, self._home)).name}"

    def see(self, text: str) -> str:
        """Return the screen once ``text`` is on it."""
        return self.emacs.wait_for(text)

    def see_match(self, pattern: str) -> str:
        """Return the screen once ``pattern`` is on it."""
        return self.emacs.wait_for_match(pattern)

    def settings(self) -> str:
        """Return the user's settings of Gemini CLI."""
        return self._settings.read_text(encoding="utf-8")

    def type(self, text: str) -> None:
        """Type ``text`` and wait until it is on the screen."""
        self.emacs.text(text)
        self.see(text[-40:])

    def press(self, *keys: str) -> None:
        """Press ``keys``, spelled as tmux spells them."""
        self.emacs.keys(*keys)

    def give(self, command: str, *answers: str) -> None:
        """Run ``command`` by M-x, and type ``answers`` to its questions."""
        self.press("M-x")
        self.see("M-x")
        for text in (command, *answers):
            self.type(text)
            self.press("Enter")

    def leave(self) -> None:
        """Exit Emacs, which asks because Gemini CLI runs in it."""
        self.press("C-x", "C-c")
        self.see("kill them and exit anyway? (yes or no)")
        self.type("yes")
        self.press("Enter")
        eventually(lambda: not self.emacs.is_open(), "Emacs has left")
