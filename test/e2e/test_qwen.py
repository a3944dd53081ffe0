# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
from pathlib import Path

import pytest
from harness.emacs import STATE, TURN, Emacs, Reviews, lisp
from harness.gemini import QUESTION
from harness.model import call, edit, read_file, say, together, write_file
from harness.needs import needs_qwen
from harness.qwen import CLIENTS, Qwen, stays_connected
from harness.wait import eventually, wait_until_saved
from harness.world import World
from test_queue import PATIENT, accept_each
from test_tools import CHECKED, FLYMAKE, GOOD, NEW_ERROR, interrupt, linked_qwen
from test_turn_page import asks_again

pytestmark = needs_qwen

# The command by which it asks about edits, as the status has it.
ASKS = "/approval-mode default"


@pytest.mark.contract("Qwen Code: discovery")
def test_qwen_beside_gemini_cli_is_walked_through_and_reviewed_over_a_restart(
    world: World,
) -> None:
    # A colon separates the roots for the CLI.
    one, two = world.file("a:b/one.txt", "1\ntwo\n"), world.file("two.txt", "2\n")
    three = world.file("a:b/three.txt", "one\n")
    one.parent.joinpath(".git").mkdir()
    world.home.joinpath(".qwen").mkdir()
    emacs = world.emacs(two, three, one, extra=PATIENT)
    cli = world.qwen(directory=one.parent, tools={})
    stays_connected(emacs, cli)
    reviews = Reviews(emacs)
    world.row = "Qwen Code: context"
    eventually(
        lambda: str(one) in cli.last_message().partition("Active file:")[2],
        "the CLI has the context",
    )
    world.row = "Qwen Code: approval mode"
    writes_without_asking_until_told(emacs, cli, three)
    world.row = ""
    stays_connected(emacs, cli)
    a_turn_is_accepted_and_walked_through(world, emacs, cli)

    gemini = world.gemini()
    # What Qwen Code said of its connection is no longer on its screen.
    emacs.becomes(f"(sort {CLIENTS} #'string<)", ["gemini", "qwen"])
    world.row = "Qwen Code: accept with edits"
    cli.model.script(read_file(one), edit(one, "two", "zwei"), say("qwen done"))
    cli.prompt()
    reviews.shown("one.txt")
    reviews.edit("zwei", "deux")
    gemini.model.script(write_file(two, "due\n"), say("gemini done"))
    gemini.prompt()
    reviews.wait_until(2)
    for _ in range(2):
        emacs.eval("(gemini-companion-edit-accept (car (gemini-companion-edits-open)))")

    cli.wait_for("qwen done")
    gemini.wait_for("gemini done")
    assert (one.read_text(), two.read_text()) == ("1\ndeux\n", "due\n")

    world.row = "Qwen Code: reject"
    cli.is_free()
    others = [one.parent / f"{name}.txt" for name in "bcdefg"]
    both = together(edit(one, "deux", "due"), write_file(others[0], "two\n"))
    rest = [write_file(other, "two\n") for other in others[1:]]
    reviews.proposed(cli, one, read_file(one), both, *rest, say("the rest done"))
    reviews.select("C-c", "C-k")
    emacs.says("Rejected a:b/one.txt")
    accept_each(emacs, others, "two\n")
    cli.finished("the rest done", one, "1\ndeux\n")
    world.row = "Qwen Code: yes and no in the terminal"
    answers_in_its_terminal(emacs, reviews, cli, one)
    world.row = "Qwen Code: restart of the server"
    answers_after_a_restart(emacs, reviews, cli, one, others[0])


def a_turn_is_accepted_and_walked_through(
    world: World, emacs: Emacs, cli: Qwen
) -> None:
    """Let Emacs accept a turn, and go to its changes by keys."""
    files = [world.file(f"a:b/{letter}.txt", "one\n") for letter in "xy"]
    emacs.eval(f"(progn (find-file {lisp(files[0])}) (delete-other-windows))")
    emacs.command("gemini-companion-auto-accept", "without review?")
    cli.is_free(
        *(part for file in files for part in (read_file(file), write_file(file, "1\n")))
    )
    emacs.becomes("(gemini-companion-changes-left)", 2)
    emacs.command("gemini-companion-next-change")
    emacs.says("Change 1 of 2, a:b/x.txt")
    emacs.keys("n")
    emacs.says("Change 2 of 2, a:b/y.txt")
    emacs.keys("u")
    wait_until_saved(files[1], "one\n")
    emacs.keys("k")
    emacs.holds("(null (gemini-companion-changes-left))")
    assert files[0].read_text() == "1\n"
    asks_again(emacs)


