# SPDX-License-Identifier: GPL-3.0-or-later
"""A review takes no keys, and restores frames and tabs."""

import pytest
from harness.emacs import Emacs, Reviews, lisp
from harness.gemini import Gemini
from harness.model import say, write_file
from harness.world import World

pytestmark = pytest.mark.shared


def proposed(world: World) -> tuple[Emacs, Reviews, Gemini]:
    """Return an Emacs that shows a proposal for a.txt."""
    file = world.file("a.txt", "one one one\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, write_file(file, "uno uno uno\n"), say("all done"))
    return emacs, reviews, cli


def test_answer_in_the_terminal_waits_for_a_command_that_reads_keys(
    world: World,
) -> None:
    emacs, reviews, cli = proposed(world)
    reviews.select_proposal()
    emacs.keys("M-<", "M-%", "uno", "Enter", "due", "Enter")
    emacs.wait_for("Query replacing")

    cli.answer("Allow once")
    cli.wait_for("all done")
    assert "proposal" in emacs.eval("(buffer-name (window-buffer))")

    emacs.keys("q")
    emacs.holds('(equal "a.txt" (e2e-windows))')
    assert (world.project / "a.txt").read_text() == "uno uno uno\n"


ALL = "*gemini original: a.txt* *gemini proposal: a.txt* *Ediff Control Panel*"


def test_deleted_windows_of_a_review_are_back_by_the_command(world: World) -> None:
    emacs, reviews, _ = proposed(world)
    reviews.select()
    for digit in "01":
        for buffer in ("original: a.txt", "proposal: a.txt", "Control Panel"):
            emacs.eval(
                "(select-window (seq-find (lambda (window) (string-search"
                f" {lisp(buffer)} (buffer-name (window-buffer window))))"
                " (window-list)))"
            )
            count = int(emacs.eval("(length (window-list))"))
            left = 1 if digit == "1" else count - 1
            emacs.keys("C-x", digit)
            emacs.becomes("(length (window-list))", left)
            emacs.command("gemini-companion-review")
            emacs.becomes("(e2e-windows)", ALL)
    assert reviews.states() == ["shown"]
    reviews.reject()


def test_deleting_the_frame_of_a_review_rejects_it(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    emacs.keys("C-x", "5", "2")
    emacs.holds("(= 2 (length (frame-list)))")
    reviews.proposed(cli, file, write_file(file, "uno\n"))

    emacs.keys("C-x", "5", "0")

    cli.wait_for("Rejected")
    emacs.holds("(= 1 (length (frame-list)))")
    emacs.becomes("(e2e-windows)", "a.txt")
    assert "proposal" not in emacs.eval("(mapcar #'buffer-name (buffer-list))")
    cli.is_free()


def test_tab_of_a_review_is_restored_when_it_is_visited_again(world: World) -> None:
    emacs, reviews, cli = proposed(world)
    emacs.eval('(progn (tab-bar-new-tab) (switch-to-buffer "*scratch*"))')
    emacs.eval("(delete-other-windows)")

    reviews.accept()
    cli.wait_for("all done")
    emacs.becomes("(e2e-windows)", "*scratch*")

    emacs.eval("(tab-bar-select-tab 1)")
    emacs.holds('(equal "a.txt" (e2e-windows))')
    hook = emacs.eval("(default-value 'window-configuration-change-hook)")
    assert "gemini-companion" not in hook


@pytest.mark.fresh
def test_review_appears_on_the_terminal_that_shows_the_file(world: World) -> None:
    file, other = world.file("a.txt", "one\n"), world.file("b.txt", "two\n")
    emacs, _, cli = world.pair(file)
    client = [world.tools.emacsclient, "-t", "-s", "emacs", str(other)]
    second = world.tmux.start("second", client, world.project, {}, (80, 24))
    second.wait_for("b.txt")
    cli.model.script(write_file(file, "uno\n"), say("all done"))

    cli.ask()

    emacs.wait_for("gemini-companion-review to answer")
    assert "to answer" not in second.screen()
    emacs.command("gemini-companion-review")
    emacs.keys("C-c", "C-c")
    cli.wait_for("all done")
    emacs.wait_until_gone("a.txt  +")
    assert "two" in second.screen()
    second.keys("C-x", "5", "0")
