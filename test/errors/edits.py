# SPDX-License-Identifier: GPL-3.0-or-later
"""Edits that break real code and fix it again."""

import random
import re
from pathlib import Path

Edit = dict[str, str]

# What is inserted as a statement of its own.
STATEMENTS = {
    ".py": ["undefined_thing_{}()", "len({})", "value = (1, {}", "import missing_{}"],
    ".ts": [
        "undefinedThing{}();",
        'const bad{}: number = "text";',
        "const broken = (1, {};",
        'import * as missing{0} from "./missing{0}";',
    ],
    ".go": [
        "undefinedThing{}()",
        'var bad{} int = "text"',
        "broken = (1, {}",
        "missing{}.Call()",
    ],
    ".c": [
        "undefined_thing_{}->x = 1;",
        "struct missing_{0} bad_{0};",
        "broken = (1, {};",
        '#include "missing_{}.h"',
    ],
}
# A line that is a statement, and what the line before it ends with.
STATEMENT = {
    ".py": (r"    +(?:[\w.]+ = |return\b|raise\b|(?:if|for) .*:$)", r"[^,(\[{\\]$"),
    ".ts": (r"    +\S.*;$", r"[;{]$"),
    ".go": (r"\t+(?!case|default|\}|//).*[)\w]$", r"[{)\w]$"),
    ".c": (r"  +(?!case|default).*;$", r"[;{]$"),
}
# What models do: each is a line, and what becomes of it.
ONE = {
    "import": [
        (r"(?:from [\w.]+ )?import .*\n", ""),
        (r'#include ".*\n', ""),
        (r'\t(?:\w+ )?"[\w/]+"\n', ""),
    ],
    "rename": [
        (r"( *(?:async )?def |class )(\w+)", r"\1\2_renamed"),
        (r"(func (?:\([^)]*\) )?|type )(\w+)", r"\1\2Renamed"),
        (r"((?:export )?(?:class|interface|function|type) )(\w+)", r"\1\2Renamed"),
        (r"((?:static |const )*\w+\*? \*?)(\w+)(?=\(.*[,{]$)", r"\1\2_renamed"),
    ],
    "parameter": [
        (r"(.*\bdef \w+\()(?!self|cls)", r"\1extra, "),
        (r"(func (?:\([^)]*\) )?\w+\()(?=\w)", r"\1extra int, "),
        (r"((?:export )?function \w+\()(?=\w)", r"\1extra: number, "),
        (r"((?:static )?\w+\*? \*?\w+\()(?=.*[,{]$)", r"\1int extra, "),
    ],
    "bracket": [(r"([^'\"#/]*)[)\]]((?:[^'\"#/)\]]*)\n)", r"\1\2")],
    "indentation": [(r"(    +)(?=\w+\.?\w* ?[=(])", r"\1   ")],
}


def places(path: Path, text: str) -> list[int]:
    """Return the lines of `text`, of `path`, before which a statement may stand."""
    lines = text.splitlines()
    statement, before = STATEMENT[path.suffix]
    return [
        number + 1
        for number in range(1, len(lines))
        if re.match(statement, lines[number]) and re.search(before, lines[number - 1])
    ]


def broken(
    text: str, path: Path, kind: str, number: int, chance: random.Random
) -> str | None:
    """Return `text` of `path` with an error of `kind`, or None if there is no place."""
    lines = text.splitlines(keepends=True)
    if kind in ONE:
        candidates = [
            (index, changed)
            for index, line in enumerate(lines)
            for pattern, replacement in ONE[kind]
            if re.match(pattern, line)
            and (changed := re.sub(pattern, replacement, line, count=1)) != line
        ]
        if not candidates:
            return None
        index, lines[index] = chance.choice(candidates)
        return "".join(lines)
    place = chance.choice(places(path, text))
    indent = re.match(r"\s*", lines[place - 1])
    assert indent
    statement = STATEMENTS[path.suffix][int(kind)].format(number)
    lines.insert(place - 1, f"{indent[0]}{statement}\n")
    return "".join(lines)


KINDS = ["0", "rename", "1", "import", "2", "parameter", "bracket", "3", "indentation"]


def make(files: list[Path], count: int) -> list[Edit]:
    """Return `count` edits that break something, each followed by its fix."""
    chance = random.Random(1)
    edits: list[Edit] = []
    texts: dict[Path, str] = {}
    for number in range(count):
        # Those of a file follow each other.
        path = files[number * len(files) // count]
        before = texts.get(path) or path.read_text()
        kind = KINDS[number % len(KINDS)]
        after = broken(before, path, kind, number, chance) or broken(
            before, path, "0", number, chance
        )
        assert after
        comment = "# moved\n" if path.suffix == ".py" else "// moved\n"
        above = comment * 3 if chance.random() < 0.5 else ""
        fixed = above + before if chance.random() < 0.3 else before
        after = above + after
        texts[path] = fixed
        edit = {"how": kind, "file": str(path)}
        edits.append({**edit, "kind": "break", "before": before, "after": after})
        edits.append({**edit, "kind": "fix", "before": after, "after": fixed})
    return edits
