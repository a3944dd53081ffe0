# SPDX-License-Identifier: GPL-3.0-or-later
"""A proposal is reviewed in Emacs or in the terminal, and the CLI writes it."""

from collections.abc import Iterator

import pytest
from harness.model import replace, say, write_file
from harness.world import World

pytestmark = pytest.mark.shared


@pytest.mark.parametrize("accept", [("C-c", "C-c"), ("C-x", "C-s")])
def test_keys_edit_and_accept_the_proposal(
    world: World, accept: tuple[str, str]
) -> None:
    file = world.file("a.txt", "one\ntwo\n")
    emacs, reviews, cli = world.pair(file)
    reviews.proposed(cli, file, write_file(file, "one\nzwei\n"), say("all done"))

    reviews.select_proposal()
    emacs.keys("M->")
    emacs.text("three")
    emacs.keys(*accept)

    cli.wait_for("all done")
    assert file.read_text() == "one\nzwei\nthree"
    assert reviews.paths() == []


def test_reject_leaves_the_file_and_frees_the_cli(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    before = emacs.value("(e2e-layout)")
    reviews.proposed(cli, file, write_file(file, "uno\n"))

    reviews.select()
    emacs.keys("C-c", "C-k")

    cli.wait_for("Rejected")
    assert file.read_text() == "one\n"
    emacs.becomes("(e2e-layout)", before)
    cli.is_free()
    assert file.read_text() == "one\n"


LAST_STATE = """
(gemini-companion-edit-status (car (last (gemini-companion-edits))))
"""


def test_yes_in_the_terminal_writes_what_was_edited(world: World) -> None:
    file = world.file("a.txt", "one\ntwo\n")
    emacs, reviews, cli = world.pair(file)
    before = emacs.value("(e2e-layout)")
    reviews.proposed(cli, file, replace(file, "one", "eins"), say("all done"))
    reviews.edit("eins", "un")

    cli.answer("Allow once")

    cli.wait_for("all done")
    assert file.read_text() == "un\ntwo\n"
    reviews.wait_until(0)
    emacs.becomes("(e2e-layout)", before)
    emacs.holds(f"(eq 'accepted {LAST_STATE})")


def test_no_in_the_terminal_closes_the_review(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    before = emacs.value("(e2e-layout)")
    reviews.proposed(cli, file, write_file(file, "uno\n"))

    cli.answer("No, suggest")

    cli.wait_for("Rejected")
    reviews.wait_until(0)
    emacs.becomes("(e2e-layout)", before)
    cli.is_free()
    assert file.read_text() == "one\n"
    emacs.holds(f"(eq 'dismissed {LAST_STATE})")


# `read-multiple-choice' reads a key, but in Emacs 31 in the minibuffer.
ASK_IN_MINIBUFFER = """
(progn
  (defun e2e-ask (prompt choices &rest _)
    (assq (read-char-from-minibuffer
           (format "%s (%s): " prompt (mapconcat #'cadr choices ", "))
           (mapcar #'car choices))
          choices))
  (advice-add 'read-multiple-choice :override #'e2e-ask))
"""


@pytest.fixture(params=["key", pytest.param("minibuffer", marks=pytest.mark.once)])
def way_to_ask(request: pytest.FixtureRequest, world: World) -> Iterator[str]:
    """Lisp for Emacs to ask by a key, or in the minibuffer."""
    if request.param == "key":
        yield ""
    else:
        yield ASK_IN_MINIBUFFER
        world.emacs().eval("(progn (advice-remove 'read-multiple-choice 'e2e-ask) nil)")


def test_quit_key_asks_and_its_answer_counts(world: World, way_to_ask: str) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file, extra=way_to_ask)
    reviews.proposed(cli, file, write_file(file, "uno\n"))

    reviews.select()
    emacs.keys("q")
    emacs.wait_for_match("(?i)accept.*reject")
    emacs.keys("C-g")
    reviews.wait_until(1)
    emacs.keys("q")
    emacs.wait_for_match("(?i)accept.*reject")
    emacs.keys("r")

    cli.wait_for("Rejected")
    assert file.read_text() == "one\n"


def test_question_of_the_quit_key_ends_when_the_terminal_answers(
    world: World, way_to_ask: str
) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file, extra=way_to_ask)
    before = emacs.value("(e2e-layout)")
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("all done"))
    reviews.select()
    emacs.keys("q")
    emacs.wait_for_match("(?i)accept.*reject")

    cli.answer("Allow once")

    cli.wait_for("all done")
    assert file.read_text() == "uno\n"
    reviews.wait_until(0)
    emacs.becomes("(e2e-layout)", before)
    emacs.becomes(IN_FILE, ["uno\n", None, True])
    emacs.keys("M-<")
    emacs.text("typed ")
    emacs.holds('(with-current-buffer "a.txt" (looking-back "typed " 1))')


