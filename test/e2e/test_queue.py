# SPDX-License-Identifier: GPL-3.0-or-later
"""One key answers each review of a turn."""

from pathlib import Path

import pytest
from harness.emacs import Emacs, Reviews
from harness.model import say, together, write_file
from harness.wait import wait_until_saved
from harness.world import World

pytestmark = pytest.mark.shared("review")
differs = pytest.mark.differs("windows, and keys in views that follow one another")


ACCEPTS = """(with-current-buffer (window-buffer)
  (eq 'gemini-companion-edit-accept (key-binding (kbd "C-c C-c"))))"""


# Where the windows are whenever they are drawn; the echo area takes lines at times.
DRAWN = """
(progn
  (defvar e2e-drawn nil "Each left, top and right edges of the windows once.")
  (defun e2e-draw (&rest _)
    (cl-pushnew
     (format "%s" (mapcar (lambda (window) (seq-take (window-edges window) 3))
                          (window-list nil 'no-minibuffer (frame-first-window))))
     e2e-drawn :test #'equal))
  (setq gemini-companion-arrival-pause 120
        e2e-drawn nil)
  (add-hook 'pre-redisplay-functions #'e2e-draw)
  nil)
"""


def accept_each(emacs: Emacs, reviews: Reviews, files: list[Path], text: str) -> None:
    """Accept the edits of ``files`` to ``text`` by a key each; the windows stay."""
    for number, file in enumerate(files):
        reviews.shown(file.name)
        emacs.holds(ACCEPTS, f"the review of {file.name} is selected")
        if not number:
            emacs.eval(DRAWN)
        emacs.keys("C-c", "C-c")
        wait_until_saved(file, text)
        if file != files[-1]:
            emacs.becomes("(length e2e-drawn)", 1)
    emacs.eval("(remove-hook 'pre-redisplay-functions #'e2e-draw)")
    # The first one may be announced before it is shown.
    for file in files[1:]:
        assert emacs.eval(f'(e2e-said "Edit of {file.name} ")') == "nil"


@pytest.mark.parametrize("view", [pytest.param("ediff", marks=differs), "diff"])
def test_one_key_answers_each_file_of_a_turn(world: World, view: str) -> None:
    files = [world.file(f"{name}.txt", "old\n") for name in "abcdefgh"]
    emacs, reviews, cli = world.pair(
        world.file("mine.txt", "mine\n"),
        extra=f"(setq gemini-companion-review-view '{view})",
    )
    before = emacs.value("(e2e-layout)")
    edits = [write_file(file, "new\n") for file in files]
    reviews.proposed(cli, files[0], *edits[:-2], together(*edits[-2:]))
    emacs.command("gemini-companion-review")
    accept_each(emacs, reviews, files[:-2], "new\n")

    reviews.shown("g.txt")
    emacs.holds(ACCEPTS, "the review of g.txt is selected")
    emacs.keys(*(["C-c", "C-k"] if view == "ediff" else ["C-x", "k", "Enter"]))
    emacs.says("Rejected g.txt; Gemini CLI discards its other edits of this answer")
    emacs.becomes("(e2e-layout)", before)
    cli.is_free()
    assert reviews.paths() == []
    assert [file.read_text() for file in files[-2:]] == ["old\n", "old\n"]


@differs
def test_key_after_an_answer_closes_the_review_and_does_no_more(world: World) -> None:
    first, second = world.file("a.txt", "old\n"), world.file("b.txt", "old\n")
    emacs, reviews, cli = world.pair(world.file("mine.txt", "mine\n"))
    emacs.eval("(progn (xterm-mouse-mode) (setq gemini-companion-arrival-pause 120))")
    before = emacs.value("(e2e-windows)")
    turns = write_file(first, "new\n"), write_file(second, "new\n")
    reviews.proposed(cli, first, *turns, say("all done"))
    emacs.command("gemini-companion-review")
    emacs.holds(ACCEPTS)
    emacs.keys("C-c", "C-c", "C-e")
    reviews.shown("b.txt")
    emacs.holds('(equal "mine.txt" (buffer-name (window-buffer)))')

    emacs.command("gemini-companion-review")
    emacs.keys("C-c", "C-c")
    cli.wait_for("all done")
    emacs.wait_for("accepted")
    emacs.wait_for("any other key closes this")
    # Reports of the terminal that it has lost the focus, and has it again.
    for report, focus in (("\x1b[O", None), ("\x1b[I", True)):
        emacs.terminal.text(report)
        emacs.becomes("(frame-focus-state)", focus)
    emacs.wait_for("any other key closes this")
    emacs.keys("q")
    emacs.wait_for("This review has ended")
    emacs.wait_for("any other key closes this")
    emacs.keys("M-b")
    emacs.becomes("(e2e-windows)", before)
    emacs.keys("!", "M-x", "upcase-word", "Enter")
    emacs.becomes('(with-current-buffer "mine.txt" (buffer-string))', "!MINE\n")
