# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that changes while its review is open."""

from harness.emacs import Reviews
from harness.proposals import PROPOSE, propose
from harness.world import World

OLD = "one\ntwo\nthree\nfour\nfive\n"


def test_file_that_changes_behind_another_tab_is_compared_there(world: World) -> None:
    file = world.file("a.txt", OLD)
    emacs = world.emacs(file, extra=PROPOSE)
    propose(emacs, file, OLD.replace("five", "cinque"))
    Reviews(emacs).shown("a.txt")
    emacs.eval('(progn (tab-new) (switch-to-buffer "*scratch*") (split-window))')
    before = emacs.value("(e2e-layout)")

    file.write_text(OLD.replace("one", "uno"))
    emacs.holds(
        "(eql 2 (buffer-local-value 'ediff-number-of-differences"
        ' (get-buffer "*Ediff Control Panel*")))'
    )
    emacs.becomes("(e2e-layout)", before)
    emacs.eval("(progn (tab-close) nil)")
    emacs.wait_for("file changed")
    emacs.wait_for("2 of 2")
