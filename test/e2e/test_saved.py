# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left to review: there again in the next Emacs, and kept by a commit."""

import os
import signal

import pytest
from harness.emacs import Emacs, lisp
from harness.model import call, read_file, write_file
from harness.wait import eventually, wait_until_saved
from harness.world import World
from test_changes import NEW, OLD, goes
from test_commit import QUIET
from test_rules import linked
from test_shell import git


def killed(emacs: Emacs) -> None:
    os.kill(emacs.value("(emacs-pid)"), signal.SIGKILL)
    emacs.wait_until_exited()


@pytest.mark.shared("yolo")
def test_changes_left_and_a_commit_survive_a_kill_and_an_exit_of_emacs(
    world: World,
) -> None:
    emacs, _, cli = linked(world, "default", "")
    files = [world.file(f"{name}.txt", OLD) for name in "bcdefgh"]
    git(world, "add", "-A")
    git(world, "commit", "-qm", "first")
    emacs.eval(f"(progn (find-file {lisp(files[0])}) nil)")
    emacs.command("gemini-companion-auto-accept", "without review?")
    turn = [part for file in files for part in (read_file(file), write_file(file, NEW))]
    cli.is_free(*turn)
    emacs.wait_for("~14")
    saved = world.home / ".emacs.d" / "gemini-companion" / "changes"

    def is_saved() -> bool:
        texts = [file.read_text() for file in saved.glob("[!.]*.eld")]
        return all(str(file) in "".join(texts) for file in files)

    eventually(is_saved, "they are saved")
    emacs.holds(QUIET)
    git(world, "commit", "-qm", "mine", "h.txt")
    # No prompt and no tool follows.
    emacs.wait_for("~12")
    eventually(lambda: not any(saved.glob("*h.txt.eld")), "it is saved")
    killed(emacs)

    emacs = world.emacs(files[0])
    emacs.wait_for("~12")
    emacs.wait_for_match(r"(?m)^zwei +[┇:]$")
    emacs.becomes(
        """(sort (mapcar (lambda (record)
                           (file-name-base (gemini-companion-changes-path record)))
                         (gemini-companion-changes-files t))
                 #'string<)""",
        list("bcdefg"),
    )
    # How each was answered is known as well.
    emacs.command("gemini-companion-turn-page")
    emacs.wait_for_match(r"auto +\+\d+ \S\d+ +g\.txt")
    emacs.keys("q")
    emacs.command("gemini-companion-next-change")
    emacs.says("Change 1 of 12, b.txt")
    goes(emacs, "u", "Change 1 of 11, b.txt", 8)
    wait_until_saved(files[0], NEW.replace("zwei", "two"))
    emacs.quit()

    emacs = world.emacs(files[0])
    emacs.wait_for("~11")
    emacs.command("gemini-companion-forget")
    emacs.says("Deleted what was saved of")
    assert not list(saved.glob("[!.]*.eld"))
    # In a shared world, the next test has both.
    cli.enable()


@pytest.mark.shared("yolo")
def test_commit_of_the_user_is_a_review_and_one_of_the_cli_is_none(
    world: World,
) -> None:
    def commit(name: str) -> str:
        identity = "-c user.name=a -c user.email=a@b"
        return f"git {identity} commit -qm {name} {name}"

    emacs, _, cli = linked(world, "yolo", "")
    for name in ("b.txt", "c.txt"):
        world.file(name, OLD)
    git(world, "add", "-A")
    git(world, "commit", "-qm", "first")
    files = [world.project / name for name in ("b.txt", "c.txt")]
    turn = [part for file in files for part in (read_file(file), write_file(file, NEW))]
    # The CLI commits one of the files.
    shell = call("run_shell_command", command=commit("b.txt"), description="Do it")
    cli.is_free(*turn, shell)
    emacs.holds("(eql 4 (gemini-companion-changes-left))")
    # Until then, a command may still commit.
    emacs.holds(QUIET)
    git(world, "commit", "-qm", "mine", "c.txt")
    cli.is_free()
    emacs.becomes("(gemini-companion-changes-left)", 2)
    emacs.holds(
        """(equal '("b.txt") (mapcar (lambda (record)
                                     (file-name-nondirectory
                                      (gemini-companion-changes-path record)))
                                   (gemini-companion-changes-files)))"""
    )
