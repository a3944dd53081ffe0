# SPDX-License-Identifier: GPL-3.0-or-later
"""One chord answers each review of a turn."""

import time
from pathlib import Path

import pytest
from harness.emacs import DRAWN, SIZE, Emacs
from harness.model import say, together, write_file
from harness.wait import eventually
from harness.world import World

pytestmark = pytest.mark.shared("review")
differs = pytest.mark.differs("windows, and keys in views that follow one another")


# The key has the command before the command answers, which says so by an error.
ACCEPTS = """(with-current-buffer (window-buffer)
  (when (eq 'gemini-companion-edit-accept (key-binding (kbd "C-c C-c")))
    (gemini-companion-view-check (gemini-companion-review-of-buffer))
    t))"""
# On a busy machine, the next proposal may come later than in five seconds.
PATIENT = "(setq gemini-companion-arrival-seconds 100)"
SELECTED = "(buffer-name (window-buffer))"
# The sides of Ediff have room one above the other only.
SMALL = (80, 24)
MINE = '(with-current-buffer "mine.txt" (buffer-string))'


def accept_each(emacs: Emacs, files: list[Path], text: str) -> None:
    """Type C-c C-c once a second until all ``files`` have ``text``.

    Emacs has to be ``PATIENT``: once a review has ended, the key is not bound.
    """
    typed = 0.0

    def are_accepted() -> bool:
        nonlocal typed
        if all(file.exists() and file.read_text() == text for file in files):
            return True
        if time.monotonic() - typed > 1:
            emacs.keys("C-c", "C-c")
            typed = time.monotonic()
        return False

    eventually(are_accepted, "each file is accepted")


@pytest.mark.parametrize("view", [pytest.param("ediff", marks=differs), "diff"])
def test_a_chord_that_is_typed_each_second_answers_each_file_of_a_turn(
    world: World, view: str
) -> None:
    """It answers what was displayed, or does nothing; it is text nowhere."""
    files = [world.file(f"{name}.txt", "old\n") for name in "abcdef"]
    emacs, reviews, cli = world.pair(
        world.file("mine.txt", "mine\n"),
        extra=f"(setq gemini-companion-review-view '{view}){PATIENT}",
    )
    before = emacs.value("(e2e-layout)")
    edits = [write_file(file, "new\n") for file in files]
    reviews.proposed(cli, files[0], *edits, say("all done"))
    emacs.command("gemini-companion-review")
    if view == "ediff":
        emacs.holds(ACCEPTS, "the review is selected")
    else:
        emacs.becomes(SELECTED, "*gemini*")
    accept_each(emacs, files, "new\n")
    cli.wait_for("all done")
    # The end of a turn in a terminal outside of Emacs is unknown.
    emacs.keys("q")
    emacs.becomes("(e2e-layout)", before)
    assert emacs.value(MINE) == "mine\n"
    assert reviews.paths() == []


def test_rejection_discards_the_other_edits_of_an_answer(world: World) -> None:
    files = [world.file(f"{name}.txt", "old\n") for name in "gh"]
    emacs, reviews, cli = world.pair(world.file("mine.txt", "mine\n"))
    before = emacs.value("(e2e-layout)")
    edits = together(*(write_file(file, "new\n") for file in files))
    reviews.proposed(cli, files[0], edits)
    emacs.command("gemini-companion-review")
    emacs.holds(ACCEPTS, "the review is selected")
    emacs.keys("C-c", "C-k")
    emacs.says("Rejected g.txt; Gemini CLI discards its other edits of this response")
    cli.is_free()
    emacs.becomes("(e2e-layout)", before)
    assert reviews.paths() == []
    assert [file.read_text() for file in files] == ["old\n", "old\n"]


