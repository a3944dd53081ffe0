# SPDX-License-Identifier: GPL-3.0-or-later
"""A review, its keys, and the windows and frames around it."""

import pytest
from harness.emacs import PROPOSAL, SIZE
from harness.gemini import type_until
from harness.model import say, write_file
from harness.world import World

pytestmark = pytest.mark.shared("review")
differs = pytest.mark.differs("Ediff, windows, frames and the redisplay")

OLD = "\n".join(map(str, range(1, 31))) + "\n"
NEW = OLD.replace("\n10\n", "\nten\n").replace("\n20\n", "\ntwenty\n")

ANSWERS = """(with-current-buffer (window-buffer)
  (and (eq 'gemini-companion-edit-accept (key-binding (kbd "C-c C-c")))
       (null (gemini-companion-proposal-check))))"""

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
def test_ediff_strikes_an_excluded_hunk_through(world: World) -> None:
    text = NEW.replace("\n5\n", "\n5\nadded\n")
    file, emacs, reviews, cli = world.review(OLD, text, say("all done"))
    reviews.select()

    emacs.wait_for(" 1/3 ")
    emacs.keys("n")
    emacs.wait_for(" 2/3 ")
    emacs.keys("x")
    emacs.wait_for("2/3 excluded")
    emacs.becomes(STRUCK, "ten\n")
    emacs.command("ediff-update-diffs")
    emacs.wait_for("2/3 excluded")

    # The control panel is written when it is left, not the buffer after it.
    emacs.keys("C-x", "o", "C-x", "o", "C-x", "o")
    emacs.holds('(string-search "Control" (buffer-name (window-buffer)))')
    original = '(buffer-size (get-buffer "*gemini original: a.txt*"))'
    assert emacs.eval(original) == str(len(OLD))

    emacs.keys("n")
    emacs.wait_for(" 3/3  C-c")
    emacs.keys("p")
    emacs.wait_for("2/3 excluded")
    emacs.keys("x", "n")
    emacs.becomes(STRUCK, "")
    emacs.keys("x", "C-c", "C-c")

    emacs.says("Accepted a.txt: 2 of 3 hunks")
    cli.finished("all done", file, text.replace("twenty", "20"))


@differs
def test_hunk_that_an_edit_joins_is_drawn_and_written_as_one(world: World) -> None:
    old = "1\n2\n3\n4\n"
    new = "one\n2\nthree\n4\n"
    file, emacs, reviews, cli = world.review(old, new, say("all done"))
    reviews.select()
    emacs.wait_for(" 1/2 ")
    emacs.keys("n", "x")
    emacs.wait_for("2/2 excluded")
    emacs.keys("C-c", "C-e", "M-<", "Down")
    emacs.text("mine ")
    # It is told at once, and the hunks are drawn as one.
    emacs.says("An excluded hunk of a.txt has changed and was restored")
    emacs.wait_for(" 1/1  C-c")
    emacs.wait_until_gone("excluded  ")
    emacs.keys("C-c", "C-c")
    cli.finished("all done", file, "one\nmine 2\nthree\n4\n")


@pytest.mark.differs("keys, the region and the undo of Emacs")
@pytest.mark.parametrize("place", ["overview", "ediff"])
def test_lines_of_the_region_are_not_written(world: World, place: str) -> None:
    new = OLD.replace("\n10\n11\n", "\nten\nnot this\n10a\n11\n")
    file, emacs, reviews, cli = world.review(OLD, new, say("all done"))
    if place == "overview":
        emacs.command("gemini-companion-list")
        exclude, undo, accept = ["x"], "Taken back: exclusion of lines", ["a"]
    else:
        reviews.select("e")
        exclude, undo, accept = ["C-c", "C-x"], "Undo", ["C-c", "C-c"]
    text = f"(with-current-buffer {PROPOSAL} (buffer-string))"
    without = new.replace("not this\n", "")

    for back in (True, False):
        emacs.keys("M-<", "C-s")
        emacs.text("not this")
        emacs.keys("Enter", "C-a", "C-Space", "C-n", *exclude)
        emacs.says("Lines excluded; ")
        emacs.becomes(text, without)
        if back:
            emacs.keys("C-_")
            emacs.says(undo)
            emacs.becomes(text, new)

    if place == "overview":
        emacs.row_takes_answers()
    emacs.keys(*accept)
    cli.finished("all done", file, without)


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
    emacs.holds("(gemini-companion-edit-shown)")
    emacs.eval(f"(select-frame (window-frame (get-buffer-window {PROPOSAL} t)))")

    emacs.keys("C-x", "5", "0")

    emacs.holds("(= 1 (length (frame-list)))")
    emacs.holds("(null (gemini-companion-edit-shown))")
    reviews.select()
    emacs.wait_for("mine")
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
    second.wait_for("gemini-companion-review shows it")
    second.text("\x1bxgemini-companion-review\r")
    second.wait_for("uno")
    second.text("\x03\x12" if key == "R" else key)
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
    assert file.read_text() == "one\n"
    reviews.accept()
    cli.finished("all done", file, "uno\n")
    emacs.becomes("(e2e-windows)", "b.txt")


