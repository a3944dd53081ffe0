# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CLI has written is marked in its files, walked through, undone and kept."""

import pytest
from harness.emacs import Emacs
from harness.model import read_file, write_file
from harness.needs import needs_qwen
from harness.qwen import stays_connected
from harness.wait import wait_until_saved
from harness.world import World

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
NEW = OLD.replace("two\n", "zwei\n").replace("eight\n", "acht\n")
HERE = "(list (buffer-name (window-buffer)) (line-number-at-pos (window-point)))"


def goes(emacs: Emacs, key: str, message: str, line: int) -> None:
    """Press ``key``, and wait until ``message`` ends what Emacs says of a change."""
    emacs.keys(key)
    emacs.says(message)
    emacs.becomes(f"(with-current-buffer (window-buffer) {HERE})",
                  [message.split(", ")[1], line])  # fmt: skip


@pytest.mark.parametrize(
    "client",
    [
        pytest.param("gemini", marks=pytest.mark.differs("margins and overlays")),
        pytest.param("qwen", marks=needs_qwen),
    ],
)
def test_turn_is_walked_through_by_keys(world: World, client: str) -> None:
    files = [world.file(f"{name}.txt", OLD) for name in "abcdef"]
    # It exists before Emacs starts where Qwen Code was used before.
    world.home.joinpath(".qwen").mkdir()
    emacs = world.emacs(files[0])
    if client == "qwen":
        cli = world.qwen()
        stays_connected(emacs, cli)
    else:
        cli = world.gemini()
    emacs.command("gemini-companion-auto-accept", "without review?")
    # Qwen Code writes only what it has read.
    turn = [part for file in files for part in (read_file(file), write_file(file, NEW))]
    cli.is_free(*turn)
    emacs.wait_for("~12")
    # The first mark, in the right margin.
    emacs.wait_for_match(r"(?m)^zwei +[┇:]$")

    emacs.command("gemini-companion-next-change")
    emacs.says("Change 1 of 12, a.txt")
    emacs.wait_for("(walk)")
    # It goes on, and saves nothing; one undo takes it back.
    goes(emacs, "u", "Change 1 of 11, a.txt", 8)
    assert files[0].read_text() == NEW
    emacs.keys("C-/")
    emacs.becomes("(gemini-companion-changes-left)", 12)
    emacs.wait_until_gone("(walk)")
    emacs.command("gemini-companion-next-change")
    goes(emacs, "u", "Change 1 of 11, a.txt", 8)
    goes(emacs, "n", "Change 2 of 11, b.txt", 2)
    emacs.keys("Enter")
    emacs.wait_for_match(r"(?m)^two *\nzwei +[┇:]$")
    emacs.wait_for("Before the change")
    # It stays while the user moves.
    emacs.keys("C-n")
    emacs.wait_for_match(r"(?m)^two *\nzwei +[┇:]$")
    goes(emacs, "n", "Change 3 of 11, b.txt", 8)
    emacs.wait_until_gone("\ntwo")
    goes(emacs, "k", "Change 3 of 10, c.txt", 2)
    goes(emacs, "U", "Change 3 of 8, d.txt", 2)
    emacs.keys("C-x", "s", "!")
    wait_until_saved(files[0], NEW.replace("zwei", "two"))
    wait_until_saved(files[2], OLD)
    assert files[1].read_text() == NEW
    emacs.keys("C-x", "r", "w", "w")
    emacs.keys("C-u", "M-x", "gemini-companion-keep-changes", "Enter")
    emacs.says("no changes are left")
    emacs.wait_until_gone("~")
    emacs.keys("C-x", "r", "j", "w")
    emacs.becomes("(cdr (window-margins))", None)
    assert [file.read_text() for file in files[3:]] == [NEW] * 3
