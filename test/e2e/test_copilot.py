# SPDX-License-Identifier: GPL-3.0-or-later
"""The real GitHub Copilot CLI, which speaks another protocol."""

import json
import os
import signal
import time
from collections.abc import Callable, Collection
from pathlib import Path

import pytest
from harness import copilot
from harness.copilot import Copilot, create, replace
from harness.emacs import Emacs, Reviews, lisp
from harness.gemini import type_until
from harness.model import say, together, write_file
from harness.needs import needs_copilot
from harness.wait import eventually
from harness.world import World
from test_compose import SUBMIT
from test_lost_cli import pid_of_shown
from test_turn_page import comments_of_each_place_are_nothing_but_text

from test_permissions import link_copilot, what_copilot_asks_is_shown_and_answered_there

pytestmark = needs_copilot

SESSIONS = "(length (gemini-companion-sessions))"
LAST = "(car (last (gemini-companion-edits)))"
CALLS = """(cl-loop for buffer in (buffer-list)
  when (string-prefix-p " *gemini-companion output*" (buffer-name buffer))
  sum (with-current-buffer buffer
        (how-many "Diff: copilot" (point-min) (point-max))))"""


def pair(world: World) -> tuple[Path, Emacs, Reviews, Copilot]:
    file = world.file("a.txt", "one\n")
    return file, *world.copilot_pair(file)


@pytest.mark.contract("Copilot CLI: discovery")
@pytest.mark.shared("copilot")
def test_edits_are_reviewed_by_the_protocol_of_copilot(world: World) -> None:
    # The directory is not there until the CLI has run once.
    assert not world.home.joinpath(".copilot").exists()
    file, emacs, reviews, cli = pair(world)
    other = world.project / "b.txt"
    (lock,) = world.home.glob(".copilot/ide/*.lock")
    content = json.loads(lock.read_text())
    assert content["workspaceFolders"] == [str(world.project)]
    assert "isTrusted" not in content

    world.row = "Copilot CLI: context"
    emacs.keys("M-<", "C-Space", "C-e")
    eventually(lambda: "(line 1)" in cli.last_message(), "the selection is sent")

    world.row = "Copilot CLI: accept, one edit after the other"
    both = together(replace(file, "one", "uno"), create(other, "two\n"))
    cli.model.script(both, say("both done"))
    cli.ask()
    # The CLI runs both at once; which asks first is not known.
    waiting = {str(file): "uno\n", str(other): "two\n"}
    while waiting:
        path = eventually(lambda: only_of(reviews, waiting), "a review of the two")
        assert reviews.proposal() == waiting.pop(path)
        reviews.accept()
    cli.wait_for("both done")
    assert (file.read_text(), other.read_text()) == ("uno\n", "two\n")

    world.row = "Copilot CLI: reject"
    cli.is_free()
    both = together(replace(file, "uno", "due"), replace(other, "two", "due"))
    cli.model.script(both)
    cli.ask()
    reviews.wait_until(1)
    reviews.reject()
    cli.is_free()
    reviews.wait_until(0)
    assert (file.read_text(), other.read_text()) == ("uno\n", "two\n")


@pytest.mark.contract("Copilot CLI: yes and no in the terminal")
@pytest.mark.shared("copilot")
def test_an_answer_in_the_terminal_of_copilot_closes_the_review(world: World) -> None:
    file, _, reviews, cli = pair(world)
    reviews.proposed(cli, file, replace(file, "one", "uno"), say("first done"))
    cli.answer("Yes")
    reviews.wait_until(0)
    cli.finished("first done", file, "uno\n")

    for key in ("C-c", "Escape"):
        cli.is_free()
        reviews.proposed(cli, file, replace(file, "uno", "due"), say("not done"))
        cli.interrupt(key)
        reviews.wait_until(0)
    cli.is_free()
    assert file.read_text() == "uno\n"


