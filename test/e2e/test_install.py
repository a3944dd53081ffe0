# SPDX-License-Identifier: GPL-3.0-or-later
"""The mode installs the Python packages of its server, from their index."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from harness.emacs import Emacs, lisp
from harness.scratch import Scratch
from harness.tools import ROOT
from harness.world import World

pytestmark = pytest.mark.once

# Settings of pip and uv where a test cannot reach PyPI.
PASSED = ("PIP_", "UV_", "HTTP_PROXY", "HTTPS_PROXY", "SSL_CERT_FILE")
LOG = "*gemini-companion install*"
NO_NETWORK = {
    "UV_HTTP_RETRIES": "0",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
}


def package(scratch: Scratch) -> Path:
    """Return the directory of the Python part of the package."""
    package = scratch.root / "package"
    if not package.exists():
        (package / "python").mkdir(parents=True)
        for file in (ROOT / "python").iterdir():
            (package / "python" / file.name).symlink_to(file)
    return package


def bare_emacs(world: World, **variables: str) -> Emacs:
    """Return an Emacs that has the package but no Python packages."""
    tools = world.scratch.root / "tools"
    tools.mkdir(exist_ok=True)
    if not (tools / "uv").exists():
        (tools / "uv").symlink_to(ROOT / ".venv" / "bin" / "uv")
    passed = [
        f"(setenv {lisp(name)} {lisp(value)})"
        for name, value in [*os.environ.items(), *variables.items()]
        if name.upper().startswith(PASSED)
    ]
    return world.emacs(
        world.file("a.txt"),
        mode=False,
        extra=f"(setq gemini-companion-server-command nil"
        f" gemini-companion-server-directory {lisp(f'{package(world.scratch)}/')})"
        f" (push {lisp(tools)} exec-path) {' '.join(passed)}",
    )


def turn_on(emacs: Emacs, answer: str) -> None:
    """Turn the mode on as a user does, and give ``answer`` to its question."""
    emacs.command("gemini-companion-mode")
    emacs.wait_for("Install the Python packages")
    emacs.keys(answer)


def wait_for_output(emacs: Emacs, text: str) -> None:
    """Wait until the output of the installation has ``text``."""
    emacs.holds(
        f"(and (get-buffer {lisp(LOG)}) (with-current-buffer {lisp(LOG)}"
        f" (save-excursion (goto-char 1) (search-forward {lisp(text)} nil t))))",
        text,
    )


def environments(scratch: Scratch) -> list[Path]:
    """Return the environments."""
    return list((scratch.home / ".emacs.d" / "gemini-companion").glob("venv-*"))


@pytest.mark.long
def test_answer_yes_installs_the_packages_and_starts_the_server(world: World) -> None:
    # A new user has no uv; see test_new_user.py.
    emacs = bare_emacs(world)

    turn_on(emacs, "y")

    emacs.wait_for("Gemini installing")
    emacs.holds(f"(get-buffer-window {lisp(LOG)})", "the output is on the screen")
    wait_for_output(emacs, "uv pip install")
    emacs.holds("e2e-ready", "the server is ready")
    world.gemini()
    assert len(environments(world.scratch)) == 1


def test_missing_network_is_reported(world: World) -> None:
    emacs = bare_emacs(world, **NO_NETWORK)

    turn_on(emacs, "y")

    wait_for_output(emacs, "check the network")
    assert environments(world.scratch) == []


def test_package_with_another_hash_is_refused(world: World) -> None:
    file = package(world.scratch) / "python" / "requirements.txt"
    text = file.read_text(encoding="utf-8")
    file.unlink()
    hash_of_epc = r"(?<=\nepc==0\.0\.5 \\\n    --hash=sha256:)\w+"
    file.write_text(re.sub(hash_of_epc, "0" * 64, text), encoding="utf-8")
    emacs = bare_emacs(world)

    turn_on(emacs, "y")

    wait_for_output(emacs, "does not have the expected hash")
    assert environments(world.scratch) == []


def test_installation_works_after_emacs_was_killed_during_one(world: World) -> None:
    emacs = bare_emacs(world)
    turn_on(emacs, "y")
    begun = '(concat gemini-companion-install-directory "venv-*/bin/python")'
    emacs.holds(f"(file-expand-wildcards {begun})", "an environment is begun")
    emacs.quit()
    left = environments(world.scratch)
    assert len(left) == 1

    again = bare_emacs(world)
    turn_on(again, "y")

    again.holds("e2e-ready", "the server is ready")
    again.holds(f"(not (file-exists-p {lisp(left[0])}))", "the half one is gone")
