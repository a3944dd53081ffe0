# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that changes while its review is open."""

import pytest
from harness.emacs import Reviews
from harness.model import say, write_file
from harness.proposals import PROPOSE, propose
from harness.world import World

pytestmark = pytest.mark.shared("review")

OLD = "one\ntwo\nthree\nfour\nfive\n"
EDIT = """
(with-current-buffer "a.txt"
  (goto-char (point-min))
  (search-forward "one")
  (replace-match "uno"))
"""
REMARK = "file changed since the proposal"
QUESTION = "accept anyway?"


@pytest.mark.once
def test_saved_file_is_compared_again_and_overwritten_only_on_request(
    world: World,
) -> None:
    file = world.file("a.txt", OLD)
    emacs, reviews, cli = world.pair(file)
    proposed = OLD.replace("five", "cinque")
    reviews.proposed(cli, file, write_file(file, proposed), say("all done"))
    emacs.eval(EDIT)
    emacs.wait_for("unsaved changes here")

    emacs.eval('(with-current-buffer "a.txt" (save-buffer))')
    emacs.wait_for(REMARK)
    emacs.wait_until_gone("unsaved changes here")
    emacs.wait_for("2 of 2")
    emacs.becomes("(buffer-name (window-buffer))", "a.txt")
    reviews.select()
    emacs.keys("C-c", "C-c")
    emacs.wait_for(QUESTION)
    emacs.keys("no", "Enter")
    emacs.wait_until_gone(QUESTION)
    assert reviews.states() == ["shown"]
    assert file.read_text().startswith("uno")

    reviews.edit("one", "uno")
    emacs.keys("C-c", "C-c")
    emacs.wait_for(QUESTION)
    emacs.keys("yes", "Enter")
    cli.wait_for("all done")
    assert file.read_text() == proposed.replace("one", "uno")


@pytest.mark.fresh
def test_file_that_changes_while_another_tab_is_shown_is_compared_there(
    world: World,
) -> None:
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
    emacs.wait_for(REMARK)
    emacs.wait_for("2 of 2")
