# SPDX-License-Identifier: GPL-3.0-or-later
"""Random keys while an answered review stays, and the next proposals arrive.

No key that was typed before a proposal was drawn answers it, none becomes text where
the review was before it is closed, and in the end all is displayed as before.

GC_STAYS sets the number of sequences, and GC_STAYS_SEED repeats the choices of a run.
"""

import os
import time
from pathlib import Path
from random import Random

import pytest
from harness.emacs import DRAWN, Emacs, lisp
from harness.world import World
from test_queue import PATIENT

# They begin early, as one is long, and the other has its Emacs.
pytestmark = [pytest.mark.shared("stay"), pytest.mark.long]

COUNT = int(os.environ.get("GC_STAYS", "12"))
SEED = int(os.environ.get("GC_STAYS_SEED") or "1")
SIZES = (80, 24), (100, 30), (170, 50)
OLD = "".join(f"line {number}\n" for number in range(1, 31))
NEW = OLD.replace("line 5\n", "line five\n").replace("line 20\n", "line twenty\n")

SETUP = """
(global-set-key (kbd "C-c r") #'gemini-companion-review)
(setq create-lockfiles nil make-backup-files nil auto-save-default nil
      gemini-companion-arrival-seconds 5)
(defvar e2e-id 0)
(defvar e2e-decided nil "A list (FILE KEYS DRAWN) for each answer.")
(defvar e2e-typed nil "A list (KEYS CLOSED) for each text outside of a review.")
(defvar e2e-closed 0 "The time when the last review was closed.")
(unless (get-process "cli") (start-process "cli" "*cli*" "cat"))
(set-process-query-on-exit-flag (get-process "cli") nil)
(defun e2e-note-text ()
  "Note that a key has become text outside of a review."
  (when (memq this-command '(self-insert-command newline))
    (push (list (length (recent-keys)) e2e-closed) e2e-typed)))
(defun e2e-propose (file text)
  "Propose TEXT for FILE as the CLI would that runs in the terminal."
  (gemini-companion-server-receive
   'open-diff (setq e2e-id (1+ e2e-id))
   (list :id "one" :pid (process-id (get-process "cli"))
         :directory (directory-file-name (file-name-directory file)))
   file text)
  nil)
(defun e2e-note-answer (edit event)
  "Note that a key has answered EDIT, if that is the EVENT; write its file."
  (when (eq 'closed event)
    (let ((view (gemini-companion-edit-view edit)))
      (push (list (gemini-companion-edit-file edit) (length (recent-keys))
                  (and view (gemini-companion-view-drawn view)))
            e2e-decided))
    (when (eq 'accepted (gemini-companion-edit-answer edit))
      (run-at-time 0 nil #'write-region (gemini-companion-edit-after edit) nil
                   (gemini-companion-edit-file edit) nil 'silent))))
(add-hook 'gemini-companion-request-functions #'e2e-note-answer)
(add-hook 'gemini-companion-edit-closed-functions
          (lambda (_) (setq e2e-closed (float-time))))
(defun e2e-begin (selected)
  "Display a file and the terminal, and select the buffer SELECTED."
  (setq e2e-decided nil e2e-typed nil)
  (clear-this-command-keys)
  (when (get-buffer "*gemini*") (kill-buffer "*gemini*"))
  (delete-other-windows)
  (switch-to-buffer "mine.txt")
  (set-window-buffer (split-window-below) "*cli*")
  (dolist (buffer '("mine.txt" "*cli*"))
    (with-current-buffer buffer
      (add-hook 'post-command-hook #'e2e-note-text nil t)))
  (select-window (get-buffer-window selected))
  (e2e-windows))
(defun e2e-pause (seconds)
  "Handle no keys for SECONDS, soon."
  (run-at-time 0.05 nil #'call-process "sleep" nil nil nil (number-to-string seconds))
  nil)
(defun e2e-end ()
  "End what asks, and reject what is open."
  (remove-hook 'gemini-companion-request-functions #'e2e-note-answer)
  (mapc #'gemini-companion-edit-reject (gemini-companion-edits-open))
  (add-hook 'gemini-companion-request-functions #'e2e-note-answer)
  (unless (and (zerop (recursion-depth)) (not (active-minibuffer-window)))
    (run-at-time 0 nil #'top-level))
  nil)
"""

