# SPDX-License-Identifier: GPL-3.0-or-later
"""The reason for a rejection becomes the next prompt of that CLI."""

import pytest
from harness.model import say, write_file
from harness.world import World
from test_prompt import asked_why

pytestmark = pytest.mark.shared


def test_question_for_a_reason_ends_when_the_terminal_answers(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("all done"))
    asked_why(emacs, reviews, "half a sen")

    cli.answer("Allow once")

    cli.wait_for("all done")
    assert file.read_text() == "uno\n"
    emacs.wait_for("your text is in the kill ring")
    emacs.becomes("(current-kill 0)", "half a sen")
    emacs.holds("(not (active-minibuffer-window))")
    emacs.becomes("(buffer-name (window-buffer))", "a.txt")


def test_quitting_the_question_for_a_reason_decides_nothing(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("all done"))
    reviews.select()
    emacs.wait_for("C-c C-c accept")
    asked_why(emacs, reviews, "no")
    emacs.wait_for("C-c C-c accept")

    emacs.keys("C-g")
    emacs.holds("(not (active-minibuffer-window))")
    assert reviews.states() == ["shown"]

    asked_why(emacs, reviews, "outside")
    emacs.keys("Enter")
    cli.wait_for("Rejected")
    emacs.becomes("(current-kill 0)", "outside")
    cli.is_free()
