# SPDX-License-Identifier: GPL-3.0-or-later
"""The context that the model receives."""

import pytest
from harness.emacs import lisp
from harness.wait import eventually
from harness.world import World

pytestmark = [pytest.mark.shared("context"), pytest.mark.once]

SELECTED = """
(with-current-buffer (window-buffer)
  (and (region-active-p)
       (equal "%s" (buffer-substring (region-beginning) (region-end)))))
"""


@pytest.mark.fresh
def test_first_prompt_has_cursor_selection_and_files(world: World) -> None:
    other = world.file("other.txt", "x\n")
    file = world.file("größe 大小.txt", "first\na😀b naïve 日本 end\nlast\n")
    emacs = world.emacs(other, file)
    emacs.keys("M-<", "C-n", "C-f", "C-f", "C-Space", "C-e")
    emacs.holds(SELECTED % "b naïve 日本 end")
    cli = world.gemini()

    assert cli.context() == {
        "activeFile": {
            "path": str(file),
            "cursor": {"line": 2, "character": 18},
            "selectedText": "b naïve 日本 end",
        },
        "otherOpenFiles": [str(other)],
    }


def test_changes_by_lisp_alone_are_shared(world: World) -> None:
    one, two = world.file("one.txt", "1\n2\n3\n"), world.file("two.txt", "4\n5\n")
    emacs, _, cli = world.pair(one)
    assert cli.context()["activeFile"]["path"] == str(one)

    emacs.act("(progn (goto-char (point-min)) (forward-line 2))")
    assert cli.context()["activeFile"]["cursor"] == {"line": 3, "character": 1}

    emacs.act("(progn (goto-char (point-min)) (push-mark (+ 3 (point)) t t))")
    assert cli.context()["activeFile"]["selectedText"] == "1\n2"

    emacs.act(f'(find-file "{two}")')
    context = cli.context()
    assert context["activeFile"]["path"] == str(two)
    assert context["otherOpenFiles"] == [str(one)]


def test_renamed_deleted_and_killed_files_are_shared(world: World) -> None:
    one, two, three = (world.file(f"{name}.txt", "1\n") for name in ("1", "2", "3"))
    renamed = world.project / "renamed.txt"
    emacs, _, cli = world.pair(one, two, three)
    assert cli.context()["otherOpenFiles"] == [str(two), str(one)]

    emacs.act('(kill-buffer "1.txt")')
    assert cli.context()["otherOpenFiles"] == [str(two)]

    emacs.act(f'(write-file "{renamed}")')
    assert cli.context()["activeFile"]["path"] == str(renamed)

    # No hook runs when a file is deleted; the next context does without it.
    two.unlink()
    emacs.act("(forward-char)")
    eventually(lambda: "otherOpenFiles" not in cli.context(), "the file is dropped")


@pytest.mark.shared("inside")
def test_terminal_in_emacs_keeps_file_and_selection(world: World) -> None:
    file = world.file("a.txt", "one two three\n")
    emacs, _, cli = world.pair_inside(file)
    emacs.eval(f"(progn (switch-to-buffer {lisp(file.name)}) nil)")
    emacs.keys("M-<", "C-Space", "M-f")
    emacs.holds(SELECTED % "one")
    emacs.eval('(progn (switch-to-buffer "*terminal*") nil)')

    assert cli.context()["activeFile"] == {
        "path": str(file),
        "cursor": {"line": 1, "character": 4},
        "selectedText": "one",
    }
