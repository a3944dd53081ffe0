# SPDX-License-Identifier: GPL-3.0-or-later
"""What real CLIs do by git: colleagues' lines are not theirs, the user's come back."""

import shutil
from pathlib import Path

import pytest
from harness.emacs import lisp
from harness.wait import eventually
from harness.world import World
from test_rules import begin_yolo, linked
from test_shell import edits, git, has, shell_of_gemini, undo_turn
from test_tools import link

PULL = "git -c user.name=a -c user.email=a@b pull -q --no-edit"
LINES = "".join(f"{number}\n" for number in range(9))
TAKES = ("git stash -u", "git checkout -- .", "git reset --hard; git clean -fd")


def repository(world: World) -> None:
    """Commit files of nine lines."""
    for name in "bcd":
        world.file(f"{name}.txt", LINES)
    git(world, "add", "-A")
    git(world, "commit", "-qm", "x")


def by_colleague(world: World, name: str) -> Path:
    """Clone the project as ``name``, where a colleague commits; return the clone."""
    clone = world.scratch.root / name
    git(world, "clone", "-q", ".", str(clone))
    (clone / "d.txt").write_text(LINES + "theirs\n")
    (clone / "theirs.txt").write_text("theirs\n")
    git(world, "-C", str(clone), "add", "-A")
    git(world, "-C", str(clone), "commit", "-qm", "theirs")
    return clone


@pytest.mark.shared("yolo")
@pytest.mark.contract("Gemini CLI: what a pull brings")
@pytest.mark.parametrize("option", ["--no-rebase", "--rebase"])
def test_what_a_pull_brings_is_of_no_cli(world: World, option: str) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    repository(world)
    clone = by_colleague(world, f"clone{option}")
    world.file("mine.txt", "mine\n")
    git(world, "add", "-A")
    git(world, "commit", "-qm", "mine")
    cli.is_free(
        shell_of_gemini(f"{PULL} {option} {clone} HEAD"),
        shell_of_gemini("echo cli >>b.txt"),
    )
    eventually((world.project / "theirs.txt").exists, "pulled")
    eventually(lambda: edits(emacs) == ["b.txt: echo cli >>b.txt"], "recorded")
    emacs.says("2 files changed by git to another commit")
    emacs.command("gemini-companion-turn-page")
    emacs.wait_for("b.txt")
    emacs.eval(
        """(progn (require 'gemini-companion-undo)
                  (e2e-undo-edits (gemini-companion-edits)) nil)"""
    )
    has(world.project / "b.txt", LINES.encode())
    assert (world.project / "theirs.txt").exists()


@pytest.mark.shared("yolo")
@pytest.mark.contract("Gemini CLI: lines of the user that were never committed")
@pytest.mark.parametrize("command", TAKES)
def test_lines_of_the_user_come_back_by_one_key(world: World, command: str) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    repository(world)
    mine = {
        "d.txt": "mine\n" + LINES + "and mine\n",
        "b.txt": LINES[:4] + "mine" + LINES[5:],
    }
    if "checkout" not in command:
        mine["new.txt"] = "new\nand mine\n"
    for name, text in mine.items():
        world.file(name, text)
    emacs.eval(f"(progn (find-file {lisp(world.project / 'd.txt')}) nil)")
    more = "echo cli >>c.txt; echo cli >cli.txt"
    cli.is_free(shell_of_gemini(command), shell_of_gemini(more))
    for name in mine:
        eventually(lambda: f"{name}: {command}" in edits(emacs), name)  # noqa: B023
    eventually(lambda: f"cli.txt: {more}" in edits(emacs), "recorded")
    assert (world.project / "d.txt").read_text() == LINES
    emacs.command("gemini-companion-turn-page")
    emacs.wait_for("that were never committed")
    emacs.holds(
        """(with-current-buffer "*gemini*"
             (goto-char (point-min))
             (when (re-search-forward "takes [0-9]+ lines" nil t)
               (set-window-point (get-buffer-window) (line-beginning-position))
               t))"""
    )
    emacs.keys("u")
    emacs.wait_for("back: ")
    for name, text in mine.items():
        has(world.project / name, text.encode())
    emacs.holds(
        f"""(equal {lisp(mine["d.txt"])}
                   (with-current-buffer "d.txt" (buffer-string)))"""
    )
    # Those alone.
    assert (world.project / "c.txt").read_text() == LINES + "cli\n"
    assert (world.project / "cli.txt").exists()


@pytest.mark.contract("Gemini CLI: repositories inside a project")
def test_repositories_in_a_plain_directory_with_another_git_dir(world: World) -> None:
    shutil.rmtree(world.project / ".git")
    for name in "one", "two":
        world.file(f"{name}/x.txt", LINES)
        git(world, "-C", name, "init", "-q")
        git(world, "-C", name, "add", "-A")
        git(world, "-C", name, "commit", "-qm", "x")
    other = world.scratch.root / "other"
    git(world, "init", "-q", str(other))
    # As in an Emacs that was started by a hook of git.
    environment = f"""(setenv "GIT_DIR" {lisp(other / ".git")})
                      (setenv "GIT_WORK_TREE" {lisp(other)})"""
    emacs = world.emacs(world.file("a.txt", "a\n"), extra=environment)
    link(world, emacs)
    cli = world.gemini()
    begin_yolo(cli)
    command = "for d in . one two; do echo cli >>$d/x.txt; done"
    cli.is_free(shell_of_gemini(command))
    names = ["one/x.txt", "two/x.txt", "x.txt"]
    expected = [f"{name}: {command}" for name in names]
    eventually(lambda: edits(emacs) == expected, "recorded")
    undo_turn(emacs, "Undid 3 edits")
    for name in names[:2]:
        has(world.project / name, LINES.encode())
    eventually(
        lambda: not (world.project / "x.txt").exists(), "the new file is deleted"
    )


@pytest.mark.shared("yolo")
@pytest.mark.contract("Gemini CLI: snapshots that a cleaner deletes")
def test_snapshots_that_a_cleaner_deletes_begin_anew(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    repository(world)
    cli.is_free(shell_of_gemini("echo 1 >>b.txt"))
    eventually(lambda: edits(emacs) == ["b.txt: echo 1 >>b.txt"], "recorded")
    deletes = f"rm -r {world.scratch.tmp}/gemini-companion-*/*; echo 2 >>c.txt"
    cli.is_free(shell_of_gemini(deletes))
    emacs.says("files it wrote are not recorded: its snapshots were deleted")
    emacs.says("written since: c.txt")
    cli.is_free(shell_of_gemini("echo 3 >>d.txt"))
    eventually(lambda: "d.txt: echo 3 >>d.txt" in edits(emacs), "recorded again")
    # It is over.
    emacs.becomes("(gemini-companion-part-findings 'shell nil)", None)
