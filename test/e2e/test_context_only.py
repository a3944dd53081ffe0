# SPDX-License-Identifier: GPL-3.0-or-later
"""Without reviews Gemini CLI asks in its terminal, and knows the context."""

from harness.model import say, write_file
from harness.scratch import Scratch
from harness.world import World

NO_REVIEWS = "(setq gemini-companion-review-view nil)"


def test_cli_keeps_its_own_question_and_has_the_context(
    world: World, scratch: Scratch
) -> None:
    file = scratch.file("a.txt", "one\n")
    _, reviews, cli = world.pair(file, extra=NO_REVIEWS)
    assert cli.context()["activeFile"]["path"] == str(file)

    cli.model.script(write_file(file, "uno\n"), say("all done"))
    screen = cli.ask()
    assert reviews.paths() == []
    assert "Modify with external editor" in screen
    cli.answer("Allow once")

    cli.wait_for("all done")
    assert file.read_text() == "uno\n"


def test_option_set_while_connected_leaves_the_answer_to_the_terminal(
    world: World, scratch: Scratch
) -> None:
    file = scratch.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    emacs.eval(NO_REVIEWS)
    emacs.eval("(gemini-companion-restart)")
    emacs.terminal.wait_for("was restarted")
    cli.model.script(write_file(file, "uno\n"), say("all done"))

    cli.ask()
    emacs.terminal.wait_for("answer in the terminal")
    assert reviews.states() == ["pending"]
    cli.answer("Allow once")

    cli.wait_for("all done")
    assert file.read_text() == "uno\n"
    assert reviews.paths() == []

    cli.type("/ide disable")
    cli.wait_for("Disconnected")
    cli.type("/ide enable")
    cli.wait_until_connected()
    cli.model.script(write_file(file, "due\n"), say("done again"))
    assert "Modify with external editor" in cli.ask()
    assert reviews.paths() == []
