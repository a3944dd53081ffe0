# SPDX-License-Identifier: GPL-3.0-or-later
"""A review's keys take precedence over Evil's, and Evil's commands work."""

import pytest
from harness.emacs import Emacs, Reviews
from harness.proposals import PROPOSE, propose
from harness.world import World

pytestmark = [pytest.mark.shared("evil"), pytest.mark.once]

OWN = f"""{PROPOSE}
(defvar e2e-evil (require 'evil nil t))
(when e2e-evil (evil-mode 1))
(setq gemini-companion-review-arrival 'now)
"""

ENDS = [
    ([":", "w", "Enter"], "accepted"),
    (["Z", "Z"], "accepted"),
    ([":", "w", "q", "Enter"], "accepted"),
    ([":", "x", "Enter"], "accepted"),
    (["i", "x", "C-c", "C-c"], "accepted"),
    (["v", "l", "C-c", "C-k"], "rejected"),
    ([":", "q", "Enter", "r"], "rejected"),
    (["Z", "Q", "r"], "rejected"),
]


def evil_emacs(world: World) -> Emacs:
    """Return an Emacs in which Evil is on."""
    emacs = world.emacs(world.file("a.txt", "one\n"), extra=OWN)
    if emacs.eval("e2e-evil") == "nil":
        pytest.skip("evil is not installed")
    return emacs


def test_keys_of_evil_answer_a_review(world: World) -> None:
    emacs = evil_emacs(world)
    reviews = Reviews(emacs)
    for keys, end in ENDS:
        propose(emacs, world.project / "a.txt", "uno\n")
        reviews.shown("a.txt")
        reviews.select_proposal()
        emacs.holds("(eq (buffer-local-value 'evil-state (window-buffer)) 'normal)")
        emacs.keys(*keys[:-1])
        if end == "rejected" and keys[-1] == "r":
            emacs.wait_for("Answer for a.txt")
        emacs.keys(keys[-1])
        reviews.wait_until(0)
        emacs.holds(f"(eq '{end} (pop e2e-ends))", f"{keys}: {end}")
