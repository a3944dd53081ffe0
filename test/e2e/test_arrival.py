# SPDX-License-Identifier: GPL-3.0-or-later
"""A proposal appears when the user is idle, and not before."""

from pathlib import Path
from typing import Any

import psutil
import pytest
from harness.emacs import Emacs, Reviews, lisp
from harness.world import World

pytestmark = pytest.mark.shared
differs = pytest.mark.differs("idle time, keys, windows and the redisplay")

OWN = """
(defvar e2e-id 0)
(defun e2e-propose (session file text pid)
  "Propose TEXT for FILE as a CLI named SESSION with PID, in its directory, would."
  (gemini-companion-server-receive 'open-diff
   (setq e2e-id (1+ e2e-id))
   (list :id session :pid pid :directory (file-name-directory file))
   file text)
  nil)
(defvar e2e-ends nil "The states in which diffs ended, the last one first.")
(setq e2e-ends nil)
(defun e2e-ended (diff)
  "Record the state in which DIFF has ended."
  (push (gemini-companion-edit-status diff) e2e-ends))
(add-hook 'gemini-companion-edit-closed-functions #'e2e-ended)
(require 'transient)
(transient-define-prefix e2e-menu () [("z" "nothing" ignore)])
(global-set-key [f5] (lambda () (interactive) (recursive-edit)))
(global-set-key [f6] #'e2e-menu)
(xterm-mouse-mode 1)
(context-menu-mode 1)
(defun e2e-two-windows ()
  "Show the current buffer, selected, above the buffer *scratch*."
  (delete-other-windows)
  (set-window-buffer (split-window-below) "*scratch*"))
(defun e2e-arrangement ()
  "Return buffers and places of the windows, the selected one first."
  (mapcar (lambda (window)
            (list (buffer-name (window-buffer window)) (window-start window)
                  (window-edges window)))
          (window-list nil 'no-minibuffer)))
"""

ARRANGEMENT = "(e2e-arrangement)"
SELECTED = "(buffer-name (window-buffer))"

MENU = "(eq overriding-terminal-local-map tty-menu-navigation-map)"

# An activity of the user, or Lisp of a timer; its state in Emacs, its end
BUSY: list[tuple[list[str] | str, str, list[str] | str]] = [
    (["C-s", "o"], "(buffer-local-value 'isearch-mode (window-buffer))", ["Enter"]),
    (["C-x", "("], "defining-kbd-macro", ["C-x", ")"]),
    (["F5"], "(< 0 (recursion-depth))", ["C-M-c"]),
    (["F6"], "(bound-and-true-p transient--prefix)", ["C-g"]),
    (["C-x"], "(equal [?\\C-x] (this-command-keys-vector))", ["C-g"]),
    (["C-u"], "prefix-arg", ["C-g"]),
    (["M-:"], "(active-minibuffer-window)", ["C-g"]),
    (["M-<", "M-%", "o", "Enter", "x", "Enter"], "t", ["q"]),
    # A button of the mouse is pressed and, in the end, released.
    ("\x1b[<0;3;3M", "track-mouse", "\x1b[<0;3;3m"),
    # A context menu, or the menu bar, is open.
    ("\x1b[<2;3;3M", MENU, ["C-g"]),
    (["F10"], MENU, ["C-g"]),
    ('(read-string "Name: ")', "(active-minibuffer-window)", ["Enter"]),
    ('(y-or-n-p "Go on? ")', "(active-minibuffer-window)", ["y"]),
    ('(read-event "Key: ")', '(equal "Key: " (current-message))', ["k"]),
    ('(read-key "Key: ")', '(equal "Key: " (current-message))', ["k"]),
]


def started(
    world: World, extra: str = "", text: str = "one\n", **options: Any
) -> tuple[Emacs, Path]:
    """Return an Emacs that visits a.txt, and that file with ``text``."""
    file = world.file("a.txt", text)
    return world.emacs(file, extra=OWN + extra, **options), file


def propose(
    emacs: Emacs, file: Path, text: str, session: str = "one", pid: str = "nil"
) -> None:
    """Propose ``text`` for ``file`` as a CLI would."""
    emacs.eval(f"(e2e-propose {lisp(session)} {lisp(file)} {lisp(text)} {pid})")


