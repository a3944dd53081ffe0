# SPDX-License-Identifier: GPL-3.0-or-later
"""A turn is reviewed in the overview, and comments on it reach the model."""

from collections.abc import Callable
from pathlib import Path

import pytest
from harness import copilot
from harness.emacs import STATE, Emacs, Reviews, lisp
from harness.gemini import Gemini, type_until
from harness.model import Part, edit, read_file, say, write_file
from harness.wait import eventually
from harness.world import World
from test_compose import last_message

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
NEW = OLD.replace("one\n", "eins\n").replace(
    "five\nsix\nseven\n", "fünf\nsechs\nsieben\n"
)


def goes_to(emacs: Emacs, file: str, text: str, count: int = 1) -> None:
    """Go to the line of ``text`` after ``file`` in the selected window.

    ``file`` is a regexp, and ``count`` the number of the match of ``text``.
    """
    emacs.eval(f"""(with-current-buffer (window-buffer)
                     (goto-char (point-min))
                     (re-search-forward {lisp(file)})
                     (search-forward {lisp(text)} nil nil {count})
                     (goto-char (line-beginning-position))
                     (set-window-point nil (point))
                     nil)""")


def comments(emacs: Emacs, file: str, text: str) -> None:
    """Comment with ``text`` on the three added lines of ``file`` in the overview."""
    unfolds(emacs, file)
    goes_to(emacs, f"  {file}  ", "\nfünf")
    emacs.keys("C-Space", "C-n", "C-n", "C-n", "c")
    emacs.wait_for("Comment on lines 5-7:")
    emacs.text(text)
    emacs.keys("Enter")
    emacs.wait_for(f">> 5-7: {text}")


def unfolds(emacs: Emacs, file: str) -> None:
    """Unfold all files of the overview, in which there is ``file``."""
    emacs.keys("4")
    emacs.wait_for(file)


@pytest.mark.shared("term")
def test_comments_on_three_lines_in_two_files_reach_the_model(world: World) -> None:
    files = [world.file("app/bill.py", OLD), world.file("notes.md", OLD)]
    other = world.file("other.txt", OLD)
    emacs, cli = world.run_pair(files[1])
    emacs.command("gemini-companion-auto-accept", "without review?")
    cli.is_free(*(write_file(file, NEW) for file in files))
    emacs.becomes("(gemini-companion-changes-left)", 4)

    emacs.command("gemini-companion-turn-page")
    emacs.wait_for("4 left")
    emacs.wait_for_match(r"\+4 .4  app/bill\.py .*2 left")
    emacs.keys("k")
    emacs.says("Kept 1 change; 3 changes are left")
    unfolds(emacs, "notes.md")
    goes_to(emacs, "  notes.md  ", "\neins")
    emacs.keys("u")
    emacs.says("Undid 1 change of notes.md; 2 changes are left")
    assert files[1].read_text() == NEW.replace("eins\n", OLD.splitlines()[0] + "\n")
    comments(emacs, "app/bill.py", "Keep the numbers")
    comments(emacs, "notes.md", "In English")

    # The next turn begins while the page is open.
    cli.model.script(write_file(other, NEW), say("noted"))
    emacs.keys("s")
    eventually(lambda: len(cli.model.requests) > 3, "the prompt")
    cli.wait_for("noted")
    sent = [
        part.get("text", "")
        for message in cli.model.requests[-1]["contents"]
        for part in message.get("parts", [])
    ]
    quoted = "> fünf\n> sechs\n> sieben\n"
    expected = (
        "Comments on your changes:\n\n"
        f"app/bill.py:5-7\n{quoted}Keep the numbers\n\n"
        f"notes.md:5-7\n{quoted}In English\n\n"
        "I undid these changes of yours; read the files again:\nnotes.md:1"
    )
    assert any(expected in text for text in sent), sent
    # It may be below the last line of the window.
    emacs.holds("""(with-current-buffer "*gemini*"
                     (save-excursion
                       (goto-char (point-min))
                       (search-forward "(sent) In English" nil t)))""")
    # What the model answers with is in a turn of its own.
    emacs.keys("M-<")
    emacs.wait_for("since your comments")
    emacs.becomes("(gemini-companion-changes-left)", 4)
    asks_again(emacs)


# Each line looks like a command, or names a file, to some CLI.
LINES = ["/quit größe", "@notes.md \"two\" 'three' @other", "!ls $(ls) `ls` \\ 大小"]
COMMENT = "/clear @notes.md !ls größe \"x\" 'y' \\ 大小"
PLAIN = "".join(f"line {number}\n" for number in range(1, 21))
BLOCK = "\n".join(LINES)
ODD = PLAIN.replace("line 2\n", f"{BLOCK}\n").replace("line 12\n", f"{BLOCK}\n")
QUOTED = "".join(f"> {line}\n" for line in LINES)
# What CLIs show while their prompt is for a shell.
SHELL = "shell"
SHELL_OF_COPILOT = "Shell · "
# The keys to select three lines.
THREE = ("C-Space", "C-n", "C-n", "C-n")


def edits_of(client: str, file: Path) -> list[Part]:
    """Return the turns in which the model of ``client`` makes ``file`` ODD."""
    if client == "copilot":
        return [copilot.replace(file, PLAIN, ODD)]
    if client == "qwen":
        return [read_file(file), edit(file, PLAIN, ODD)]
    return [write_file(file, ODD)]


