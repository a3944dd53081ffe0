# SPDX-License-Identifier: GPL-3.0-or-later
"""What is shared of frames, names of files and selections, without a CLI."""

from pathlib import Path

import pytest
from harness.emacs import Emacs, lisp
from harness.terminal import Terminal
from harness.world import World

pytestmark = pytest.mark.shared

SNAPSHOT = """
(vconcat (mapcar (lambda (file)
                   (vector (if (plist-get file :active) "active" "open")
                           (file-name-nondirectory (plist-get file :path))))
                 (gemini-companion-context-snapshot)))"""


def shares(emacs: Emacs, active: str | None, *others: str) -> None:
    """Wait until ``active`` is the active file, and ``others`` the open ones."""
    expected = [["active", active]] if active else []
    expected += [["open", name] for name in others]
    emacs.becomes(SNAPSHOT, expected)


def frame(world: World, emacs: Emacs, file: Path) -> Terminal:
    """Open another frame of ``emacs`` in a terminal, with ``file`` in it."""
    visit = f'(find-file "{file}")'
    client = [world.tools.emacsclient, "-s", "emacs", "-nw", "--eval", visit]
    terminal = world.tmux.start("other", client, file.parent, {}, (80, 24))
    terminal.wait_for(file.name)
    return terminal


def test_the_frame_used_last_counts(world: World) -> None:
    one, two = world.file("one.txt", "1\n"), world.file("two.txt", "2\n")
    emacs = world.emacs(one)
    shares(emacs, "one.txt")
    other = frame(world, emacs, two)
    shares(emacs, "two.txt", "one.txt")

    emacs.keys("C-f")
    shares(emacs, "one.txt", "two.txt")
    other.keys("C-f")
    shares(emacs, "two.txt", "one.txt")
    other.keys("M-x")
    other.wait_for("M-x")
    shares(emacs, "two.txt", "one.txt")
    other.keys("C-g")
    other.wait_for("Quit")
    other.keys("C-x", "5", "0")
    shares(emacs, "one.txt", "two.txt")


def test_names_are_followed(world: World) -> None:
    one, two = world.file("one.txt", "1\n"), world.file("sub/two.txt", "2\n")
    world.file("sub/three.txt", "3\n")
    emacs = world.emacs(two, one)
    shares(emacs, "one.txt", "two.txt")

    emacs.eval(f"(progn (require 'dired-aux) (dired-rename-file {lisp(two)}"
               f" {lisp(two.parent / 'deux.txt')} nil))")  # fmt: skip
    shares(emacs, "one.txt", "deux.txt")
    emacs.eval(f"(dired-rename-file {lisp(two.parent)}"
               f" {lisp(world.project / 'below')} nil)")  # fmt: skip
    shares(emacs, "one.txt", "deux.txt")
    assert emacs.value('(plist-get (nth 1 (gemini-companion-context-snapshot)) :path)'
                       ) == str(world.project / "below/deux.txt")  # fmt: skip
    emacs.eval(
        f'(with-current-buffer "one.txt" (write-file {lisp(one.parent / "un.txt")}))'
    )
    shares(emacs, "un.txt", "deux.txt")
    emacs.eval("""(with-current-buffer "un.txt"
      (when (fboundp 'rename-visited-file) (rename-visited-file "uno.txt"))
      (unless (fboundp 'rename-visited-file) (write-file "uno.txt")))""")
    shares(emacs, "uno.txt", "deux.txt")
    (world.project / "below/deux.txt").unlink()
    shares(emacs, "uno.txt")
    world.file("zwei.txt", "2\n")
    emacs.act('(find-file "zwei.txt")')
    shares(emacs, "zwei.txt", "uno.txt")
    emacs.act('(kill-buffer "uno.txt")')
    shares(emacs, "zwei.txt")
    emacs.eval("""(with-current-buffer "zwei.txt" (set-visited-file-name nil))""")
    shares(emacs, None)


TEXT = "one two\nthree four\nfive six\nseven\n"
SELECTION = "(plist-get (car (gemini-companion-context-snapshot)) :selected-text)"


def test_selections_of_emacs(world: World) -> None:
    emacs = world.emacs(world.file("a.txt", TEXT))

    emacs.keys("C-x", "h")
    emacs.becomes(SELECTION, TEXT)
    emacs.keys("C-g")
    emacs.becomes(SELECTION, None)
    emacs.keys("M-<", "C-x", "Space", "C-n", "C-n", "C-f", "C-f")
    emacs.becomes(SELECTION, "on\nth\nfi")
    emacs.keys("C-x", "Space")
    emacs.becomes(SELECTION, "one two\nthree four\nfi")


EVIL = """(add-to-list 'load-path package-user-dir)
(when (require 'evil nil t) (evil-mode 1))"""


@pytest.mark.once
@pytest.mark.shared("evil")
def test_visual_states_of_evil(world: World) -> None:
    emacs = world.emacs(world.file("a.txt", TEXT), extra=EVIL)
    if emacs.eval("(featurep 'evil)") == "nil":
        pytest.skip("evil is not installed")

    emacs.keys("g", "g", "v", "e")
    emacs.becomes(SELECTION, "one")
    emacs.keys("w", "o")
    emacs.becomes(SELECTION, "one t")
    emacs.keys("Escape")
    emacs.becomes(SELECTION, None)
    emacs.keys("g", "g", "l", "V")
    emacs.becomes(SELECTION, "one two\n")
    emacs.keys("j")
    emacs.becomes(SELECTION, "one two\nthree four\n")
    emacs.keys("C-v")
    emacs.becomes(SELECTION, "n\nh")
    emacs.keys("j", "l")
    emacs.becomes(SELECTION, "ne\nhr\niv")
    emacs.keys("v")
    emacs.becomes(SELECTION, "ne two\nthree four\nfiv")
