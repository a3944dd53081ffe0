# SPDX-License-Identifier: GPL-3.0-or-later
"""A turn is reviewed on one page, and comments on it reach the model."""

from harness import gemini
from harness.emacs import SESSION, Emacs
from harness.model import say, write_file
from harness.wait import eventually
from harness.world import World

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n"
NEW = OLD.replace("one\n", "eins\n").replace(
    "five\nsix\nseven\n", "fünf\nsechs\nsieben\n"
)
PAGE = '"*gemini changes*"'


def goes_to(emacs: Emacs, file: str, text: str) -> None:
    """Go to the first line of ``file`` on the page that begins with ``text``."""
    emacs.eval(f"""(with-current-buffer {PAGE}
                     (goto-char (point-min))
                     (re-search-forward "^{file}  ")
                     (re-search-forward "^{text}")
                     (goto-char (line-beginning-position))
                     (set-window-point (get-buffer-window) (point))
                     nil)""")


def comments(emacs: Emacs, file: str, text: str) -> None:
    """Comment with ``text`` on the three added lines of ``file`` on the page."""
    goes_to(emacs, file, "fünf")
    emacs.keys("C-Space", "C-n", "C-n", "C-n", "c")
    emacs.wait_for("Comment on lines 5-7:")
    emacs.text(text)
    emacs.keys("Enter")
    emacs.wait_for(f">> 5-7: {text}")


def test_comments_on_three_lines_in_two_files_reach_the_model(world: World) -> None:
    gemini.configure(world.scratch, ui={"hideTips": True})
    files = [world.file("app/bill.py", OLD), world.file("notes.md", OLD)]
    other = world.file("other.txt", OLD)
    emacs = world.emacs(files[1], extra="(setq gemini-companion-terminal 'term)")
    cli = world.run(emacs)
    cli.wait_until_connected()
    emacs.holds(SESSION, "connected")
    emacs.command("gemini-companion-auto-accept", "without review?")
    cli.is_free(*(write_file(file, NEW) for file in files))
    emacs.becomes("(gemini-companion-changes-left)", 4)

    emacs.command("gemini-companion-turn-page")
    emacs.wait_for("4 changes left")
    emacs.wait_for_match(r"app/bill\.py  \+4 .4  2 changes")
    emacs.keys("k")
    emacs.says("Kept 1 change; 3 changes are left")
    goes_to(emacs, "notes.md", "eins")
    emacs.keys("u")
    emacs.says("Undid 1 change of notes.md, not saved; 2 changes are left")
    # The file is not saved.
    assert files[1].read_text() == NEW
    comments(emacs, "app/bill.py", "Keep the numbers")
    comments(emacs, "notes.md", "In English")

    # The next turn begins while the page is open.
    cli.model.script(write_file(other, NEW), say("noted"))
    emacs.keys("C-c", "C-c")
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
        "I undid your change of notes.md:1."
    )
    assert any(expected in text for text in sent), sent
    emacs.wait_for("(sent) In English")
    # What the model answers with is new on the page.
    emacs.wait_for("since your comments")
    emacs.becomes("(gemini-companion-changes-left)", 4)
