# SPDX-License-Identifier: GPL-3.0-or-later
"""Emacs knows what each CLI is doing, from its window title and its hooks."""

import os
import signal
from pathlib import Path

import pytest
from harness import qwen
from harness.emacs import SESSION, STATE, TURN, Emacs, Reviews, lisp
from harness.gemini import Gemini, type_until
from harness.model import call, fail, read_file, say, write_file
from harness.needs import VTERM, needs_qwen
from harness.qwen import stays_connected
from harness.world import World
from test_compose import prompts_are_nothing_but_text
from test_turn_page import comments_of_each_place_are_nothing_but_text

STATES = """
(defvar e2e-states nil)
(add-hook 'gemini-companion-state-functions
          (lambda (_session state) (push state e2e-states)))
"""

# It may try again, which its title shows.
REFUSED = """
(and (equal '(working ready) (seq-take (reverse e2e-states) 2))
     (eq 'ready (car e2e-states))
     (null (seq-difference e2e-states '(working ready))))
"""


def is_(emacs: Emacs, state: str) -> None:
    emacs.holds(f"(eq '{state} {STATE})", state)


@needs_qwen
@pytest.mark.long
@pytest.mark.contract("Qwen Code: titles")
def test_qwen_is_enabled_in_a_terminal_sent_comments_known_by_its_title_and_resumed(
    world: World,
) -> None:
    qwen.configure(world.scratch, ide={"enabled": False, "hasSeenNudge": True})
    file = world.file("a.txt", "one\n")
    extra = f"(setq gemini-companion-terminal 'term) {STATES}"
    emacs = world.emacs(file, extra=extra)
    question = "IDE integration is off in Qwen Code; change this setting? (y or n)"
    cli = world.run(emacs, "qwen", question)
    stays_connected(emacs, cli)
    is_sent_a_reason(emacs, cli, file)
    comments_of_each_place_are_nothing_but_text(world, emacs, cli, "qwen")
    emacs.eval(
        f"(progn (pop-to-buffer {lisp(cli.terminal.name)}) (delete-other-windows))"
    )
    states_of_a_turn_are_known_from_the_window_title(emacs, cli, world)
    world.row = "Qwen Code: prompts"
    # With its banner, its scroll bar and its phrases, as by default.
    qwen.configure(world.scratch, ui=qwen.UI)
    if VTERM:
        load = f"(add-to-list 'load-path {lisp(VTERM)})"
        emacs.eval(f"(progn {load} (setq gemini-companion-terminal 'vterm))")
    resumed(emacs, cli)
    prompts_are_nothing_but_text(world, emacs, cli, reads_file=True)
    quits(emacs, cli)


def is_sent_a_reason(emacs: Emacs, cli: Gemini, file: Path) -> None:
    """Reject an edit of ``file`` by Qwen Code with a long reason; interrupt another."""
    reviews = Reviews(emacs)
    cli.model.script(read_file(file), write_file(file, "uno\n"), say("I see"))
    cli.prompt()
    reviews.shown("a.txt")
    reviews.select()
    emacs.keys("C-c", "C-r")
    emacs.wait_for("Reject a.txt; reason for Qwen Code:")
    reason = "prompt 99 please use the number 1 " + "and no other number " * 60
    emacs.eval(f"(kill-new {lisp(reason)})")
    emacs.keys("C-y", "Enter")
    cli.wait_for("I see")
    assert "and no other number" in cli.model.last_message()
    assert file.read_text() == "one\n"

    # After the answer, the overview is selected while the turn goes on.
    emacs.eval(f"(select-window (get-buffer-window {lisp(cli.terminal.name)}))")
    cli.is_free()
    emacs.eval("(setq gemini-companion-review-arrival 'notify)")
    cli.model.script(read_file(file), write_file(file, "due\n"))
    cli.ask()
    reviews.wait_until(1)
    emacs.eval(f"(select-window (get-buffer-window {lisp(cli.terminal.name)}))")
    type_until(
        lambda: emacs.keys("C-c", "C-c"), lambda: not reviews.paths(), "interrupted"
    )
    emacs.eval("(setq gemini-companion-review-arrival 'when-idle)")
    cli.is_free()
    assert file.read_text() == "one\n"


