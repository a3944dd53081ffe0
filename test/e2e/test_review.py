# SPDX-License-Identifier: GPL-3.0-or-later
"""A proposal is reviewed in Emacs or in the terminal, and the CLI writes it."""

import pytest
from harness.emacs import PROPOSAL, Emacs
from harness.model import replace, say, write_file
from harness.wait import eventually
from harness.world import World
from test_compose import asked_why

pytestmark = pytest.mark.shared("review")
differs = pytest.mark.differs("the minibuffer, its history and its windows")

IN_FILE = """
(with-current-buffer "a.txt"
  (list (buffer-string) (and (buffer-modified-p) t) (verify-visited-file-modtime)))
"""
IN_REVIEW = "(with-current-buffer (window-buffer) (and gemini-companion-edit-here t))"
LAST_STATE = "(gemini-companion-edit-status (car (last (gemini-companion-edits))))"


@pytest.mark.contract("Gemini CLI: accept with edits")
@pytest.mark.differs("coding systems, and characters on the terminal")
def test_keys_edit_and_accept_a_proposal_of_any_text(world: World) -> None:
    file = world.file("größe 大小 😀.txt", "naïve 日本\r\ntwo\r\n😀".encode())
    emacs, reviews, cli = world.pair(file)
    new = "größer 日本 👩‍💻 e\u0301 \u2028 x"
    reviews.proposed(cli, file, replace(file, "naïve 日本", new), say("all done"))
    assert reviews.proposal() == f"{new}\ntwo\n😀"
    reviews.edit("日本", "中文 𝄞")

    reviews.select()
    emacs.eval(f"(select-window (get-buffer-window {PROPOSAL} t))")
    emacs.keys("M->")
    emacs.text("three")
    emacs.keys("C-x", "C-s")

    cli.wait_for("all done")
    written = f"{new}\r\ntwo\r\n😀three".replace("日本", "中文 𝄞")
    assert file.read_bytes() == written.encode()
    reviews.wait_until(0)


@pytest.mark.contract("Gemini CLI: yes in the terminal")
def test_yes_in_the_terminal_writes_what_was_edited(world: World) -> None:
    file = world.file("a.txt", "one\ntwo\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, replace(file, "one", "eins"), say("all done"))
    reviews.edit("eins", "un")

    cli.answer("Allow once")

    cli.finished("all done", file, "un\ntwo\n")
    reviews.ended()
    emacs.holds(f"(eq 'accepted {LAST_STATE})")


@pytest.mark.contract("Gemini CLI: no in the terminal")
def test_no_in_the_terminal_closes_the_review_and_keeps_edits(world: World) -> None:
    file, emacs, reviews, cli = world.review("one\n", "uno\n")
    reviews.edit("uno", "what I made of it")

    cli.answer("No, suggest")

    cli.wait_for("Rejected")
    reviews.ended()
    cli.is_free()
    assert file.read_text() == "one\n"
    emacs.holds(f"(eq 'dismissed {LAST_STATE})")
    emacs.says("your text is in the kill ring")
    assert reviews.kept() == "what I made of it\n"


def go_to(emacs: Emacs, window: str) -> None:
    """Press C-x o until the code ``window`` is true."""
    eventually(lambda: emacs.value(window) or emacs.keys("C-x", "o"), window)


@differs
def test_prompt_is_left_alone_when_its_review_ends(world: World) -> None:
    _, emacs, reviews, cli = world.review("one\n", "uno\n", say("all done"))
    reviews.select()
    emacs.keys("M-x", "ver")
    go_to(emacs, IN_REVIEW)
    emacs.keys("C-c", "C-c")
    cli.wait_for("all done")
    reviews.wait_until(0)
    go_to(emacs, "(minibufferp (window-buffer))")
    emacs.keys("sion")
    emacs.wait_for("M-x version")
    emacs.keys("Enter")
    emacs.says("GNU Emacs")
    reviews.ended()


@differs
def test_question_of_the_quit_key_stays_when_the_terminal_answers(world: World) -> None:
    file, emacs, reviews, cli = world.review("one\n", "uno\n", say("all done"))
    reviews.select("q")
    emacs.wait_for_match("(?i)accept.*reject")
    emacs.keys("C-g")
    reviews.wait_until(1)
    emacs.keys("q")
    emacs.wait_for_match("(?i)accept.*reject")

    cli.answer("Allow once")

    cli.finished("all done", file, "uno\n")
    emacs.wait_for_match("(?i)accept.*reject")
    emacs.keys("r")
    emacs.wait_for("This review has ended already")
    reviews.ended()
    emacs.becomes(IN_FILE, ["uno\n", None, True])
    emacs.keys("M-<")
    emacs.text("typed ")
    emacs.holds('(with-current-buffer "a.txt" (looking-back "typed " 1))')


@differs
def test_question_for_a_reason_stays_when_the_terminal_answers(world: World) -> None:
    file, emacs, reviews, cli = world.review("one\n", "uno\n", say("all done"))
    asked_why(emacs, reviews, "half a sen")

    cli.answer("Allow once")

    cli.finished("all done", file, "uno\n")
    emacs.text("tence")
    emacs.keys("Enter")
    emacs.says("your text is in the kill ring")
    emacs.becomes("(current-kill 0)", "half a sentence")
    emacs.holds("(not (active-minibuffer-window))")
    emacs.becomes("(buffer-name (window-buffer))", "a.txt")


@pytest.mark.contract("Gemini CLI: reject")
def test_new_file_in_a_new_directory_can_be_proposed_again(world: World) -> None:
    file = world.project / "new" / "b.txt"
    _, reviews, cli = world.pair(world.file("a.txt"))
    reviews.proposed(cli, file, write_file(file, "born\n"))
    reviews.reject()
    cli.wait_for("Rejected")
    assert not file.parent.exists()

    reviews.proposed(cli, file, write_file(file, "born again\n"), say("all done"))
    reviews.accept()

    cli.finished("all done", file, "born again\n")