# Keys with their weights.  The second line makes other windows, or selects one.
KEYS = {
    ("C-c", "C-c"): 14, ("C-c", "C-k"): 5, ("C-x", "C-s"): 3, ("q",): 3, ("a",): 6,
    ("r",): 6, ("n",): 6, ("y",): 4, ("x",): 3, ("e",): 2, ("!",): 2, ("|",): 2,
    ("?",): 2, ("v",): 1, ("k",): 2, ("w",): 3, ("Space",): 4, ("Enter",): 4,
    ("Tab",): 2, ("BSpace",): 1, ("C-d",): 1, ("C-c", "r"): 3, ("C-c", "C-x"): 2,
    ("C-c", "C-n"): 2, ("C-c", "C-e"): 1,
}  # fmt: skip
WINDOWS = {("C-x", "o"): 2, ("C-x", "1"): 1}


class Typist:
    """Somebody who types at random, and when each key was typed."""

    def __init__(self, emacs: Emacs, random: Random) -> None:
        self._emacs = emacs
        self._random = random
        self.times: list[float] = []
        self.keys: list[str] = []

    def press(self, *keys: str) -> None:
        for key in keys:
            self.keys.append(key)
            self._emacs.terminal.keys(key)
            self._emacs.terminal.written()
            # Emacs can read it since then, or before.
            self.times.append(time.time())

    def chosen(self) -> tuple[str, ...]:
        table = KEYS | (WINDOWS if self._random.random() < 0.2 else {})
        return self._random.choices(list(table), list(table.values()))[0]

    def moved(self) -> bool:
        return "C-x" in "".join(self.keys).replace("C-xC-s", "")

    def times_of(self, read: list[str]) -> list[float]:
        """Return when each of the keys that Emacs has ``read`` was typed at the latest.

        Emacs discards keys that were typed ahead of the end of a review.  The value is
        empty if it has read some twice, as a question may.
        """
        names = {"Space": "SPC", "Enter": "RET", "Tab": "TAB", "BSpace": "DEL"}
        typed = [names.get(key, key) for key in self.keys]
        times: list[float] = []
        for key in reversed(read):
            while typed and typed[-1] != key:
                typed.pop()
            if not typed:
                return []
            typed.pop()
            times.append(self.times[len(typed)])
        return times[::-1]


def sequence(emacs: Emacs, files: list[Path], random: Random) -> list[str]:
    """Type at random while ``files`` are proposed; return what went wrong."""
    emacs.resize(random.choice(SIZES))
    selected = random.choice(["*cli*", "mine.txt"])
    before = emacs.value(f"(e2e-begin {lisp(selected)})")
    typist = Typist(emacs, random)
    first, *rest = files
    emacs.eval(f"(e2e-propose {lisp(first)} {lisp(NEW)})")
    if selected == "mine.txt":
        typist.press("C-c", "r")
    emacs.holds(f"(and (gemini-companion-edit-shown) {DRAWN})", "the review begins")
    if random.random() < 0.8:
        time.sleep(1.1)
    typist.press("C-c", "C-c")
    for _ in range(random.randrange(3, 14)):
        if rest and random.random() < 0.4:
            emacs.eval(f"(e2e-propose {lisp(rest.pop())} {lisp(NEW)})")
        if random.random() < 0.2:
            # The next keys are typed ahead.
            emacs.eval("(e2e-pause 0.5)")
            time.sleep(0.1)
        for _ in range(random.choice([1, 1, 2, 4])):
            typist.press(*typist.chosen())
        emacs.terminal.written()
        time.sleep(random.choice([0, 0, 0.05, 0.3, 0.9, 1.3]))
    if random.random() < 0.1:
        time.sleep(6)
    return judged(emacs, typist, before, selected)


