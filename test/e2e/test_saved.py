# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left to review: there again in the next Emacs, and kept by a commit."""

import os
import signal

import pytest
from harness.emacs import Emacs
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


def test_changes_left_survive_a_kill_and_an_exit_of_emacs(world: World) -> None:
    files = [world.file(f"{name}.txt", OLD) for name in "abcdef"]
    emacs, _, cli = world.pair(files[0])
    emacs.command("gemini-companion-auto-accept", "without review?")
    turn = [part for file in files for part in (read_file(file), write_file(file, NEW))]
    cli.is_free(*turn)
    emacs.wait_for("~12")
    saved = world.home / ".emacs.d" / "gemini-companion" / "changes"

    def is_saved() -> bool:
        texts = [file.read_text() for file in saved.glob("[!.]*.eld")]
        return all(str(file) in "".join(texts) for file in files)

    eventually(is_saved, "they are saved")
    killed(emacs)

    emacs = world.emacs(files[0], name="second")
    emacs.wait_for("~12")
    emacs.wait_for_match(r"(?m)^zwei +[┇:]$")
    # How each was answered is known as well.
    emacs.command("gemini-companion-turn-page")
    emacs.wait_for_match(r"auto +\+\d+ \S\d+ +f\.txt")
    emacs.keys("q")
    emacs.command("gemini-companion-next-change")
    emacs.says("Change 1 of 12, a.txt")
    goes(emacs, "u", "Change 1 of 11, a.txt", 8)
    wait_until_saved(files[0], NEW.replace("zwei", "two"))
    emacs.quit()

    emacs = world.emacs(files[0], name="third")
    emacs.wait_for("~11")
    emacs.command("gemini-companion-forget")
    emacs.says("Deleted what was saved of")
    assert not list(saved.glob("[!.]*.eld"))


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


def test_commit_of_the_user_is_kept_though_emacs_is_killed(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    file = world.file("b.txt", OLD)
    git(world, "add", "-A")
    git(world, "commit", "-qm", "first")
    cli.is_free(read_file(file), write_file(file, NEW))
    emacs.holds("(eql 2 (gemini-companion-changes-left))")
    emacs.holds(QUIET)
    saved = world.home / ".emacs.d" / "gemini-companion" / "changes"
    eventually(lambda: any(saved.glob("*b.txt.eld")), "it is saved")
    git(world, "commit", "-qm", "mine", "b.txt")
    # No prompt and no tool follows.
    emacs.holds("(null (gemini-companion-changes-left))")
    eventually(lambda: not any(saved.glob("*b.txt.eld")), "it is saved")
    killed(emacs)
    emacs = world.emacs(file, name="second")
    emacs.holds("""(with-current-buffer "b.txt" gemini-companion-mode)""")
    assert emacs.value("(gemini-companion-changes-files t)") is None
