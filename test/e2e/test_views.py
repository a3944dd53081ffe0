# SPDX-License-Identifier: GPL-3.0-or-later
"""The Ediff and the unified view, their keys, windows, frames and tabs."""

import pytest
from harness.emacs import PROPOSAL
from harness.gemini import type_until
from harness.model import say, write_file
from harness.world import World

pytestmark = pytest.mark.shared
differs = pytest.mark.differs("Ediff, windows, frames and the redisplay")

OLD = "\n".join(map(str, range(1, 31))) + "\n"
NEW = OLD.replace("\n10\n", "\nten\n").replace("\n20\n", "\ntwenty\n")

OWN = "(setq gemini-companion-review-view 'diff)"
EDIFF = "(setq gemini-companion-review-view 'ediff)"

STRUCK = """
(with-current-buffer "*gemini proposal: a.txt*"
  (mapconcat (lambda (overlay)
               (if (eq 'gemini-companion-excluded-text
                       (car-safe (overlay-get overlay 'face)))
                   (buffer-substring-no-properties (overlay-start overlay)
                                                   (overlay-end overlay))
                 ""))
             (overlays-in (point-min) (point-max))
             ""))
"""


@differs
def test_ediff_has_signs_and_strikes_an_excluded_hunk_through(world: World) -> None:
    text = NEW.replace("\n5\n", "\n5\nadded\n")
    file, emacs, reviews, cli = world.review(OLD, text, say("all done"), extra=EDIFF)
    reviews.select()

    emacs.wait_for("+added")
    emacs.wait_until_gone("-6")
    emacs.keys("n")
    emacs.wait_for("-10")
    emacs.wait_for("+ten")
    emacs.wait_until_gone("+added")
    emacs.keys("x")
    emacs.wait_for("Hunk 2 of 3, excluded")
    emacs.wait_for("x restore")
    emacs.wait_for("x10")
    emacs.wait_for("xten")
    emacs.command("ediff-update-diffs")
    emacs.wait_for("Hunk 2 of 3, excluded")

    # The control panel is written when it is left, not the buffer after it.
    emacs.keys("C-x", "o", "C-x", "o", "C-x", "o")
    emacs.holds('(string-search "proposal" (buffer-name (window-buffer)))')
    original = '(buffer-size (get-buffer "*gemini original: a.txt*"))'
    assert emacs.eval(original) == str(len(OLD))

    emacs.keys("C-x", "o", "n")
    emacs.wait_for("Hunk 3 of 3  ")
    emacs.becomes(STRUCK, "ten\n")
    emacs.keys("v")
    emacs.wait_for("+twenty")
    emacs.keys("v")
    emacs.wait_for("Hunk 3 of 3")
    emacs.becomes(STRUCK, "ten\n")
    emacs.keys("p")
    emacs.wait_for("Hunk 2 of 3, excluded")
    emacs.keys("x", "n")
    emacs.becomes(STRUCK, "")
    emacs.keys("x", "C-c", "C-c")

    emacs.says("Accepted a.txt: 2 of 3 hunks")
    cli.finished("all done", file, text.replace("twenty", "20"))


@differs
def test_winner_undo_restores_the_previous_windows_of_the_user(world: World) -> None:
    file = world.file("a.txt", OLD)
    emacs, reviews, cli = world.pair(file, extra=f"{EDIFF}(winner-mode 1)")
    emacs.keys("C-x", "2", "C-x", "b", "*scratch*", "Enter", "C-x", "3")
    emacs.becomes("(e2e-windows)", "*scratch* *scratch* a.txt")

    reviews.proposed(cli, file, write_file(file, NEW), say("all done"))
    reviews.select()
    emacs.keys("n", "C-c", "C-c")
    cli.wait_for("all done")
    emacs.becomes("(e2e-windows)", "*scratch* *scratch* a.txt")

    emacs.keys("C-c", "Left")
    emacs.wait_for("Winner undo")
    assert emacs.value("(e2e-windows)") in ("*scratch* a.txt", "a.txt a.txt")
    emacs.eval("(winner-mode -1)")


