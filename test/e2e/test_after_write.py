# SPDX-License-Identifier: GPL-3.0-or-later
"""Buffers after the CLI has written their files."""

import pytest
from harness.emacs import lisp
from harness.model import replace, say
from harness.world import World

pytestmark = pytest.mark.shared("review")


def test_buffer_of_an_answered_file_goes_to_the_change(world: World) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 101))
    file = world.file("a.txt", text)
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, replace(file, "line 80", "eighty"), say("all done"))

    reviews.select()
    emacs.keys("C-c", "C-c")

    cli.wait_for("all done")
    emacs.wait_for("eighty")
    emacs.holds('(with-current-buffer "a.txt" (looking-at-p "eighty"))')


@pytest.mark.once
def test_unsaved_text_is_merged_on_request(world: World) -> None:
    file = world.file("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    emacs, reviews, cli = world.pair(file)
    emacs.keys("M-<")
    emacs.text("mine ")
    emacs.holds('(buffer-modified-p (get-buffer "a.txt"))')
    edits = [replace(file, "9", "nine"), replace(file, "5", "five")]
    reviews.proposed(cli, file, *edits, say("all done"))
    emacs.wait_for("unsaved changes here")

    reviews.select()
    emacs.keys("C-c", "C-c")
    emacs.says("gemini-companion-merge merges them")
    reviews.accept(reviews.shown("a.txt"))
    cli.wait_for("all done")
    emacs.command("gemini-companion-merge")

    emacs.says("Merged; not saved yet")
    text = emacs.value('(with-current-buffer "a.txt" (buffer-string))')
    assert text == "mine 1\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    emacs.keys("C-x", "C-s")
    emacs.holds('(not (buffer-modified-p (get-buffer "a.txt")))')
    assert file.read_text() == text


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