def comments_here(emacs: Emacs, *keys: str) -> None:
    """Comment by ``keys`` on three lines."""
    emacs.keys(*keys)
    emacs.wait_for("Comment on lines ")
    emacs.text(COMMENT)
    emacs.keys("Enter")


@pytest.mark.shared("term")
def test_comments_of_each_place_are_nothing_but_text(world: World) -> None:
    """Those of Qwen Code and Copilot CLI are made where their CLIs are typed to."""
    emacs, cli = world.run_pair(world.file("a.txt", "one\n"))
    emacs.eval("(setq gemini-companion-review-view 'ediff)")
    # Beside the terminal there is no room for Ediff.
    emacs.eval("(delete-other-windows)")
    comments_of_each_place_are_nothing_but_text(world, emacs, cli, "gemini")


def comments_of_each_place_are_nothing_but_text(
    world: World, emacs: Emacs, cli: Gemini, client: str
) -> None:
    """Send comments that were made in each place to ``cli``, which Emacs has started.

    It is in a window, no change is left, and reviews of Gemini CLI are in Ediff.
    """
    files = [world.file(name, PLAIN) for name in ("plain.txt", "notes.md")]
    emacs.eval(f"(progn (find-file-noselect {lisp(files[1])}) nil)")
    reviews = Reviews(emacs)
    cli.model.script(*edits_of(client, files[0]), say("first done"))
    cli.prompt()
    reviews.shown("plain.txt")
    reviews.select()
    # In the control panel of Ediff, the lines are those of the hunk.
    comments_here(emacs, "c")
    # The comment waits for a prompt.
    emacs.keys("C-c", "C-c")
    emacs.wait_for("although your comment is not sent?")
    emacs.keys("y")
    cli.wait_for("first done")
    emacs.holds("(null (gemini-companion-edits-ending))", "the review has closed")
    emacs.command("gemini-companion-auto-accept", "without review?")
    emacs.eval(f"(select-window (get-buffer-window {lisp(cli.terminal.name)}))")
    cli.is_free(*edits_of(client, files[1]))
    emacs.becomes("(gemini-companion-changes-left)", 2)

    emacs.command("gemini-companion-list")
    emacs.wait_for("2 left")
    unfolds(emacs, "plain.txt")
    goes_to(emacs, "6 .2  plain.txt", LINES[0], 2)
    comments_here(emacs, *THREE, "c")
    emacs.command("gemini-companion-turn-page")
    goes_to(emacs, "  notes.md", LINES[0])
    comments_here(emacs, *THREE, "c")
    emacs.eval(f"(progn (find-file {lisp(files[1])}) nil)")
    goes_to(emacs, "", LINES[0], 2)
    comments_here(emacs, *THREE, "M-x", "gemini-companion-comment", "Enter")

    if client != "copilot":
        emacs.holds(f"(eq 'ready {STATE})")
    request_count = len(cli.model.requests)
    are_refused_in_shell_mode(
        emacs, cli, SHELL_OF_COPILOT if client == "copilot" else SHELL
    )
    cli.model.script(say("all noted"))
    emacs.command("gemini-companion-send-comments")
    eventually(lambda: len(cli.model.requests) > request_count, "the prompt")
    expected = "Comments on your changes:\n\n" + "\n\n".join(
        f"{name}:{first}-{first + 2}\n{QUOTED}{COMMENT}"
        for name in ("notes.md", "plain.txt")
        for first in (2, 14)
    )
    if client != "copilot":
        # Without a backslash, the CLI would read the file.
        expected = expected.replace("@notes", "\\@notes")
    cli.wait_for("all noted")
    assert expected in last_message(cli)
    assert len(cli.model.requests) == request_count + 1
    asks_again(emacs)


def are_refused_in_shell_mode(emacs: Emacs, cli: Gemini, shell: str) -> None:
    """Check that comments which ``cli`` does not take in shell mode stay unsent.

    That mode shows ``shell``.  In the selected window, M-x is not typed to the CLI.
    """

    def in_terminal(send: Callable[[str], None], key: str, *, is_shell: bool) -> None:
        emacs.eval(f"(progn (pop-to-buffer {lisp(cli.terminal.name)}) nil)")
        type_until(
            lambda: send(key), lambda: (shell in cli.screen()) == is_shell, "shell mode"
        )
        emacs.eval("(progn (select-window (get-mru-window nil t t)) nil)")

    unsent = "(length (gemini-companion-comments-unsent))"
    count = emacs.value(unsent)
    assert count == 4
    in_terminal(cli.terminal.text, "!", is_shell=True)
    emacs.command("gemini-companion-send-comments")
    emacs.says("might run your text as a command")
    assert emacs.value(unsent) == count
    # In term, Escape that is typed again could take M-x as its second key.
    if shell == SHELL:

        def leave(key: str) -> None:
            # Typed twice in shell mode, as the first was taken late, it is text.
            if "! !" in cli.screen():
                cli.terminal.keys("BSpace")
            else:
                cli.terminal.text(key)

        in_terminal(leave, "!", is_shell=False)
    else:
        in_terminal(cli.terminal.keys, "Escape", is_shell=False)


def asks_again(emacs: Emacs) -> None:
    """Turn auto-accept off."""
    emacs.command("gemini-companion-auto-accept")
    emacs.says("Auto-accept ended")
