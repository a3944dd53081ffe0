# SPDX-License-Identifier: GPL-3.0-or-later
"""A review appears when the user is idle, and not before."""

from itertools import pairwise, product

import pytest
from harness.emacs import Emacs, Reviews, lisp
from harness.proposals import PROPOSE, propose
from harness.world import World

pytestmark = pytest.mark.shared

OWN = f"""{PROPOSE}
(require 'transient)
(transient-define-prefix e2e-menu () [("z" "nothing" ignore)])
(global-set-key [f5] (lambda () (interactive) (recursive-edit)))
(global-set-key [f6] #'e2e-menu)
(xterm-mouse-mode 1)
;; It leaves the echo area alone, as Ediff does not.
(setq gemini-companion-review-view 'diff)
"""

WINDOWS = """
(defun e2e-arrangement ()
  "Return buffers and places of the windows, the selected one first."
  (mapcar (lambda (window)
            (list (buffer-name (window-buffer window)) (window-start window)
                  (window-edges window)))
          (window-list nil 'no-minibuffer)))
"""

EDIFF = "(setq gemini-companion-review-view 'ediff)"

PRESS, RELEASE = "\x1b[<0;3;3M", "\x1b[<0;3;3m"

# An activity of the user, its state in Emacs, its end
BUSY = [
    (["C-s", "o"], "(buffer-local-value 'isearch-mode (window-buffer))", ["Enter"]),
    (["C-x", "("], "defining-kbd-macro", ["C-x", ")"]),
    (["F5"], "(< 0 (recursion-depth))", ["C-M-c"]),
    (["F6"], "(bound-and-true-p transient--prefix)", ["C-g"]),
    (["C-x"], "(equal [?\\C-x] (this-command-keys-vector))", ["C-g"]),
    (["C-u"], "prefix-arg", ["C-g"]),
    (["M-:"], "(active-minibuffer-window)", ["C-g"]),
    (["M-<", "M-%", "o", "Enter", "x", "Enter"], "(one-window-p)", ["q"]),
]


def started(world: World, arrival: str = "when-idle") -> Emacs:
    """Return an Emacs that visits a.txt, and shows reviews by ``arrival``."""
    option = f"(setq gemini-companion-review-arrival '{arrival})"
    return world.emacs(world.file("a.txt", "one\n"), extra=OWN + option)


def left_alone(emacs: Emacs) -> None:
    """Wait for longer than a review waits after a key."""
    emacs.holds("(< 1.5 (float-time (current-idle-time)))", "no keys are typed")


def test_review_waits_until_the_user_is_idle(world: World) -> None:
    emacs = started(world)
    reviews = Reviews(emacs)
    for begin, sign, end in BUSY:
        emacs.keys(*begin)
        emacs.holds(sign)
        propose(emacs, world.project / "a.txt", "uno\n")
        left_alone(emacs)
        assert reviews.states() == ["pending"], sign
        emacs.wait_for("?1")

        emacs.keys(*end)
        reviews.shown("a.txt")
        reviews.reject()


# A prompt that no command has made, and the key that answers it.
PROMPTS = [
    ('(read-string "Name: ")', "(active-minibuffer-window)", "Enter"),
    ('(y-or-n-p "Go on? ")', "(active-minibuffer-window)", "y"),
    ('(read-event "Key: ")', '(equal "Key: " (current-message))', "k"),
]


def test_review_appears_after_a_prompt_of_no_command(world: World) -> None:
    emacs = started(world)
    reviews = Reviews(emacs)
    for prompt, sign, answer in PROMPTS:
        emacs.eval(f"(run-at-time 0 nil (lambda () {prompt}))")
        emacs.holds(sign)
        propose(emacs, world.project / "a.txt", "uno\n")
        emacs.keys(answer)
        reviews.shown("a.txt")
        reviews.reject()


def test_review_waits_for_the_end_of_a_mouse_drag(world: World) -> None:
    emacs = started(world)
    reviews = Reviews(emacs)
    emacs.terminal.text(PRESS)
    emacs.holds("track-mouse")
    propose(emacs, world.project / "a.txt", "uno\n")
    left_alone(emacs)
    assert reviews.states() == ["pending"]

    emacs.terminal.text(RELEASE)
    reviews.shown("a.txt")