def test_windows_are_restored_after_a_review_from_a_side_window(world: World) -> None:
    file = world.file("a.txt", "first\n" + "line\n" * 200)
    other = world.file("b.txt", "other\n")
    emacs, reviews, cli = world.pair(other, file)
    emacs.eval(SIDE_WINDOW)
    before = emacs.value("(e2e-layout)")
    reviews.proposed(cli, file, replace(file, "first", "erste"))

    reviews.select()
    emacs.keys("C-c", "C-k")

    cli.wait_for("Rejected")
    emacs.becomes("(e2e-layout)", before)


SIDE_WINDOW = """
(with-current-buffer (window-buffer)
  (goto-char (point-min))
  (forward-line 120)
  (recenter 3)
  (set-window-buffer (split-window-right) "b.txt")
  (select-window
   (display-buffer-in-side-window (get-buffer "*scratch*") '((side . bottom))))
  (set-window-dedicated-p nil t)
  (redisplay t))
"""


def test_new_file_in_a_new_directory_can_be_proposed_again(world: World) -> None:
    file = world.project / "new" / "b.txt"
    _, reviews, cli = world.pair(world.file("a.txt"))
    cli.model.script(write_file(file, "born\n"))
    cli.ask()
    reviews.shown("b.txt")
    reviews.reject()
    cli.wait_for("Rejected")
    assert not file.parent.exists()

    cli.model.script(write_file(file, "born again\n"), say("all done"))
    cli.ask()
    reviews.shown("b.txt")
    reviews.accept()

    cli.wait_for("all done")
    assert file.read_text() == "born again\n"


def test_line_ends_names_and_text_beyond_ascii_survive(world: World) -> None:
    file = world.file("größe 大小 😀.txt", "naïve 日本\r\ntwo\r\n😀".encode())
    _, reviews, cli = world.pair(file)
    new = "größer 日本 👩‍💻 e\u0301 \u2028 x"
    cli.model.script(replace(file, "naïve 日本", new), say("all done"))
    cli.ask()
    reviews.shown("😀.txt")
    assert reviews.proposal() == f"{new}\ntwo\n😀"

    reviews.edit("日本", "中文 𝄞")
    reviews.accept()

    cli.wait_for("all done")
    written = f"{new}\r\ntwo\r\n😀".replace("日本", "中文 𝄞")
    assert file.read_bytes() == written.encode()


IN_FILE = """
(with-current-buffer "a.txt"
  (list (buffer-string) (and (buffer-modified-p) t) (verify-visited-file-modtime)))
"""


def test_edits_work_again_after_an_interrupt(world: World) -> None:
    first, second = world.file("a.txt", "one\n"), world.file("b.txt", "two\n")
    emacs, reviews, cli = world.pair(first)
    reviews.proposed(cli, first, write_file(first, "uno\n"))
    cli.interrupt()

    cli.model.script(write_file(second, "due\n"), say("second done"))
    cli.ask()
    cli.answer("Allow once")
    cli.wait_for("second done")
    assert (first.read_text(), second.read_text()) == ("one\n", "due\n")
    reviews.wait_until(0)
    emacs.wait_for("interrupted; review closed, a.txt not written")

    reviews.proposed(cli, first, write_file(first, "UNO\n"), say("third done"))
    reviews.accept()
    cli.wait_for("third done")
    assert first.read_text() == "UNO\n"
