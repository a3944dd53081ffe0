# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits that break real code and fix it again."""

from __future__ import annotations

import ast
import random
import re
from pathlib import Path

Edit = dict[str, str]

# What is inserted as a statement of its own.
PYTHON = ["undefined_thing_{}()", "len({})", "value = (1, {}", "import missing_{}"]
TYPESCRIPT = [
    "undefinedThing{}();",
    'const bad{}: number = "text";',
    "const broken = (1, {};",
    'import * as missing{0} from "./missing{0}";',
]


def places(path: Path, text: str) -> list[int]:
    """Return the lines of `text`, of `path`, before which a statement may stand."""
    if path.suffix == ".py":
        return [
            statement.lineno
            for function in ast.walk(ast.parse(text))
            if isinstance(function, ast.FunctionDef)
            for statement in function.body
            if not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        ]
    lines = text.splitlines()
    return [
        number + 1
        for number in range(1, len(lines))
        if re.match(r"    +\S.*;$", lines[number])
        and re.search(r"[;{]$", lines[number - 1])
    ]


def broken(text: str, place: int, kind: int, number: int, is_python: bool) -> str:
    """Return `text` with an error of `kind` before the line `place`, or in it."""
    lines = text.splitlines(keepends=True)
    statements = PYTHON if is_python else TYPESCRIPT
    indent = re.match(r"\s*", lines[place - 1])
    assert indent
    if kind < len(statements):
        lines.insert(place - 1, f"{indent[0]}{statements[kind].format(number)}\n")
    else:
        names = list(re.finditer(r"(?<=[ (])[a-z_]{3,}(?=[.(\[])", lines[place - 1]))
        if not names:
            return broken(text, place, 0, number, is_python)
        name = names[number % len(names)]
        line = lines[place - 1]
        lines[place - 1] = f"{line[: name.end()]}{number}{line[name.end() :]}"
    return "".join(lines)


def make(files: list[Path], count: int, seed: int) -> list[Edit]:
    """Return `count` edits that break something, each followed by its fix."""
    chance = random.Random(seed)
    found: list[Edit] = []
    texts: dict[Path, str] = {}
    for number in range(count):
        # Those of a file follow each other.
        path = files[number * len(files) // count]
        is_python = path.suffix == ".py"
        before = texts.get(path) or path.read_text()
        kind = number % 5
        after = broken(
            before, chance.choice(places(path, before)), kind, number, is_python
        )
        comment = "# moved\n" if is_python else "// moved\n"
        above = comment * 3 if chance.random() < 0.5 else ""
        fixed = above + before if chance.random() < 0.3 else before
        after = above + after
        texts[path] = fixed
        for kind_name, one, other in (("break", before, after), ("fix", after, fixed)):
            found.append(
                {"kind": kind_name, "file": str(path), "before": one, "after": other}
            )
    return found