@differs
def test_review_waits_again_if_its_frame_is_deleted(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs, reviews, cli = world.pair(file)
    emacs.keys("C-x", "5", "2")
    emacs.holds("(= 2 (length (frame-list)))")
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("all done"))
    reviews.edit("uno", "mine")
    # Another frame displays it, too.
    reviews.select("C-x", "5", "2", "C-x", "5", "0")
    emacs.holds("(= 2 (length (frame-list)))")
    assert reviews.states() == ["shown"]
    emacs.eval(f"(select-frame (window-frame (get-buffer-window {PROPOSAL} t)))")

    emacs.keys("C-x", "5", "0")

    emacs.holds("(= 1 (length (frame-list)))")
    emacs.wait_for("+mine")
    reviews.accept()
    cli.wait_for("all done")
    emacs.becomes("(e2e-windows)", "a.txt")
    assert file.read_text() == "mine\n"


@differs
@pytest.mark.parametrize("key", ["q", "R"])
def test_review_waits_again_if_the_connection_of_its_terminal_is_lost(
    world: World, key: str
) -> None:
    file, other = world.file("a.txt", "one\n"), world.file("b.txt", "two\n")
    emacs, reviews, cli = world.pair(other)
    client = [world.tools.emacsclient, "-t", "-s", "emacs", str(file)]
    second = world.tmux.start(key, client, world.project, {}, (80, 24))
    second.wait_for("a.txt")
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("all done"))
    second.wait_for("uno")
    second.text(f"\x1bxgemini-companion-review\r{key}")
    second.wait_for("keep reviewing" if key == "q" else "reason for")
    if key == "R":
        second.text("half a reason")
        second.wait_for("half a reason")

    world.tmux.call("kill-session", "-t", f"={key}:")

    emacs.holds("(= 1 (length (frame-list)))")
    if key == "R":
        # Emacs has moved the question to the other frame, and may drop a key that
        # it gets while it does so.
        emacs.eval("(select-window (active-minibuffer-window))")
        kept = '(ignore-errors (equal (current-kill 0) "half a reason"))'
        type_until(
            lambda: emacs.keys("Enter"), lambda: emacs.value(kept), "the reason is kept"
        )
        return
    # It goes on to read keys, those that are typed elsewhere.
    emacs.keys("a")
    emacs.says("Review was hidden; the edit still awaits an answer")
    emacs.wait_for("uno")
    assert file.read_text() == "one\n"
    reviews.accept()
    cli.finished("all done", file, "uno\n")
    emacs.becomes("(e2e-windows)", "b.txt")


@differs
def test_frame_made_for_a_review_by_a_rule_is_deleted_with_it(world: World) -> None:
    rule = """(setq frame-auto-hide-function #'delete-frame display-buffer-alist
                    '(("gemini diff" display-buffer-pop-up-frame)))"""
    file = world.file("a.txt", OLD)
    emacs, reviews, cli = world.pair(file, extra=OWN + rule)
    emacs.keys("C-x", "3")
    reviews.proposed(cli, file, write_file(file, NEW), say("all done"))
    emacs.becomes("(length (frame-list))", 2)

    reviews.select("v")
    emacs.becomes("(length (frame-list))", 1)
    emacs.keys("v")
    emacs.becomes("(length (frame-list))", 2)
    reviews.select("C-c", "C-c")

    cli.finished("all done", file, NEW)
    reviews.ended()
    assert emacs.eval('(list (frame-list) (e2e-said "nesting"))').count("frame") == 1
    emacs.eval("(setq display-buffer-alist nil)")


def test_review_appears_on_the_terminal_that_shows_the_file(world: World) -> None:
    file, other = world.file("a.txt", "one\n"), world.file("b.txt", "two\n")
    emacs, _, cli = world.pair(file)
    client = [world.tools.emacsclient, "-t", "-s", "emacs", str(other)]
    second = world.tmux.start("second", client, world.project, {}, (80, 24))
    second.wait_for("b.txt")
    cli.model.script(write_file(file, "uno\n"), say("all done"))

    cli.ask()

    emacs.wait_for("gemini-companion-review to answer")
    assert "to answer" not in second.screen()
    emacs.command("gemini-companion-review")
    emacs.keys("C-c", "C-c")
    cli.wait_for("all done")
    emacs.wait_until_gone("a.txt  +")
    assert "two" in second.screen()
    second.keys("C-f")
    emacs.becomes("(buffer-name (window-buffer))", "b.txt")

    # One of a file that none shows avoids a frame that is only for another buffer.
    # Nor does an answer in the terminal of the CLI change anything there, if the
    # user has left a window on the first one that was not there before.
    emacs.eval("(set-window-dedicated-p nil t)")
    cli.model.script(write_file(file.with_name("new"), "due\n"), say("done again"))
    cli.ask()
    emacs.wait_for("gemini-companion-review to answer")
    emacs.keys("C-x", "o", "C-x", "2", "C-x", "b", "*scratch*", "Enter")
    second.keys("C-f")
    emacs.becomes("(buffer-name (window-buffer))", "b.txt")
    cli.answer("Allow once")
    cli.wait_for("done again")
    emacs.holds("(null (gemini-companion-edits-ending))")
    emacs.wait_for("*scratch*")
    emacs.wait_until_gone("diff: new")
    emacs.becomes("(e2e-windows)", "b.txt")

    # On request, it appears where the user is.
    emacs.eval("(setq gemini-companion-review-arrival 'notify)")
    cli.model.script(write_file(file, "tre\n"))
    cli.ask()
    second.wait_for("gemini-companion-review shows it")
    second.text("\x1bxgemini-companion-review\r")
    second.wait_for("a accept")
    second.keys("a", "C-x", "5", "0")
    emacs.becomes("(length (frame-list))", 1)


