# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that Emacs types into a prompt reaches the model."""

import pytest
from harness.emacs import Emacs, Reviews, lisp
from harness.gemini import Gemini
from harness.model import say, write_file
from harness.needs import VTERM, needs_eat, needs_vterm
from harness.world import World

LOAD = """
(require 'gemini-companion-send)
(add-to-list 'load-path {}) (require '{})"""

START_VTERM = f"""{LOAD.format(lisp(VTERM), "vterm")}
(setq vterm-shell %s) (vterm "*vterm*")"""
START_TERM = f"""{LOAD.format('"/"', "term")} (term %s)"""
START_EAT = f"""{LOAD.format('"/"', "eat")} (eat %s)"""

TYPE = "(gemini-companion-send-type (car (gemini-companion-sessions)) {} {})"

TERMINALS = [
    pytest.param("*terminal*", START_TERM, id="term"),
    pytest.param(
        "*vterm*", START_VTERM, marks=[needs_vterm, pytest.mark.once], id="vterm"
    ),
    pytest.param("*eat*", START_EAT, marks=[needs_eat, pytest.mark.once], id="eat"),
]


def prompts(cli: Gemini) -> list[str]:
    """Return the prompt in the last request."""
    return [
        part["text"]
        for message in cli.model.requests[-1]["contents"]
        if message["role"] == "user"
        for part in message["parts"]
        if "text" in part
    ]


def asked_why(emacs: Emacs, reviews: Reviews, text: str) -> None:
    """Type ``text`` as the reason for rejecting the review, without RET."""
    reviews.select()
    emacs.keys("C-c", "C-r")
    question = "Reject a.txt; reason for Gemini CLI:"
    emacs.text(text)
    emacs.wait_for(f"{question} {text}")


@pytest.mark.parametrize(("buffer", "start"), TERMINALS)
def test_typed_text_and_a_reason_are_what_the_model_is_asked(
    world: World, buffer: str, start: str
) -> None:
    file = world.file("a.txt", "one\n")
    emacs = world.emacs(file)
    cli = world.gemini_inside(emacs, start, buffer)
    cli.model.script(say("all done"))

    text = "größe 大小 \x1b[201~\x03 😀\tone\r\nand two"
    emacs.holds(TYPE.format(lisp(text), "nil"), "typed")
    cli.wait_for("and two")
    assert not cli.model.requests
    emacs.holds(TYPE.format('" more please"', "t"), "typed")
    cli.wait_for("all done")

    assert cli.model.context()["activeFile"]["path"] == str(file)
    asked = prompts(cli)[-1]
    assert asked.replace("\t", " ").split("\n") == [
        "größe 大小 [201~ 😀 one",
        "and two more please",
    ]

    reviews = Reviews(emacs)
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("I see"))
    asked_why(emacs, reviews, "1. Größe: 1 word, not 2")
    emacs.keys("Enter")
    cli.wait_for("I see")
    assert prompts(cli)[-1] == "1. Größe: 1 word, not 2"
    assert file.read_text() == "one\n"
    emacs.holds("(gemini-companion-send-idle-p)")
    cli.is_free()


@pytest.mark.once
def test_unresponsive_terminal_is_not_typed_into(world: World) -> None:
    emacs = world.emacs(world.file("a.txt", "one\n"))
    cli = world.gemini_inside(emacs, START_TERM, "*terminal*")

    emacs.eval('(with-current-buffer "*terminal*" (term-line-mode))')
    assert emacs.eval(TYPE.format('"some words"', "t")) == "nil"
    emacs.eval('(with-current-buffer "*terminal*" (term-char-mode))')
    assert emacs.eval(TYPE.format('"other words"', "nil")) == "t"
    assert "some words" not in cli.wait_for("other words")


@pytest.mark.once
@pytest.mark.shared("inside")
def test_enter_answers_no_question_of_the_cli(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, _, cli = world.pair_inside(file)
    emacs.eval("(require 'gemini-companion-send)")
    emacs.eval("(setq gemini-companion-review-arrival 'notify)")
    cli.model.script(write_file(file, "uno\n"), say("all done"))
    cli.ask()

    emacs.holds("(gemini-companion-diffs)")
    assert emacs.eval(TYPE.format('"some words"', "t")) == "nil"
    # Before Emacs knows that the CLI asks.
    emacs.eval("(gemini-companion-state-stop)")
    emacs.holds(TYPE.format('"some words"', "t"), "typed")
    emacs.says("did not take the text")
    emacs.becomes("(current-kill 0)", "some words")
    emacs.eval("(gemini-companion-state-start)")
    assert file.read_text() == "one\n"
    assert "all done" not in cli.screen()
