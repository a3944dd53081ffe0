# SPDX-License-Identifier: GPL-3.0-or-later
"""What the user has undone, in the next prompt that is typed in the terminal."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from harness import copilot, pi
from harness.emacs import Emacs, Reviews, lisp
from harness.gemini import Gemini
from harness.model import Part, edit, read_file, replace
from harness.needs import needs_copilot, needs_pi, needs_qwen
from harness.wait import eventually
from harness.world import World
from test_tools import link, link_pi, linked_qwen, unlink

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


def is_added_once(
    emacs: Emacs, cli: Gemini, files: Sequence[Path], turns: Sequence[Sequence[Part]]
) -> None:
    """Check what reaches the model after its edits of two ``files`` were undone.

    In them, the ``turns`` of the model replace one by uno; the second is excluded.
    """
    reviews = Reviews(emacs)
    for file, parts in zip(files, turns, strict=True):
        reviews.accepted(cli, file, *parts)
        eventually(lambda file=file: "uno" in file.read_text(), "the edit is written")
    before = len(added(cli))
    emacs.eval(EXCLUDE.format(name=lisp(f"/{files[1].name}\\'")))
    for file in files:
        emacs.eval(UNDO.format(file=lisp(file)))
        eventually(lambda file=file: "one" in file.read_text(), "the edit is undone")
    eventually(
        lambda: "1 undone change to report" in emacs.value(OVERVIEW), "it is shown"
    )
    emacs.eval(PAUSE)
    cli.is_free()
    assert len(added(cli)) == before
    emacs.eval(PAUSE)
    cli.is_free()
    *_, last = reports = added(cli)
    assert len(reports) == before + 1
    assert f"{files[0].name}:2\\n  one" in last
    assert files[1].name not in last
    eventually(lambda: "undone reported" in emacs.value(OVERVIEW), "it is reported")
    # It is in the conversation, and is not added again.
    cli.is_free()
    assert len(added(cli)) == before + 1


def files_of(world: World, *names: str) -> list[Path]:
    return [world.file(name, "zero\none\n") for name in names or ("a.txt", "b.txt")]


def is_added_to_a_result(
    emacs: Emacs, cli: Gemini, files: Sequence[Path], turns: Sequence[Sequence[Part]]
) -> None:
    """Check what reaches the model if its first edit is undone in its turn.

    In that, it edits ``files`` by the parts in ``turns``.
    """
    reviews = Reviews(emacs)
    reviews.proposed(cli, files[0], *(part for parts in turns for part in parts))
    reviews.accept()
    eventually(lambda: "uno" in files[0].read_text(), "the edit is written")
    reviews.shown("b.txt")
    emacs.eval(UNDO.format(file=lisp(files[0])))
    eventually(lambda: "one" in files[0].read_text(), "the edit is undone")
    reviews.accept()
    eventually(lambda: "uno" in files[1].read_text(), "the second edit is written")
    eventually(lambda: added(cli), "it is added")
    (report,) = added(cli)
    assert "a.txt:2\\n  one" in report


NAMES = ("a.txt", "b.txt", "c.txt", "d.txt")


def test_what_was_undone_is_in_the_next_result_and_prompt(world: World) -> None:
    files = files_of(world, *NAMES)
    emacs = world.emacs(*files)
    link(world, emacs, "gemini")
    cli = world.gemini()
    is_added_to_both(emacs, cli, files, replace)
    is_added_though_not_connected_again(world, emacs, cli)


@needs_qwen
@pytest.mark.shared("linked-qwen")
def test_what_was_undone_is_in_the_next_result_and_prompt_of_qwen(world: World) -> None:
    files = files_of(world, *NAMES)
    emacs, _, cli = linked_qwen(world, *files)
    is_added_to_both(emacs, cli, files, edit)
    # Without the link, it goes on as if it had never been there.
    unlink(world, emacs)
    cli.is_free()
    assert "gemini-companion" not in cli.screen()


def is_added_to_both(
    emacs: Emacs,
    cli: Gemini,
    files: Sequence[Path],
    replaced: Callable[[Path, str, str], Part],
) -> None:
    """Check what reaches the model in a result, and then in a prompt."""
    turns = [[read_file(file), replaced(file, "one", "uno")] for file in files]
    is_added_to_a_result(emacs, cli, files[:2], turns[:2])
    is_added_once(emacs, cli, files[2:], turns[2:])


def is_added_though_not_connected_again(
    world: World, emacs: Emacs, cli: Gemini
) -> None:
    """Check what reaches the model if Emacs exits after an edit was undone."""
    cli.reset()
    (file,) = files_of(world, "e.txt")
    reviews = Reviews(emacs)
    reviews.accepted(cli, file, read_file(file), replace(file, "one", "uno"))
    eventually(lambda: "uno" in file.read_text(), "the edit is written")
    emacs.eval(UNDO.format(file=lisp(file)))
    eventually(lambda: "one" in file.read_text(), "the edit is undone")
    emacs.quit()

    emacs = world.emacs(file, name="second")
    emacs.holds("(featurep 'gemini-companion-undone)")
    emacs.holds("(null (gemini-companion-sessions))")

    def is_added() -> bool:
        # A prompt is sent as it is while the new Emacs cannot answer yet.
        cli.is_free()
        return bool(added(cli))

    eventually(is_added, "it is added")
    cli.is_free()
    (report,) = added(cli)
    assert "e.txt:2\\n  one" in report


@needs_copilot
@pytest.mark.shared("linked-copilot")
def test_what_was_undone_is_in_the_next_prompt_of_copilot(world: World) -> None:
    files = files_of(world)
    emacs, cli = linked_copilot(world, *files)
    turns = [[copilot.replace(file, "one", "uno")] for file in files]
    is_added_once(emacs, cli, files, turns)


@needs_pi
@pytest.mark.contract("Pi: linked")
@pytest.mark.shared("linked-pi")
def test_what_was_undone_is_in_the_next_prompt_of_pi(world: World) -> None:
    files = files_of(world)
    emacs, _, cli = world.pi_pair(*files)
    link_pi(world, emacs)
    is_added_once(emacs, cli, files, [[pi.replace(f, "one", "uno")] for f in files])
