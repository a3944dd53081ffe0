# SPDX-License-Identifier: GPL-3.0-or-later
"""Renames of real code: symbols to rename, and what is wrong with one.

A rename is right if its files differ in nothing but the name, if the model was told of
each place that is left, and if a checker has no new error unless a place is left.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Rename = dict[str, Any]
Texts = dict[str, str]

# A definition, whose name is the group 1.
DEFINITIONS = {
    ".py": r"(?m)^(?: {4})?(?:def|class) (?!__|test|setUp|tearDown)(\w{3,})",
    ".ts": r"(?m)^(?:export )?(?:abstract )?(?:class|interface|function|type) (\w{3,})",
    ".go": r"(?m)^(?:func (?:\([^)]*\) )?|type )(\w{3,})",
    ".c": r"(?m)^(?:static )?\w+ \*?(\w{3,})\([^;]*$",
}
# A line that a checker prints of an error: its file, its line and its text.
ERROR = re.compile(r"^\s*([\w./-]+?)[:(](\d+)[:,]\d+.*?(?:error\w*|:) (.*)$", re.M)


def make(project: Path, files: list[Path], count: int) -> list[Rename]:
    """Return `count` renames of symbols that ``files`` define, one file in turn."""
    found = []
    for file in files:
        text = file.read_text()
        for match in re.finditer(DEFINITIONS[file.suffix], text):
            line = text.count("\n", 0, match.start(1)) + 1
            found.append((match.start(), file, match[1], line))
    by_depth = sorted(found, key=lambda one: (one[0], one[1]))
    step = max(1, len(by_depth) // count)
    end = "_renamed" if files[0].suffix in (".py", ".c") else "Renamed"
    return [
        {
            "file": str(file),
            "symbol": name,
            "line": line,
            "new": name + end,
        }
        for _, file, name, line in by_depth[::step][:count]
    ]


@dataclass
class Score:
    renamed: int = 0
    refused: int = 0
    files: int = 0
    left: int = 0
    """The renames that leave a place, and say so."""
    broken: int = 0
    """Those of them after which a checker has a new error."""
    wrong: int = 0
    times: list[float] = field(default_factory=list)


def count_words(word: str, text: str) -> int:
    return len(re.findall(rf"(?<![\w$]){re.escape(word)}(?![\w$])", text))


def printed(command: list[str], texts: Texts) -> str:
    """Return what the checker prints of ``texts``, a whole project."""
    with tempfile.TemporaryDirectory() as directory:
        for name, text in texts.items():
            path = Path(directory) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, check=False
        )
    return (done.stdout + done.stderr).replace(directory + "/", "")


def errors(text: str, mask: str) -> set[tuple[str, ...]]:
    """Return the errors in ``text`` of a checker, without what matches ``mask``."""
    return {
        (file, line, re.sub(mask, "NAME", message))
        for file, line, message in ERROR.findall(text)
    }


def judge(
    project: Path, renames: list[Rename], results: list[Any], checker: list[str]
) -> Score:
    """Compare what Emacs has written with what may be written."""
    score = Score()
    before = {
        str(path.relative_to(project)): path.read_text()
        for path in project.rglob("*.*")
        if path.is_file() and ".git" not in path.parts
    }
    found_before = printed(checker, before)
    for rename, result in zip(renames, results, strict=True):
        old, new = rename["symbol"], rename["new"]
        if "files" not in result:
            score.refused += 1
            print(f"refused {old}: {result.get('problem') or result}")
            continue
        relative = {str(project / name): name for name in before}
        written = {relative[name]: text for name, text in result["texts"].items()}
        after = {**before, **written}
        mask = rf"{re.escape(new)}|{re.escape(old)}"
        told = {relative[file]: left for file, *_, left in result["files"]}
        others = {relative.get(file, file) for file in result["elsewhere"]}
        problems = [
            f"{name} differs in more"
            for name, text in written.items()
            if re.sub(mask, "", text) != re.sub(mask, "", before[name])
            and str(project / name) not in result["odd"]
        ]
        left = {name: count_words(old, text) for name, text in after.items()}
        problems += [
            f"{name}: {number} left and not told"
            for name, number in left.items()
            if number and name not in others and told.get(name) != number
        ]
        is_left = any(left.values())
        found = printed(checker, after)
        broken = errors(found, mask) - errors(found_before, mask)
        if broken and not is_left:
            problems.append(f"new errors: {sorted(broken)[:3]}")
        score.renamed += 1
        score.files += len(written)
        score.left += is_left
        score.broken += bool(broken)
        score.wrong += bool(problems)
        score.times.append(result["shown"])
        if problems:
            print(f"WRONG {old} in {rename['file']}: {problems}")
        elif broken:
            told_errors = [error for file in result["errors"] for error in file]
            print(f"left {old}: {sum(left.values())}; checker {sorted(broken)[:2]}; "
                  f"told {told_errors[:2]}")  # fmt: skip
    return score