def test_text_that_is_being_typed_stays_in_its_window(world: World) -> None:
    emacs = started(world)
    reviews = Reviews(emacs)
    prose = "annul a pack of quiet aardvarks, please"
    for number, (_, letter) in enumerate(pairwise(" " + prose)):
        emacs.terminal.text(letter)
        if number == 3:
            propose(emacs, world.project / "a.txt", "uno\n")

    reviews.shown("a.txt")
    emacs.becomes('(with-current-buffer "a.txt" (buffer-string))', prose + "one\n")
    assert reviews.proposal() == "uno\n"


SIZES = [(80, 24), (100, 30), (160, 45)]
PROSE = " annul a quiet box, equal to a new pack; rest anywhere\t!"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", ["ediff", "diff"])
def test_arrival_leaves_the_keys_to_the_window_in_use(
    world: World, view: str, size: tuple[int, int]
) -> None:
    notes = world.file("notes.txt")
    file = world.file("a.txt", "one\ntwo\nthree\n")
    option = f"(setq gemini-companion-review-view '{view})"
    emacs = world.emacs(file, notes, extra=OWN + WINDOWS + option, size=size)
    reviews = Reviews(emacs)
    emacs.text("note:")
    before = emacs.value("(e2e-arrangement)")
    propose(emacs, file, "uno\ntwo\ntre\n")
    reviews.shown("a.txt")
    emacs.wait_for("selects it")

    emacs.text(PROSE)
    emacs.keys("Enter")
    emacs.holds('(with-current-buffer "notes.txt" (bolp))')

    emacs.becomes(
        '(with-current-buffer "notes.txt" (buffer-string))', f"note:{PROSE}\n"
    )
    assert reviews.states() == ["shown"]
    assert reviews.proposal() == "uno\ntwo\ntre\n"
    emacs.wait_for(PROSE[:20])
    emacs.wait_for("uno")
    reviews.reject()
    emacs.becomes("(e2e-arrangement)", before)
    emacs.becomes("(window-point)", len(f"note:{PROSE}\n") + 1)


@pytest.mark.parametrize("view", ["ediff", "diff"])
def test_review_that_was_covered_is_laid_out_and_selected_by_its_command(
    world: World, view: str
) -> None:
    file = world.file("a.txt", "one\n")
    option = f"(setq gemini-companion-review-view '{view})"
    emacs = world.emacs(file, extra=OWN + WINDOWS + option)
    reviews = Reviews(emacs)
    propose(emacs, file, "uno\n")
    reviews.shown("a.txt")
    emacs.keys("C-x", "1", "C-x", "3")
    before = emacs.value("(e2e-arrangement)")

    emacs.command("gemini-companion-review")
    emacs.wait_for("uno")
    emacs.keys("C-c", "C-k")

    emacs.holds("(equal '(rejected) e2e-ends)")
    emacs.becomes("(e2e-arrangement)", before)


def test_click_selects_a_review(world: World) -> None:
    emacs = started(world)
    propose(emacs, world.project / "a.txt", "uno\n")
    Reviews(emacs).shown("a.txt")
    screen = emacs.wait_for("+uno").splitlines()
    row = next(n for n, line in enumerate(screen, 1) if "+uno" in line)

    emacs.text(f"\x1b[<0;3;{row}M\x1b[<0;3;{row}m")
    emacs.holds('(equal "*gemini diff: a.txt*" (buffer-name (window-buffer)))')
    emacs.keys("C-c", "C-c")
    emacs.holds("(equal '(accepted) e2e-ends)")