def arrive(emacs: Emacs, file: Path, *args: str, **facts: str) -> Reviews:
    propose(emacs, file, *args, **facts)
    reviews = Reviews(emacs)
    reviews.shown(file.name)
    return reviews


def option(name: str, value: str) -> str:
    return f"(setq gemini-companion-review-{name} '{value})"


def typed(emacs: Emacs, keys: list[str] | str) -> None:
    """Press ``keys``; a text is sent as it is, and not waited for, or is Lisp."""
    if keys[0] == "(":
        emacs.eval(f"(run-at-time 0 nil (lambda () {keys}))")
    elif isinstance(keys, str):
        emacs.terminal.text(keys)
    else:
        emacs.keys(*keys)


def closed(emacs: Emacs) -> None:
    """Quit the overview, in which a proposal would be a row at once."""
    emacs.eval('(progn (quit-windows-on "*gemini*") nil)')


def left_alone(emacs: Emacs) -> None:
    """Wait for longer than a proposal waits after a key."""
    emacs.holds("(< 1.5 (float-time (current-idle-time)))", "no keys are typed")


@differs
def test_proposal_waits_until_the_user_is_idle(world: World) -> None:
    emacs, file = started(world)
    reviews = Reviews(emacs)
    for begin, sign, end in BUSY:
        emacs.eval("(e2e-two-windows)")
        typed(emacs, begin)
        emacs.holds(sign)
        propose(emacs, file, "uno\n")
        left_alone(emacs)
        assert reviews.states() == ["pending"], sign
        # A menu of the terminal covers it.
        if sign != MENU:
            emacs.wait_for("?1")

        typed(emacs, end)
        reviews.shown("a.txt")
        emacs.wait_for("+uno")
        reviews.reject()
        closed(emacs)
    emacs.eval(option("arrival", "now"))
    emacs.keys("M-:")
    propose(emacs, file, "uno\n")
    left_alone(emacs)
    emacs.keys("C-g")
    emacs.holds("(gemini-companion-edit-shown)", "the review begins")
    emacs.wait_for("uno")


# A program that draws all the time, and whether Emacs is between two commands, in
# timers that run meanwhile: without a prompt, and while a timer reads an event.
DRAWING = """
(progn
  (require 'term)
  (defvar e2e-free nil)
  (setq e2e-free nil)
  (switch-to-buffer
   (make-term "drawing" "sh" nil "-c" "while sleep 0.01; do echo drawn; done"))
  (defun e2e-look ()
    "Note the state of Emacs while it draws in the terminal."
    (when (backtrace-frame 0 'term-emulate-terminal)
      (let ((reads (and (backtrace-frame 0 'read-event) t)))
        (when (or reads (null (backtrace-frame 1 'term-emulate-terminal)))
          (cl-pushnew (list reads (gemini-companion-idle-between-commands-p))
                      e2e-free :test #'equal)))))
  (run-at-time 0 0.01 #'e2e-look)
  nil)
"""


@differs
def test_no_prompt_is_open_while_a_terminal_draws(world: World) -> None:
    emacs, _ = started(world)
    emacs.eval(DRAWING)
    emacs.becomes("(prin1-to-string e2e-free)", "((nil t))")
    typed(emacs, '(read-event "Key: ")')
    emacs.becomes("(prin1-to-string e2e-free)", "((t nil) (nil t))")
    emacs.keys("k")
    emacs.eval(
        '(progn (delete-process "drawing") (cancel-function-timers #\'e2e-look))'
    )


BEGUN = "a quick note:"
PROSE = " annul a quiet box, equal to a new pack; rest anywhere\t!"
NOTES = '(with-current-buffer "notes.txt" (buffer-string))'


@pytest.mark.parametrize("size", [(80, 24), pytest.param((160, 45), marks=differs)])
def test_text_that_is_typed_stays_in_its_window(
    world: World, size: tuple[int, int]
) -> None:
    emacs, file = started(world, size=size)
    emacs.eval(f"(progn (find-file {lisp(world.file('notes.txt'))}) (e2e-two-windows))")
    before = emacs.value(ARRANGEMENT)
    for number, letter in enumerate(BEGUN):
        emacs.terminal.text(letter)
        if number == 3:
            propose(emacs, file, "uno\ntwo\n")
    reviews = Reviews(emacs)
    reviews.shown("a.txt")
    emacs.wait_for("+uno")

    emacs.text(PROSE)
    emacs.keys("Enter")

    emacs.becomes(NOTES, f"{BEGUN}{PROSE}\n")
    assert reviews.states() == ["shown"]
    assert reviews.proposal() == "uno\ntwo\n"
    emacs.wait_for(PROSE[:20])
    emacs.wait_for("+uno")
    reviews.reject()
    closed(emacs)
    emacs.becomes(ARRANGEMENT, before)
    emacs.becomes("(window-point)", len(f"{BEGUN}{PROSE}\n") + 1)