def test_proposal_appears_on_the_selected_frame(world: World) -> None:
    file, other = world.file("a.txt", "one\n"), world.file("b.txt", "two\n")
    emacs, reviews, cli = world.pair(file)
    client = [world.tools.emacsclient, "-t", "-s", "emacs", str(other)]
    second = world.tmux.start("second", client, world.project, {}, (80, 24))
    second.wait_for("b.txt")
    second.keys("C-x", "2", "C-x", "b")
    second.text("*scratch*\r")
    emacs.becomes("(e2e-windows)", "*scratch* b.txt")

    # Its row is in the other window, and the selected one takes the keys.
    reviews.proposed(cli, file, write_file(file, "uno\n"), say("all done"))
    second.wait_for("+uno")
    emacs.becomes("(e2e-windows)", "*scratch* *gemini*")
    second.text("mine")
    emacs.holds('(with-current-buffer "*scratch*" (looking-back "mine" 1))')
    assert "uno" not in emacs.screen()

    second.text("\x1bxgemini-companion-review\r")
    second.wait_for(" 1/1 ")
    second.keys("C-c", "C-c")
    cli.finished("all done", file, "uno\n")
    # The end of its turn is not known.
    second.wait_for("Waiting for the next edit; q closes now")
    second.keys("q")
    emacs.becomes("(e2e-windows)", "*scratch* *gemini*")
    second.keys("C-x", "o", "q")
    emacs.becomes("(e2e-windows)", "*scratch* b.txt")
    second.keys("C-x", "5", "0")
    emacs.becomes("(length (frame-list))", 1)


def test_review_leaves_a_frame_without_room(world: World) -> None:
    """Such as that of the control panel of one's own Ediff session."""
    file, emacs, reviews, cli = world.review("one\n", "uno\n", say("all done"))
    emacs.eval("(progn (select-frame (make-frame)) (set-frame-size nil 18 5) nil)")
    emacs.becomes("(list (frame-width) (frame-height))", [18, 5])
    reviews.select()
    emacs.becomes("(frame-width)", SIZE[0])
    emacs.wait_for(" 1/1 ")
    emacs.keys("C-c", "C-c")
    cli.finished("all done", file, "uno\n")
    emacs.eval("(progn (delete-other-frames) nil)")


ALL_WINDOWS = """
(string-join
 (sort (mapcar (lambda (frame)
                 (mapconcat (lambda (window) (buffer-name (window-buffer window)))
                            (window-list frame 'no-minibuffer) " "))
               (frame-list))
       #'string<)
 ", ")
"""


@pytest.mark.shared("inside")
@differs
def test_review_that_is_answered_in_another_frame_closes_in_its_own(
    world: World,
) -> None:
    turn = say("all done")
    file, emacs, _, cli = world.review(OLD, NEW, turn, inside=True)
    emacs.wait_for(" 1/2 ")
    other = world.file("b.txt", "")
    client = [world.tools.emacsclient, "-t", "-s", "emacs", str(other)]
    second = world.tmux.start("second", client, world.project, {}, (80, 24))
    second.wait_for("b.txt")
    second.text("\x1bxgemini-companion-review\r")
    second.wait_for(" 1/2 ")
    second.keys("C-c", "C-c")
    cli.finished("all done", file, NEW)
    second.wait_for("Waiting for the next edit; q closes now")
    second.keys("q")
    emacs.becomes(ALL_WINDOWS, "*terminal*, b.txt")
    second.keys("C-x", "5", "0")
    emacs.becomes("(length (frame-list))", 1)


