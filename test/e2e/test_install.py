# SPDX-License-Identifier: GPL-3.0-or-later
"""The mode installs the Python packages of its server, from their index."""

import re
import shutil
from pathlib import Path

import pytest
from harness.emacs import Emacs, lisp
from harness.scratch import registry
from harness.tools import ROOT, UV
from harness.world import World

SLOW_UV = f"""#!/bin/sh
case $* in *"pip install"*) exec sleep 1000 ;; esac
exec {UV} "$@"
"""
LOG = "*gemini-companion install*"
NO_NETWORK = """
(setq process-environment
      (append '("HTTPS_PROXY=http://127.0.0.1:9" "https_proxy=http://127.0.0.1:9"
                "UV_HTTP_RETRIES=0")
              process-environment))
"""
NETWORK = "(progn (setq process-environment (nthcdr 3 process-environment)) nil)"


def bare_emacs(world: World, name: str) -> Emacs:
    """Return an Emacs that has the package but no Python packages."""
    # A new user has no uv; see test_new_user.py.
    tools = world.scratch.root / name
    tools.mkdir()
    (tools / "uv").symlink_to(UV)
    passed = [f"(setenv {lisp(k)} {lisp(v)})" for k, v in registry().items()]
    return world.emacs(
        world.file("a.txt"),
        name=name,
        mode=False,
        extra=f"(setq gemini-companion-server-command nil"
        f" gemini-companion-server-directory {lisp(f'{world.scratch.root}/package/')})"
        f" (push {lisp(tools)} exec-path) {' '.join(passed)}",
    )


def turn_on(emacs: Emacs, output: str) -> None:
    """Turn the mode on, let it install, and wait for ``output`` of that."""
    emacs.command("gemini-companion-mode", "Install the Python packages")
    emacs.holds(
        f"(and (get-buffer {lisp(LOG)}) (with-current-buffer {lisp(LOG)}"
        f" (save-excursion (goto-char 1) (search-forward {lisp(output)} nil t))))",
        output,
    )


@pytest.mark.long
def test_installation_reports_errors_and_works_the_next_time(world: World) -> None:
    python = world.scratch.root / "package" / "python"
    shutil.copytree(ROOT / "python", python)
    lists = python / "requirements.txt"
    hash_of_epc = r"(?<=\nepc==0\.0\.5 \\\n    --hash=sha256:)\w+"
    text = lists.read_text()

    def environments() -> list[Path]:
        return list(world.home.glob(".emacs.d/gemini-companion/venv-*"))

    emacs = bare_emacs(world, "first")
    emacs.eval(NO_NETWORK)
    turn_on(emacs, "check the network")
    emacs.eval(NETWORK)
    lists.write_text(re.sub(hash_of_epc, "0" * 64, text))
    turn_on(emacs, "does not have the expected hash")
    assert environments() == []

    # Emacs exits meanwhile.
    lists.write_text(text)
    uv = world.scratch.root / "first" / "uv"
    uv.unlink()
    uv.write_text(SLOW_UV)
    uv.chmod(0o700)
    turn_on(emacs, "uv pip install")
    emacs.wait_for("Gemini installing")
    emacs.holds(f"(get-buffer-window {lisp(LOG)})", "the output is on the screen")
    emacs.quit()
    (left,) = environments()

    again = bare_emacs(world, "again")
    turn_on(again, "uv pip install")
    again.wait_until_ready()
    again.holds(f"(not (file-exists-p {lisp(left)}))", "the half one is gone")
    assert len(environments()) == 1
