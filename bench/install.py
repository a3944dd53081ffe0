# SPDX-License-Identifier: GPL-3.0-or-later
"""The installation of the server's packages, from turning the mode on to a server.

The comparator is a bare ``pip install`` of the same list into a new environment of
the same Python.  Each side has an empty cache; both depend on the package index.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from client import until
from editor import PACKAGE, on_screen
from harness.emacs import lisp
from harness.scratch import registry
from harness.tools import Tools
from rows import Goal, Row, row

ROUNDS = 2
LIST = PACKAGE / "python" / "requirements.txt"
BOUND = 900
# Ours also makes an environment, checks it, and starts the server.
ROWS = {
    "installation, s": Goal(times=1.5),
    "the same, MB": Goal(times=1.1),
    "the same, files": Goal(times=1.1),
    "the same, questions": Goal(more=1),
}


def measure(directory: Path) -> Iterator[Row]:
    figures: dict[str, list[list[float]]] = {"ours": [], "comparator": []}
    for number in range(ROUNDS):
        python, ours = _ours()
        figures["ours"].append(ours)
        figures["comparator"].append(_bare(python, directory / str(number)))
    for place, (what, goal) in enumerate(ROWS.items()):
        samples = {side: [each[place] for each in figures[side]] for side in figures}
        yield row(what, samples, goal)


def _ours() -> tuple[str, list[float]]:
    """Return the Python that was used, and the figure of each of ``ROWS``."""
    with on_screen(Tools.find(), mode=False) as emacs:
        for name, value in registry().items():
            emacs.ask(f"(setenv {lisp(name)} {lisp(value)})")
        began = time.monotonic()
        emacs.ask("(bench-install)")
        until(lambda: emacs.ask("bench-ready"), "the server is ready", BOUND)
        took = time.monotonic() - began
        directory = Path(emacs.ask("(gemini-companion-install-environment)"))
        python = os.path.realpath(directory.expanduser() / "bin" / "python")
        return python, [took, *_size(directory), emacs.ask("bench-questions")]


def _bare(python: str, directory: Path) -> list[float]:
    """Return the same for ``pip install`` by ``python`` into ``directory``."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory.parent)}
    cache = {"PIP_CACHE_DIR": str(directory) + ".cache"}
    began = time.monotonic()
    subprocess.run([python, "-m", "venv", directory], check=True)
    subprocess.run(
        [directory / "bin" / "pip", "install", "--quiet", "-r", LIST],
        env={**environment, **registry(), **cache},
        check=True,
    )
    return [time.monotonic() - began, *_size(directory), 0]


def _size(directory: Path) -> tuple[float, int]:
    """Return the MB, and the number, of the files in ``directory``."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files) / 1e6, len(files)
