# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys do the same with Evil as without it, in both views and in the list."""

import pytest
from harness.emacs import Emacs, Reviews
from harness.needs import needs_evil
from harness.proposals import PROPOSE, arrive
from harness.world import World
from test_views import NEW, OLD

pytestmark = [needs_evil, pytest.mark.once, pytest.mark.shared("evil")]

OWN = f"""{PROPOSE}
(setq gemini-companion-review-arrival 'now)
(defun e2e-here () "Return the selected buffer." (buffer-name (window-buffer)))
"""
# The letters of a place that mean something else in the selected window.
OTHER_LETTERS = """
(with-current-buffer (window-buffer)
  (seq-filter (lambda (key) (not (eq (cdr key) (key-binding (kbd (car key))))))
              (mapcar (lambda (row) (cons (car row) (cadr row)))
                      (gemini-companion-commands-in '{}))))
"""

EDIFF, DIFF = "Ediff Control Panel", "gemini diff"


class User:
    def __init__(self, world: World, view: str) -> None:
        self.file = world.file("a.txt", OLD)
        self.emacs: Emacs = world.emacs(world.file("b.txt", "b\n"), extra=OWN)
        self.reviews = Reviews(self.emacs)
        self.emacs.eval("(progn (require 'evil) (evil-mode))")
        self.emacs.eval(f"(setq gemini-companion-review-view '{view})")

    def opens(self) -> None:
        arrive(self.emacs, self.file, NEW).select()

    def types(self, *keys: str, sees: str = "", is_in: str = "") -> None:
        self.emacs.keys(*keys)
        if sees:
            self.emacs.wait_for(sees)
        if is_in:
            self.emacs.holds(f'(string-search "{is_in}" (e2e-here))')

    def has_letters(self, place: str) -> None:
        assert self.emacs.value(OTHER_LETTERS.format(place)) is None

    def ended(self, state: str) -> None:
        self.reviews.wait_until(0)
        self.emacs.holds(f"(eq '{state} (pop e2e-ends))", state)
        self.emacs.holds('(equal "b.txt" (e2e-here))')


@pytest.mark.parametrize("view", ["ediff", "diff"])
def test_letters_of_a_review_and_the_list(world: World, view: str) -> None:
    user = User(world, view)
    own, other = {"ediff": (EDIFF, DIFF), "diff": (DIFF, EDIFF)}[view]
    user.opens()
    user.has_letters("view")
    user.types("v", is_in=other)
    user.has_letters("view")
    user.types("v", is_in=own)
    user.types("n", "x", sees="Hunk excluded; x restores it")
    user.types("x", "e", is_in="gemini proposal")
    user.types("C-c", "C-e", is_in=own)
    user.has_letters("view")
    assert user.reviews.proposal() == NEW
    user.types("?", sees="Reject with a reason")
    user.types("C-g", "q", sees="Answer for a.txt")
    user.types("k", is_in=own)
    user.types("l", is_in="gemini edits")
    user.has_letters("list")
    user.types("Tab", sees="twenty")
    user.types("n", "n", "p", "n", "e", is_in="gemini proposal")
    user.emacs.holds('(with-current-buffer (window-buffer) (looking-at-p "twenty"))')
    user.types("C-c", "C-e", is_in=own)
    user.types("l", is_in="gemini edits")
    user.types("v", is_in=other)
    user.types("l", is_in="gemini edits")
    user.types("?", sees="Comment on this line")
    user.types("C-g", "q", is_in=other)
    user.types("R", sees="reason for")
    user.types("C-g", is_in=other)
    user.types("a")
    user.ended("accepted")

    for keys in ["r"], ["R", "not so", "Enter"], ["q", "r"]:
        user.opens()
        user.types(*keys)
        user.ended("rejected")
