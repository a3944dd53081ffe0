# SPDX-License-Identifier: GPL-3.0-or-later
"""The real Qwen Code, beside Emacs or with a Gemini CLI, and its reviews."""

from __future__ import annotations

import json
from pathlib import Path

from harness.emacs import Emacs, Reviews
from harness.gemini import QUESTION
from harness.model import edit, read_file, say, write_file
from harness.qwen import Qwen
from harness.scratch import Scratch
from harness.wait import eventually
from harness.world import World

CLIENTS = """
(mapcar (lambda (session) (plist-get session :client))
        (gemini-companion-sessions))
"""


def _pair(world: World, *files: Path) -> tuple[Emacs, Reviews, Qwen]:
    world.scratch.home.joinpath(".qwen").mkdir()
    emacs = world.emacs(*files)
    qwen = world.qwen()
    _connected(emacs, "qwen")
    return emacs, Reviews(emacs), qwen


def _connected(emacs: Emacs, *clients: str) -> None:
    eventually(
        lambda: sorted(emacs.value(CLIENTS) or []) == sorted(clients),
        f"{clients} connected",
    )


def test_qwen_is_sent_the_context_and_its_edit_is_accepted_with_changes(
    world: World, scratch: Scratch
) -> None:
    file = scratch.file("a.txt", "one\ntwo\nthree\n")
    _, reviews, qwen = _pair(world, file)
    assert str(file) in qwen.editor_context()

    reviews.proposed(
        qwen, file, read_file(file), edit(file, "two", "zwei"), say("all done")
    )
    reviews.edit("zwei", "deux")
    reviews.accept()

    qwen.wait_for("all done")
    assert file.read_text() == "one\ndeux\nthree\n"


def test_rejecting_an_edit_of_qwen_leaves_the_file(
    world: World, scratch: Scratch
) -> None:
    file = scratch.file("a.txt", "one\n")
    _, reviews, qwen = _pair(world, file)
    reviews.proposed(qwen, file, read_file(file), write_file(file, "uno\n"))

    reviews.reject()

    reviews.wait_until(0)
    eventually(lambda: QUESTION not in qwen.screen(), "the question is closed")
    assert file.read_text() == "one\n"


def test_both_clis_have_reviews_of_their_own(world: World, scratch: Scratch) -> None:
    one = scratch.file("one.txt", "one\n")
    two = scratch.file("two.txt", "two\n")
    emacs, reviews, qwen = _pair(world, one, two)
    gemini = world.gemini()
    _connected(emacs, "gemini", "qwen")

    qwen.model.script(read_file(one), write_file(one, "uno\n"), say("qwen done"))
    gemini.model.script(write_file(two, "due\n"), say("gemini done"))
    qwen.prompt()
    gemini.prompt()
    reviews.wait_until(2)
    for _ in range(2):
        emacs.eval("(gemini-companion-diff-accept (car (gemini-companion-diffs)))")

    qwen.wait_for("qwen done")
    gemini.wait_for("gemini done")
    assert (one.read_text(), two.read_text()) == ("uno\n", "due\n")


def test_qwen_connects_from_a_root_with_a_colon(world: World, scratch: Scratch) -> None:
    file = scratch.file("a:b/a.txt", "one\n")
    scratch.home.joinpath(".qwen").mkdir()
    emacs = world.emacs(file)
    world.qwen(directory=file.parent)
    _connected(emacs, "qwen")


def test_no_directory_is_made_for_qwen_and_the_file_appears_with_it(
    world: World, scratch: Scratch
) -> None:
    home = scratch.home / ".qwen"
    world.emacs(scratch.file("a.txt"))
    assert not home.exists()

    home.mkdir()

    eventually(lambda: list(home.glob("ide/*.lock")), "a discovery file for Qwen Code")


def test_a_stale_lock_of_a_dead_emacs_is_swept(world: World, scratch: Scratch) -> None:
    directory = scratch.home / ".qwen" / "ide"
    directory.mkdir(parents=True)
    stale = directory / "1.lock"
    stale.write_text(json.dumps({"ppid": 2**22 - 1, "ideInfo": {"name": "emacs"}}))
    other = directory / "2.lock"
    other.write_text(json.dumps({"ppid": 2**22 - 1, "ideInfo": {"name": "vscode"}}))

    world.emacs(scratch.file("a.txt"))

    eventually(lambda: not stale.exists(), "the stale file is removed")
    assert other.exists()
    other.unlink()
