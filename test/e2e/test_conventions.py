# SPDX-License-Identifier: GPL-3.0-or-later
"""What users of Emacs expect of any buffer and command, by the keys that they know.

The manual has a table of these conventions.
"""

import pytest
from harness.emacs import Emacs, lisp
from harness.world import World
from test_arrival import OWN

pytestmark = pytest.mark.shared("conventions")

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
NEW = OLD.replace("two\n", "zwei\n").replace("eight\n", "acht\n")
# A turn that has changed two files, three times; no CLI runs.
WROTE = """
(progn
  (require 'gemini-companion-reported)
  (require 'gemini-companion-state)
  (gemini-companion-state-report e2e-session 'prompt "Do it")
  (pcase-dolist (`(,file ,old ,new) '(%s))
    (write-region new nil file nil 'silent)
    (gemini-companion-reported-write e2e-session file old new)
    (gemini-companion-revert file))
  nil)
"""
SET_UP = """
;; What the test before has set.
(repeat-mode -1)
(when (bound-and-true-p which-key-mode) (which-key-mode -1))
(setq display-buffer-alist nil
      read-extended-command-predicate nil)
(global-set-key (kbd "C-c g") 'gemini-companion-command-map)
(setq gemini-companion-overview-busy-seconds 0)
(require 'gemini-companion-session)
(defvar e2e-session nil)
(setq e2e-session
  (gemini-companion-session-make :id "one" :pid (emacs-pid) :client "gemini"
                                 :directory default-directory))
"""
HERE = """
(with-current-buffer (window-buffer)
  (list (buffer-name) (line-number-at-pos (window-point))))
"""
# Where the windows other than the selected one are.
BESIDE = """
(mapcar (lambda (window)
          (with-current-buffer (window-buffer window)
            (list (buffer-name) (line-number-at-pos (window-point window)))))
        (cdr (window-list)))
"""


def changed(world: World, extra: str = "") -> Emacs:
    """Return an Emacs that displays the overview of a turn that has changed files."""
    a, b = world.file("a.txt", OLD), world.file("b.txt", "B\n")
    emacs = world.emacs(a, extra=OWN + SET_UP + extra)
    files = [(a, OLD, NEW), (b, "B\n", "C\n")]
    rows = " ".join(f"({' '.join(map(lisp, row))})" for row in files)
    emacs.eval(WROTE % rows)
    emacs.becomes("(gemini-companion-changes-left)", 3)
    overview(emacs)
    return emacs


def overview(emacs: Emacs) -> None:
    emacs.keys("C-c", "g", "d")
    emacs.holds("(derived-mode-p 'gemini-companion-overview-mode)")


def is_at(emacs: Emacs, name: str, line: int) -> None:
    emacs.becomes(HERE, [name, line])


@pytest.mark.differs("next-error")
def test_changes_are_walked_through_like_errors(world: World) -> None:
    emacs = changed(world)
    # Only a visit makes the overview the buffer of errors.
    emacs.keys("Enter")
    is_at(emacs, "a.txt", 2)
    emacs.keys("M-g", "n")
    is_at(emacs, "a.txt", 8)
    emacs.keys("M-g", "n")
    is_at(emacs, "b.txt", 1)
    emacs.keys("M-g", "p")
    is_at(emacs, "a.txt", 8)

    # The overview begins at the change at point; moving there shows each one beside it.
    overview(emacs)
    emacs.command("next-error-follow-minor-mode")
    for line in 2, 8:
        emacs.keys("p" if line == 2 else "n")
        emacs.holds(f'(member \'("a.txt" {line}) {BESIDE.strip()})')
        emacs.holds("(derived-mode-p 'gemini-companion-overview-mode)")


@pytest.mark.differs("imenu, completion")
def test_index_completion_and_commands_are_those_of_emacs(world: World) -> None:
    predicate = "(setq read-extended-command-predicate"
    emacs = changed(world, f"{predicate} #'command-completion-default-include-p)")
    index = "(funcall imenu-create-index-function)"
    cli = str(emacs.value(f'(with-current-buffer "*gemini*" (caar {index}))'))
    emacs.command("imenu")
    emacs.keys(cli[0], "Tab", "Enter")
    # It has one turn.
    emacs.keys("Tab", "Enter")
    emacs.keys("b", "Tab", "Enter")
    emacs.holds('(string-search "b.txt" (thing-at-point \'line))')
    # In its buffer, a command is completed; elsewhere it is not.
    emacs.keys("M-x", "gemini-companion-overview-und", "Tab")
    emacs.becomes("(minibuffer-contents)", "gemini-companion-overview-undo")
    emacs.keys("C-g", "C-x", "b", "a.txt", "Enter")
    emacs.keys("M-x", "gemini-companion-overview-und", "Tab")
    emacs.becomes("(minibuffer-contents)", "gemini-companion-overview-und")
    emacs.keys("C-g")


@pytest.mark.differs("repeat-mode")
def test_keys_are_repeated_and_explained(world: World) -> None:
    emacs = changed(world, "(repeat-mode 1)")
    emacs.keys("C-x", "b", "a.txt", "Enter", "C-c", "g", "n")
    emacs.says("Change 1 of 3")
    emacs.keys("n")
    emacs.says("Change 2 of 3")
    emacs.keys("n")
    is_at(emacs, "b.txt", 1)
    emacs.keys("p")
    is_at(emacs, "a.txt", 8)
    emacs.keys("Escape", "Escape", "Escape")
    if emacs.value("(require 'which-key nil t)"):
        emacs.eval("(progn (setq which-key-idle-delay 0.1) (which-key-mode) nil)")
        emacs.keys("C-c", "g")
        emacs.wait_for("Next change")
        emacs.keys("C-g")
    emacs.keys("C-c", "g", "C-h")
    emacs.wait_for("gemini-companion-next-change")


@pytest.mark.differs("display actions")
def test_rule_of_the_user_places_a_kind_of_buffers(world: World) -> None:
    emacs = changed(
        world,
        """(add-to-list 'display-buffer-alist
             '((category . gemini-companion-overview)
               (display-buffer-in-side-window) (side . right)))""",
    )
    is_new = emacs.value("(<= 30 emacs-major-version)")
    side = "(window-parameter (get-buffer-window) 'window-side)"
    emacs.becomes(side, "right" if is_new else None)
