# SPDX-License-Identifier: GPL-3.0-or-later
"""What is shared of frames and selections, and what the model receives of it."""

import pytest
from harness.emacs import Emacs
from harness.world import World

SNAPSHOT = """
(vconcat (mapcar (lambda (file)
                   (vector (if (plist-get file :active) "active" "open")
                           (file-name-nondirectory (plist-get file :path))))
                 (gemini-companion-context-snapshot)))"""


def shares(emacs: Emacs, active: str, other: str) -> None:
    emacs.becomes(SNAPSHOT, [["active", active], ["open", other]])


@pytest.mark.shared
def test_the_frame_used_last_counts(world: World) -> None:
    one, two = world.file("one.txt", "1\n"), world.file("two.txt", "2\n")
    emacs = world.emacs(one)
    visit = f'(find-file "{two}")'
    client = [world.tools.emacsclient, "-s", "emacs", "-nw", "--eval", visit]
    other = world.tmux.start("other", client, two.parent, {}, (80, 24))
    shares(emacs, "two.txt", "one.txt")

    emacs.keys("C-f")
    shares(emacs, "one.txt", "two.txt")
    other.keys("C-f")
    shares(emacs, "two.txt", "one.txt")
    other.keys("M-x")
    other.wait_for("M-x")
    shares(emacs, "two.txt", "one.txt")
    other.keys("C-g")
    other.wait_for("Quit")
    other.keys("C-x", "5", "0")
    shares(emacs, "one.txt", "two.txt")


SELECTION = "(plist-get (car (gemini-companion-context-snapshot)) :selected-text)"


@pytest.mark.contract("Gemini CLI: context")
@pytest.mark.once
def test_first_prompt_has_cursor_selection_and_files(world: World) -> None:
    other = world.file("other.txt", "x\n")
    file = world.file("größe 大小.txt", "first\na😀b naïve 日本 end\nlast\n")
    emacs = world.emacs(other, file)
    emacs.keys("M-<", "C-n", "C-f", "C-f", "C-Space", "C-e")
    emacs.becomes(SELECTION, "b naïve 日本 end")
    cli = world.gemini()

    assert cli.context() == {
        "activeFile": {
            "path": str(file),
            "cursor": {"line": 2, "character": 18},
            "selectedText": "b naïve 日本 end",
        },
        "otherOpenFiles": [str(other)],
    }
    emacs.eval("(gemini-companion-status)")
    status = '(with-current-buffer "*gemini-companion status*" (buffer-string))'
    shown = emacs.value(status)
    assert "Connected: Gemini CLI" in shown
    assert f"in {world.project}" in shown
    assert "größe 大小.txt, active, line 2, character 18" in shown
    assert '14 characters selected: "b naïve 日本 end"' in shown