@pytest.mark.contract("Copilot CLI: restart of the server")
@pytest.mark.shared("copilot")
def test_a_review_of_copilot_survives_a_restart_and_a_crash(world: World) -> None:
    servers = world.scratch.servers
    restart = "(gemini-companion-restart)"
    cli = survives(world, "a.txt", lambda emacs: emacs.eval(restart))
    eventually(lambda: len(servers()) == 1, "the server that was replaced has ended")
    # The screen then no longer shows that the CLI was connected again.
    cli.reset()
    survives(world, "b.txt", lambda _: servers()[0].kill())


def survives(world: World, name: str, end: Callable[[Emacs], object]) -> Copilot:
    """Check that a review of a file is the same when the server had its ``end``."""
    file = world.file(name, "one\n")
    emacs, reviews, cli = world.copilot_pair(file)
    reviews.proposed(cli, file, replace(file, "one", "uno"), say("copilot done"))
    emacs.eval("(setq e2e-edit (car (gemini-companion-edits-open)))")
    reviews.edit("uno", "mine")
    end(emacs)
    cli.terminal.wait_for_match("(?s)IDE connection lost.*Connected to Emacs")
    emacs.becomes(SESSIONS, 1)
    assert emacs.value("(eq e2e-edit (car (gemini-companion-edits-open)))")
    assert reviews.proposal() == "mine\n"
    has_called(emacs)
    reviews.accept()
    cli.wait_for("copilot done")
    is_written(emacs, file, "mine\n", "e2e-edit")
    return cli


def has_called(emacs: Emacs) -> None:
    """Wait until the CLI has opened no diff for two seconds.

    As it connects again, it opens the diff several times, and hears no answer but
    that to its last call; a user is not that fast.
    """
    calls, since = 0, time.monotonic()

    def is_quiet() -> bool:
        nonlocal calls, since
        now = emacs.value(CALLS)
        if now != calls:
            calls, since = now, time.monotonic()
        return calls > 0 and time.monotonic() - since > 2

    eventually(is_quiet, "the CLI has opened its diff again")


@pytest.mark.contract("Copilot CLI: accept with edits")
@pytest.mark.shared("copilot")
def test_emacs_writes_the_edits_that_copilot_ignores(world: World) -> None:
    _, emacs, reviews, cli = pair(world)
    file = world.file("b.txt", "\ufeffone\r\ntwo\r\n")
    emacs.eval(f"(progn (find-file {lisp(file)}) nil)")
    reviews.proposed(cli, file, replace(file, "one", "uno"), say("first done"))
    assert reviews.proposal() == "\ufeffuno\ntwo\n"
    reviews.edit("uno", "mine")
    reviews.select()
    emacs.wait_for("your edits overwrite")
    reviews.accept()
    cli.wait_for("first done")
    is_written(emacs, file, "\ufeffmine\r\ntwo\r\n")
    emacs.eval('(progn (switch-to-buffer "b.txt") (goto-char (point-min)) nil)')
    emacs.command("gemini-companion-why")
    emacs.says(", accepted, with words of yours, ")

    world.row = "Copilot CLI: accept without a hunk"
    cli.is_free()
    letters = "abcdefghijklm"
    other = world.file("c.txt", "\n".join(letters))
    emacs.eval(f"(progn (find-file {lisp(other)}) nil)")
    old, new = ("\n".join(text) for text in (letters, f"A{letters[1:-1]}M"))
    reviews.proposed(cli, other, replace(other, old, new), say("second done"))
    reviews.select("x", "C-c", "C-c")
    cli.wait_for("second done")
    is_written(emacs, other, "\n".join(f"{letters[:-1]}M"))
    emacs.eval(
        f"""(progn (require 'gemini-companion-undo)
                   (e2e-undo-edits (list {LAST})))"""
    )
    eventually(lambda: other.read_text() == old, "the edit is undone")


def test_copilot_is_started_asks_and_is_sent_comments_and_prompts(world: World) -> None:
    copilot.configure(world.scratch)
    file = world.file("a.txt", "one\n")
    # What the command writes is no change that is left.
    world.file(".gitignore", "out.txt\n")
    emacs = world.emacs(file, extra="(setq gemini-companion-terminal 'term)")
    link_copilot(world, emacs)
    cli = world.run(emacs, "copilot")
    emacs.becomes(SESSIONS, 1)
    what_copilot_asks_is_shown_and_answered_there(world, emacs, cli)
    comments_of_each_place_are_nothing_but_text(world, emacs, cli, "copilot")
    is_sent_prompts(emacs, cli)