@pytest.mark.shared("inside")
@differs
def test_review_begins_where_the_user_waits_for_it(world: World) -> None:
    turn = say("all done")
    file, emacs, reviews, cli = world.review(OLD, NEW, turn, inside=True)
    emacs.wait_for(" 1/2 ")
    # They were typed for the terminal.
    for letter in "axeclW":
        emacs.keys(letter)
        emacs.says("Letter ignored: C-c C-c accepts")
    emacs.holds(ANSWERS, "the review takes answers")
    emacs.keys("q", "a")
    emacs.says("Keys ignored: nothing was decided; q asks again")
    emacs.keys("q")
    emacs.wait_for("keep reviewing")
    emacs.keys("k")
    reviews.wait_until(1)

    # A review that has lost a window begins again.
    emacs.keys("C-x", "1")
    reviews.select()
    emacs.wait_for(" 1/2 ")
    emacs.keys("n")
    emacs.wait_for(" 2/2 ")
    emacs.keys("C-c", "C-c")

    cli.finished("all done", file, NEW)
    # The end of its turn is not known.
    emacs.wait_for("Waiting for the next edit; q closes now")
    emacs.keys("q")
    emacs.becomes("(e2e-windows)", "*terminal*")


@pytest.mark.shared("term")
@differs
def test_windows_of_before_come_back_at_the_end_of_the_turn(world: World) -> None:
    file = world.file("a.txt", OLD)
    emacs, cli = world.run_pair(file)
    before = emacs.value("(e2e-windows)")
    cli.model.script(write_file(file, NEW), say("all done"))
    cli.prompt()
    emacs.wait_for(" 1/2 ")
    # In its first second, the key may be typed for the CLI.
    emacs.holds(ANSWERS, "the review takes answers")
    emacs.keys("C-c", "C-c")
    cli.finished("all done", file, NEW)
    emacs.becomes("(e2e-windows)", before)
    emacs.becomes("(buffer-name (window-buffer))", "*gemini: project*")


@pytest.mark.shared("inside")
@differs
def test_list_ends_the_review_until_it_begins_again(world: World) -> None:
    turn = say("all done")
    file, emacs, _, cli = world.review(OLD, NEW, turn, inside=True)
    in_list = '(equal "*gemini*" (buffer-name (window-buffer)))'
    emacs.wait_for(" 1/2 ")
    emacs.command("gemini-companion-review")

    emacs.keys("l")
    emacs.holds(in_list)
    assert "*terminal*" in emacs.value("(e2e-windows)")
    emacs.keys("Enter")
    emacs.wait_for(" 1/2 ")
    emacs.keys("l")
    emacs.holds(in_list)
    emacs.keys("q")
    emacs.becomes("(e2e-windows)", "*terminal*")
    emacs.act("(gemini-companion-list)")
    emacs.row_takes_answers()
    emacs.keys("a")

    cli.finished("all done", file, NEW)
    emacs.act("(gemini-companion-list)")
    row = "C-n", "C-n"
    for key, selected in ("Enter", "a.txt"), ("C-o", "*gemini*"):
        emacs.keys(*row, key)
        emacs.holds('(get-buffer-window "a.txt")')
        emacs.holds(f'(equal "{selected}" (buffer-name (window-buffer)))')
        emacs.act('(delete-window (get-buffer-window "a.txt"))')
        emacs.act("(gemini-companion-list)")
    emacs.keys(*row, "C-u", "u")
    emacs.keys("y")
    emacs.wait_for_match(r"accepted +\+2 \u22122 +a\.txt .*undone")
    emacs.keys("q")
    emacs.holds('(equal "*terminal*" (e2e-windows))')
    cli.is_free()
