# SPDX-License-Identifier: GPL-3.0-or-later
"""What the models of the real CLIs ask the user, shown and answered in Emacs."""

import re

import pytest
from harness.copilot import Copilot
from harness.emacs import SESSION, Emacs, lisp
from harness.model import Part, call, say
from harness.needs import needs_copilot, needs_qwen
from harness.world import World
from test_plans import plan_of_copilot_cli_is_shown_and_answered_there

from test_permissions import (
    OPEN,
    REQUEST,
    asks,
    go_there,
    linked_copilot,
    linked_in_term,
    pair,
)

ROW = "Question  Which one?  (red, blue)"


def questions(**more: object) -> list[object]:
    options = [
        {"label": "red", "description": "like fire"},
        {"label": "blue", "description": "like the sea"},
    ]
    return [{"question": "Which one?", "header": "Pick", "options": options, **more}]


def is_shown(emacs: Emacs) -> None:
    """Wait until the question of the model is in its row, and shown whole."""
    emacs.holds(
        f"(and {REQUEST} (string-suffix-p {lisp(ROW)}"
        f" (substring-no-properties (gemini-companion-request-label {REQUEST}))))"
    )
    text = str(
        emacs.value(
            f"(with-temp-buffer (gemini-companion-request-insert {REQUEST})"
            " (buffer-substring-no-properties 1 (point-max)))"
        )
    )
    assert "Which one?\n" in text
    assert "  1. red" in text
    assert "  2. blue" in text


@needs_qwen
@pytest.mark.shared("answered-qwen")
@pytest.mark.contract("Qwen Code: questions answered in Emacs")
def test_the_user_answers_in_emacs_what_the_model_of_qwen_asks(world: World) -> None:
    emacs, cli = pair(world)

    def question() -> Part:
        return call("ask_user_question", questions=questions(multiSelect=False))

    asks(cli, emacs, question(), say("first done"))
    is_shown(emacs)
    go_there(emacs)
    emacs.keys("a")
    emacs.wait_for("Pick:")
    emacs.text("2")
    emacs.keys("Enter")
    emacs.wait_for("Send the answer blue?")
    emacs.keys("y")
    cli.wait_for("first done")
    said = "User has provided the following answers:\\n\\n**Pick**: blue"
    assert said in cli.model.last_message()
    emacs.holds(f"(null {OPEN})")

    # Other words.
    asks(cli, emacs, question(), say("second done"))
    go_there(emacs)
    emacs.keys("a")
    emacs.wait_for("Pick:")
    emacs.text("no, green")
    emacs.keys("Enter")
    emacs.wait_for("Send the answer no, green?")
    emacs.keys("y")
    cli.wait_for("second done")
    assert "**Pick**: no, green" in cli.model.last_message()

    # Back to the terminal.
    asks(cli, emacs, question(), say("third done"))
    go_there(emacs)
    emacs.keys("Enter")
    cli.wait_for("Which one?")
    cli.answer("red")
    cli.wait_for("third done")
    assert "**Pick**: red" in cli.model.last_message()
    emacs.holds(f"(null {OPEN})")

    # Escape in the terminal.
    asks(cli, emacs, question(), say("never"))
    cli.interrupt("Escape", "esc to cancel")
    emacs.holds(f"(null {OPEN})")


@pytest.mark.shared("linked-term")
@pytest.mark.contract("Gemini CLI: questions shown")
def test_what_the_model_of_gemini_cli_asks_is_shown(world: World) -> None:
    emacs, cli = linked_in_term(world)
    cli.model.script(
        call("ask_user", questions=questions(type="choice")), say("answered")
    )
    cli.prompt()
    cli.wait_for("Which one?")
    is_shown(emacs)
    emacs.eval('(progn (switch-to-buffer "a.txt") nil)')
    emacs.command("gemini-companion-review")
    emacs.holds('(equal "*gemini: project*" (buffer-name (window-buffer)))')
    cli.terminal.keys("1")
    cli.wait_for("answered")
    emacs.holds(f"(null {REQUEST})")


@needs_copilot
@pytest.mark.shared("linked-copilot")
@pytest.mark.contract("Copilot CLI: questions shown")
def test_what_the_model_of_copilot_cli_asks_is_shown(world: World) -> None:
    emacs, cli = linked_copilot(world)
    schema = {
        "type": "object",
        "properties": {"pick": {"type": "string", "enum": ["red", "blue"]}},
        "required": ["pick"],
    }
    cli.model.script(
        call("ask_user", message="Which one?", requestedSchema=schema), say("answered")
    )
    cli.prompt()
    cli.wait_for("Which one?")
    is_shown(emacs)
    emacs.becomes("(length (gemini-companion-requests))", 1)
    cli.terminal.keys("Enter")
    cli.wait_for("answered")
    emacs.holds(f"(null {REQUEST})")
    world.row = "Copilot CLI: plans shown"
    plan_of_copilot_cli_is_shown_and_answered_there(emacs, cli)
    is_known_by_its_new_directory(world, emacs, cli)


def is_known_by_its_new_directory(world: World, emacs: Emacs, cli: Copilot) -> None:
    """Change the directory of ``cli`` by its command, of which its hooks tell."""
    other = world.project / "other"
    other.mkdir()
    for directory in (other, world.project):
        shown = rf"(?m)^ {directory}(?!/)"
        cli.type(f"/cd {directory}", lambda shown=shown: re.search(shown, cli.screen()))
        cli.is_free()
        emacs.becomes(f"(gemini-companion-session-directory {SESSION})", str(directory))
        name = f"Copilot CLI ({directory.name})"
        emacs.becomes(f"(gemini-companion-session-name {SESSION})", name)
