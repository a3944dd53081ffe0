# SPDX-License-Identifier: GPL-3.0-or-later
"""The reason for a rejection becomes the next prompt of that CLI."""

import pytest
from harness.emacs import Emacs, Reviews
from harness.model import say, write_file
from harness.scratch import Scratch
from harness.world import World
from test_prompt import TERMINALS, prompts

pytestmark = pytest.mark.shared


def asked_why(emacs: Emacs, reviews: Reviews, text: str) -> None:
    """Type ``text`` as the reason for rejecting the review, without RET."""
    reviews.select()
    emacs.keys("C-c", "C-r")
    question = "Reject a.txt; reason for Gemini CLI:"
    emacs.terminal.wait_for(question)
    emacs.terminal.text(text)
    emacs.terminal.wait_for(f"{question} {text}")


@pytest.mark.fresh
@pytest.mark.parametrize(("buffer", "start"), TERMINALS)
def test_reason_is_the_next_prompt(
    world: World, scratch: Scratch, buffer: str, start: str
) -> None:
    file = scratch.file("a.txt", "one\n")
    emacs = world.emacs(file)
    if buffer == "*eat*" and emacs.eval('(locate-library "eat")') == "nil":
        pytest.skip("eat is not installed")
    reviews = Reviews(emacs)
    cli = world.gemini_inside(emacs, start, buffer)
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("I see"))

    asked_why(emacs, reviews, "1. Größe: 1 word, not 2")
    emacs.keys("Enter")

    cli.wait_for("I see")
    assert prompts(cli)[-1] == "1. Größe: 1 word, not 2"
    assert file.read_text() == "one\n"
    assert emacs.eval("(gemini-companion-send-idle-p)") == "t"
    cli.is_free()


def test_question_for_a_reason_ends_when_the_terminal_answers(
    world: World, scratch: Scratch
) -> None:
    file = scratch.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("all done"))
    asked_why(emacs, reviews, "half a sen")

    cli.answer("Allow once")

    cli.wait_for("all done")
    assert file.read_text() == "uno\n"
    emacs.terminal.wait_for("your text is in the kill ring")
    assert emacs.value("(current-kill 0)") == "half a sen"
    assert emacs.eval("(active-minibuffer-window)") == "nil"
    assert emacs.value("(buffer-name (window-buffer))") == "a.txt"


def test_quitting_the_question_for_a_reason_decides_nothing(
    world: World, scratch: Scratch
) -> None:
    file = scratch.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("all done"))
    reviews.select()
    emacs.terminal.wait_for("C-c C-c accept")
    asked_why(emacs, reviews, "no")
    assert "C-c C-c accept" in emacs.screen()

    emacs.keys("C-g")
    emacs.holds("(not (active-minibuffer-window))")
    assert reviews.states() == ["shown"]

    asked_why(emacs, reviews, "outside")
    emacs.keys("Enter")
    cli.wait_for("Rejected")
    assert emacs.value("(current-kill 0)") == "outside"
    cli.is_free()
