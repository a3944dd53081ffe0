# SPDX-License-Identifier: GPL-3.0-or-later
"""Proposals without a CLI, for tests of Emacs alone."""

from pathlib import Path

from .emacs import Emacs, Reviews, lisp

PROPOSE = """
(defvar e2e-id 0)
(defun e2e-propose (session file text)
  "Propose TEXT for FILE as a CLI named SESSION, in its directory, would."
  (gemini-companion-receive 'open-diff
   (setq e2e-id (1+ e2e-id))
   (list :id session :directory (file-name-directory file))
   file text)
  nil)
(defvar e2e-ends nil "The states in which diffs ended, the last one first.")
(setq e2e-ends nil)
(add-hook 'gemini-companion-edit-closed-functions
          (lambda (diff) (push (gemini-companion-edit-status diff) e2e-ends)))
"""


def propose(emacs: Emacs, file: Path, text: str, session: str = "one") -> None:
    """Propose ``text`` for ``file``; ``emacs`` was started with ``PROPOSE``."""
    emacs.eval(f"(e2e-propose {lisp(session)} {lisp(file)} {lisp(text)})")


def arrive(emacs: Emacs, file: Path, text: str, session: str = "one") -> Reviews:
    propose(emacs, file, text, session)
    reviews = Reviews(emacs)
    reviews.shown(file.name)
    return reviews