IN_TERMINAL = """
(unless (get-process "cli")
  (start-process "cli" "*cli*" "cat")
  (set-process-query-on-exit-flag (get-process "cli") nil))
(defun e2e-propose-there (file)
  "Propose a text for FILE as a CLI that runs in *cli* would."
  (gemini-companion-diff-open
   (setq e2e-id (1+ e2e-id))
   (list :id "one" :pid (process-id (get-process "cli"))
         :directory (file-name-directory file))
   file "uno\n")
  nil)
(defun e2e-beside (selected)
  "Show a.txt and *cli* beside each other, and select SELECTED of them."
  (delete-other-windows)
  (switch-to-buffer "a.txt")
  (set-window-buffer (split-window-right) "*cli*")
  (select-window (get-buffer-window selected))
  nil)
"""


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
def test_terminal_of_the_cli_stays_visible_beside_a_review(
    world: World, size: tuple[int, int]
) -> None:
    file = world.file("a.txt", "one\ntwo\nthree\n")
    emacs = world.emacs(file, extra=OWN + WINDOWS + IN_TERMINAL, size=size)
    reviews = Reviews(emacs)
    for view, selected in product(("ediff", "diff"), ("a.txt", "*cli*")):
        emacs.eval(f"(setq gemini-companion-review-view '{view})")
        emacs.eval(f"(e2e-beside {lisp(selected)})")
        before = emacs.value("(e2e-arrangement)")
        emacs.eval(f"(e2e-propose-there {lisp(file)})")
        reviews.shown("a.txt")
        emacs.wait_for("uno")
        arrived = emacs.value("(e2e-arrangement)")
        assert next(iter(arrived)) == selected
        reviews.select()
        emacs.wait_for("uno")
        # There is no room for both in 80 columns.
        if size == (160, 45):
            assert arrived["*cli*"] == before["*cli*"]
            assert emacs.value("(e2e-arrangement)")["*cli*"] == before["*cli*"]
        reviews.reject()
        emacs.becomes("(e2e-arrangement)", before)


@pytest.mark.parametrize("split", ["split-window-below", "split-window-right"])
def test_terminal_stays_at_its_side_when_ediff_needs_more_room(
    world: World, split: str
) -> None:
    file = world.file("a.txt", "one\n")
    extra = OWN + WINDOWS + IN_TERMINAL
    emacs = world.emacs(file, extra=extra, size=(120, 40))
    reviews = Reviews(emacs)
    emacs.eval(
        f"""(progn (delete-other-windows) (switch-to-buffer "a.txt")
                   (set-window-buffer ({split}) "*cli*") nil)"""
    )
    emacs.eval(f"(e2e-propose-there {lisp(file)})")
    reviews.shown("a.txt")
    reviews.select()
    emacs.keys("v")
    emacs.wait_for("Hunk 1 of 1")

    windows = emacs.value("(e2e-arrangement)")
    corners = {name: edges[:2] for name, (_, edges) in windows.items()}
    assert corners["*cli*"] == max(corners.values())
    reviews.reject()


TYPES = """
(add-hook 'gemini-companion-diff-opened-functions
          (lambda (_) (setq unread-command-events (list ?r ?a))))
"""


@pytest.mark.parametrize("focus", ["nil", "terminal", "t"])
@pytest.mark.parametrize("selected", ["a.txt", "*cli*"])
def test_review_is_selected_by_itself_only_if_the_user_wants_it(
    world: World, selected: str, focus: str
) -> None:
    file = world.file("a.txt", "one\n")
    option = f"(setq gemini-companion-review-focus '{focus})"
    emacs = world.emacs(file, extra=OWN + IN_TERMINAL + option)
    reviews = Reviews(emacs)
    emacs.eval(f"(e2e-beside {lisp(selected)})")
    wanted = focus == "t" or (focus == "terminal" and selected == "*cli*")
    if wanted:
        emacs.eval(f"(progn {TYPES} nil)")
    emacs.eval(f"(e2e-propose-there {lisp(file)})")
    reviews.shown("a.txt")
    if not wanted:
        emacs.becomes("(buffer-name (window-buffer))", selected)
        return
    emacs.says("Key ignored")
    assert reviews.states() == ["shown"]
    left_alone(emacs)
    emacs.keys("r")
    emacs.holds("(equal '(rejected) e2e-ends)")
    emacs.becomes("(buffer-name (window-buffer))", selected)


