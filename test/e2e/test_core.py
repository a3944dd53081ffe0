# SPDX-License-Identifier: GPL-3.0-or-later
"""The package without the files of add-ons reviews edits of the real Gemini CLI."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from harness.emacs import BARE, lisp
from harness.model import say
from harness.tools import Tools
from harness.world import World

ADD_ONS = ("prompts", "remote", "tools")
# Each alone is for `dev/test core'.
REMOVED = [ADD_ONS, *((name,) for name in ADD_ONS if os.environ.get("GC_CORE"))]

# What an add-on has in a menu, in the keys of a review or in the status.
ROWS = {
    "prompts": ["Write a prompt", "Send what is at point", "Reject with a reason"],
    "remote": [],
    "tools": ["Link CLIs"],
}

FILES = """
(progn
  (require 'gemini-companion-part)
  (dolist (part '({parts}))
    (require (gemini-companion-part-feature part))
    (dolist (file (gemini-companion-part-files part))
      (princ (format "%s\\n" (gemini-companion-part-feature file))))))
"""

# The commands that no file has, of the menu and of the buttons in the status.
DEAD = """
(let ((dead nil))
  (cl-labels ((visit (map)
                (map-keymap
                 (lambda (_key item)
                   (pcase item
                     ((or `(menu-item ,_ ,binding . ,_) `(,_ . ,binding))
                      (cond ((keymapp binding) (visit binding))
                            (binding (check binding))))))
                 map))
              (check (command)
                (unless (and (commandp command)
                             (progn (autoload-do-load (indirect-function command)
                                                      command)
                                    (commandp command)))
                  (push command dead))))
    (visit (lookup-key gemini-companion-mode-map [menu-bar gemini]))
    (dolist (finding (gemini-companion-status--findings default-directory))
      (dolist (button (nthcdr 4 finding))
        (unless (functionp (cdr button)) (push button dead))))
    dead))
"""


def package_without(add_ons: tuple[str, ...], tools: Tools, place: Path) -> Path:
    """Return a copy of the package without the files of ``add_ons``."""
    parts = " ".join(f"addon-{name}" for name in add_ons)
    code = FILES.format(parts=parts)
    command = [tools.emacs, *BARE, "-q", "--batch", "-L", str(tools.lisp)]
    removed = subprocess.check_output([*command, "--eval", code], text=True).split()
    assert len(removed) > len(add_ons)
    for file in tools.lisp.glob("gemini-companion*.el*"):
        generated = file.stem.endswith(("-autoloads", "-pkg"))
        if file.stem not in removed and not generated:
            shutil.copy2(file, place)
    shutil.copytree(tools.lisp / "python", place / "python")
    return place


@pytest.mark.parametrize("add_ons", REMOVED, ids="-".join)
def test_core_reviews_an_edit_and_has_no_dead_row(
    world: World, tmp_path: Path, add_ons: tuple[str, ...]
) -> None:
    root = package_without(add_ons, world.tools, tmp_path)
    file, emacs, reviews, cli = world.review(
        "one\n", "uno\n", say("all done"), root=root
    )
    there = [row for name in ADD_ONS if name not in add_ons for row in ROWS[name]]
    gone = [row for name in add_ons for row in ROWS[name]]

    # The keys of a review, and then the command that accepts.
    emacs.command("gemini-companion-review-menu")
    emacs.wait_for("Exclude this hunk")
    screen = emacs.screen()
    emacs.keys("C-g")
    reviews.select("C-c", "C-c")
    cli.finished("all done", file, "uno\n")
    reviews.wait_until(0)

    emacs.command("gemini-companion-menu")
    emacs.wait_for("Status and problems")
    screen += emacs.screen()
    # A key of the transient.
    emacs.keys("?")
    emacs.wait_for("Connected: Gemini CLI")
    emacs.keys("C-x", "1")
    status = emacs.value(
        '(with-current-buffer "*gemini-companion status*" (buffer-string))'
    )
    assert "not installed" not in status
    for row in there:
        assert row in screen
    for row in gone:
        assert row not in screen
    assert ("No CLI is linked" in status) == ("tools" not in add_ons)
    emacs.becomes(DEAD, None)
    # No file that is left has loaded the others.
    emacs.becomes(
        f"(seq-filter (lambda (entry) (string-prefix-p {lisp(world.tools.lisp)}"
        ' (or (car entry) ""))) load-history)',
        None,
    )
    emacs.eval("(progn (gemini-companion-mode -1) nil)")
    emacs.becomes("(gemini-companion-server-running-p)", None)
