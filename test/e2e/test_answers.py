# SPDX-License-Identifier: GPL-3.0-or-later
"""The answer has the proposal as the user edited it."""

import pytest
from harness.emacs import Reviews
from harness.model import replace, say, write_file
from harness.proposals import PROPOSE, propose
from harness.world import World
from test_after_write import HIGHLIGHTS

pytestmark = pytest.mark.shared


def test_ediff_still_answers_after_comparing_again(world: World) -> None:
    file = world.file("a.txt", "one\ntwo\nthree\n")
    emacs, reviews, cli = world.pair(file)
    change = write_file(file, "ONE\ntwo\nTHREE\n")
    reviews.proposed(cli, file, change, say("all done"))
    reviews.select()
    emacs.keys("x")
    emacs.command("ediff-update-diffs")
    emacs.keys("C-c", "C-c")
    cli.wait_for("all done")
    assert file.read_text() == "one\ntwo\nTHREE\n"


def test_edits_of_a_review_that_the_terminal_rejected_are_kept(world: World) -> None:
    file = world.file("a.txt", "one\ntwo\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, replace(file, "two", "zwei"))
    reviews.edit("zwei", "what I made of it")
    cli.answer("No, suggest")
    reviews.wait_until(0)

    emacs.command("gemini-companion-last-proposal")
    emacs.wait_for("what I made of it")


def test_answer_in_the_terminal_leaves_another_prompt_alone(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("all done"))
    emacs.keys("M-x", "ver")

    cli.answer("Allow once")
    cli.wait_for("all done")
    reviews.wait_until(0)
    emacs.keys("sion")
    emacs.wait_for("M-x version")
    emacs.keys("Enter")
    emacs.wait_for("GNU Emacs")


PLACES = """
(setq gemini-companion-review-arrival 'now)
(defvar e2e-flashes 0 "How often a.txt was drawn alone while a key was handled.")
(defun e2e-watch (_)
  (and real-this-command (one-window-p)
       (setq e2e-flashes (1+ e2e-flashes))))
(defun e2e-write (diff)
  "Write what was accepted in DIFF, as a CLI does."
  (when (eq 'accepted (gemini-companion-diff-state diff))
    (write-region (gemini-companion-diff-accepted-text diff) nil
                  (gemini-companion-diff-file-path diff) nil 'silent)))
(add-hook 'gemini-companion-diff-closed-functions #'e2e-write)
(defun e2e-places ()
  "Return where the windows of this frame are."
  (format "%s" (mapcar #'window-edges (window-list nil 'no-minibuffer
                                                   (frame-first-window)))))
(defun e2e-line ()
  "Return the line of a.txt at its window's point."
  (with-current-buffer "a.txt"
    (line-number-at-pos (window-point (get-buffer-window)))))
"""


R_HERE = '(with-current-buffer (window-buffer) (key-binding "r"))'


@pytest.mark.fresh
@pytest.mark.parametrize("view", ["ediff", "diff"])
def test_next_review_takes_the_place_of_the_previous_one(
    world: World, view: str
) -> None:
    old = "".join(f"{n}\n" for n in range(1, 41))
    new = old.replace("\n5\n", "\nfive\n").replace("\n30\n", "\nthirty\n")
    files = [world.file(name, old) for name in ("c.txt", "b.txt", "a.txt")]
    extra = f"{PROPOSE}{PLACES}{HIGHLIGHTS}(setq gemini-companion-review-view '{view})"
    emacs = world.emacs(*files, extra=extra)
    reviews = Reviews(emacs)
    for file in reversed(files):
        propose(emacs, file, new)
    reviews.shown("a.txt")
    reviews.select()
    places = emacs.value("(e2e-places)")
    emacs.eval("(add-hook 'pre-redisplay-functions #'e2e-watch)")

    emacs.keys("n", "x", "a")
    emacs.says("Accepted a.txt: 1 of 2 hunks (+1 \u22121); 2 more waiting")
    reviews.shown("b.txt")
    emacs.becomes("(e2e-line)", 5)
    emacs.becomes("e2e-highlights", ["five\n"])
    emacs.holds(f"(eq 'gemini-companion-diff-reject {R_HERE})", "keys work")
    emacs.becomes("(e2e-places)", places)
    emacs.keys("r")
    emacs.says("Rejected b.txt; 1 more waiting")
    reviews.shown("c.txt")
    emacs.becomes("(e2e-places)", places)
    emacs.becomes("e2e-flashes", 0)
    emacs.keys("C-x", "k", "Enter")
    emacs.says("Rejected c.txt")
    emacs.holds("(one-window-p)")
