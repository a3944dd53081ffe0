# SPDX-License-Identifier: GPL-3.0-or-later
"""The draft of a commit message, from what the user has asked for."""

import subprocess
from itertools import product
from pathlib import Path

import pytest
from harness.emacs import Emacs, lisp
from harness.model import read_file, write_file
from harness.wait import eventually
from harness.world import World
from test_rules import linked
from test_turn_page import asks_again

WHO = ("AUTHOR", "COMMITTER")
NAMED = {"NAME": "a", "EMAIL": "a@b"}
GIT = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
ASSISTED = "Assisted-by: Gemini CLI "
QUIET = """(with-current-buffer " *gemini-companion output*"
             (save-excursion
               (goto-char (point-max))
               (search-backward "edited:")
               (search-forward "nothing is written any more" nil t)))"""


def message(project: Path) -> str:
    """Return the message of the last commit."""
    run = [*GIT, "log", "-1", "--format=%B"]
    return subprocess.run(
        run, cwd=project, check=True, capture_output=True, text=True
    ).stdout.strip()


def draft(emacs: Emacs) -> None:
    emacs.command("gemini-companion-commit-message")
    emacs.says("check it before you commit")


@pytest.mark.shared("yolo")
@pytest.mark.differs("VC and Log Edit")
def test_commit_message_is_drafted_from_the_prompts(world: World) -> None:
    project = world.scratch.project
    emacs, _, cli = linked(world, "default", "")
    files = [world.file(name, "one\ntwo\nthree\n") for name in ("b.txt", "c.txt")]
    subprocess.run([*GIT, "add", "."], cwd=project, check=True)
    subprocess.run([*GIT, "commit", "-qm", "first"], cwd=project, check=True)
    for who, (name, value) in product(WHO, NAMED.items()):
        emacs.eval(f'(setenv "GIT_{who}_{name}" "{value}")')
    emacs.eval(f"(progn (find-file {lisp(files[0])}) nil)")
    emacs.command("gemini-companion-auto-accept", "without review?")
    for file in files:
        cli.is_free(read_file(file), write_file(file, "uno\ntwo\ntres\n"))
    emacs.becomes("(gemini-companion-changes-left)", 4)
    emacs.command("gemini-companion-next-change")
    emacs.says("Change 1 of 4, b.txt")
    emacs.keys("l")
    emacs.says("Later; Change 2 of 4, b.txt")

    # By VC: the file that is selected.
    emacs.keys("C-x", "v", "v")
    emacs.becomes("(buffer-name (window-buffer))", "*vc-log*")
    draft(emacs)
    emacs.keys("C-c", "C-c")
    eventually(
        lambda: message(project).startswith(f"prompt 1 please\n\n{ASSISTED}"),
        "VC has committed",
    )
    # What is marked later stays, although it is committed.
    emacs.becomes("(gemini-companion-changes-left)", 3)
    emacs.command("gemini-companion-previous-change")
    emacs.says("Change 1 of 3, b.txt")
    emacs.wait_for(", later ")

    # By git, which asks this Emacs for the message of all that has changed.
    cli.is_free(read_file(files[0]), write_file(files[0], "uno\ndos\ntres\n"))
    socket = world.scratch.run / "editor"
    emacs.eval(
        f"(progn (require 'server) (setq server-socket-dir {lisp(socket.parent)}"
        f" server-name {lisp(socket.name)}) (server-start) t)"
    )
    editor = f"{world.tools.emacsclient} -s {socket}"
    # Until then, a hook of the CLI may still commit.
    emacs.holds(QUIET)
    with subprocess.Popen(
        [*GIT, "commit", "-qa"],
        cwd=project,
        env={**world.scratch.environment, "GIT_EDITOR": editor},
        stdout=subprocess.DEVNULL,
    ) as git:
        emacs.becomes("(buffer-name (window-buffer))", "COMMIT_EDITMSG")
        draft(emacs)
        emacs.keys("C-x", "C-s", "C-x", "#")
        assert git.wait(120) == 0
    assert message(project).startswith(
        f"- prompt 2 please\n- prompt 3 please\n\n{ASSISTED}"
    )
    # The commit is the user's, so it keeps all but what is marked later.
    emacs.becomes("(gemini-companion-changes-left)", 1)
    asks_again(emacs)
