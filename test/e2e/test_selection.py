# SPDX-License-Identifier: GPL-3.0-or-later
"""All kinds of selections are shared."""

import pytest
from harness.emacs import Emacs
from harness.wait import eventually
from harness.world import World

pytestmark = pytest.mark.shared

TEXT = "one two\nthree four\nfive six\nseven\n"
SNAPSHOT = "(plist-get (car (gemini-companion-context-snapshot)) :selected-text)"


def shares(emacs: Emacs, text: str | None) -> None:
    """Wait until ``text`` is the shared selection."""
    what = f"{text!r} is the shared selection"
    eventually(lambda: emacs.value(SNAPSHOT) == text, what)


def test_selections_of_emacs(world: World) -> None:
    emacs = world.emacs(world.file("a.txt", TEXT))

    emacs.keys("C-x", "h")
    shares(emacs, TEXT)
    emacs.keys("C-g")
    shares(emacs, None)
    emacs.keys("M-<", "C-x", "Space", "C-n", "C-n", "C-f", "C-f")
    shares(emacs, "on\nth\nfi")
    emacs.keys("C-x", "Space")
    shares(emacs, "one two\nthree four\nfi")


EVIL = """(add-to-list 'load-path package-user-dir)
(when (require 'evil nil t) (evil-mode 1))"""


@pytest.mark.once
@pytest.mark.shared("evil")
def test_visual_states_of_evil(world: World) -> None:
    emacs = world.emacs(world.file("a.txt", TEXT), extra=EVIL)
    if emacs.eval("(featurep 'evil)") == "nil":
        pytest.skip("evil is not installed")

    emacs.keys("g", "g", "v", "e")
    shares(emacs, "one")
    emacs.keys("w", "o")
    shares(emacs, "one t")
    emacs.keys("Escape")
    shares(emacs, None)
    emacs.keys("g", "g", "l", "V")
    shares(emacs, "one two\n")
    emacs.keys("j")
    shares(emacs, "one two\nthree four\n")
    emacs.keys("C-v")
    shares(emacs, "n\nh")
    emacs.keys("j", "l")
    shares(emacs, "ne\nhr\niv")
    emacs.keys("v")
    shares(emacs, "ne two\nthree four\nfiv")