@pytest.mark.shared("inside")
@pytest.mark.parametrize("view", [pytest.param("ediff", marks=differs), "diff"])
def test_terminal_stays_and_returns_with_the_review(world: World, view: str) -> None:
    turn = say("all done")
    file, emacs, reviews, cli = world.review(OLD, NEW, turn, inside=True, extra=OWN)
    emacs.becomes("(buffer-name (window-buffer))", "*terminal*")
    reviews.select()
    if view == "ediff":
        emacs.keys("v")
        emacs.wait_for("Hunk 1 of 2")
    terminal = '(get-buffer-window "*terminal*")'
    before = emacs.value(f"(window-edges {terminal})")
    windows = emacs.eval("(e2e-windows)")

    for removal in (
        "(delete-other-windows)",
        f"(delete-window {terminal})",
        f"(delete-other-windows {terminal})",
    ):
        emacs.act(removal)
        reviews.select()
        emacs.holds(f"(equal {windows} (e2e-windows))", removal)
        emacs.becomes(f"(window-edges {terminal})", before)
        assert emacs.value("(buffer-name (window-buffer))") != "*terminal*"

    if view == "ediff":
        emacs.keys("C-c", "C-c")
    else:
        emacs.eval(f"(select-window {terminal})")
        cli.answer("Allow once")
    cli.finished("all done", file, NEW)
    emacs.becomes("(e2e-windows)", "*terminal*")


@pytest.mark.shared("inside")
@pytest.mark.parametrize("view", [pytest.param("diff", marks=differs), "ediff"])
def test_list_leaves_the_terminal_and_the_review(world: World, view: str) -> None:
    extra = f"{OWN}(setq gemini-companion-review-view '{view})"
    turn = say("all done")
    _, emacs, reviews, cli = world.review(OLD, NEW, turn, inside=True, extra=extra)
    # A proposal is accepted at once, though it has just been drawn.
    emacs.eval("(setq gemini-companion-guard--recent-seconds 0)")
    in_list = '(equal "*gemini*" (buffer-name (window-buffer)))'
    reviews.select()
    before = emacs.value("(e2e-windows)")

    for back in ("q", "Enter"):
        emacs.keys("l")
        emacs.holds(in_list)
        windows = emacs.value("(e2e-windows)")
        assert windows.startswith("*terminal* ")
        emacs.keys(back)
        emacs.holds(f"(not {in_list})")
        emacs.becomes("(e2e-windows)", before)
    emacs.keys("l")
    emacs.holds(in_list)
    emacs.keys("a")

    cli.wait_for("all done")
    emacs.becomes("(e2e-windows)", "*terminal* *gemini*")
    emacs.act("(gemini-companion-list)")
    row = "C-n", "C-n"
    for key, selected in ("Enter", "a.txt"), ("C-o", "*gemini*"):
        emacs.keys(*row, key)
        emacs.holds('(equal "*terminal* *gemini* a.txt" (e2e-windows))')
        emacs.holds(f'(equal "{selected}" (buffer-name (window-buffer)))')
        emacs.act('(delete-window (get-buffer-window "a.txt"))')
        emacs.act("(gemini-companion-list)")
    emacs.keys(*row, "C-u", "u", "y")
    emacs.wait_for_match(r"accepted +\+2 \u22122 +a\.txt .*undone")
    emacs.keys("q")
    emacs.holds('(equal "*terminal*" (e2e-windows))')
    cli.is_free()
