# SPDX-License-Identifier: GPL-3.0-or-later
"""Text that Emacs types into a prompt reaches the model."""

import pytest
from harness.emacs import SESSION, Emacs, Reviews
from harness.gemini import Gemini
from harness.model import say, write_file
from harness.world import World

INSERT = f"(gemini-companion-prompt-insert {{}} {SESSION})"
SUBMIT = f'(gemini-companion-prompt-submit {{}} (lambda () {SESSION}) 30 "Lost")'


def prompt(cli: Gemini) -> str:
    """Return the last text in the last request."""
    return str(cli.model.requests[-1]["contents"][-1]["parts"][-1]["text"])


def asked_why(emacs: Emacs, reviews: Reviews, text: str) -> None:
    """Type ``text`` as the reason for rejecting the review, without RET."""
    reviews.select()
    emacs.keys("C-c", "C-r")
    question = "Reject a.txt; reason for Gemini CLI:"
    emacs.text(text)
    emacs.wait_for(f"{question} {text}")


@pytest.mark.once
@pytest.mark.shared("inside")
def test_text_is_typed_only_where_it_is_a_prompt(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, _, cli = world.pair(file, inside=True)
    emacs.eval("(require 'gemini-companion-prompt)")

    # Enter answers no question of the CLI.
    emacs.eval("(setq gemini-companion-review-arrival 'notify)")
    cli.model.script(write_file(file, "uno\n"), say("all done"))
    cli.ask()
    emacs.holds("(gemini-companion-edits-open)")
    assert "copied" in emacs.eval(INSERT.format('"words"'))
    # Before Emacs knows that the CLI asks, the text waits for the answer, too.
    emacs.eval("(gemini-companion-part-stop 'state)")
    cli.model.script(say("all done"), say("I see"))
    emacs.eval(SUBMIT.format('"some words"'))
    cli.terminal.wait_for("llow once")
    assert file.read_text() == "one\n"
    assert len(cli.model.requests) == 1
    emacs.eval("(gemini-companion-part-start 'state)")
    emacs.eval(
        "(gemini-companion-receive 'sessions-update (gemini-companion-sessions))"
    )
    cli.answer("llow once")
    cli.finished("I see", file, "uno\n")
    assert prompt(cli) == "some words"

    # What a dialog has taken that Emacs does not know of is kept.
    emacs.eval(SUBMIT.format('"/auth"'))
    cli.terminal.wait_for("authenticate for this project")
    emacs.eval(INSERT.format('"more words"'))
    emacs.becomes("(car kill-ring)", "more words")
    emacs.eval('(process-send-string "*terminal*" "\\e")')
