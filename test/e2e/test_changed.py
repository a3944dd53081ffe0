# SPDX-License-Identifier: GPL-3.0-or-later
"""A file that changes while a command asks."""

import pytest
from harness.emacs import lisp
from harness.world import World


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
