# SPDX-License-Identifier: GPL-3.0-or-later
"""Without reviews Gemini CLI asks in its terminal, and has the context."""

import pytest
from harness.model import say, write_file
from harness.world import World
from test_restart import restart

NO_REVIEWS = "(setq gemini-companion-review-view nil)"


@pytest.mark.once
def test_cli_that_is_offered_no_reviews_asks_by_itself(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file, extra=NO_REVIEWS)
    assert cli.context()["activeFile"]["path"] == str(file)

    cli.model.script(write_file(file, "uno\n"), say("all done"))
    cli.ask()
    assert reviews.paths() == []
    cli.wait_for("Modify with external editor")
    cli.answer("Allow once")
    cli.finished("all done", file, "uno\n")

    emacs.eval("(setq gemini-companion-review-view 'diff)")
    # It gets the new value of the option when it connects.
    cli.ide("disable")
    cli.wait_for("Disconnected")
    restart(emacs, world.scratch)
    cli.ide("enable")
    cli.wait_until_connected()
    reviews.proposed(cli, file, write_file(file, "due\n"), say("done again"))
    reviews.select("C-c", "C-c")
    cli.finished("done again", file, "due\n")

    # Set while it is connected, the option leaves the answer to the terminal.
    emacs.eval(NO_REVIEWS)
    restart(emacs, world.scratch)
    cli.model.script(write_file(file, "tre\n"), say("third done"))
    cli.ask()
    emacs.says("No review of")
    assert reviews.states() == ["pending"]
    cli.answer("Allow once")
    cli.finished("third done", file, "tre\n")
    reviews.wait_until(0)
