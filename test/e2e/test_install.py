# SPDX-License-Identifier: GPL-3.0-or-later
"""The mode installs the Python packages of its server, from their index."""

from __future__ import annotations

import os
from pathlib import Path

from harness.emacs import Emacs, lisp
from harness.scratch import Scratch
from harness.tools import ROOT
from harness.world import World

# What leads pip and uv to the packages where a test cannot reach PyPI.
PASSED = ("PIP_", "UV_", "HTTP_PROXY", "HTTPS_PROXY", "SSL_CERT_FILE")


def bare_emacs(world: World, scratch: Scratch) -> Emacs:
    """Return an Emacs that has the package but nothing for its server."""
    package = scratch.root / "package"
    if not package.exists():
        package.mkdir()
        (package / "python").symlink_to(ROOT / "python")
    passed = [
        f"(setenv {lisp(name)} {lisp(value)})"
        for name, value in os.environ.items()
        if name.startswith(PASSED)
    ]
    return world.emacs(
        scratch.file("a.txt"),
        mode=False,
        extra=f"(setq gemini-companion-server-command nil"
        f" gemini-companion-server-directory {lisp(f'{package}/')}) {' '.join(passed)}",
    )


def turn_on(emacs: Emacs, answer: str) -> None:
    """Turn the mode on as a person does, and give ANSWER to its question."""
    emacs.keys("M-x")
    emacs.terminal.wait_for("M-x")
    emacs.terminal.text("gemini-companion-mode")
    emacs.keys("Enter")
    emacs.terminal.wait_for("Install the Python packages")
    emacs.keys(answer)


def environments(scratch: Scratch) -> list[Path]:
    """Return the environments that are there."""
    return list((scratch.home / ".emacs.d" / "gemini-companion").glob("venv-*"))


def test_answer_yes_brings_the_server_up(world: World, scratch: Scratch) -> None:
    emacs = bare_emacs(world, scratch)

    turn_on(emacs, "y")

    emacs.terminal.wait_for("Gemini installing")
    emacs.holds("e2e-ready", "the server is ready")
    world.gemini()
    assert len(environments(scratch)) == 1


def test_emacs_killed_meanwhile_does_not_spoil_the_next_time(
    world: World, scratch: Scratch
) -> None:
    emacs = bare_emacs(world, scratch)
    turn_on(emacs, "y")
    begun = '(concat gemini-companion-install-directory "venv-*/bin/python")'
    emacs.holds(f"(file-expand-wildcards {begun})", "an environment is begun")
    emacs.quit()
    left = environments(scratch)
    assert len(left) == 1

    again = bare_emacs(world, scratch)
    turn_on(again, "y")

    again.holds("e2e-ready", "the server is ready")
    again.holds(f"(not (file-exists-p {lisp(left[0])}))", "the half one is gone")
