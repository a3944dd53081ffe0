# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that changes while its review is open, or while a command asks."""

import pytest
from harness.emacs import lisp
from harness.proposals import PROPOSE, arrive
from harness.world import World

OLD = "one\ntwo\nthree\nfour\nfive\n"


def test_file_that_changes_behind_another_tab_is_compared_there(world: World) -> None:
    file = world.file("a.txt", OLD)
    emacs = world.emacs(file, extra=PROPOSE)
    arrive(emacs, file, OLD.replace("five", "cinque"))
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


@pytest.mark.shared("review")
def test_written_file_waits_for_a_command_that_asks(world: World) -> None:
    file = world.file("a.txt", "one a\ntwo a\nthree a\n")
    emacs = world.emacs(file)

    def replace_after_write(text: str) -> None:
        emacs.keys("M-<", "M-%", "a", "Enter", "x", "Enter")
        emacs.wait_for("Query replacing")
        emacs.keys("n")
        file.write_text(text)
        # As after an edit without a review.
        emacs.eval(f"(gemini-companion-revert {lisp(file)})")

    replace_after_write("zero\none a\ntwo a\nthree a\n")
    emacs.keys("q")
    emacs.holds(
        '(with-current-buffer "a.txt" (string-prefix-p "zero" (buffer-string)))'
    )

    replace_after_write("null\nzero\none a\ntwo a\nthree a\n")
    emacs.keys("y")
    emacs.wait_for("really edit")
    emacs.keys("y", "q")
    emacs.says("gemini-companion-merge merges them")
    emacs.act('(with-current-buffer "a.txt" (gemini-companion-merge) (save-buffer))')

    assert file.read_text() == "null\nzero\none a\ntwo x\nthree a\n"
