# SPDX-License-Identifier: GPL-3.0-or-later
"""Buffers after the CLI has written their files."""

import pytest
from harness.emacs import lisp
from harness.model import replace, say, write_file
from harness.scratch import Scratch
from harness.world import World

pytestmark = pytest.mark.shared

HIGHLIGHTED = """
(with-current-buffer "a.txt"
  (seq-find (lambda (overlay)
              (and (eq 'gemini-companion-changed (overlay-get overlay 'face))
                   (equal "eighty\\n" (buffer-substring (overlay-start overlay)
                                                       (overlay-end overlay)))))
            (overlays-in (point-min) (point-max))))
"""


def test_buffer_of_an_answered_file_goes_to_the_change(
    world: World, scratch: Scratch
) -> None:
    text = "".join(f"line {number}\n" for number in range(1, 101))
    file = scratch.file("a.txt", text)
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, replace(file, "line 80", "eighty"), say("all done"))

    reviews.select()
    emacs.keys("C-c", "C-c")

    emacs.holds(HIGHLIGHTED)
    emacs.holds(f"(not {HIGHLIGHTED})")
    emacs.terminal.wait_for("eighty")
    emacs.holds('(with-current-buffer "a.txt" (looking-at-p "eighty"))')
    cli.wait_for("all done")


def test_unsaved_text_is_merged_on_request(world: World, scratch: Scratch) -> None:
    file = scratch.file("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    emacs, reviews, cli = world.pair(file)
    emacs.keys("M-<")
    emacs.terminal.text("mine ")
    emacs.holds('(buffer-modified-p (get-buffer "a.txt"))')
    edits = [replace(file, "9", "nine"), replace(file, "5", "five")]
    reviews.proposed(cli, file, *edits, say("all done"))
    assert "unsaved changes here" in emacs.screen()

    reviews.select()
    emacs.keys("C-c", "C-c")
    emacs.terminal.wait_for("gemini-companion-merge merges them")
    reviews.accept(reviews.shown("a.txt"))
    cli.wait_for("all done")
    emacs.keys("M-x")
    emacs.terminal.text("gemini-companion-merge")
    emacs.keys("Enter")

    emacs.terminal.wait_for("Merged; not saved yet")
    text = emacs.value('(with-current-buffer "a.txt" (buffer-string))')
    assert text == "mine 1\n2\n3\n4\nfive\n6\n7\n8\nnine\n"
    emacs.keys("C-x", "C-s")
    emacs.holds('(not (buffer-modified-p (get-buffer "a.txt")))')
    assert file.read_text() == text


def test_unsaved_text_in_another_coding_is_merged(
    world: World, scratch: Scratch
) -> None:
    file = scratch.file("a.txt", "é 1\n2\n3\n4\n5\n6\n".encode("latin-1"))
    emacs, reviews, cli = world.pair(file)
    emacs.act('(progn (goto-char (point-min)) (insert "ü "))')
    change = write_file(file, "é 1\n2\n3\n4\n5\nsechs à\n")
    reviews.proposed(cli, file, change, say("all done"))

    reviews.accept()
    emacs.terminal.wait_for("gemini-companion-merge merges them")
    emacs.act("(progn (gemini-companion-merge) (save-buffer))")

    assert file.read_bytes() == "ü é 1\n2\n3\n4\n5\nsechs à\n".encode()
    cli.wait_for("all done")


def test_file_of_mixed_line_ends_stays_as_it_was_written(
    world: World, scratch: Scratch
) -> None:
    file = scratch.file("a.txt", b"one\r\ntwo\nthree\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, replace(file, "three", "drei"), say("all done"))

    reviews.accept()
    cli.wait_for("all done")
    emacs.holds(
        '(with-current-buffer "a.txt" (equal "one\\ntwo\\ndrei\\n" (buffer-string)))'
    )
    emacs.act(
        '(with-current-buffer "a.txt"'
        ' (goto-char (point-min)) (insert "null\\n") (save-buffer))'
    )

    assert file.read_bytes() == b"null\r\none\r\ntwo\r\ndrei\r\n"


def test_written_file_waits_for_a_command_that_asks(
    world: World, scratch: Scratch
) -> None:
    file = scratch.file("a.txt", "one a\ntwo a\nthree a\n")
    emacs = world.emacs(file)

    def replace_after_write(text: str) -> None:
        emacs.keys("M-<", "M-%")
        emacs.terminal.text("a")
        emacs.keys("Enter")
        emacs.terminal.text("x")
        emacs.keys("Enter")
        emacs.terminal.wait_for("Query replacing")
        emacs.terminal.text("n")
        file.write_text(text)
        # As after an edit without a review.
        emacs.eval(f"(gemini-companion-revert {lisp(file)})")

    replace_after_write("zero\none a\ntwo a\nthree a\n")
    emacs.terminal.text("q")
    emacs.holds(
        '(with-current-buffer "a.txt" (string-prefix-p "zero" (buffer-string)))'
    )

    replace_after_write("null\nzero\none a\ntwo a\nthree a\n")
    emacs.terminal.text("y")
    emacs.terminal.wait_for("really edit")
    emacs.terminal.text("y")
    emacs.terminal.text("q")
    emacs.terminal.wait_for("gemini-companion-merge merges them")
    emacs.act('(with-current-buffer "a.txt" (gemini-companion-merge) (save-buffer))')

    assert file.read_text() == "null\nzero\none a\ntwo x\nthree a\n"
