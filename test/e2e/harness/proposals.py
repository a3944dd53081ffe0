# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposals without a CLI, for tests of Emacs alone."""

from pathlib import Path

from .emacs import Emacs, Reviews, lisp

PROPOSE = """
(defvar e2e-id 0)
(defun e2e-propose (session file text pid)
  "Propose TEXT for FILE as a CLI named SESSION with PID, in its directory, would."
  (gemini-companion-receive 'open-diff
   (setq e2e-id (1+ e2e-id))
   (list :id session :pid pid :directory (file-name-directory file))
   file text)
  nil)
(defvar e2e-ends nil "The states in which diffs ended, the last one first.")
(setq e2e-ends nil)
(add-hook 'gemini-companion-edit-closed-functions
          (lambda (diff) (push (gemini-companion-edit-status diff) e2e-ends)))
"""


def propose(
    emacs: Emacs, file: Path, text: str, session: str = "one", pid: str = "nil"
) -> None:
    """Propose ``text`` for ``file``; ``emacs`` was started with ``PROPOSE``."""
    emacs.eval(f"(e2e-propose {lisp(session)} {lisp(file)} {lisp(text)} {pid})")


def arrive(
    emacs: Emacs, file: Path, text: str, session: str = "one", pid: str = "nil"
) -> Reviews:
    propose(emacs, file, text, session, pid)
    reviews = Reviews(emacs)
    reviews.shown(file.name)
    return reviews
