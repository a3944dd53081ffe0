# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of the real CLIs, shown and reviewed in Emacs."""

import re

import pytest
from harness import gemini
from harness.emacs import Emacs, Reviews
from harness.gemini import Gemini
from harness.model import call, say, write_file
from harness.world import World
from test_tools import link

START = "Ready to start"


def planning(world: World) -> tuple[Emacs, Gemini, str]:
    """Return an Emacs, a linked Gemini CLI in its plan mode, and the name of a plan."""
    emacs = world.emacs(world.file("a.txt", "a\n"))
    link(world, emacs)
    general = {"enableAutoUpdate": False, "defaultApprovalMode": "plan"}
    gemini.configure(world.scratch, general=general)
    cli = world.gemini()
    cli.is_free()
    told = str(cli.model.requests[-1].get("systemInstruction"))
    found = re.search(r"[^\s`\"'<>]+/\.gemini/tmp/[^\s`\"'<>]+/plans\b", told)
    assert found
    return emacs, cli, f"{found[0]}/add-search.md"


@pytest.mark.contract("Gemini CLI: plans as edits")
def test_a_plan_of_gemini_cli_is_reviewed_as_an_edit(world: World) -> None:
    emacs, cli, plan = planning(world)
    reviews = Reviews(emacs)
    cli.model.script(write_file(plan, "# Plan\n\n1. One.\n2. Two.\n"), say("first"))
    cli.prompt()
    reviews.shown("add-search.md")
    name = "(gemini-companion-edit-name (car (gemini-companion-edits-open)))"
    emacs.holds(f'(equal "the plan: add-search.md" {name})')
    emacs.wait_for("the plan")
    assert "outside your projects" not in emacs.screen()
    reviews.edit("2. Two.", "2. Two, mine.")
    reviews.accept()
    cli.wait_for("first")
    assert "2. Two, mine." in cli.model.last_message()

    # The second version is compared with the first one.
    cli.model.script(
        write_file(plan, "# Plan\n\n1. One.\n2. Two, mine.\n3. Three.\n"),
        call("exit_plan_mode", plan_filename="add-search.md"),
        say("approved"),
    )
    cli.prompt()
    reviews.shown("add-search.md")
    hunks = "(gemini-companion-edit-hunks (car (gemini-companion-edits-open)))"
    emacs.holds(f"(= 1 (length {hunks}))")
    emacs.holds(f"(= 0 (gemini-companion-hunk-old-count (car {hunks})))")
    reviews.accept()
    cli.terminal.wait_for(START)
    cli.answer("manually accept")
    cli.wait_for("approved")