def states_of_a_turn_are_known_from_the_window_title(
    emacs: Emacs, cli: Gemini, world: World
) -> None:
    """Let ``cli``, which is ready, go through turns of all kinds; it is killed."""
    reviews = Reviews(emacs)
    emacs.eval(f"(progn (pop-to-buffer {lisp(cli.terminal.name)}) nil)")
    is_(emacs, "ready")
    # One that was slow to connect has worked on /ide enable.
    emacs.eval("(setq e2e-states '(ready))")

    cli.model.script(
        write_file(world.project / "new.txt", "two\n"),
        call(
            "run_shell_command",
            command="touch c.txt",
            description="x",
            is_background=False,
        ),
        say("all done"),
    )
    cli.model.answers.clear()
    cli.prompt()
    is_(emacs, "working")
    cli.model.answers.set()
    reviews.shown("new.txt")
    is_(emacs, "waiting")
    reviews.select("C-c", "C-c")
    cli.terminal.wait_for("Allow execution")
    is_(emacs, "waiting")
    assert emacs.value("e2e-states")[-1:] == ["ready"]
    # The review that was answered stays until then.
    emacs.becomes("(buffer-name (window-buffer))", cli.terminal.name)
    cli.answer("llow once")
    cli.wait_for("all done")
    is_(emacs, "ready")
    order = emacs.value("(reverse e2e-states)")
    assert order[:3] == ["ready", "working", "waiting"]
    assert "unknown" not in order
    emacs.holds(f"(gemini-companion-turn-ended {TURN})")

    # The API answers with an error; the CLI is ready again.
    emacs.eval("(setq e2e-states nil)")
    cli.model.script(fail())
    cli.prompt()
    emacs.holds(REFUSED)
    interrupted(emacs, cli, "Escape", "Escape")
    interrupted(emacs, cli, "C-c", "C-c")
    cli.model.answers.clear()
    cli.prompt()
    is_(emacs, "working")
    emacs.eval(f"(setq e2e-turn {TURN})")
    os.kill(
        int(emacs.eval(f"(gemini-companion-session-pid {SESSION})")), signal.SIGKILL
    )
    emacs.holds("(null (gemini-companion-sessions))")
    emacs.holds("(eq 'unknown (car e2e-states))")
    emacs.holds("(gemini-companion-turn-ended e2e-turn)")
    cli.model.answers.set()


def resumed(emacs: Emacs, cli: Gemini) -> None:
    """Resume the conversation from the CLI's own list."""
    buffer = lisp(cli.terminal.name)
    emacs.holds(f"(not (get-buffer-process {buffer}))", "the program has ended")
    emacs.eval(f"(progn (switch-to-buffer {buffer}) nil)")
    emacs.command("gemini-companion-resume")
    cli.terminal.wait_for_match("Chat Sessions|Resume Session")
    # A busy machine may show the list before it takes keys.
    type_until(
        lambda: cli.terminal.keys("Enter"),
        lambda: "all done" in cli.screen(),
        "resumed",
        # In the prompt that comes next, it does nothing.
        again=2,
    )
    emacs.holds(SESSION, "connected")
    is_(emacs, "ready")


def quits(emacs: Emacs, cli: Gemini) -> None:
    cli.type("/quit", lambda: "g restarts it" in emacs.screen())
    emacs.holds("(eq 'unknown (car e2e-states))")


def interrupted(emacs: Emacs, cli: Gemini, *keys: str) -> None:
    """Interrupt the CLI by ``keys`` while it works; it is ready again."""
    cli.model.answers.clear()
    cli.prompt()
    is_(emacs, "working")
    ready = f"(eq 'ready {STATE})"
    type_until(lambda: emacs.keys(*keys), lambda: emacs.value(ready), "interrupted")
    cli.model.answers.set()


def review_ends_when_its_question_is_interrupted(
    world: World, emacs: Emacs, cli: Gemini
) -> None:
    old = "0\n1\n2\n3\n4\n5\n6\n7\n8\n"
    proposed = old.replace("0", "zero").replace("8", "eight")
    file = world.file("d.txt", old)
    reviews = Reviews(emacs)
    cli.model.script(write_file(file, proposed), say("not asked"))
    cli.ask()
    is_(emacs, "waiting")
    reviews.shown("d.txt")
    reviews.select("x")
    reviews.edit("eight", "mine")
    emacs.eval(f"(progn (pop-to-buffer {lisp(cli.terminal.name)}) nil)")
    type_until(
        lambda: emacs.keys("C-c", "C-c"), lambda: not reviews.paths(), "interrupted"
    )

    emacs.says("Gemini CLI (project) interrupted; review closed, d.txt not written")
    # Windows that the user has changed stay.
    emacs.becomes("(e2e-windows)", f"{cli.terminal.name} {cli.terminal.name}")
    emacs.eval("(delete-other-windows)")
    is_(emacs, "ready")
    assert reviews.kept() == old.replace("8", "mine")
    reviews.proposed(cli, file, write_file(file, "new\n"), say("it is new"))
    reviews.select("C-c", "C-c")
    cli.finished("it is new", file, "new\n")


@pytest.mark.shared("term")
@pytest.mark.contract("Gemini CLI: /compress")
def test_gemini_works_while_it_compresses(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, cli = world.run_pair(file)
    cli.model.script(say("first done"))
    cli.prompt()
    cli.wait_for("first done")
    is_(emacs, "ready")
    cli.model.answers.clear()
    cli.type("/compress", lambda: "Compressing" in cli.screen())
    is_(emacs, "working")
    cli.model.answers.set()
    is_(emacs, "ready")