def writes_without_asking_until_told(emacs: Emacs, cli: Qwen, file: Path) -> None:
    """Emacs reports it; by the command that the status names, it asks."""
    emacs.says("Qwen Code may write without asking")
    emacs.eval("(gemini-companion-status)")
    emacs.wait_for("Connected: Qwen Code")
    cli.is_free(read_file(file), write_file(file, "uno\n"))
    assert file.read_text() == "uno\n"
    assert emacs.value("(gemini-companion-edits-open)") is None

    emacs.wait_for(ASKS)
    cli.begin("default")


def answers_in_its_terminal(
    emacs: Emacs, reviews: Reviews, cli: Qwen, file: Path
) -> None:
    cli.is_free()
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("first done"))
    reviews.edit("uno", "mine")
    reviews.select()
    emacs.wait_for("answer here")
    cli.answer("once")
    emacs.says("was written without your edits")
    cli.finished("first done", file, "uno\n")
    assert reviews.kept() == "mine\n"

    cli.is_free()
    reviews.proposed(cli, file, read_file(file), write_file(file, "due\n"), say("b"))
    cli.answer("No")
    reviews.wait_until(0)
    assert file.read_text() == "uno\n"
    eventually(lambda: QUESTION not in cli.screen(), "the question is closed")


def answers_after_a_restart(
    emacs: Emacs, reviews: Reviews, cli: Qwen, file: Path, second: Path
) -> None:
    cli.is_free()
    turns = write_file(file, "due\n"), write_file(second, "tre\n"), say("both done")
    reviews.proposed(cli, file, read_file(second), *turns)
    emacs.eval("(gemini-companion-restart)")
    emacs.says("server was restarted")
    reviews.accept()
    reviews.shown(second.name)
    reviews.accept()
    cli.wait_for("both done")
    assert (file.read_text(), second.read_text()) == ("due\n", "tre\n")

    cli.is_free()
    reviews.proposed(cli, file, read_file(file), write_file(file, "tre\n"), say("d"))
    cli.interrupt()
    reviews.wait_until(0)
    assert file.read_text() == "due\n"


@pytest.mark.contract("Qwen Code: hooks")
@pytest.mark.shared("linked-qwen")
def test_a_linked_qwen_is_sent_new_errors_and_answered(world: World) -> None:
    file = world.file("a.py", GOOD)
    os.utime(file, (1e9, 1e9))
    emacs, reviews, cli = linked_qwen(world, file, extra=FLYMAKE)
    emacs.holds(CHECKED)

    def accepted(old: str, new: str) -> str:
        """Return what the model was sent until the edit was accepted."""
        reviews.accepted(cli, file, read_file(file), edit(file, old, new))
        return json.dumps(cli.model.requests[-1]["messages"])

    # A busy machine may not find it in time.
    eventually(
        lambda: (
            NEW_ERROR in accepted("return 1", "return 1 +")
            or not accepted("return 1 +", "return 1")
        ),
        "the new error is reported",
    )
    tool = "mcp__emacs__diagnostics"

    def is_offered() -> bool:
        cli.is_free()
        return tool in json.dumps(cli.model.requests[-1]["tools"])

    # A busy machine may start the server of the tools after the first prompts.
    eventually(is_offered, "the model is offered the tool")
    prompt = f"(gemini-companion-turn-prompt {TURN})"
    before = emacs.value(prompt)

    cli.model.script(call(tool, file="a.py"), say("that is it"))
    cli.prompt()
    cli.number("once")
    emacs.holds(f"(eq 'waiting {STATE})")
    cli.answer("once")
    emacs.holds(f"(eq 'ready {STATE})")
    assert emacs.value(prompt) not in (None, before)
    cli.wait_for("that is it")
    assert "error: invalid syntax" in cli.model.last_message()

    interrupt(emacs, cli)
