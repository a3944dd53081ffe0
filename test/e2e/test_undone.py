# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user has undone, in the next prompt that is typed in the terminal."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from harness import copilot, pi
from harness.emacs import Emacs, Reviews, lisp
from harness.gemini import Gemini
from harness.model import Part, edit, read_file, replace
from harness.needs import needs_copilot, needs_pi, needs_qwen
from harness.wait import eventually
from harness.world import World
from test_tools import link

from test_permissions import link_copilot

ADDED = "The user has undone these changes of yours"
UNDO = """
(progn (require 'gemini-companion-undo)
       (gemini-companion-undo-edit
        (cl-find {file} (gemini-companion-edits) :from-end t
                 :key #'gemini-companion-edit-file :test #'equal))
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


def is_added_once(
    world: World, emacs: Emacs, cli: Gemini, turns: Sequence[Sequence[Part]]
) -> None:
    """Check what reaches the model after its edits of two files were undone.

    In them, the ``turns`` of the model replace one by uno; the second is excluded.
    """
    reviews = Reviews(emacs)
    files = world.project / "a.txt", world.project / "b.txt"
    for file, parts in zip(files, turns, strict=True):
        reviews.accepted(cli, file, *parts)
        eventually(lambda file=file: "uno" in file.read_text(), "the edit is written")
    emacs.eval(EXCLUDE.format(name=lisp("/b\\.txt\\'")))
    for file in files:
        emacs.eval(UNDO.format(file=lisp(file)))
        eventually(lambda file=file: "one" in file.read_text(), "the edit is undone")
    eventually(lambda: "1 undone to report" in emacs.value(OVERVIEW), "it is shown")
    emacs.eval(PAUSE)
    cli.is_free()
    assert ADDED not in json.dumps(cli.model.requests[-1])
    emacs.eval(PAUSE)
    cli.is_free()
    request = json.dumps(cli.model.requests[-1])
    assert request.count(ADDED) == 1
    added = request[request.index(ADDED) :]
    assert "a.txt:2\\n  one" in added
    assert "b.txt" not in added
    eventually(lambda: "undone reported" in emacs.value(OVERVIEW), "it is reported")
    # It is in the conversation, and is not added again.
    cli.is_free()
    assert json.dumps(cli.model.requests[-1]).count(ADDED) == 1


def files_of(world: World) -> tuple[Path, Path]:
    return world.file("a.txt", "zero\none\n"), world.file("b.txt", "zero\none\n")


def test_what_was_undone_is_in_the_next_prompt_of_gemini(world: World) -> None:
    files = files_of(world)
    emacs = world.emacs(*files)
    link(world, emacs)
    cli = world.gemini()
    is_added_once(world, emacs, cli, [[replace(f, "one", "uno")] for f in files])


def is_added_to_a_result(emacs: Emacs, cli: Gemini, files: tuple[Path, Path]) -> None:
    """Check what reaches the model if its first edit is undone in its turn."""
    reviews = Reviews(emacs)
    parts = [part for f in files for part in (read_file(f), replace(f, "one", "uno"))]
    reviews.proposed(cli, files[0], *parts)
    reviews.accept()
    eventually(lambda: "uno" in files[0].read_text(), "the edit is written")
    reviews.shown("b.txt")
    emacs.eval(UNDO.format(file=lisp(files[0])))
    eventually(lambda: "one" in files[0].read_text(), "the edit is undone")
    reviews.accept()
    eventually(lambda: "uno" in files[1].read_text(), "the second edit is written")
    eventually(lambda: ADDED in json.dumps(cli.model.requests[-1]), "it is added")
    request = json.dumps(cli.model.requests[-1])
    assert request.count(ADDED) == 1
    assert "a.txt:2\\n  one" in request[request.index(ADDED) :]


def test_what_was_undone_is_in_the_next_result_of_gemini(world: World) -> None:
    files = files_of(world)
    emacs = world.emacs(*files)
    link(world, emacs)
    is_added_to_a_result(emacs, world.gemini(), files)


@needs_qwen
def test_what_was_undone_is_in_the_next_result_of_qwen(world: World) -> None:
    files = files_of(world)
    world.home.joinpath(".qwen").mkdir()
    emacs = world.emacs(*files)
    link(world, emacs)
    is_added_to_a_result(emacs, world.qwen(), files)


@needs_qwen
def test_what_was_undone_is_in_the_next_prompt_of_qwen(world: World) -> None:
    files = files_of(world)
    world.home.joinpath(".qwen").mkdir()
    emacs = world.emacs(*files)
    link(world, emacs)
    cli = world.qwen()
    turns = [[read_file(file), edit(file, "one", "uno")] for file in files]
    is_added_once(world, emacs, cli, turns)


@needs_copilot
def test_what_was_undone_is_in_the_next_prompt_of_copilot(world: World) -> None:
    files = files_of(world)
    copilot.configure(world.scratch)
    emacs = world.emacs(*files)
    link_copilot(world, emacs)
    cli = world.copilot()
    emacs.becomes("(length (gemini-companion-sessions))", 1)
    turns = [[copilot.replace(file, "one", "uno")] for file in files]
    is_added_once(world, emacs, cli, turns)


@needs_pi
@pytest.mark.contract("Pi: linked")
def test_what_was_undone_is_in_the_next_prompt_of_pi(world: World) -> None:
    files = files_of(world)
    emacs = world.emacs(*files)
    cli = world.pi()
    emacs.eval(
        '(setq gemini-companion-run-commands \'(("gemini" . "none") ("pi" . '
        f"{lisp(world.tools.pi)})))"
    )
    emacs.command("gemini-companion-tools", "a linked CLI")
    emacs.keys("e", "s", "Enter")
    emacs.says("Linked Pi")
    is_added_once(world, emacs, cli, [[pi.replace(f, "one", "uno")] for f in files])
