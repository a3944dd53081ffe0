# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of files in a prompt, in a project of 100,000 files; and 2,000 in the trash.

The comparator is the same with a tenth of the files; the limit is that Emacs lists
the 100,000 files.  Of the last row, the comparator is what ``completing-read`` does
with the list, which is made for it.  Of files that an undo deletes, it is a tenth of
the files.  All are processor time of Emacs, without Git's.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from editor import Editor, on_screen
from harness.emacs import lisp
from harness.tools import Tools
from rows import Goal, Row, alternate, row

FILES = 100_000
DELETED = 2_000
ROUNDS = 5
EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
ROWS = {"quote": "100 @ in a prompt", "complete": "name completed after @"}


def measure(directory: Path) -> Iterator[Row]:
    large, small = (project(directory / str(n), n) for n in (FILES, FILES // 10))
    with on_screen(Tools.find(), library="bench-files", mode=False) as emacs:
        for function, what in ROWS.items():
            samples = alternate(
                ROUNDS,
                ours=partial(cost, emacs, function, large),
                comparator=partial(cost, emacs, function, small),
                limit=partial(cost, emacs, "list", large),
            )
            # Linear is 10 times; a regexp for each file and each @, 20 times the limit.
            goals = Goal(times=3, side="limit"), Goal(times=16)
            yield row(f"{what}, 100k files, ms", samples, *goals)
        samples = alternate(
            ROUNDS,
            ours=partial(cost, emacs, "complete", large),
            comparator=partial(cost, emacs, "read", large),
        )
        yield row("the same (comparator: completing-read), ms", samples, Goal(times=2))
        samples = alternate(
            ROUNDS,
            ours=partial(delete, emacs, directory / "many", DELETED),
            comparator=partial(delete, emacs, directory / "few", DELETED // 10),
        )
        yield row("2,000 files deleted by an undo, ms", samples, Goal(times=16))


def cost(emacs: Editor, function: str, project: Path) -> float:
    """Return the ms that ``function`` takes in ``project``."""
    form = f"(bench-files-cost #'bench-files-{function} {lisp(f'{project}/')})"
    return float(emacs.ask(form))


def delete(emacs: Editor, directory: Path, files: int) -> float:
    """Return the ms that it takes to delete new ``files`` as an undo does."""
    directory.mkdir(exist_ok=True)
    for number in range(files):
        (directory / f"file{number}").write_text(f"{number}\n" * 100)
    return cost(emacs, "trash", directory)


def project(directory: Path, files: int) -> Path:
    """Make a project that has ``files``, as Git knows them, in ``directory``."""
    subprocess.run(["git", "init", "-q", directory], check=True)
    lines = [f"100644 {EMPTY}\td{n // 1000}/file{n}.py\n" for n in range(files)]
    subprocess.run(
        ["git", "update-index", "--index-info"],
        cwd=directory, input="".join(lines), text=True, check=True,
    )  # fmt: skip
    return directory