@differs
def test_keys_after_an_answer_are_text_nowhere(world: World) -> None:
    file, second = world.file("a.txt", "old\n"), world.file("b.txt", "old\n")
    emacs, reviews, cli = world.pair(world.file("mine.txt", "mine\n"), extra=PATIENT)
    before = emacs.value("(e2e-layout)")
    reviews.proposed(
        cli, file, write_file(file, "new\n"), write_file(second, "new\n"), say("done")
    )
    emacs.command("gemini-companion-review")
    emacs.holds(ACCEPTS, "the review is selected")
    cli.model.answers.clear()
    emacs.keys("C-c", "C-c")
    emacs.wait_for("Waiting for the next edit; q closes now")
    emacs.text("aaaa wwww")
    emacs.keys("C-c", "C-c")
    emacs.says("Key ignored: a.txt has been answered")
    cli.model.answers.set()
    reviews.shown("b.txt")
    # As keys were typed meanwhile, it has begun by itself.
    emacs.holds(ACCEPTS, "the review takes answers")
    emacs.keys("C-c", "C-k")
    cli.is_free()
    emacs.becomes("(e2e-layout)", before)
    assert emacs.value(MINE) == "mine\n"
    assert second.read_text() == "old\n"
    emacs.keys("M-x", "upcase-word", "Enter")
    emacs.becomes(MINE, "MINE\n")


@pytest.mark.shared("term")
@differs
def test_six_files_of_a_turn_are_answered_by_chords_from_the_terminal(
    world: World,
) -> None:
    files = [world.file(f"{name}.txt", "old\n") for name in "abcdef"]
    emacs, cli = world.run_pair(*files, extra=PATIENT)
    emacs.resize(SMALL)
    before = emacs.value("(e2e-windows)")
    cli.model.script(
        *(write_file(file, f"{file.name}\n") for file in files), say("done")
    )
    cli.prompt()
    for file in files:
        emacs.wait_for(f"gemini proposal: {file.name}")
        emacs.holds(ACCEPTS, "the review takes answers")
        cli.model.answers.clear()
        emacs.keys("C-c", "C-c")
        emacs.says(f"Accepted {file.name}")
        # The CLI shows that it has asked before, and Emacs waits for the next one.
        emacs.wait_for("Waiting for the next edit; q closes now")
        emacs.text("x y")
        cli.model.answers.set()
    cli.wait_for("done")
    emacs.becomes("(e2e-windows)", before)
    emacs.becomes(SELECTED, "*gemini: project*")
    assert [file.read_text() for file in files] == [f"{file.name}\n" for file in files]
    # No key went to the terminal.
    cli.is_free()
    emacs.resize(SIZE)


@pytest.mark.shared("term")
@differs
def test_six_files_of_a_turn_are_answered_by_the_keys_of_ediff(
    world: World,
) -> None:
    """By somebody who knows Ediff, and reads what Emacs says."""
    old = "".join(f"{number}\n" for number in range(1, 8))
    first, second = old.replace("2\n", "two\n"), old.replace("6\n", "six\n")
    new = first.replace("6\n", "six\n")
    files = [world.file(f"{name}.txt", old) for name in "abcdef"]
    emacs, cli = world.run_pair(*files, extra=PATIENT)
    emacs.resize(SMALL)
    before = emacs.value("(e2e-windows)")
    cli.model.script(*(write_file(file, new) for file in files))
    cli.prompt()
    for number, file in enumerate(files):
        emacs.wait_for(f"gemini proposal: {file.name}")
        emacs.holds(f"(and (gemini-companion-edit-shown) {DRAWN})")
        emacs.wait_for(" 1/2 ")
        if number == 0:
            emacs.keys("a")
            emacs.wait_for("Letter ignored: C-c C-c accepts, C-c C-k rejects")
            emacs.command("gemini-companion-review")
        emacs.keys("|", *["n"] * (number % 2), "a")
        screen = emacs.wait_for(f" {1 + number % 2}/2 excluded")
        assert "two" in screen
        assert "six" in screen
        emacs.keys("q")
        emacs.wait_for(f"Answer for {file.name}")
        emacs.keys("r" if file == files[-1] else "a")
        emacs.says(f"{'Rejected' if file == files[-1] else 'Accepted'} {file.name}")
    cli.is_free()
    emacs.becomes("(e2e-windows)", before)
    emacs.becomes(SELECTED, "*gemini: project*")
    written = [second, first, second, first, second, old]
    assert [file.read_text() for file in files] == written
    emacs.resize(SIZE)