def test_proposal_is_only_announced_where_no_other_window_is(world: World) -> None:
    emacs, file = started(world)
    arrive(emacs, file, "uno\n")
    emacs.wait_for("Edit of a.txt by the CLI; M-x gemini-companion-review")
    emacs.becomes("(e2e-windows)", "a.txt")
    emacs.command("gemini-companion-review")
    emacs.holds("(gemini-companion-edit-shown)", "the review begins")


IN_TERMINAL = """
(unless (get-process "cli")
  (start-process "cli" "*cli*" "cat")
  (set-process-query-on-exit-flag (get-process "cli") nil))
(set-window-buffer (split-window-right) "*cli*")
"""

TYPES = """
(add-hook 'gemini-companion-edit-opened-functions
          (lambda (_) (setq unread-command-events (list ?r ?a))))
"""


@pytest.mark.parametrize(
    ("arrival", "selected"),
    [
        ("when-idle", "a.txt"),
        pytest.param("when-idle", "*cli*", marks=differs),
        ("now", "a.txt"),
    ],
)
def test_review_begins_by_itself_only_where_the_user_waits_for_it(
    world: World, arrival: str, selected: str
) -> None:
    extra = IN_TERMINAL + option("arrival", arrival) + TYPES
    emacs, file = started(world, extra)
    emacs.eval(f"(select-window (get-buffer-window {lisp(selected)}))")
    before = emacs.value(ARRANGEMENT)
    propose(emacs, file, "uno\n", pid='(process-id (get-process "cli"))')
    if arrival == "when-idle" and selected == "a.txt":
        emacs.wait_for("M-x gemini-companion-review shows it")
        emacs.becomes(SELECTED, selected)
        assert emacs.value("(gemini-companion-edit-shown)") is None
        return
    emacs.holds("(gemini-companion-edit-shown)", "the review begins")
    left_alone(emacs)
    # In its first second, it takes no answer.
    emacs.holds(
        "(with-current-buffer (window-buffer) (gemini-companion-review--drawn-p))"
    )
    # Letters may be meant for the terminal; chords are meant for the review.
    emacs.keys("a")
    emacs.says("Letter ignored")
    assert Reviews(emacs).paths() == [str(file)]
    emacs.keys("C-c", "C-k")
    # It stays for a moment, as the CLI may propose more.
    emacs.keys("q")
    emacs.holds("(equal '(rejected) e2e-ends)")
    emacs.becomes(ARRANGEMENT, before)


@differs
def test_terminal_is_not_drawn_while_a_proposal_waits(world: World) -> None:
    emacs, file = started(world, option("arrival", "notify"), size=(200, 50))
    propose(emacs, file, "uno\n")
    emacs.wait_for("M-x gemini-companion-review shows it")
    process = psutil.Process(emacs.pid)
    for command in ("ignore", "gemini-companion-list", "gemini-companion-review"):
        emacs.command(command)
        emacs.eval("(redisplay t)")
        before = process.io_counters().write_chars
        # The timer of what waits, which runs five times a second.
        emacs.eval("(dotimes (_ 20) (gemini-companion-arrival--tick) (redisplay t))")
        assert process.io_counters().write_chars - before < 4000, command


@differs
def test_changes_of_other_windows_stay(world: World) -> None:
    other = world.file("b.txt", "two\n")
    emacs, file = started(world)
    emacs.eval("(e2e-two-windows)")
    emacs.keys("C-f")
    reviews = arrive(emacs, file, "uno\n")
    emacs.wait_for("+uno")
    emacs.keys("C-x", "C-f", "b.txt", "Enter", "C-f")

    reviews.reject()
    closed(emacs)
    emacs.becomes("(e2e-windows)", "b.txt *scratch*")
    emacs.becomes(SELECTED, other.name)
    emacs.becomes("(window-point)", 2)

    arrive(emacs, file, "uno\n")
    emacs.wait_for("+uno")
    emacs.keys("C-h", "f", "car", "Enter")
    emacs.holds('(get-buffer-window "*Help*")')
    emacs.eval('(select-window (get-buffer-window "*Help*"))')
    reviews.reject()
    emacs.wait_until_gone("+uno")
    emacs.becomes(SELECTED, "*Help*")


