# SPDX-License-Identifier: GPL-3.0-or-later
"""Measure side by side and print one table.

Writes bench/results.json and the table of bench/README.org; exits 1 if a row
does not meet its goal, 2 if a row could not be measured.  --only GROUP measures the
rows of that group alone, and writes nothing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "test" / "e2e"))
sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "test" / "python"))

from editor import build
from harness.tools import Tools
from rows import Row, publish, table, write
from servers import install_node

HERE = Path(__file__).resolve().parent

GROUPS = (
    *("commands", "latency", "review", "calls", "mode", "memory", "rest"),
    *("asked", "shell", "names", "files", "processes", "remote", "install"),
)
RESULTS = HERE / "results.json"
README = HERE / "README.org"


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", action="append", choices=GROUPS)
    arguments = parser.parse_args()
    install_node()
    build(Tools.find())
    rows, broken = measured(arguments.only or GROUPS)
    print(table(rows))
    if broken:
        print(f"Not measured: {', '.join(broken)}")
        return 2
    if not arguments.only:
        write(rows, RESULTS)
        publish(rows, README)
    return 0 if all(row.met for row in rows) else 1


def measured(groups: Sequence[str]) -> tuple[list[Row], list[str]]:
    """Return the rows of ``groups``, and the groups that could not be measured."""
    rows: list[Row] = []
    broken = []
    for group in groups:
        began = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(prefix="gcb") as directory:
                rows.extend(import_module(group).measure(Path(directory)))
        except Exception:
            traceback.print_exc()
            broken.append(group)
        print(f"{group}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return rows, broken


if __name__ == "__main__":
    sys.exit(main())