def is_sent_prompts(emacs: Emacs, cli: Copilot) -> None:
    emacs.eval("(require 'gemini-companion-prompt)")
    emacs.eval('(progn (pop-to-buffer "*copilot: project*") nil)')
    request_count = len(cli.model.requests)
    cli.model.script(say("first done"))
    emacs.eval(SUBMIT.format(lisp("prompt 1 please, in @a.txt" + 20 * "\n" + "end")))
    cli.wait_for("first done")
    prompt = cli.model.requests[-1]["messages"][-1]["content"]
    assert "prompt 1 please, in @a.txt\n" in prompt
    assert "<tagged_files>" in prompt

    type_until(
        lambda: cli.terminal.text("!"),
        lambda: "Execute shell command" in cli.screen(),
        "shell mode",
    )
    emacs.eval(SUBMIT.format('"prompt 2 please"'))
    emacs.says("might run your text as a command")
    assert len(cli.model.requests) == request_count + 1
    type_until(
        lambda: cli.terminal.keys("Escape", "Escape"),
        lambda: "Execute shell command" not in cli.screen(),
        "shell mode left",
    )


def only_of(reviews: Reviews, waiting: Collection[str]) -> str:
    paths = reviews.paths()
    return paths[0] if len(paths) == 1 and paths[0] in waiting else ""


def is_written(emacs: Emacs, file: Path, text: str, edit: str = LAST) -> None:
    """Wait until ``file`` and its buffer have ``text``, that of the Lisp ``edit``."""
    eventually(lambda: file.read_bytes() == text.encode(), f"{file} has {text!r}")
    plain = text.replace("\r", "").lstrip("\ufeff")
    emacs.becomes(f"(with-current-buffer {lisp(file.name)} (buffer-string))", plain)
    emacs.becomes(f"(gemini-companion-edit-file-state {edit})", "written")
    assert not emacs.value(f"(buffer-modified-p (get-buffer {lisp(file.name)}))")


@pytest.mark.shared("copilot")
def test_two_copilots_and_a_gemini_have_their_own_reviews_until_the_mode_ends(
    world: World,
) -> None:
    _, emacs, reviews, one = pair(world)
    two, gemini = world.copilot(name="second"), world.gemini()
    emacs.becomes(SESSIONS, 3)
    files = [world.file(f"{name}.txt", "one\n") for name in "abc"]
    reviews.proposed(one, files[0], replace(files[0], "one", "uno"), say("one done"))
    # The CLIs must not lose the connection when a root is added.
    other = world.scratch.home / "other"
    other.joinpath(".git").mkdir(parents=True)
    emacs.eval(f"(progn (find-file-noselect {lisp(other / 'x.txt')}) nil)")
    (lock,) = world.home.glob(".copilot/ide/*.lock")
    eventually(lambda: str(other) in lock.read_text(), "the root is added")
    two.model.script(replace(files[1], "one", "due"), say("two done"))
    two.prompt()
    gemini.model.script(write_file(files[2], "tre\n"), say("gemini done"))
    gemini.prompt()
    reviews.wait_until(3)
    for _ in files:
        reviews.accept()
    for cli, said in ((one, "one done"), (two, "two done"), (gemini, "gemini done")):
        cli.wait_for(said)
    assert [file.read_text() for file in files] == ["uno\n", "due\n", "tre\n"]
    for cli in (one, two):
        assert "IDE connection lost" not in cli.screen()

    # One that is killed has no review.
    reviews.proposed(two, files[0], replace(files[0], "uno", "due"))
    os.kill(pid_of_shown(emacs), signal.SIGKILL)
    reviews.wait_until(0)
    emacs.becomes(SESSIONS, 2)
    assert files[0].read_text() == "uno\n"

    one.is_free()
    reviews.proposed(one, files[0], replace(files[0], "uno", "due"))
    emacs.eval("(gemini-companion-mode -1)")
    one.wait_for("rejected this tool call")
    emacs.turn_on()
    # No other test can follow in this world, where Gemini CLI is, too.
