# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs under test, from the environment or from this checkout."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
DEPS = ROOT / ".deps"

UV = ROOT / ".venv" / "bin" / "uv"
# Lines: VERSION KIND DIRECTORY, see dev/env.
EMACSEN = DEPS / "emacsen"
MELPA = "https://melpa.org/packages/"


def _program(variable: str, default: str) -> str:
    name = os.environ.get(variable, default)
    path = shutil.which(name)
    if not path:
        raise LookupError(f"No {name}; run `make setup', or set {variable}")
    return os.path.abspath(path)


@dataclass(frozen=True)
class Tools:
    emacs: str
    emacsclient: str
    elpa: str
    gemini: str
    qwen: str
    copilot: str
    pi: str

    python = sys.executable

    @classmethod
    def find(cls, emacs: str = "") -> "Tools":
        """Find the programs, in the environment first; ``emacs`` may be given."""
        emacs = emacs or _program("GC_EMACS", "emacs")
        printed = subprocess.run([emacs, "--version"], capture_output=True, text=True)
        return cls(
            emacs=emacs,
            emacsclient=f"{os.path.dirname(emacs)}/emacsclient",
            # Where Eask installs the packages for this Emacs.
            elpa=str(ROOT / ".eask" / printed.stdout.split()[2] / "elpa"),
            gemini=_program("GC_GEMINI", f"{DEPS}/npm/node_modules/.bin/gemini"),
            qwen=os.environ.get("GC_QWEN", f"{DEPS}/qwen/qwen"),
            copilot=os.environ.get(
                "GC_COPILOT", f"{DEPS}/copilot/node_modules/.bin/copilot"
            ),
            pi=os.environ.get("GC_PI", f"{DEPS}/pi/pi"),
        )

    @cached_property
    def lisp(self) -> Path:
        """The directory of the Lisp and the Python of the package."""
        return Path(os.environ.get("GC_LISP") or ROOT)

    @cached_property
    def is_first(self) -> bool:
        """Whether the Emacs is the one with which all tests run."""
        if not EMACSEN.exists():
            return True
        first = EMACSEN.read_text().partition("\n")[0].split(" ", 2)[2]
        return os.path.dirname(self.emacs) == first

    @cached_property
    def package(self) -> str:
        """The tar that a user installs; `make package` builds it."""
        (archive,) = ROOT.glob("dist/*.tar")
        return str(archive)

    @cached_property
    def archives(self) -> dict[str, str]:
        """The package archives that have the tar's dependencies."""
        local = os.environ.get("EASK_ARCHIVE")
        return {"local": local} if local else {"melpa": MELPA}

    @cached_property
    def term(self) -> str:
        """A terminal type that tmux's guests can use."""
        result = subprocess.run(
            ["infocmp", "tmux-256color"], capture_output=True, check=False
        )
        return "tmux-256color" if result.returncode == 0 else "screen-256color"
