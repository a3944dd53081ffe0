# SPDX-License-Identifier: GPL-3.0-or-later
"""The status buffer shows the state, and why a CLI does not connect."""

import re

import pytest
from harness import gemini
from harness.emacs import Emacs, lisp
from harness.wait import eventually
from harness.world import World

pytestmark = pytest.mark.once

STATUS = "*gemini-companion status*"


def status(emacs: Emacs) -> str:
    """Check again, and return the text of the status."""
    emacs.eval("(gemini-companion-status)")
    return text(emacs)


def text(emacs: Emacs) -> str:
    """Return the text of the status."""
    return str(emacs.value(f'(with-current-buffer "{STATUS}" (buffer-string))'))


@pytest.mark.shared("context")
def test_status_shows_sessions_and_what_is_shared(world: World) -> None:
    emacs, _, cli = world.pair(world.file("a.txt", "one\ntwo\n"))
    assert "- a.txt (active)" in cli.ide_status()
    emacs.act("(progn (goto-char 5) (set-mark (point-max)) (activate-mark))")
    emacs.holds("(plist-get (car (gemini-companion-shared)) :selected-text)")

    shown = status(emacs)

    assert "Connected: Gemini CLI" in shown
    assert f"in {world.project}" in shown
    assert "a.txt, active, line 2, character 1" in shown
    assert '4 characters selected: "two\\n"' in shown
    assert f"in {world.project}) is not connected" not in shown


def test_status_shows_why_a_cli_is_not_connected(world: World) -> None:
    emacs = world.emacs(world.file("a.txt"))
    emacs.eval(
        f"""(setq gemini-companion-run-commands
                  '(("gemini" . {lisp(world.tools.gemini)})))"""
    )
    elsewhere = world.scratch.root / "elsewhere"
    elsewhere.mkdir()
    program = gemini.script(world.tools, world.scratch, world.model(), "lost")
    environment = {**gemini.in_container(), "TMPDIR": str(elsewhere)}
    terminal = world.tmux.start(
        "lost", [str(program)], world.project, environment, gemini.SIZE
    )
    terminal.wait_for("Type your message")
    status(emacs)
    reason = (
        f"• Running CLIs: Gemini CLI (process {{}}, in {world.project}) is not"
        f" connected: it searches {elsewhere}/gemini/ide for editors\n"
    )
    eventually(
        lambda: reason.format("") in re.sub(r"process \d+", "process ", text(emacs)),
        "the reason, which is no problem",
    )
    # Other tests may run a CLI meanwhile.
    verdict = text(emacs).splitlines()[0]
    assert verdict.startswith("Not connected: ")
    assert str(world.project) not in verdict

    emacs.eval(
        f"""(with-current-buffer "{STATUS}"
              (goto-char (point-min))
              (search-forward "[Sho")
              (push-button))"""
    )
    eventually(lambda: "Gemini CLI 0." in text(emacs), "the version of the CLI")
