# SPDX-License-Identifier: GPL-3.0-or-later
"""What is selected is told, however it was selected."""

import pytest
from harness.emacs import Emacs
from harness.scratch import Scratch
from harness.wait import eventually
from harness.world import World

TEXT = "one two\nthree four\nfive six\nseven\n"
SNAPSHOT = "(plist-get (car (gemini-companion-context-snapshot)) :selected-text)"


def tells(emacs: Emacs, text: str | None) -> None:
    """Wait until TEXT is what is told of the selection."""
    what = f"{text!r} is told as selected"
    eventually(lambda: emacs.value(SNAPSHOT) == text, what)


def test_selections_of_emacs(world: World, scratch: Scratch) -> None:
    emacs = world.emacs(scratch.file("a.txt", TEXT))

    emacs.keys("C-x", "h")
    tells(emacs, TEXT)
    emacs.keys("C-g")
    tells(emacs, None)
    emacs.keys("M-<", "C-x", "Space", "C-n", "C-n", "C-f", "C-f")
    tells(emacs, "on\nth\nfi")
    emacs.keys("C-x", "Space")
    tells(emacs, "one two\nthree four\nfi")


def test_large_rectangle_is_cut(world: World, scratch: Scratch) -> None:
    text = "\n".join(1000 * ["a line with thirty characters."])
    emacs = world.emacs(scratch.file("a.txt", text))

    emacs.keys("C-x", "Space", "M->")
    tells(emacs, text[:16384])


EVIL = """(add-to-list 'load-path package-user-dir)
(when (require 'evil nil t) (evil-mode 1))"""


def test_visual_states_of_evil(world: World, scratch: Scratch) -> None:
    emacs = world.emacs(scratch.file("a.txt", TEXT), extra=EVIL)
    if emacs.eval("(featurep 'evil)") == "nil":
        pytest.skip("evil is not installed")

    emacs.keys("g", "g", "v", "e")
    tells(emacs, "one")
    emacs.keys("w", "o")
    tells(emacs, "one t")
    emacs.keys("Escape")
    tells(emacs, None)
    emacs.keys("g", "g", "l", "V")
    tells(emacs, "one two\n")
    emacs.keys("j")
    tells(emacs, "one two\nthree four\n")
    emacs.keys("C-v")
    tells(emacs, "n\nh")
    emacs.keys("j", "l")
    tells(emacs, "ne\nhr\niv")
    emacs.keys("v")
    tells(emacs, "ne two\nthree four\nfiv")
