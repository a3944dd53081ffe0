# SPDX-License-Identifier: GPL-3.0-or-later
"""The CLI is free after Emacs exits, or the mode ends, during a review."""

import os
import signal
from collections.abc import Callable

import pytest
from harness.emacs import Emacs
from harness.model import write_file
from harness.wait import eventually
from harness.world import World

# Some libraries add functions to hooks when they are loaded.
STATE = """
(require 'auth-source)
(require 'ediff)
(require 'nsm)
(require 'project)
(defun e2e-state ()
  "Return what a mode could leave behind, as strings."
  (let (state)
    (mapatoms
     (lambda (symbol)
       (when (and (string-match-p "-\\\\(hook\\\\|functions\\\\)\\\\'"
                                  (symbol-name symbol))
                  (boundp symbol) (default-value symbol))
         (push (format "%s %S" symbol (default-value symbol)) state))))
    (dolist (timer (append timer-list timer-idle-list))
      ;; Those of Emacs itself come and go.
      (unless (or (subrp (timer--function timer))
                  (eq (timer--function timer) 'undo-auto--boundary-timer))
        (push (format "timer %S" (timer--function timer)) state)))
    (dolist (process (process-list))
      (push (format "process %s"
                    (replace-regexp-in-string " ?<[0-9]+>" ""
                                              (process-name process)))
            state))
    (dolist (buffer (buffer-list))
      (push (format "buffer %s" (buffer-name buffer)) state))
    (dolist (variable process-environment)
      (push (format "environment %s" variable) state))
    (vconcat (sort state #'string<))))
"""


def by_keys(emacs: Emacs) -> None:
    emacs.terminal.keys("C-x", "C-c")


def by_force(emacs: Emacs) -> None:
    os.kill(emacs.pid, signal.SIGKILL)


@pytest.mark.once
@pytest.mark.parametrize("leave", [by_keys, by_force])
def test_cli_is_free_after_emacs_has_exited(
    world: World, leave: Callable[[Emacs], None]
) -> None:
    file, emacs, _, cli = world.review("one\n", "uno\n")

    leave(emacs)

    emacs.wait_until_exited()
    cli.wait_for("Rejected")
    eventually(lambda: not world.scratch.servers(), "the server is gone")
    eventually(lambda: not world.scratch.discovery_files(), "no discovery file")
    assert file.read_text() == "one\n"
    if leave is not by_force:
        eventually(lambda: not world.scratch.temporary_files(), "no temporary file")
    cli.is_free()


def test_mode_leaves_nothing_behind(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs = world.emacs(file, mode=False, extra=STATE)
    before = emacs.value("(e2e-state)")
    emacs.eval("(gemini-companion-mode 1)")
    emacs.wait_until_ready()
    cli = world.gemini()
    cli.model.script(write_file(file, "uno\n"))
    cli.ask()
    emacs.holds("(gemini-companion-diffs)")

    emacs.eval("(gemini-companion-mode -1)")

    cli.wait_for("Rejected")
    eventually(lambda: not world.scratch.servers(), "the server is gone")
    emacs.holds('(not (get-process "gemini-companion"))', "Emacs knows that")
    eventually(lambda: not world.scratch.temporary_files(), "no temporary file")
    # Emacs 28 removes its own after the next command.
    emacs.keys("C-a")
    after = emacs.value("(e2e-state)")
    left = [f"left: {line}" for line in set(after) - set(before)]
    gone = [f"gone: {line}" for line in set(before) - set(after)]
    assert not left + gone, "\n".join(left + gone)
    cli.is_free()