@differs
def test_announcement_leaves_a_report(world: World) -> None:
    report = "exited; review closed, a.txt not written"
    emacs, file = started(world)
    arrive(emacs, file, "uno\n")
    emacs.eval(
        "(progn (gemini-companion-server-receive 'close-diff e2e-id 'exited) nil)"
    )
    emacs.wait_for(report)
    arrive(emacs, world.project / "b.txt", "due\n", "two")
    # In one line, or the windows would jump.
    emacs.wait_for(f"{report}; Edit of b.txt by")
    Reviews(emacs).reject()
    # What was there is shortened, and not what names the key.
    emacs.eval("(message (make-string 200 ?m))")
    arrive(emacs, world.project / "c.txt", "tre\n", "three")
    emacs.wait_for("mm…; Edit of c.txt by the CLI; M-x gemini-companion-review")


@differs
def test_review_on_request_only(world: World) -> None:
    emacs, file = started(world, option("arrival", "notify"))
    reviews = Reviews(emacs)
    propose(emacs, file, "uno\n")
    emacs.wait_for("M-x gemini-companion-review shows it")
    left_alone(emacs)
    assert reviews.states() == ["pending"]
    emacs.command("gemini-companion-review")
    reviews.shown("a.txt")


@differs
def test_nothing_asks_while_a_proposal_appears(world: World) -> None:
    variables = "-*- eval: (setq e2e-bad t); mode: nonsense; foo: (1) -*-\n"
    file = world.file("b.txt", variables + "one\n")
    emacs, _ = started(world)
    visit = f"(find-file-noselect {lisp(file)})"
    emacs.eval(f"(let ((enable-local-variables nil)) {visit} nil)")
    file.write_text(variables + "changed by another\n")
    emacs.eval("(e2e-two-windows)")
    arrive(emacs, file, variables + "uno\n")

    emacs.becomes("(or (active-minibuffer-window) (boundp 'e2e-bad))", None)
    emacs.wait_for("changed by another")
    emacs.command("gemini-companion-review")
    emacs.holds("(gemini-companion-edit-shown)", "the review begins")
    emacs.becomes("(or (active-minibuffer-window) (boundp 'e2e-bad))", None)


@differs
def test_context_menu_answers_only_the_proposal_that_was_clicked(world: World) -> None:
    emacs, file = started(world)
    other = world.file("b.txt", "one\n")
    reviews = Reviews(emacs)
    propose(emacs, file, "uno\n")
    propose(emacs, other, "due\n", session="two")
    emacs.eval("(progn (call-interactively #'gemini-companion-list) nil)")
    reviews.shown("a.txt")
    emacs.wait_for("+uno")
    row, column = emacs.value(
        '(with-selected-window (get-buffer-window "*gemini*")'
        ' (goto-char (point-min)) (search-forward "uno") (redisplay)'
        " (pcase-let ((`(,x . ,y) (posn-col-row (posn-at-point)))"
        "             (`(,left ,top . ,_) (window-inside-edges)))"
        "   (list (+ top y 1) (+ left x 1))))"
    )
    emacs.terminal.text(f"\x1b[<2;{column};{row}M")
    emacs.holds(MENU)
    lines = emacs.wait_for("Accept").splitlines()
    # Its CLI withdraws it, and the other one takes its place.
    emacs.eval(
        "(progn (gemini-companion-edit-reject (car (gemini-companion-edits-open))) nil)"
    )
    emacs.becomes(
        '(with-current-buffer "*gemini*" (string-search "uno" (buffer-string)))', None
    )
    y = next(i for i, line in enumerate(lines) if "Accept" in line)
    x = lines[y].index("Accept") + 2
    emacs.terminal.text(f"\x1b[<0;{x};{y + 1}M\x1b[<0;{x};{y + 1}m")
    emacs.says("changed since the menu was opened")
    assert [Path(path).name for path in reviews.paths()] == ["b.txt"]
