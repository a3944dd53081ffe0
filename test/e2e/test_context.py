# SPDX-License-Identifier: GPL-3.0-or-later
"""The context that the model receives."""

import pytest
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
