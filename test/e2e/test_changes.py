# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CLI has written is marked in its files, walked through, undone and kept."""

from pathlib import Path

import pytest
from harness.emacs import Emacs, lisp
from harness.model import call, read_file, replace, say, write_file
from harness.wait import wait_until_saved
from harness.world import World
from test_rules import linked
from test_turn_page import asks_again

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
NEW = OLD.replace("two\n", "zwei\n").replace("eight\n", "acht\n")
HERE = "(list (buffer-name (window-buffer)) (line-number-at-pos (window-point)))"


def goes(emacs: Emacs, key: str, message: str, line: int) -> None:
    """Press ``key``, and wait until ``message`` ends what Emacs says of a change."""
    emacs.keys(key)
    emacs.says(message)
    name = Path(message.split(", ")[1]).name
    emacs.becomes(f"(with-current-buffer (window-buffer) {HERE})", [name, line])


@pytest.mark.shared("review")
@pytest.mark.differs("margins and overlays")
def test_turn_is_walked_through_by_keys(world: World) -> None:
    files = [world.file(f"{name}.txt", OLD) for name in "abcdef"]
    emacs, _, cli = world.pair(files[0])

    def change(number: int, count: int, file: Path) -> str:
        return f"Change {number} of {count}, {file.name}"

    emacs.command("gemini-companion-auto-accept", "without review?")
    cli.is_free(*(write_file(file, NEW) for file in files))
    emacs.wait_for("~12")
    # The first mark, in the right margin.
    emacs.wait_for_match(r"(?m)^zwei +[┇:]$")

    emacs.command("gemini-companion-next-change")
    emacs.says(change(1, 12, files[0]))
    emacs.wait_for("(walk)")
    # It writes the file, and goes on; one undo restores both, and the walk goes on.
    goes(emacs, "u", change(1, 11, files[0]), 8)
    wait_until_saved(files[0], NEW.replace("zwei", "two"))
    emacs.keys("C-/")
    emacs.says(change(1, 12, files[0]))
    wait_until_saved(files[0], NEW)
    emacs.wait_for_match(r"(?m)^one *\nzwei +[┇:]\n(.*\n){6}nine")
    emacs.becomes("(gemini-companion-changes-left)", 12)
    emacs.wait_for("(walk)")
    goes(emacs, "u", change(1, 11, files[0]), 8)
    goes(emacs, "n", change(2, 11, files[1]), 2)
    emacs.keys("Enter")
    emacs.wait_for_match(r"(?m)^two *\nzwei +[┇:]$")
    emacs.wait_for("Before the change")
    # It stays while the user scrolls.
    emacs.keys("C-l")
    emacs.wait_for_match(r"(?m)^two *\nzwei +[┇:]$")
    goes(emacs, "n", change(3, 11, files[1]), 8)
    emacs.wait_until_gone("\ntwo")
    goes(emacs, "k", change(3, 10, files[2]), 2)
    goes(emacs, "U", change(3, 8, files[3]), 2)
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
    asks_again(emacs)


UNDO = """(condition-case problem
              (progn (require 'gemini-companion-undo)
                     (e2e-undo-edits (list (car (gemini-companion-edits))))
                     "undone")
            (user-error (error-message-string problem)))"""


@pytest.mark.shared("review")
def test_edit_of_a_file_that_an_unlinked_cli_removed_leaves_its_text_to_the_buffer(
    world: World,
) -> None:
    file = world.file("a.txt", OLD)
    _, reviews, cli = world.pair(file)
    remove = call("run_shell_command", command=f"rm {file}", description="Do it")
    cli.model.script(remove, write_file(file, NEW), say("written again"))
    cli.prompt()
    cli.wait_for("Allow execution of")
    cli.answer("Allow once")
    reviews.shown("a.txt")
    assert not file.exists()
    reviews.accept()
    cli.finished("written again", file, NEW)

    refused = "cannot be restored: its previous text was not recorded"
    assert refused in str(reviews.emacs.value(UNDO))
    assert file.read_text() == NEW
    reviews.emacs.keys("C-/")
    reviews.emacs.becomes('(with-current-buffer "a.txt" (buffer-string))', OLD)


@pytest.mark.shared("yolo")
def test_a_line_says_which_prompt_and_which_command_wrote_it(world: World) -> None:
    emacs, _, cli = linked(world, "yolo", "")
    file = world.file("b.txt", OLD)
    emacs.eval(f"(progn (find-file {lisp(file)}) nil)")
    cli.is_free(read_file(file), replace(file, "two", "zwei"))
    emacs.becomes("(gemini-companion-changes-left)", 1)
    sed = f"sed -i s/eight/acht/ {file.name}"
    cli.is_free(call("run_shell_command", command=sed, description="Do it"))
    emacs.becomes("(gemini-companion-changes-left)", 2)
    emacs.command("gemini-companion-next-change")
    emacs.says("Change 1 of 2, b.txt")
    emacs.keys("w")
    emacs.says("not reviewed, prompt: prompt 1 please")
    # The walk goes on.
    goes(emacs, "n", "Change 2 of 2, b.txt", 8)
    emacs.keys("w")
    emacs.says(f"by `{sed}', not reviewed, prompt: prompt 2 please")
    goes(emacs, "k", "Change 1 of 1, b.txt", 2)
    emacs.keys("M->", "Up", "Up")
    emacs.command("gemini-companion-why")
    emacs.says(f"by `{sed}', kept, prompt: prompt 2 please")
    emacs.keys("Down")
    emacs.command("gemini-companion-why")
    emacs.says("Unknown: this line is older than the first recorded edit")
    emacs.keys("C-a", "m", "C-j")
    emacs.keys("Up")
    emacs.command("gemini-companion-why")
    emacs.says("Written by you or another program")


@pytest.mark.shared("yolo")
def test_bytes_that_a_linked_cli_could_not_read_are_not_guessed(world: World) -> None:
    latin = "grün\ntwo\n".encode("latin-1")
    file = world.file("latin.txt", latin)
    emacs, _, cli = linked(world, "yolo", "")
    emacs.eval(f"(progn (find-file {lisp(file)}) nil)")
    cli.is_free(replace(file, "two", "zwei"))
    assert file.read_text() == "gr\ufffdn\nzwei\n"
    # It has no hunks.
    emacs.holds("(= 1 (length (gemini-companion-edits)))")
    emacs.becomes("(gemini-companion-changes-left)", None)
    assert "not recorded" in str(emacs.value(UNDO))
    emacs.command("gemini-companion-list")
    emacs.wait_for_match("latin.txt.* not recorded")
