# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user has undone, in the next prompt that is typed in the terminal."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from harness import copilot, pi
from harness.emacs import Emacs, Reviews, lisp
from harness.gemini import Gemini
from harness.model import Part, edit, read_file, replace, say
from harness.needs import needs_copilot, needs_pi, needs_qwen
from harness.wait import eventually
from harness.world import World
from test_rules import linked
from test_tools import link_pi, linked_qwen, unlink

from test_permissions import linked_copilot

ADDED = "The user has undone these changes of yours"
UNDO = """
(progn (require 'gemini-companion-undo)
       (e2e-undo-edits
        (list (cl-find {file} (gemini-companion-edits) :from-end t
                       :key #'gemini-companion-edit-file :test #'equal)))
       t)
"""
OVERVIEW = """
(progn (save-window-excursion (gemini-companion-list))
       (with-current-buffer "*gemini*" (substring-no-properties (buffer-string))))
"""
EXCLUDE = """
(progn (setq gemini-companion-excluded (cons {name} gemini-companion-excluded))
       (gemini-companion-privacy-refresh) t)
"""
PAUSE = "(progn (gemini-companion-pause) t)"


def added(cli: Gemini) -> list[str]:
    """Return what follows each report of what was undone, in the last request."""
    return json.dumps(cli.model.requests[-1]).split(ADDED)[1:]


def files_of(world: World, names: str) -> list[Path]:
    return [world.file(f"{name}.txt", "zero\none\n") for name in names]


def has_uno(file: Path) -> None:
    eventually(lambda: "uno" in file.read_text(), "the edit is written")


def is_undone(emacs: Emacs, file: Path) -> None:
    """Undo the edit of ``file``."""
    emacs.eval(UNDO.format(file=lisp(file)))
    eventually(lambda: "one" in file.read_text(), "the edit is undone")


def are_written(
    emacs: Emacs, cli: Gemini, files: Sequence[Path], turns: Sequence[Part]
) -> None:
    """Let ``cli`` write uno to ``files`` in one of its ``turns``; undo the first then.

    That is added to the result of the second edit, as soon as that is known.
    """
    reviews = Reviews(emacs)
    reviews.proposed(cli, files[0], *turns, say("all written"))
    for number, file in enumerate(files):
        reviews.shown(file.name)
        if number == 1:
            is_undone(emacs, files[0])
        reviews.accept()
        has_uno(file)
        if number == 1:
            eventually(lambda: added(cli), "it is added")
            (report,) = added(cli)
            assert f"{files[0].name}:2" in report
    cli.wait_for("all written")


def is_shown(emacs: Emacs) -> None:
    """Wait until Emacs shows that a change is to be reported."""
    eventually(
        lambda: "1 undone change to report" in emacs.value(OVERVIEW), "it is shown"
    )


def is_added_once(emacs: Emacs, cli: Gemini, file: Path) -> str:
    """Check that the next prompt says that the edit of ``file`` was undone.

    Those after it do not.  Return what it says.
    """
    before = len(added(cli))
    cli.is_free()
    *_, last = reports = added(cli)
    assert len(reports) == before + 1
    assert f"{file.name}:2" in last
    eventually(
        lambda: "undone changes reported" in emacs.value(OVERVIEW), "it is reported"
    )
    # It is in the conversation, and is not added again.
    cli.is_free()
    assert len(added(cli)) == before + 1
    return last


@pytest.mark.shared("yolo")
def test_what_was_undone_is_in_the_next_result_and_prompt(world: World) -> None:
    emacs, _, cli = linked(world, "default", "")
    files = files_of(world, "bcde")
    turns = [replace(file, "one", "uno") for file in files]
    are_written(emacs, cli, files, turns)
    _, file, excluded, other = files
    before = len(added(cli))
    emacs.eval(EXCLUDE.format(name=lisp(f"/{excluded.name}\\'")))
    for each in (file, excluded):
        is_undone(emacs, each)
    is_shown(emacs)
    emacs.eval(PAUSE)
    cli.is_free()
    assert len(added(cli)) == before
    emacs.eval(PAUSE)
    assert excluded.name not in is_added_once(emacs, cli, file)
    is_added_though_not_connected_again(world, emacs, cli, other)


def is_added_though_not_connected_again(
    world: World, emacs: Emacs, cli: Gemini, file: Path
) -> None:
    """Check what reaches the model if Emacs exits after an edit was undone."""
    before = len(added(cli))
    is_undone(emacs, file)
    emacs.quit()

    emacs = world.emacs(file)
    emacs.holds("(featurep 'gemini-companion-undone)")
    emacs.holds("(null (gemini-companion-sessions))")

    def is_added() -> bool:
        # A prompt is sent as it is while the new Emacs cannot answer yet.
        cli.is_free()
        return len(added(cli)) > before

    eventually(is_added, "it is added")
    cli.is_free()
    *_, last = reports = added(cli)
    assert len(reports) == before + 1
    assert f"{file.name}:2" in last
    # In a shared world, the next test has both.
    cli.enable()


@needs_qwen
@pytest.mark.shared("linked-qwen")
def test_what_was_undone_is_in_the_next_result_and_prompt_of_qwen(world: World) -> None:
    files = files_of(world, "ab")
    emacs, _, cli = linked_qwen(world, *files)
    turns = [
        part for file in files for part in (read_file(file), edit(file, "one", "uno"))
    ]
    are_written(emacs, cli, files, turns)
    is_undone(emacs, files[1])
    is_shown(emacs)
    is_added_once(emacs, cli, files[1])
    # Without the link, it goes on as if it had never been there.
    unlink(world, emacs)
    cli.is_free()
    assert "gemini-companion" not in cli.screen()
    world.end_cli()


@needs_copilot
@pytest.mark.shared("linked-copilot")
def test_what_was_undone_is_in_the_next_prompt_of_copilot(world: World) -> None:
    (file,) = files_of(world, "a")
    emacs, cli = linked_copilot(world, file)
    is_written(emacs, cli, file, copilot.replace(file, "one", "uno"))
    is_undone(emacs, file)
    is_shown(emacs)
    is_added_once(emacs, cli, file)


@needs_pi
@pytest.mark.shared("linked-pi")
@pytest.mark.contract("Pi: linked")
def test_what_was_undone_is_in_the_next_prompt_of_pi(world: World) -> None:
    (file,) = files_of(world, "a")
    emacs, _, cli = world.pi_pair(file)
    link_pi(world, emacs)
    is_written(emacs, cli, file, pi.replace(file, "one", "uno"))
    is_undone(emacs, file)
    is_shown(emacs)
    is_added_once(emacs, cli, file)


def is_written(emacs: Emacs, cli: Gemini, file: Path, turn: Part) -> None:
    """Let ``cli`` write uno to ``file`` by ``turn``, which is reviewed."""
    Reviews(emacs).accepted(cli, file, turn)
    has_uno(file)
