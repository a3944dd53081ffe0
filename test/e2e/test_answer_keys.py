# SPDX-License-Identifier: GPL-3.0-or-later
"""Gemini CLI's question about a shell command is answered by its own key."""

from pathlib import Path

import pytest
from harness.emacs import SESSION, Emacs, lisp
from harness.gemini import Gemini
from harness.model import Part, call, say, together
from harness.wait import eventually
from harness.world import World

RECORD = """
(require 'gemini-companion-keys)
(gemini-companion-part-start 'keys)  ; it starts where CLIs are linked
(defvar e2e-taken nil "Whether the keys that were sent were taken, the last first.")
(defun e2e-press (command answer others)
  (or (gemini-companion-keys-press (car (gemini-companion-sessions)) command answer
                                   (lambda (taken) (push taken e2e-taken)) others)
      "sent"))
"""
WAITS = f"(eq 'waiting (gemini-companion-state-titled {SESSION}))"
JUST_NOW = "something was typed in its terminal just now"
OTHER = "its terminal shows another command"
COPY = {"term": "term-line-mode", "vterm": "vterm-copy-mode", "eat": "eat-emacs-mode"}
LIVE = {
    "term": "term-char-mode",
    "vterm": "vterm-copy-mode",
    "eat": "eat-semi-char-mode",
}


def shell(command: str) -> Part:
    return call("run_shell_command", command=command, description="Do it")


def press(
    emacs: Emacs, command: str, *others: str, answer: str = "allow", soon: bool = False
) -> str:
    """Return why no key was sent for ``command``, or "sent".

    Unless it is to be ``soon``, wait until the terminal has been left alone.
    """
    list_of_others = " ".join(map(lisp, others))
    code = f"(e2e-press {lisp(command)} '{answer} '({list_of_others}))"

    def pressed() -> str:
        why = str(emacs.value(code))
        return "" if why == JUST_NOW and not soon else why

    return eventually(pressed, "a key sent, or not")


def asks(cli: Gemini, emacs: Emacs, *turns: Part) -> None:
    """Let the model make ``turns``; wait until the first dialog is shown.

    Its title may show that it asks before the terminal has drawn the dialog, where term
    may still show an earlier one.
    """
    cli.model.script(*turns)
    cli.prompt()
    cli.wait_for("Allow execution of")
    first = turns[0].get("parts", turns)[0]
    cli.wait_for(first["functionCall"]["args"]["command"])
    emacs.holds(WAITS)


@pytest.mark.contract("Gemini CLI: keys for permissions")
@pytest.mark.shared("term")
def test_shell_command_is_allowed_only_if_exactly_that_is_shown(world: World) -> None:
    emacs, cli = world.run_pair(world.file("a.txt", "one\n"))
    shell_command_is_allowed_only_if_exactly_that_is_shown(world, emacs, cli, "term")


def shell_command_is_allowed_only_if_exactly_that_is_shown(
    world: World, emacs: Emacs, cli: Gemini, terminal: str
) -> None:
    """Let ``cli``, whose title shows what it is doing in ``terminal``, be answered."""
    emacs.eval(f"(progn {RECORD} nil)")
    emacs.becomes("(length (gemini-companion-sessions))", 1)
    out = world.project / "out.txt"

    command = "echo one  two >> out.txt; sleep 0"
    asks(cli, emacs, shell(command), say("first done"))
    for other in (
        "echo one two >> out.txt; sleep 0",
        "echo one  two >> out.txt; sleep  0",
        "echo one  two >> out.txt; sleep 1",
        "echo one  two >> out.txt;\nsleep 0",
        "echo one  two >> out.txt",
    ):
        assert press(emacs, other) == OTHER
    assert "may look the same" in press(emacs, command, command.replace(" ", "\n"))
    in_copy_mode_nothing_is_sent(emacs, cli, terminal, command)
    assert not out.exists()
    assert press(emacs, command) == "sent"
    cli.wait_for("first done")
    emacs.becomes("e2e-taken", [True])
    assert out.read_text() == "one two\n"

    queued_commands_are_allowed_one_by_one(cli, emacs, out)
    refused(cli, emacs, out)


def in_copy_mode_nothing_is_sent(
    emacs: Emacs, cli: Gemini, terminal: str, command: str
) -> None:
    buffer = lisp(cli.terminal.name)
    emacs.eval(f"(with-current-buffer {buffer} ({COPY[terminal]}) nil)")
    assert press(emacs, command) == "its terminal is in copy mode"
    arguments = "-1" if terminal == "vterm" else ""
    emacs.eval(f"(with-current-buffer {buffer} ({LIVE[terminal]} {arguments}) nil)")


def queued_commands_are_allowed_one_by_one(
    cli: Gemini, emacs: Emacs, out: Path
) -> None:
    """Allow the second of two commands, and the first one twice."""
    one, two = (f"echo {word} >> out.txt; sleep 0" for word in ("three", "four"))
    asks(cli, emacs, together(shell(one), shell(two)), say("both done"))
    assert press(emacs, two, one) == OTHER
    assert press(emacs, one, two) == "sent"
    assert press(emacs, one, two, soon=True) != "sent"
    cli.wait_for("echo four")
    assert press(emacs, one) == OTHER
    assert press(emacs, two) == "sent"
    cli.wait_for("both done")
    assert sorted(out.read_text().split("\n")[1:]) == ["", "four", "three"]


def refused(cli: Gemini, emacs: Emacs, out: Path) -> None:
    command = "echo five >> out.txt; sleep 0"
    asks(cli, emacs, shell(command), say("never"))
    assert press(emacs, command, answer="refuse") == "sent"
    emacs.holds(f"(eq 'ready (gemini-companion-state-titled {SESSION}))")
    assert "five" not in out.read_text()
    # Nothing is asked now.
    assert press(emacs, command) == "its title does not show that it asks"
