# SPDX-License-Identifier: GPL-3.0-or-later
"""The context that the model receives."""

import pytest
from harness.emacs import lisp
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
