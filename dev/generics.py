# SPDX-License-Identifier: GPL-3.0-or-later
"""Print generic functions with their methods: see dev/generics."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# The macro defines a generic that adapters of CLIs have methods of.
DEFINITION = re.compile(
    r"^\((?:cl-def(generic|method)|gemini-companion-client--define)"
    r'\s+(\S+)((?:\s+:(?:\S+)(?:\s+"[^"]*")?)*)\s+\(',
    re.M,
)


def arguments(text: str, start: int) -> str:
    """Return the list that begins at ``start``, in one line."""
    depth = 0
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return " ".join(text[start : end + 1].split())
    raise ValueError(f"No end of a list: {text[start : start + 60]}")


def main(word: str) -> None:
    generics: dict[str, str] = {}
    methods: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted([ROOT / "gemini-companion.el", *ROOT.glob("lisp/*/*.el")]):
        text = file.read_text()
        for found in DEFINITION.finditer(text):
            kind, name, qualifiers = found.groups()
            line = text.count("\n", 0, found.start()) + 1
            location = f"{file.relative_to(ROOT)}:{line}"
            if kind != "method":
                generics[name] = location
            else:
                given = arguments(text, found.end() - 1)
                # What the method is for: the arguments that have a type or a value.
                types = re.findall(r"\([^\s()]+ (\(.*?\)|[^\s()]+)\)", given)
                label = " ".join([*qualifiers.split(), *types]) or "default"
                methods[name].append(f"  {label}  {location}")
    for name in sorted({*generics, *methods}):
        if word in name:
            print(f"{name}  {generics.get(name, 'of Emacs')}")
            print(*methods[name], sep="\n", end="\n" if methods[name] else "")


main(sys.argv[1] if sys.argv[1:] else "")
