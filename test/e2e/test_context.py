# SPDX-License-Identifier: GPL-3.0-or-later
"""What is shared of frames and selections, and what the model receives of it."""

import re
from pathlib import Path

import pytest
from harness.emacs import Emacs
from harness.model import Context, say, write_file
from harness.wait import eventually
from harness.world import World
from test_restart import restart

SNAPSHOT = """
(vconcat (mapcar (lambda (file)
                   (vector (if (plist-get file :active) "active" "open")
                           (file-name-nondirectory (plist-get file :path))))
                 (gemini-companion-context-snapshot)))"""


def shares(emacs: Emacs, active: str, other: str) -> None:
    emacs.becomes(SNAPSHOT, [["active", active], ["open", other]])


@pytest.mark.shared("no-cli")
@pytest.mark.differs("the frames of a client and their order")
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


@pytest.mark.contract("Gemini CLI: context")
@pytest.mark.shared("review")
def test_first_prompt_has_cursor_selection_and_files(world: World) -> None:
    other = world.file("other.txt", "x\n")
    file = world.file("größe 大小.txt", "first\na😀b naïve 日本 end\nlast\n")
    emacs, _, cli = world.pair(other, file)
    emacs.keys("M-<", "C-n", "C-f", "C-f", "C-Space", "C-e")

    cli.has_context(
        {
            "activeFile": {
                "path": str(file),
                "cursor": {"line": 2, "character": 18},
                "selectedText": "b naïve 日本 end",
            },
            "otherOpenFiles": [str(other)],
        }
    )
    emacs.eval("(gemini-companion-status)")
    status = '(with-current-buffer "*gemini-companion status*" (buffer-string))'
    shown = emacs.value(status)
    assert "Connected: Gemini CLI" in shown
    assert f"Workspace roots\n    {world.project}\n" in shown
    assert "größe 大小.txt, active, line 2, character 18" in shown
    assert '14 characters selected: "b naïve 日本 end"' in shown


def active(file: Path, line: int = 1, character: int = 1) -> Context:
    """Return the context when ``file`` is the only one, with the cursor there."""
    cursor = {"line": line, "character": character}
    return {"activeFile": {"path": str(file), "cursor": cursor}}


NO_REVIEWS = "(setq gemini-companion-review-view nil)"


@pytest.mark.shared("review")
def test_cli_that_is_offered_no_reviews_asks_by_itself(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)

    # Set while it is connected, the option leaves the answer to the terminal.
    emacs.eval(NO_REVIEWS)
    restart(emacs, world.scratch)
    cli.model.script(write_file(file, "tre\n"), say("first done"))
    cli.ask()
    emacs.says("No review of")
    assert reviews.states() == ["pending"]
    cli.answer("Allow once")
    cli.finished("first done", file, "tre\n")
    reviews.wait_until(0)

    # The CLI gets the value of the option when it connects.  An attempt to open its
    # stream again would end that connection.
    log = world.home / ".emacs.d" / "gemini-companion" / "server.log"

    def is_open() -> bool:
        _, _, last = log.read_text().rpartition("Running on")
        return re.search(r"HTTP in: gemini \w+ GET", last) is not None

    eventually(is_open, "its stream is open again")
    cli.ide("disable")
    cli.enable()
    cli.wait_until_connected()
    cli.has_context(active(file))
    cli.model.script(write_file(file, "uno\n"), say("all done"))
    cli.ask()
    assert reviews.paths() == []
    cli.wait_for("Modify with external editor")
    cli.answer("Allow once")
    cli.finished("all done", file, "uno\n")

    emacs.eval("(setq gemini-companion-review-view 'diff)")
    cli.reset()
    cli.ide("disable")
    restart(emacs, world.scratch)
    cli.enable()
    cli.wait_until_connected()
    reviews.proposed(cli, file, write_file(file, "due\n"), say("done again"))
    reviews.select()
    emacs.wait_for("+due")
    emacs.row_takes_answers()
    emacs.keys("a")
    cli.finished("done again", file, "due\n")
