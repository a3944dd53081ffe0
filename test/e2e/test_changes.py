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
    emacs.wait_for_match(r"(?m)^zwei +[┃|]$")

    emacs.command("gemini-companion-next-change")
    emacs.says("1 of 12, a.txt")
    emacs.keys("u")
    emacs.says("Reverted a hunk of a.txt; 11 left")
    goes(emacs, "n", "1 of 11, a.txt", 8)
    goes(emacs, "n", "2 of 11, b.txt", 2)
    emacs.keys("Enter")
    emacs.wait_for_match(r"(?m)^two .*\nzwei")
    emacs.wait_for("Before the change")
    goes(emacs, "n", "3 of 11, b.txt", 8)
    emacs.wait_until_gone("\ntwo")
    emacs.keys("u")
    emacs.says("Reverted a hunk of b.txt; 10 left")
    emacs.keys("C-x", "r", "w", "w")
    emacs.keys("C-u", "M-x", "gemini-companion-keep-changes", "Enter")
    emacs.says("0 left")
    emacs.wait_until_gone("~")
    emacs.keys("C-x", "r", "j", "w")
    emacs.becomes("(cdr (window-margins))", None)

    wait_until_saved(files[1], NEW.replace("acht", "eight"))
    assert files[0].read_text() == NEW.replace("zwei", "two")
    assert [file.read_text() for file in files[2:]] == [NEW] * 4
    emacs.command("gemini-companion-list")
    emacs.wait_for_match(r"a\.txt +1 of 2 hunks undone")
    emacs.wait_for_match(r"b\.txt +1 of 2 hunks undone")
