# SPDX-License-Identifier: GPL-3.0-or-later
"""A new user with an empty home directory installs the package."""

import json
import os
import shutil

import pytest
from harness.emacs import BARE, EARLY_INIT, lisp
from harness.gemini import CONNECTED, SETTINGS, Gemini, in_container, write_settings
from harness.scratch import registry
from harness.terminal import Terminal
from harness.wait import eventually
from harness.world import World

# The user has used Gemini CLI before.
KEYS = "security", "general", "privacy"
USED_BEFORE = {key: SETTINGS[key] for key in KEYS}
# The user's own settings: the package archives, as in the manual.
INIT = """
(setq package-archives '({archives})
      ;; To check one starts an agent of GnuPG, which would stay.
      package-check-signature nil)
"""
RUNS = r"\bGemini(?!\.\.\.| installing)[^\n]*\) -"


@pytest.mark.long
@pytest.mark.differs("package.el and the compiler")
def test_new_user_gets_a_connected_cli(world: World) -> None:
    emacs = start(world)

    give(emacs, "package-refresh-contents")
    emacs.wait_for("Package refresh done")
    # A long name would not fit on the line.
    shutil.copy(world.tools.package, world.home / "package.tar")
    give(emacs, "package-install-file", "~/package.tar")
    # Messages of the compiler soon replace it.
    emacs.wait_for_match(r"Done|[1-9]\d* files? compiled|Wrote .*init\.el")
    emacs.keys("C-x", "1")
    give(emacs, "info-display-manual", "gemini-companion")
    emacs.wait_for("(gemini-companion)Top")
    emacs.keys("q")
    if world.tools.is_first:
        has_a_connected_cli(world, emacs)
        emacs.keys("C-x", "o", "C-x", "C-c")
        emacs.wait_for("kill them and exit anyway? (yes or no)")
        write(emacs, "yes")
        emacs.keys("Enter")
    else:
        # Other Emacsen differ by package.el and the compiler.
        emacs.keys("C-x", "C-c")
    eventually(lambda: not emacs.is_open(), "Emacs has left")


def has_a_connected_cli(world: World, emacs: Terminal) -> None:
    """Turn the mode on, which installs the Python packages, and start a CLI."""
    give(emacs, "gemini-companion-mode")
    emacs.wait_for("Install the Python packages")
    emacs.keys("y")
    # On a busy machine, to fetch and to install them takes minutes each.
    emacs.wait_for_match(f"Installing collected packages|{RUNS}")
    emacs.wait_for_match(RUNS)
    enable_by_the_status(world, emacs)
    give(emacs, "gemini-companion-run")

    emacs.wait_for_match("[1-9] open file")
    assert CONNECTED in Gemini(emacs, world.model()).ide_status()
    emacs.wait_for_match(rf"(?s){CONNECTED}.*- hello\.py")


def start(world: World) -> Terminal:
    shutil.rmtree(world.home)
    directory = world.home / ".emacs.d"
    directory.mkdir(parents=True)
    write_settings(world.home / ".gemini", USED_BEFORE)
    archives = [
        f"({lisp(name)} . {lisp(place)})"
        for name, place in world.tools.archives.items()
    ]
    directory.joinpath("init.el").write_text(INIT.format(archives=" ".join(archives)))
    early = EARLY_INIT.replace("package-enable-at-startup nil", "")
    directory.joinpath("early-init.el").write_text(early)
    path = os.pathsep.join([os.path.dirname(world.tools.gemini), os.environ["PATH"]])
    file = world.file("hello.py", "print('hello')\n")
    emacs = world.tmux.start(
        "new-user",
        [world.tools.emacs, *BARE, "-nw", str(file)],
        world.project,
        {"PATH": path, "GEMINI_API_KEY": "fake", **in_container(), **registry()},
        (110, 45),
    )
    emacs.wait_for("hello.py")
    return emacs


def write(emacs: Terminal, text: str) -> None:
    emacs.text(text)
    emacs.wait_for(text[-40:])


def give(emacs: Terminal, command: str, *answers: str) -> None:
    emacs.keys("M-x")
    emacs.wait_for("M-x")
    for text in (command, *answers):
        write(emacs, text)
        emacs.keys("Enter")


def enable_by_the_status(world: World, emacs: Terminal) -> None:
    """Set ide.enabled by the button of the status."""
    give(emacs, "gemini-companion-status")
    emacs.wait_for("Not connected: IDE integration is off in Gemini CLI")
    emacs.keys("C-x", "1", "C-s")
    emacs.wait_for("I-search")
    write(emacs, "[Enable]")
    emacs.keys("Enter", "C-b", "Enter")
    emacs.wait_for("Setting saved")
    emacs.keys("q")
    settings = json.loads(world.home.joinpath(".gemini/settings.json").read_text())
    assert settings == {**USED_BEFORE, "ide": {"enabled": True}}
