# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs under test, from the environment or from this checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

MELPA = "https://melpa.org/packages/"


def _program(variable: str, *candidates: str) -> str:
    named = os.environ.get(variable)
    for candidate in (named,) if named else candidates:
        found = shutil.which(candidate)
        if found:
            return os.path.abspath(found)
    raise LookupError(f"{variable}: none of {named or ', '.join(candidates)} is there")


def _elpa(emacs: str) -> str:
    """Return where Eask installs the packages for ``emacs``."""
    printed = subprocess.run(
        [emacs, "--version"], capture_output=True, check=True, text=True
    ).stdout
    return str(ROOT / ".eask" / printed.split()[2] / "elpa")


@dataclass(frozen=True)
class Tools:
    """The programs that the tests start."""

    emacs: str
    emacsclient: str
    elpa: str
    gemini: str
    python: str
    tmux: str

    @classmethod
    def find(cls) -> Tools:
        """Find the programs, in the environment first."""
        emacs = _program("GC_EMACS", "emacs")
        npm = ROOT / ".deps" / "npm" / "node_modules" / ".bin"
        return cls(
            emacs=emacs,
            emacsclient=_program("GC_EMACSCLIENT", "emacsclient"),
            elpa=os.environ.get("GC_ELPA") or _elpa(emacs),
            gemini=_program("GC_GEMINI", f"{npm}/gemini", "gemini"),
            python=_program("GC_PYTHON", f"{ROOT}/.venv/bin/python", sys.executable),
            tmux=_program("GC_TMUX", "tmux"),
        )

    @cached_property
    def qwen(self) -> str:
        """The command of Qwen Code; `dev/setup` installs it."""
        return os.environ.get("GC_QWEN") or str(ROOT / ".deps" / "qwen" / "qwen")

    @cached_property
    def lisp(self) -> Path:
        """The directory of the Lisp and the Python of the package."""
        return Path(os.environ.get("GC_LISP") or ROOT)

    @cached_property
    def package(self) -> str:
        """The tar that a user installs; `make package` builds it."""
        named = os.environ.get("GC_PACKAGE")
        found = [named] if named else sorted(map(str, ROOT.glob("dist/*.tar")))
        if not found:
            raise LookupError("GC_PACKAGE: no tar is in dist; run `make package'")
        return found[-1]

    @cached_property
    def archives(self) -> dict[str, str]:
        """The package archives that have the tar's dependencies."""
        local = os.environ.get("EASK_ARCHIVE")
        return {"local": local} if local else {"melpa": MELPA}

    @cached_property
    def term(self) -> str:
        """A terminal type that tmux's guests can use."""
        known = subprocess.run(
            ["infocmp", "tmux-256color"], capture_output=True, check=False
        )
        return "tmux-256color" if known.returncode == 0 else "screen-256color"
