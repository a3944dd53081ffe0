# SPDX-License-Identifier: GPL-3.0-or-later
"""A CLI that is killed or stopped, or an Emacs that exits, during a review."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness.emacs import Emacs, Reviews
from harness.gemini import Gemini
from harness.model import say, write_file
from harness.wait import eventually
from harness.world import World
from test_restart import MISSED

SHOWN = """
(seq-find (lambda (diff)
            (or (eq 'shown (gemini-companion-edit-status diff))
                (gemini-companion-edit-appeared diff)))
          (gemini-companion-edits-open))
"""


def pid_of_shown(emacs: Emacs) -> int:
    session = f"(gemini-companion-edit-session {SHOWN})"
    return int(emacs.eval(f"(gemini-companion-session-pid {session})"))


@contextmanager
def disconnected(emacs: Emacs) -> Iterator[None]:
    """Stop the CLI of the displayed review, and close its event stream.

    It runs in Emacs, as tmux continues a process that is stopped in it.
    """
    pid = pid_of_shown(emacs)
    os.kill(pid, signal.SIGSTOP)
    emacs.eval("(gemini-companion-restart)")
    emacs.holds("(null (gemini-companion-sessions))", "no CLI is connected")
    yield
    os.kill(pid, signal.SIGCONT)


@pytest.mark.shared("review")
def test_next_review_appears_after_the_cli_of_a_review_was_killed(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, second = world.pair(file)
    first = world.gemini("first")
    reviews.proposed(first, file, write_file(file, "from the first\n"))
    reviews.edit("from", "edited, from")
    second.model.script(write_file(file, "from the second\n"), say("all done"))
    pid = pid_of_shown(emacs)
    count = "(seq-count #'gemini-companion-session-pid (gemini-companion-sessions))"
    emacs.holds(f"(equal 2 {count})")
    os.kill(pid, signal.SIGKILL)
    reviews.wait_until(0)
    second.ask()
    reviews.shown("a.txt")
    assert reviews.proposal() == "from the second\n"
    reviews.accept()
    second.wait_for("all done")
    assert file.read_text() == "from the second\n"
    emacs.says("Gemini CLI (project) exited; review closed, a.txt ")
    assert reviews.kept() == "edited, from the first\n"


@pytest.mark.shared("inside")
def test_acceptance_reaches_a_cli_that_reconnects_or_is_kept(world: World) -> None:
    file, emacs, reviews, cli = world.review(
        "one\n", "uno\n", say("all done"), inside=True
    )
    with disconnected(emacs):
        emacs.wait_for("not connected; a.txt")
        reviews.accept()
    cli.finished("all done", file, "uno\n")
    assert emacs.eval('(e2e-said "not written")') == "nil"

    reviews.proposed(cli, file, write_file(file, "due\n"), say("done again"))
    with disconnected(emacs):
        reviews.edit("due", "edited")
        reviews.accept()
        # A warning, which is no message.
        emacs.wait_for("a.txt was not written")
    # Its question is still displayed, and Emacs has no review of it.
    cli.answer("Allow once")
    cli.finished("done again", file, "due\n")
    assert reviews.kept() == "edited\n"


def by_keys(emacs: Emacs) -> None:
    emacs.terminal.keys("C-x", "C-c")
    emacs.wait_for("waits for an answer; exit anyway?")
    emacs.terminal.keys("yes", "Enter")
    emacs.wait_until_exited()


def by_force(emacs: Emacs) -> None:
    os.kill(emacs.pid, signal.SIGKILL)
    emacs.wait_until_exited()


def by_mode(emacs: Emacs) -> None:
    emacs.eval("(gemini-companion-mode -1)")
    emacs.holds('(not (get-process "gemini-companion"))', "Emacs knows that")


@pytest.mark.shared("review")
def test_cli_is_free_after_emacs_or_its_mode_has_ended(world: World) -> None:
    file, emacs, _, cli = world.review("one\n", "uno\n")
    is_free_after(by_mode, world, emacs, cli)

    emacs.turn_on()
    cli.reset()
    cli.enable()
    is_asked_again(emacs, cli, file)
    is_free_after(by_keys, world, emacs, cli)

    emacs = world.follows(emacs, file)
    is_asked_again(emacs, cli, file)
    is_free_after(by_force, world, emacs, cli)
    world.follows(emacs)


def is_asked_again(emacs: Emacs, cli: Gemini, file: Path) -> None:
    """Let ``cli``, which has connected again, propose an edit of ``file``."""
    cli.wait_until_connected()
    Reviews(emacs).proposed(cli, file, write_file(file, "uno\n"))


def is_free_after(
    leave: Callable[[Emacs], None], world: World, emacs: Emacs, cli: Gemini
) -> None:
    """End Emacs or its mode during a review of a.txt; nothing is left of that."""
    file = world.project / "a.txt"
    log = world.scratch.root / "gemini.log"
    missed = log.read_text().count(MISSED)
    leave(emacs)
    cli.wait_for("Rejected")
    eventually(lambda: not world.scratch.servers(), "the server is gone")
    eventually(lambda: not world.scratch.discovery_files(), "no discovery file")
    assert file.read_text() == "one\n"
    if leave is not by_force:
        eventually(lambda: not world.scratch.temporary_files(), "no temporary file")
    cli.is_free()
    # Its last attempt to open the lost connection again would end the next one, too.
    eventually(lambda: log.read_text().count(MISSED) - missed > 1, "it has given up")
