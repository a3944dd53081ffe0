# SPDX-License-Identifier: GPL-3.0-or-later
"""A new user with an empty home directory installs the package."""

import json

import pytest
from harness.gemini import CONNECTED, pause_before_enter, type_until
from harness.new_user import NewUser
from harness.world import World

# The user has used Gemini CLI before.
SETTINGS = """{
  "security": {
    "auth": {"selectedType": "gemini-api-key"},
    "folderTrust": {"enabled": false}
  },
  "general": {"enableAutoUpdate": false},
  "privacy": {"usageStatisticsEnabled": false}
}
"""

RUNS = r"\bGemini(?!\.\.\.| installing)[^\n]*\) -"


@pytest.mark.long
def test_new_user_gets_a_connected_cli(world: World) -> None:
    user = NewUser(world, world.file("hello.py", "print('hello')\n"), SETTINGS)
    install_package(user, world.tools.package)
    read_manual(user)

    user.give("gemini-companion-mode")
    user.see("Install the Python packages")
    user.press("y")
    user.see_match(RUNS)
    let_it_connect(user)
    user.give("gemini-companion-run")

    user.see_match("[1-9] open file")
    user.type("/ide status")
    pause_before_enter()
    type_until(
        lambda: user.press("Enter"),
        lambda: CONNECTED in user.emacs.screen(),
        "the command is sent",
    )
    user.see_match(rf"(?s){CONNECTED}.*- hello\.py")
    user.press("C-x", "o")
    user.leave()


def install_package(user: NewUser, tar: str) -> None:
    """Install ``tar`` and what it needs."""
    user.give("package-refresh-contents")
    user.see("Package refresh done")
    # A long name would not fit on the line.
    user.give("package-install-file", user.keep(tar))
    # Messages of the compiler soon replace it.
    user.see_match(r"Done|[1-9]\d* files? compiled|Wrote .*init\.el")
    user.press("C-x", "1")


def read_manual(user: NewUser) -> None:
    """Find the manual of the package in Info."""
    user.give("info-display-manual", "gemini-companion")
    user.see("(gemini-companion)Top")
    user.press("q")


def let_it_connect(user: NewUser) -> None:
    """Set ide.enabled by the button of the status."""
    user.give("gemini-companion-status")
    user.see("Not connected: IDE integration is off in Gemini CLI")
    user.press("C-x", "1")
    user.press("C-s")
    user.see("I-search")
    user.type("[Enable]")
    user.press("Enter", "C-b", "Enter")
    user.see("Setting saved; type /ide enable")
    user.press("q")
    settings = json.loads(user.settings())
    assert settings == {**json.loads(SETTINGS), "ide": {"enabled": True}}
