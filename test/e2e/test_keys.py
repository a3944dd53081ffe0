# SPDX-License-Identifier: GPL-3.0-or-later
"""What a key does in a review that was answered and waits for the next edit."""

from pathlib import Path

import pytest
from harness.emacs import Emacs, Reviews, lisp
from harness.world import World
from test_arrival import OWN, propose

pytestmark = pytest.mark.shared("keys")

TEXT = "one two\nthree\n"
# A paste, as a terminal sends it.
PASTE = "\x1b[200~pasted\x1b[201~"

# For the file, or a terminal in its place, and for the next keys.
SET_UP = """
(setq gemini-companion-arrival-pause 600)
(defun e2e-seen ()
  "Return what a key may have changed."
  (with-current-buffer (window-buffer)
    (list (buffer-name) (buffer-string) (window-point) (one-window-p)
          (and (active-minibuffer-window) t)
          (bound-and-true-p evil-state) (current-kill 0 t))))
"""
EVIL = "(require 'evil) (evil-mode 1)"
CLOSED = "(null (gemini-companion-edits-ending))"
WAITS = "(gemini-companion-edits-ending)"

# Keys that are for a text, or for the review.
IGNORED = [
    "hello\r",
    PASTE,
    "\x0b",  # C-k
    "\x19",  # C-y
    "\x0e",  # C-n
    "\x15h",  # C-u h
]
IGNORED_BY_EVIL = ["dd", "ihello", "3dd", "fo"]
# In the proposal, letters are no keys of the review.
IGNORED_IN_TEXT = ["\r", "\t", "\x7f", "x", "p", '"ap']

# Keys, and what shows that they did what they do elsewhere.
DONE = [
    ("\x1bxwhat-line\r", '(e2e-said "Line 1")'),
    ("\x15\x1bxwhat-line\r", '(e2e-said "Line 1")'),
    ("\x18\x06b.txt\r", '(equal "b.txt" (buffer-name (window-buffer)))'),
    ("\x18b*scratch*\r", '(equal "*scratch*" (buffer-name (window-buffer)))'),
    ("\x13thr\r", '(equal "thr" isearch-string)'),
    ("\x1b:(setq e2e-evaluated t)\r", "(bound-and-true-p e2e-evaluated)"),
    ("\x08k\x06", '(get-buffer-window "*Help*")'),
    ("\x1bOPk\x06", '(get-buffer-window "*Help*")'),  # F1
    # The buffer of the review is the one that is killed.
    ("\x18k\r", "t"),
    ("\x18o", "t"),
]
DONE_BY_EVIL = [(":echo1\r", '(e2e-said "echo1")'), ("/thr\r", "(= 9 (point))")]

TERMINAL = """
(progn (require 'term)
       (switch-to-buffer (make-term "cli" "cat"))
       (term-char-mode))
"""
PLACES = {"diff": ("diff", ""), "panel": ("ediff", ""), "proposal": ("ediff", "e")}


def started(world: World, extra: str = "") -> Emacs:
    world.file("b.txt", "b\n")
    return world.emacs(world.file("a.txt", TEXT), extra=OWN + SET_UP + extra)


def answered(emacs: Emacs, file: Path, place: str) -> None:
    """Accept a review in ``place``; it awaits the next one then."""
    view, key = PLACES[place]
    emacs.eval(f"(setq gemini-companion-review-view '{view})")
    propose(emacs, file, "uno\n")
    reviews = Reviews(emacs)
    reviews.shown(file.name)
    # That of the previous keys is still set.
    emacs.eval("(setq current-prefix-arg nil)")
    reviews.select(*key)
    emacs.keys("C-c", "C-c")
    emacs.holds(WAITS)


def restore(emacs: Emacs, file: Path, terminal: bool = False) -> None:
    """Select ``file`` with its text, or a new terminal."""
    emacs.eval(
        f"""(progn (kill-new "killed")
                   (mapc #'gemini-companion-proposal-finish
                         (gemini-companion-edits-ending))
                   (delete-other-windows)
                   (when (get-buffer "*cli*")
                     (let (kill-buffer-query-functions) (kill-buffer "*cli*")))
                   (find-file {lisp(file)})
                   (erase-buffer) (insert {lisp(TEXT)}) (goto-char (point-min))
                   (basic-save-buffer)
                   (setq isearch-string "")
                   (makunbound 'e2e-evaluated)
                   (when (get-buffer "*Help*") (kill-buffer "*Help*"))
                   (with-current-buffer "*Messages*"
                     (let ((inhibit-read-only t)) (erase-buffer)))
                   {TERMINAL if terminal else ""}
                   nil)"""
    )


# The place of the answer, whether Evil is on, and whether a terminal is selected then.
PLACED = pytest.mark.parametrize(
    ("place", "evil", "terminal"),
    [
        ("diff", "", False),
        ("diff", EVIL, True),
        ("panel", "", True),
        ("proposal", EVIL, False),
    ],
    ids=["diff", "diff-evil-terminal", "panel-terminal", "proposal-evil"],
)


@PLACED
@pytest.mark.differs
def test_key_for_a_text_closes_an_answered_review_and_does_no_more(
    world: World, place: str, evil: str, terminal: bool
) -> None:
    emacs = started(world, evil)
    file, proposed = world.project / "a.txt", world.file("c.txt", "one\n")
    keys = IGNORED + (IGNORED_BY_EVIL if evil else [])
    for typed in keys + (IGNORED_IN_TEXT if place == "proposal" else []):
        restore(emacs, file, terminal)
        before = emacs.value("(e2e-seen)")
        answered(emacs, proposed, place)
        emacs.text(typed)
        emacs.holds(CLOSED, f"{typed!r} closes the review")
        assert emacs.value("(e2e-seen)") == before, typed


@PLACED
@pytest.mark.differs
def test_other_key_closes_an_answered_review_and_does_what_it_does_elsewhere(
    world: World, place: str, evil: str, terminal: bool
) -> None:
    emacs = started(world, evil)
    file, proposed = world.project / "a.txt", world.file("c.txt", "one\n")
    buffer = lisp("*cli*" if terminal else "a.txt")
    text = f"(with-current-buffer {buffer} (buffer-string))"
    for typed, sign in DONE + (DONE_BY_EVIL if evil and not terminal else []):
        restore(emacs, file, terminal)
        before = emacs.value(text)
        answered(emacs, proposed, place)
        emacs.text(typed)
        emacs.holds(f"(with-current-buffer (window-buffer) {sign})", repr(typed))
        emacs.holds(CLOSED, f"{typed!r} closes the review")
        assert emacs.value(text) == before, typed


def test_click_after_an_answer_does_what_it_does(world: World) -> None:
    emacs = started(world)
    proposed = world.file("c.txt", "one\n")
    restore(emacs, world.project / "a.txt")
    answered(emacs, proposed, "diff")
    emacs.terminal.text("\x1b[<0;3;3M\x1b[<0;3;3m")
    emacs.holds(CLOSED)
    emacs.becomes("(list (buffer-name (window-buffer)) (window-point))", ["a.txt", 11])
