# SPDX-License-Identifier: GPL-3.0-or-later
"""From nothing to a connected CLI: the built package in an empty HOME."""

import json

from harness.gemini import CONNECTED, pause_before_enter
from harness.newcomer import Newcomer
from harness.scratch import Scratch
from harness.world import World

# Of a user who has used Gemini CLI before.
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


def test_newcomer_gets_from_nothing_to_a_connected_cli(
    world: World, scratch: Scratch
) -> None:
    person = Newcomer(world, scratch.file("hello.py", "print('hello')\n"), SETTINGS)
    install_package(person, world.tools.package)
    read_manual(person)

    person.give("gemini-companion-mode")
    person.see("Install the Python packages")
    person.press("y")
    person.see_match(RUNS)
    let_it_connect(person)
    person.give("gemini-companion-run")

    person.see_match("[1-9] open file")
    person.type("/ide status")
    pause_before_enter()
    person.press("Enter")
    assert "- hello.py" in person.see(CONNECTED)
    person.press("C-x", "o")
    person.leave()


def install_package(person: Newcomer, tar: str) -> None:
    """Install TAR and what it needs."""
    person.give("package-refresh-contents")
    person.see("Package refresh done")
    # A long name would go over the end of the line.
    person.give("package-install-file", person.keep(tar))
    person.see_match(r"Done|[1-9]\d* files? compiled")
    person.press("C-x", "1")


def read_manual(person: Newcomer) -> None:
    """Find the manual of the package in Info."""
    person.give("info-display-manual", "gemini-companion")
    person.see("(gemini-companion)Top")
    person.press("q")


def let_it_connect(person: Newcomer) -> None:
    """Set ide.enabled by the button of the status."""
    person.give("gemini-companion-status")
    person.see("gemini-companion is on")
    person.press("C-x", "1")
    person.see("ide.enabled is not set")
    person.press("C-s")
    person.see("I-search")
    person.type("[Set it]")
    person.press("Enter", "C-b", "Enter")
    person.see("Set ide.enabled in ~/.gemini/settings.json? (yes or no)")
    person.type("yes")
    person.press("Enter")
    person.see("ide.enabled is true")
    person.press("q")
    settings = json.loads(person.settings())
    assert settings == {**json.loads(SETTINGS), "ide": {"enabled": True}}
