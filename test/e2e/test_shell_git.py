# SPDX-License-Identifier: GPL-3.0-or-later
"""What real CLIs do by git: colleagues' lines are not theirs, the user's come back."""

from pathlib import Path

import pytest
from harness.emacs import lisp
from harness.wait import eventually
from harness.world import World
from test_rules import linked
from test_shell import edits, git, has, shell_of_gemini

PULL = "git -c user.name=a -c user.email=a@b pull -q --no-edit"
LINES = "".join(f"{number}\n" for number in range(9))
TAKES = ("git stash -u", "git checkout -- .", "git reset --hard; git clean -fd")


def repository(world: World) -> None:
    """Commit files of nine lines."""
    for name in "bcd":
        world.file(f"{name}.txt", LINES)
    git(world, "add", "-A")
    git(world, "commit", "-qm", "x")


def by_colleague(world: World) -> Path:
    """Clone the project, where a colleague commits, and return the clone."""
    clone = world.scratch.root / "clone"
    git(world, "clone", "-q", ".", str(clone))
    (clone / "d.txt").write_text(LINES + "theirs\n")
    (clone / "theirs.txt").write_text("theirs\n")
    git(world, "-C", str(clone), "add", "-A")
    git(world, "-C", str(clone), "commit", "-qm", "theirs")
    return clone


@pytest.mark.contract("Gemini CLI: what a pull brings")
@pytest.mark.parametrize("option", ["--no-rebase", "--rebase"])
def test_what_a_pull_brings_is_of_no_cli(world: World, option: str) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    repository(world)
    clone = by_colleague(world)
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
                  (gemini-companion-undo-edits (gemini-companion-edits)) nil)"""
    )
    has(world.project / "b.txt", LINES.encode())
    assert (world.project / "theirs.txt").exists()


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