def test_review_in_a_narrow_frame_is_unified_at_first(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs = world.emacs(file, extra=PROPOSE, size=(119, 45))
    reviews = Reviews(emacs)
    propose(emacs, file, "uno\n")
    reviews.shown("a.txt")
    emacs.wait_for("+uno")
    reviews.select()
    emacs.keys("v")
    emacs.wait_for("Hunk 1 of 1")
    emacs.resize((80, 45))
    emacs.wait_for("e edit  ? more")
    emacs.keys("a")
    emacs.holds("(equal '(accepted) e2e-ends)")
    emacs.holds("(one-window-p)")


def test_ediff_beside_the_terminal_of_the_cli_has_its_sides_above_each_other(
    world: World,
) -> None:
    file = world.file("a.txt", "one\n")
    extra = OWN + WINDOWS + IN_TERMINAL + EDIFF
    emacs = world.emacs(file, extra=extra, size=(200, 50))
    reviews = Reviews(emacs)
    emacs.eval('(e2e-beside "a.txt")')
    before = emacs.value("(e2e-arrangement)")
    emacs.eval(f"(e2e-propose-there {lisp(file)})")
    reviews.shown("a.txt")
    emacs.wait_for("Hunk 1 of 1")
    arrived = emacs.value("(e2e-arrangement)")
    assert arrived["*cli*"] == before["*cli*"]
    sides = ("*gemini original: a.txt*", "*gemini proposal: a.txt*")
    (left, top, right, bottom), (_, below, _, _) = (arrived[s][1] for s in sides)
    assert (right - left, below) == (100, bottom)
    assert bottom - top >= 15
    reviews.reject()


def test_changes_of_other_windows_stay(world: World) -> None:
    file, other = world.file("a.txt", "one\n"), world.file("b.txt", "two\n")
    emacs = world.emacs(file, extra=OWN)
    reviews = Reviews(emacs)
    propose(emacs, file, "uno\n")
    reviews.shown("a.txt")
    emacs.keys("C-x", "C-f", "b.txt", "Enter", "C-f")
    emacs.wait_for("two")

    reviews.reject()
    emacs.holds("(one-window-p)")
    emacs.becomes("(buffer-name (window-buffer))", other.name)
    emacs.becomes("(window-point)", 2)

    propose(emacs, file, "uno\n")
    reviews.shown("a.txt")
    emacs.keys("C-h", "f", "car", "Enter")
    emacs.wait_for("car is a")
    emacs.keys("C-x", "o")
    emacs.holds('(equal "*Help*" (buffer-name (window-buffer)))')
    reviews.reject()
    emacs.becomes("(buffer-name (window-buffer))", "*Help*")
    emacs.wait_until_gone("gemini")


def test_announcement_ends_when_the_review_appears(world: World) -> None:
    emacs = started(world)
    emacs.keys("C-f")
    propose(emacs, world.project / "a.txt", "uno\n")
    Reviews(emacs).shown("a.txt")

    emacs.says("shows it")
    emacs.wait_until_gone("shows it")
    emacs.wait_for("Edit of a.txt by the CLI; M-x")
    Reviews(emacs).reject()
    emacs.wait_until_gone("selects it")


@pytest.mark.parametrize("view", ["ediff", "diff"])
def test_announcement_leaves_the_report_of_a_cli_that_has_exited(
    world: World, view: str
) -> None:
    first, second = world.file("a.txt", "one\n"), world.file("b.txt", "two\n")
    emacs = world.emacs(
        first, extra=f"{OWN}(setq gemini-companion-review-view '{view})"
    )
    reviews = Reviews(emacs)
    propose(emacs, first, "uno\n")
    reviews.shown("a.txt")
    propose(emacs, second, "due\n", "two")

    emacs.act("(gemini-companion-diff-close (1- e2e-id) 'exited)")
    reviews.shown("b.txt")
    screen = emacs.wait_for("Edit of b.txt by the CLI; M-x")
    assert "exited; review closed, a.txt not written" in screen


# What happens to a review of a.txt, and the report
ENDS = [
    (
        "(with-current-buffer (gemini-companion-diff-proposal-buffer"
        ' (car (gemini-companion-diffs))) (insert "mine"))'
        '(write-region "uno\\n" nil "a.txt")',
        "a.txt was written without your edits",
    ),
    ("(gemini-companion-diff-accept)", "a.txt was accepted 10 seconds ago"),
    (
        '(with-current-buffer "a.txt" (insert "mine"))'
        "(gemini-companion-diff-accept)"
        '(write-region "uno\\n" nil "a.txt")',
        "a.txt was written, and has unsaved changes here",
    ),
    (
        "(gemini-companion-diff-reject)"
        '(e2e-propose "one" (expand-file-name "a.txt") "one\\n")',
        "Proposal for a.txt contains no changes",
    ),
]


@pytest.mark.parametrize(("end", "report"), ENDS)
def test_announcement_leaves_a_report_about_a_file(
    world: World, end: str, report: str
) -> None:
    emacs = started(world)
    reviews = Reviews(emacs)
    propose(emacs, world.project / "a.txt", "uno\n")
    reviews.shown("a.txt")

    emacs.eval(f"(progn {end} nil)")
    emacs.wait_for(report)
    propose(emacs, world.project / "b.txt", "due\n", "two")
    reviews.shown("b.txt")
    screen = emacs.wait_for("M-x gemini-companion-review selects it")
    assert report in screen


@pytest.mark.fresh
def test_announcement_takes_one_line_of_a_small_frame(world: World) -> None:
    file = world.file("application/hello.py", "one\n")
    emacs = world.emacs(file, extra=OWN, size=(80, 24))
    emacs.eval(f"""(gemini-companion-diff-open 1 '(:id "one" :client "gemini"
        :directory {lisp(world.project)}) {lisp(file)} "uno\n")""")
    Reviews(emacs).shown("hello.py")
    key = "M-x gemini-companion-review selects it"
    screen = emacs.wait_for(key).splitlines()
    assert screen[23] == f"Edit of application/hello.py; {key}"
    emacs.says(f"Edit of application/hello.py by Gemini CLI; {key}")


def test_review_on_request_only(world: World) -> None:
    emacs = started(world, "notify")
    reviews = Reviews(emacs)
    propose(emacs, world.project / "a.txt", "uno\n")
    emacs.wait_for("M-x gemini-companion-review shows it")
    left_alone(emacs)
    assert reviews.states() == ["pending"]

    emacs.command("gemini-companion-review")
    reviews.shown("a.txt")


def test_review_at_once_and_the_others_one_by_one(world: World) -> None:
    emacs = started(world, "now")
    reviews = Reviews(emacs)
    emacs.keys("C-s", "o")
    for session in ("one", "two", "three"):
        propose(emacs, world.project / "a.txt", f"{session}!\n", session)
    reviews.shown("a.txt")
    emacs.wait_for("?3")

    for left in (2, 1, 0):
        assert reviews.states() == ["shown"] + left * ["pending"]
        reviews.accept()
        reviews.wait_until(left)
        if left:
            emacs.wait_for(f"?{left}")
            reviews.shown("a.txt")


def test_nothing_asks_while_a_review_appears(world: World) -> None:
    variables = "-*- eval: (setq e2e-bad t); mode: nonsense; foo: (1) -*-\n"
    file = world.file("b.txt", variables + "one\n")
    emacs = started(world)
    emacs.eval(
        "(let ((enable-local-variables nil))"
        f" (find-file-noselect {str(file)!r}) nil)".replace("'", '"')
    )
    file.write_text(variables + "changed by another\n")
    propose(emacs, file, variables + "uno\n")

    Reviews(emacs).shown("b.txt")
    emacs.becomes("(or (active-minibuffer-window) (boundp 'e2e-bad))", None)
    emacs.wait_for("changed by another")


def test_proposal_that_replaces_an_edited_one_keeps_the_edits(world: World) -> None:
    emacs = started(world)
    reviews = Reviews(emacs)
    file = world.project / "a.txt"
    propose(emacs, file, "uno\n")
    reviews.shown("a.txt")
    reviews.edit("uno", "what I made of it")
    emacs.keys("C-x")
    emacs.holds("(equal [?\\C-x] (this-command-keys-vector))")

    propose(emacs, file, "due\n")
    left_alone(emacs)
    assert reviews.states() == ["pending"]
    emacs.wait_for("*gemini diff: a.txt*")

    emacs.keys("C-g")
    reviews.shown("a.txt")
    assert reviews.proposal() == "due\n"
    emacs.says("gemini-companion-last-proposal shows your edits")
    emacs.command("gemini-companion-last-proposal")
    emacs.wait_for("what I made of it")
