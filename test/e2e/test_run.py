# SPDX-License-Identifier: GPL-3.0-or-later
"""M-x gemini-companion-run starts the CLI in a terminal, and it connects to it."""

from pathlib import Path

import pytest
from harness import gemini
from harness.emacs import SESSION, Emacs, Reviews, lisp
from harness.gemini import CONNECTED, Gemini
from harness.model import say, write_file
from harness.needs import VTERM, needs_eat, needs_vterm
from harness.wait import eventually
from harness.world import World
from test_compose import SUBMIT, asked_why, prompt
from test_state import (
    STATES,
    quits,
    resumed,
    review_ends_when_its_question_is_interrupted,
    states_of_a_turn_are_known_from_the_window_title,
)

BUFFER = "*gemini: project*"
RESTARTS = "Gemini CLI: finished; g restarts"
ASKS = r"""#!/bin/sh
stty raw -echo
printf '\033]11;?\033\\'
head -c 25 >answer.new
echo "$COLORFGBG" >>answer.new
mv answer.new answer
exec head -c 1
"""


TITLES = pytest.mark.contract("Gemini CLI: titles")


@pytest.mark.parametrize(
    "terminal",
    [
        pytest.param("term", marks=[pytest.mark.differs("term.el"), TITLES]),
        pytest.param("eat", marks=[needs_eat]),
        pytest.param("vterm", marks=[needs_vterm]),
    ],
)
def test_cli_is_started_typed_to_ended_and_restarted_in_a_terminal(
    world: World, terminal: str
) -> None:
    file = world.file("a.txt", "one\n")
    load = f"(add-to-list 'load-path {lisp(VTERM)})"
    extra = f"{load} (setq gemini-companion-terminal '{terminal}) {STATES}"
    # The window title shows the state of the CLI, as by default.  The last Emacs was
    # a dark one; the CLI itself would compare them after a minute.
    theme = {"theme": "Default", "terminalBackgroundPollingInterval": 3600}
    gemini.configure(world.scratch, ui={"hideTips": True, **theme})
    emacs = world.emacs(file, mode=False, extra=extra)
    is_sent_the_background_color(world, emacs)
    cli = world.run(emacs)
    has_the_theme_of_emacs(world)
    emacs.holds("(gemini-companion-sessions)", "a session")
    assert CONNECTED in cli.ide_status()
    emacs.keys("M-x")
    emacs.holds("(active-minibuffer-window)", "M-x is for Emacs")
    emacs.keys("C-g")
    emacs.holds("(not (active-minibuffer-window))")

    is_asked_what_is_typed(emacs, cli, file)

    emacs.eval(f"(select-window (get-buffer-window {lisp(BUFFER)}))")
    if terminal == "term":
        is_quit_and_restarted(emacs, cli)
        if not world.tools.is_first:
            # Titles are taken from the output before term.el has it.
            return
        review_ends_when_its_question_is_interrupted(world, emacs, cli)
    emacs.eval("(delete-other-windows)")
    states_of_a_turn_are_known_from_the_window_title(emacs, cli, world)
    # In vterm, Qwen Code does; see test_state.py.
    if terminal == "eat":
        resumed(emacs, cli)
        quits(emacs, cli)


def is_quit_and_restarted(emacs: Emacs, cli: Gemini) -> None:
    cli.type("/quit", lambda: RESTARTS in emacs.terminal.screen())
    emacs.holds("(null (gemini-companion-sessions))", "the session is gone")
    emacs.keys("g")
    emacs.holds("(gemini-companion-sessions)", "connected again")
    cli.wait_until_connected()
    emacs.eval("(delete-other-windows)")


@pytest.mark.contract("Gemini CLI: discovery")
@pytest.mark.shared("no-cli")
def test_cli_connects_with_the_temporary_directory_of_its_buffer(world: World) -> None:
    """As envrc, direnv and mise set it for the buffers of a project."""
    file = world.file("a.txt", "one\n")
    place = world.scratch.root / "place"
    place.mkdir()
    emacs = world.emacs(file)
    emacs.eval(
        f"""(setq-local process-environment
                        (cons {lisp(f"TMPDIR={place}")} process-environment))"""
    )
    cli = world.run(emacs)
    cli.wait_until_connected()
    emacs.holds("(gemini-companion-sessions)", "a session")
    reviews = Reviews(emacs)
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("I see"))
    emacs.eval(f"(let (kill-buffer-query-functions) (kill-buffer {lisp(BUFFER)}))")
    eventually(lambda: not [*place.rglob("*.json")], "no discovery file is left there")


def is_sent_the_background_color(world: World, emacs: Emacs) -> None:
    """Run a program that asks for it, which turns the mode on; end and restart it."""
    program = world.file("asks", ASKS)
    program.chmod(0o700)
    emacs.eval(
        f"""(progn (set-face-background 'default "#ffffff")
                   (setq gemini-companion-run-commands
                         '(("gemini" . {lisp(program)})))
                   (gemini-companion-run))"""
    )
    answer = world.project / "answer"
    eventually(answer.exists, "the background color")
    assert answer.read_bytes() == b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\0;15\n"
    emacs.wait_until_ready()
    answer.unlink()
    emacs.keys("x")
    emacs.wait_for(RESTARTS)
    emacs.keys("g")
    eventually(answer.exists, "it runs again")
    kill = f"(let (kill-buffer-query-functions) (kill-buffer {lisp(BUFFER)}))"
    emacs.eval(f"(progn {kill} (delete-other-windows))")


def has_the_theme_of_emacs(world: World) -> None:
    settings = world.scratch.home / ".gemini" / "settings.json"
    eventually(lambda: "Default Light" in settings.read_text(), "the theme is light")


def is_asked_what_is_typed(emacs: Emacs, cli: Gemini, file: Path) -> None:
    """Type a text, and the reason for a rejection."""
    cli.model.script(say("all done"))
    emacs.eval("(require 'gemini-companion-prompt)")
    emacs.holds(f"(gemini-companion-terminal-process {SESSION})")
    emacs.eval(SUBMIT.format(lisp("größe 大小 \x1b[201~\x03 😀 one\r\nand two")))
    cli.wait_for("all done")
    assert prompt(cli) == "größe 大小 [201~ 😀 one\nand two"

    reviews = Reviews(emacs)
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("I see"))
    emacs.holds("(gemini-companion-edit-shown)", "the review begins by itself")
    asked_why(emacs, reviews, "1. Größe: 1 word, not 2")
    emacs.keys("Enter")
    cli.wait_for("I see")
    assert prompt(cli) == "1. Größe: 1 word, not 2"
    assert file.read_text() == "one\n"
    # After the answer, the overview is selected while the turn goes on.
    emacs.eval(f"(select-window (get-buffer-window {lisp(BUFFER)}))")
    cli.is_free()


@pytest.mark.contract("Gemini CLI: discovery")
@pytest.mark.shared("inside")
def test_each_of_two_emacsen_has_the_cli_of_its_terminal(world: World) -> None:
    file = world.file("a.txt", "one\n")
    sessions = "(length (gemini-companion-sessions))"
    first, _, cli = world.pair(file, inside=True)
    cli.ide("disable")
    first.becomes(sessions, 0)
    second = world.emacs(file, name="second")

    cli.enable()
    first.becomes(sessions, 1)
    second.becomes(sessions, 0)

    world.gemini_inside(second)
    second.becomes(sessions, 1)
    first.becomes(sessions, 1)
    second.quit()
    eventually(lambda: len(world.scratch.servers()) == 1, "the other server is gone")
