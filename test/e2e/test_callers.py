# SPDX-License-Identifier: GPL-3.0-or-later
"""New errors in other open files, which Eglot knows."""

from __future__ import annotations

import json
import sys

import pytest
from harness.emacs import Reviews, lisp
from harness.model import say, write_file
from harness.tools import ROOT
from harness.world import World

from test_tools import link

SERVER = ROOT / "test" / "language_server.py"
EGLOT = f"""
(when (require 'eglot nil t)
  (setq eglot-server-programs
        '((python-mode {lisp(sys.executable)} {lisp(SERVER)} "versions")))
  (add-hook 'python-mode-hook #'eglot-ensure))
"""
# Both files are open in the language server, which has reported about them.
KNOWN = """
(seq-every-p (lambda (name)
               (with-current-buffer name
                 (gemini-companion-diagnostics--current)))
             '("definition.py" "caller.py"))
"""


def test_a_rename_at_its_definition_names_the_callers_that_break(world: World) -> None:
    definition = world.file("definition.py", "def one\n")
    caller = world.file("caller.py", "uses one\n")
    emacs = world.emacs(caller, definition, extra=EGLOT)
    if emacs.eval("(featurep 'eglot)") == "nil":
        pytest.skip("No Eglot")
    link(world, emacs)
    emacs.holds(KNOWN)
    reviews, cli = Reviews(emacs), world.gemini()

    reviews.proposed(
        cli, definition, write_file(definition, "def two\n"), say("renamed so")
    )
    reviews.accept()
    cli.wait_for("renamed so")
    assert "caller.py:1: error: one is unknown" in cli.model.results()[-1]

    # Which is no news of the caller itself.
    reviews.proposed(cli, caller, write_file(caller, "\nuses one\n"), say("moved so"))
    reviews.accept()
    cli.wait_for("moved so")
    assert "hook_context" not in json.dumps(cli.model.requests[-1]["contents"][-1])
