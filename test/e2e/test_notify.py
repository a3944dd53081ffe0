# SPDX-License-Identifier: GPL-3.0-or-later
"""The mode line shows what a CLI is doing, and a line says that it waits or is done."""

import pytest
from harness import gemini
from harness.model import Part, call, say
from harness.wait import eventually
from harness.world import World

# In a narrower window, term would keep the lines of before.
WHERE = """(setq display-buffer-alist
                 '(("terminal" display-buffer-same-window)))"""
LOOK_AWAY = '(progn (setq gemini-companion-notify-turn-seconds 0) (find-file "a.txt"))'


def shell(file: str) -> Part:
    """Run a command, about which the CLI asks, that ends once ``file`` exists."""
    command = f"until [ -e {file} ]; do sleep 0.1; done"
    return call("run_shell_command", command=command, description="waits")


@pytest.mark.once
def test_cli_that_asks_and_then_is_done_is_seen_and_announced(world: World) -> None:
    gemini.configure(world.scratch, ui={"dynamicWindowTitle": True})
    emacs, _, cli = world.pair_inside(world.file("a.txt"), extra=WHERE)
    cli.model.script(shell("one"), shell("two"), say("all done"))
    cli.prompt()
    cli.answer("Allow once")
    emacs.eval(LOOK_AWAY)
    emacs.wait_for("working Gemini:1")

    world.project.joinpath("one").touch()
    emacs.wait_for("Gemini CLI (project) asks in its terminal")
    emacs.wait_for("?1 Gemini:1")

    emacs.command("gemini-companion-review")
    emacs.holds('(equal "*terminal*" (buffer-name (window-buffer)))')
    cli.answer("Allow once")
    emacs.eval(LOOK_AWAY)
    emacs.wait_for("working Gemini:1")
    assert "asks in its terminal" not in emacs.terminal.screen()

    world.project.joinpath("two").touch()
    emacs.wait_for("Gemini CLI (project) is done")
    eventually(lambda: "working" not in emacs.terminal.screen(), "nothing works")
    emacs.command("gemini-companion-review")
    emacs.wait_for_match(r"No proposal waits for an answer; Gemini CLI .* is ready")