def judged(emacs: Emacs, typist: Typist, before: str, selected: str) -> list[str]:
    """Return what went wrong, and end what is left."""
    wrong = []
    # All keys are handled.
    emacs.keys()
    decided, typed, read = emacs.value(
        "(list (vconcat e2e-decided) (vconcat e2e-typed)"
        " (vconcat (mapcar #'single-key-description (recent-keys))))"
    )
    times = typist.times_of(read)
    for file, number, drawn in decided if times else []:
        if drawn is None or times[number - 1] < drawn:
            early = (drawn or 0) - times[number - 1]
            wrong.append(
                f"{Path(file).name} answered by key {number}, {early:.3f} s too early"
            )
    for number, closed in typed if times else []:
        # After q, or the rejection of all edits of an answer, the user is elsewhere.
        left = {"q", "C-k"} & set(read[max(0, number - 9) : number - 1])
        if not left and times[number - 1] < closed - 0.05:
            late = closed - times[number - 1]
            wrong.append(f"key {number} of {read} is text: {late:.2f} s too early")
    # A prefix key or a question may be left.
    emacs.keys("C-g")
    emacs.eval("(e2e-end)")
    emacs.holds(
        "(not (or (gemini-companion-edits-open) (gemini-companion-edits-ending)"
        " (active-minibuffer-window) (< 0 (recursion-depth))))"
    )
    # What has arrived as a row may have displayed the overview.
    if not typist.moved() and emacs.eval('(get-buffer "*gemini*")') == "nil":
        now = emacs.value("(list (e2e-windows) (buffer-name (window-buffer)))")
        if now != [before, selected]:
            wrong.append(f"{now} is not {[before, selected]}")
    return [f"{problem}; keys: {' '.join(typist.keys)}" for problem in wrong]


@pytest.mark.differs("keys, timers and windows")
def test_no_review_begins_in_a_prompt_over_one_that_stays(world: World) -> None:
    first, second = world.file("a.txt", OLD), world.file("b.txt", OLD)
    mine = world.file("mine.txt", "mine\n")
    emacs = world.emacs(first, second, mine, extra=SETUP + PATIENT)
    emacs.value('(e2e-begin "mine.txt")')
    emacs.eval(f"(e2e-propose {lisp(first)} {lisp(NEW)})")
    # Its row is displayed as soon as no key was typed for a moment.
    emacs.holds('(get-buffer-window "*gemini*")', "the overview is displayed")
    before = emacs.value("(e2e-windows)")
    emacs.keys("C-c", "r")
    emacs.holds(f"(and (gemini-companion-edit-shown) {DRAWN})")
    emacs.keys("C-c", "C-c")
    emacs.keys("M-x")
    emacs.holds("(and (gemini-companion-edits-ending) (active-minibuffer-window))")
    emacs.eval(f"(e2e-propose {lisp(second)} {lisp(NEW)})")
    emacs.keys("C-c", "r")
    emacs.keys("C-g", "C-]")
    emacs.holds("(not (active-minibuffer-window))")
    emacs.eval("(progn (setq gemini-companion-arrival-seconds 5) (e2e-end))")
    emacs.becomes(
        "(list (gemini-companion-edits-ending) (e2e-windows))", [None, before]
    )


@pytest.mark.differs("keys, timers and windows")
def test_random_keys_while_a_review_stays_answer_only_what_was_drawn(
    world: World,
) -> None:
    print(f"GC_STAYS_SEED={SEED}")
    files = [world.file(f"{name}.txt", OLD) for name in "abc"]
    emacs = world.emacs(*files, world.file("mine.txt", "mine\n"), extra=SETUP)
    wrong = []
    for number in range(COUNT):
        for file in files:
            file.write_text(OLD)
        random = Random(SEED * 10_000 + number)
        wrong += [f"{number}: {p}" for p in sequence(emacs, files, random)]
    assert not wrong, "\n".join([f"{len(wrong)} of {COUNT}", *wrong])
