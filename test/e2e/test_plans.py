# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of the real CLIs, shown and reviewed in Emacs."""

import re

import pytest
from harness.copilot import Copilot
from harness.emacs import Emacs, Reviews, lisp
from harness.gemini import Gemini
from harness.model import call, say, write_file
from harness.needs import needs_qwen
from harness.world import World

from test_permissions import (
    FIRST,
    LABEL,
    OPEN,
    REQUEST,
    asks,
    go_there,
    linked_in_term,
    pair,
)

START = "Ready to start"


def plans_in(cli: Gemini) -> str:
    """Return the directory for plans of ``cli``, which has told it the model."""
    told = str(cli.model.requests[-1].get("systemInstruction"))
    match = re.search(r"[^\s`\"'<>]+/\.gemini/tmp/[^\s`\"'<>]+/plans\b", told)
    assert match
    return match[0]


@pytest.mark.shared("linked-term")
@pytest.mark.contract("Gemini CLI: the start of a plan")
def test_a_plan_of_gemini_cli_is_edited_by_emacsclient_and_reviewed(
    world: World,
) -> None:
    emacs, cli = linked_in_term(world)
    cli.type("/plan", lambda: "Switched to Plan Mode" in cli.screen())
    cli.is_free()
    plan = f"{plans_in(cli)}/add-search.md"
    cli.model.script(
        write_file(plan, "# Plan\n\n1. One.\n"),
        call("exit_plan_mode", plan_filename="add-search.md"),
        say("revised"),
    )
    cli.prompt()
    reviews = Reviews(emacs)
    reviews.shown("add-search.md")
    reviews.accept()
    cli.wait_for(START)
    emacs.holds(f'(string-search "asks  Plan" {LABEL})')
    emacs.eval('(progn (switch-to-buffer "a.txt") nil)')
    emacs.command("gemini-companion-review")
    emacs.holds('(equal "*gemini: project*" (buffer-name (window-buffer)))')

    # In its terminal, Ctrl+G opens the plan in this Emacs.
    cli.terminal.keys("C-g")
    emacs.holds('(equal "add-search.md" (buffer-name (window-buffer)))')
    emacs.eval(
        '(with-current-buffer "add-search.md" (goto-char (point-max))'
        ' (insert "2. Two.\\n") (save-buffer) (server-edit) nil)'
    )
    cli.wait_for("revised")
    assert "edited the plan" in cli.model.last_message()
    emacs.holds(f"(null {REQUEST})")

    # In a conversation of its own, the CLI still plans.
    world.row = "Gemini CLI: plans as edits"
    cli.reset()
    cli.is_free()
    is_reviewed_as_an_edit(emacs, cli, f"{plans_in(cli)}/add-test.md")


def is_reviewed_as_an_edit(emacs: Emacs, cli: Gemini, plan: str) -> None:
    """Let ``cli`` write a ``plan``, and ask to start it."""
    reviews = Reviews(emacs)
    cli.model.script(write_file(plan, "# Plan\n\n1. One.\n2. Two.\n"), say("first"))
    cli.prompt()
    reviews.shown("add-test.md")
    name = "(gemini-companion-edit-name (car (gemini-companion-edits-open)))"
    emacs.holds(f'(equal "the plan: add-test.md" {name})')
    emacs.wait_for("the plan")
    assert "outside your projects" not in emacs.screen()
    reviews.edit("2. Two.", "2. Two, mine.")
    reviews.accept()
    cli.wait_for("first")
    assert "2. Two, mine." in cli.model.last_message()

    # The second version is compared with the first one.
    cli.model.script(
        write_file(plan, "# Plan\n\n1. One.\n2. Two, mine.\n3. Three.\n"),
        call("exit_plan_mode", plan_filename="add-test.md"),
        say("approved"),
    )
    cli.prompt()
    reviews.shown("add-test.md")
    hunks = "(gemini-companion-edit-hunks (car (gemini-companion-edits-open)))"
    emacs.holds(f"(= 1 (length {hunks}))")
    emacs.holds(f"(= 0 (gemini-companion-hunk-old-count (car {hunks})))")
    reviews.accept()
    cli.terminal.wait_for(START)
    cli.answer("manually accept")
    cli.wait_for("approved")


def go_to(emacs: Emacs, text: str) -> None:
    """Go to the last ``text`` in the buffer of the selected window."""
    emacs.eval(
        "(with-current-buffer (window-buffer) (goto-char (point-max))"
        f" (search-backward {lisp(text)}) (set-window-point nil (point)) nil)"
    )


@needs_qwen
@pytest.mark.shared("answered-qwen")
@pytest.mark.contract("Qwen Code: comments on a plan")
def test_comments_on_a_plan_of_qwen_reach_its_model(world: World) -> None:
    emacs, cli = pair(world)
    cli.begin("plan")
    first = "# Plan\n\n1. Change `a.txt` äöü 日本.\n2. Run the tests.\n"
    asks(cli, emacs, call("exit_plan_mode", plan=first), say("revised"))
    cli.wait_for("esc to cancel")
    go_there(emacs)
    text = str(emacs.value("(buffer-substring-no-properties 1 (point-max))"))
    assert text.endswith(first)
    go_to(emacs, "1. Change")
    emacs.keys("c")
    emacs.wait_for("Comment on line ")
    emacs.text("not a.txt but 'b.txt'")
    emacs.keys("Enter")
    emacs.wait_for(">> not a.txt but 'b.txt'")
    go_there(emacs)
    emacs.keys("r")
    cli.wait_for("revised")
    told = cli.model.last_message()
    assert "> 1. Change `a.txt`" in told
    assert "not a.txt but 'b.txt'\\n" in told
    emacs.holds(f"(null {OPEN})")

    # The next version is approved in the terminal only.
    second = first.replace("a.txt", "b.txt")
    asks(cli, emacs, call("exit_plan_mode", plan=second), say("approved"))
    go_there(emacs)
    emacs.wait_for("1. Change `b.txt`")
    emacs.keys("a")
    emacs.holds(f"(gemini-companion-permission-answer {FIRST})")
    go_there(emacs)
    emacs.keys("Enter")
    cli.wait_for("Would you like to proceed")
    emacs.holds(f"(null {OPEN})")
    cli.answer("manually approve")
    cli.wait_for("approved")
    emacs.holds(f"(null {REQUEST})")


def plan_of_copilot_cli_is_shown_and_answered_there(emacs: Emacs, cli: Copilot) -> None:
    """Let ``cli``, which is linked, ask whether its plan is right."""
    cli.terminal.keys("BTab")
    cli.wait_for("Plan · ")
    cli.model.script(
        call(
            "exit_plan_mode",
            summary="- Add a search\n- Then test",
            actions=["interactive", "autopilot", "exit_only"],
            recommendedAction="interactive",
        ),
        say("approved"),
    )
    cli.prompt()
    cli.wait_for("Plan Ready for Review")
    emacs.holds(f'(string-search "asks  Plan" {LABEL})')
    text = str(
        emacs.value(
            f"(with-temp-buffer (gemini-companion-request-insert {REQUEST})"
            " (buffer-substring-no-properties 1 (point-max)))"
        )
    )
    assert "- Add a search\n- Then test" in text
    cli.terminal.keys("1")
    cli.wait_for("approved")
    emacs.holds(f"(null {REQUEST})")
