# SPDX-License-Identifier: GPL-3.0-or-later
"""The package without the files of add-ons reviews edits of the real Gemini CLI."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from harness.emacs import BARE, DRAWN, PROPOSAL, SESSION, Emacs, Reviews, lisp
from harness.model import say, write_file
from harness.tools import ROOT, Tools
from harness.wait import eventually
from harness.world import World

from fake_cli import FakeCli

ADD_ONS = ("check", "prompts", "remote", "tools")
# Each alone is for `dev/test core'.
REMOVED = [ADD_ONS, *((name,) for name in ADD_ONS if os.environ.get("GC_CORE"))]

# What an add-on has in a menu or in the status.
ROWS = {
    "check": ["Other references"],
    "prompts": ["Write a prompt", "Send what is at point", "Reject, say why"],
    "remote": [],
    "tools": ["Link CLIs"],
}

NEEDING = """
(progn
  (require 'gemini-companion-part)
  (dolist (part (gemini-companion-part-addon-parts '({add_ons})))
    (princ (format "%s\\n" (gemini-companion-part-feature part)))))
"""

# The menu bar has the commands of a review.
LABELS = '(format "%S" (lookup-key gemini-companion-mode-map [menu-bar gemini]))'

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
    (dolist (finding (and (fboundp 'gemini-companion-status)
                          (gemini-companion-status--findings default-directory)))
      (dolist (button (nthcdr 4 finding))
        (unless (functionp (cdr button)) (push button dead))))
    dead))
"""


def package_without(add_ons: tuple[str, ...], tools: Tools, place: Path) -> Path:
    """Return a copy of the package without ``add_ons``, and what needs them."""
    code = NEEDING.format(add_ons=" ".join(add_ons))
    command = [tools.emacs, *BARE, "-q", "--batch", "-L", str(tools.lisp)]
    parts = subprocess.check_output([*command, "--eval", code], text=True).split()
    # The files of an add-on are in one directory.
    removed = {
        file.stem
        for part in parts
        for own in ROOT.glob(f"lisp/*/{part}.el")
        for file in own.parent.glob("*.el")
    }
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

    screen = emacs.eval(LABELS)
    assert "Exclude this hunk" in screen
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
    has_loaded_nothing_else(emacs, world)
    is_off(emacs)


def has_loaded_nothing_else(emacs: Emacs, world: World) -> None:
    """Assert that no file that is left has loaded the others."""
    emacs.becomes(
        f"(seq-filter (lambda (entry) (string-prefix-p {lisp(world.tools.lisp)}"
        ' (or (car entry) ""))) load-history)',
        None,
    )


def is_off(emacs: Emacs) -> None:
    """Turn the mode off."""
    emacs.eval("(progn (gemini-companion-mode -1) nil)")
    emacs.becomes("(gemini-companion-server-running-p)", None)


# What all other add-ons need.
BELOW = ("terminal",)
WARNINGS = '(and (get-buffer "*Warnings*") t)'


def test_core_alone_reviews_edits_of_gemini_cli(world: World, tmp_path: Path) -> None:
    root = package_without(BELOW, world.tools, tmp_path)
    file, emacs, reviews, cli = world.review(
        "one\n", "uno\n", say("first done"), root=root, size=(80, 24)
    )
    # The user does not wait for it, and nothing takes the window.
    emacs.says("Edit of a.txt by Gemini CLI; M-x gemini-companion-review shows it")
    emacs.becomes("(e2e-windows)", "a.txt")
    reviews.select("C-c", "C-c")
    cli.finished("first done", file, "uno\n")
    reviews.wait_until(0)

    reviews.proposed(cli, file, write_file(file, "due\n"))
    reviews.select("C-c", "C-k")
    cli.wait_for("Rejected")
    assert file.read_text() == "uno\n"

    (server,) = world.scratch.servers()
    emacs.command("gemini-companion-restart")
    emacs.says("gemini-companion server was restarted")
    eventually(lambda: server not in world.scratch.servers(), "the old one has ended")
    reviews.proposed(cli, file, write_file(file, "tre\n"), say("last done"))
    reviews.select("C-c", "C-c")
    cli.finished("last done", file, "tre\n")

    emacs.becomes(DEAD, None)
    emacs.becomes(WARNINGS, None)
    has_loaded_nothing_else(emacs, world)
    is_off(emacs)


LINES = [f"line {number}" for number in range(1, 21)]


def raw_client(emacs: Emacs, world: World) -> FakeCli:
    (discovery,) = world.scratch.discovery_files()
    facts = json.loads(discovery.read_text())
    return FakeCli(facts["port"], facts["authToken"])


def test_core_alone_serves_a_raw_client(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This process is the CLI.
    monkeypatch.chdir(world.project)
    root = package_without(BELOW, world.tools, tmp_path)
    file = world.file("a.txt", "\n".join([*LINES, ""]))
    emacs = world.emacs(file, root=root)
    reviews = Reviews(emacs)
    cli = raw_client(emacs, world)
    events = cli.connect()
    emacs.holds(SESSION, "it is connected")

    def text(first: str) -> str:
        return "\n".join([first, *LINES[1:18], "nineteen", LINES[19], ""])

    def outcome() -> tuple[str, str]:
        """Return the next outcome, and the content of the file."""
        while not (event := events.next())["method"].startswith("ide/diff"):
            pass
        return event["method"], event["params"].get("content", "")

    try:
        # A hunk is excluded; what is accepted is what is written.
        cli.open_diff(str(file), text("uno"))
        reviews.shown("a.txt")
        reviews.select()
        emacs.wait_for("Ediff Control Panel")
        emacs.holds(DRAWN)
        emacs.keys("a")
        emacs.holds(f"(gemini-companion-hunk-excluded {PROPOSAL})")
        emacs.keys("C-c", "C-c")
        content = text("line 1")
        assert outcome() == ("ide/diffAccepted", content)
        file.write_text(content)
        emacs.becomes("(mapcar #'gemini-companion-edit-file-state"
                      " (gemini-companion-edits))", ["written"])  # fmt: skip
        emacs.becomes(
            f"(with-current-buffer (get-file-buffer {lisp(file)}) (buffer-string))",
            content,
        )
        emacs.becomes("(e2e-windows)", "a.txt")

        # Another one is closed by the CLI, and the next one is rejected.
        cli.open_diff(str(file), text("due"))
        reviews.shown("a.txt")
        cli.close_diff(str(file))
        reviews.wait_until(0)
        cli.open_diff(str(file), text("tre"))
        reviews.shown("a.txt")
        reviews.select("C-c", "C-k")
        assert outcome()[0] == "ide/diffRejected"

        # Then edits are accepted without a review.
        emacs.command("gemini-companion-auto-accept", "Accept")
        cli.open_diff(str(file), text("quattro"))
        assert outcome() == ("ide/diffAccepted", text("quattro"))
        emacs.becomes(WARNINGS, None)
        has_loaded_nothing_else(emacs, world)
    finally:
        cli.close()
    is_off(emacs)
