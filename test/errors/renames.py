# SPDX-License-Identifier: GPL-3.0-or-later
"""Renames of real code: symbols to rename, and what is wrong with one.

A rename is right if its files differ in nothing but the name, if the model was told of
each place that is left, and if a checker has no new error unless a place is left.

The checker also lists places by itself: with another name in the definition only, each
use is an error.  The language server has no part in that.
"""

import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cache
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
    symbols = []
    for file in files:
        text = file.read_text()
        for match in re.finditer(DEFINITIONS[file.suffix], text):
            line = text.count("\n", 0, match.start(1)) + 1
            symbols.append((match.start(), file, match[1], line))
    by_depth = sorted(symbols, key=lambda symbol: symbol[:2])
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


def put_behind_emoji(renames: list[Rename]) -> None:
    """Write an emoji before each second definition, if a comment may stand there.

    Language servers differ in how many columns it has.
    """
    for rename in renames[::2]:
        path = Path(rename["file"])
        lines = path.read_text().split("\n")
        line = lines[rename["line"] - 1]
        if path.suffix != ".py" and not line.startswith("/*"):
            lines[rename["line"] - 1] = "/* \U0001f600\U0001f600 */ " + line
            path.write_text("\n".join(lines))


@dataclass
class Score:
    renamed: int = 0
    refused: int = 0
    files: int = 0
    left: int = 0
    """The renames that leave a place, and say so."""
    broken: int = 0
    """Those of them after which a checker has a new error."""
    listed: int = 0
    """The lines with the name that the checker lists."""
    missed: int = 0
    """Those of them that are as before."""
    wrong: int = 0
    times: list[float] = field(default_factory=list)


def count_words(word: str, text: str) -> int:
    return len(re.findall(rf"(?<![\w$]){re.escape(word)}(?![\w$])", text))


def printed(command: list[str], texts: Texts) -> str:
    """Return what the checker prints of ``texts``, a whole project."""
    return _printed(tuple(command), frozenset(texts.items()))


# Several language servers and versions of Emacs write the same texts.
@cache
def _printed(command: tuple[str, ...], texts: frozenset[tuple[str, str]]) -> str:
    with tempfile.TemporaryDirectory() as directory:
        for name, text in texts:
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


def listed_places(
    checker: list[str], before: Texts, name: str, line: int, rename: Rename
) -> set[tuple[str, int]]:
    """Return the lines that have an error, and the name, if only a definition changes.

    The definition is on ``line`` of the file with ``name``.
    """
    old, new = rename["symbol"], rename["new"]
    word = re.compile(rf"(?<![\w$]){re.escape(old)}(?![\w$])")
    lines = {name: text.split("\n") for name, text in before.items()}
    changed = list(lines[name])
    changed[line - 1] = word.sub(new, changed[line - 1], count=1)
    texts = {**before, name: "\n".join(changed)}
    broken = errors(printed(checker, texts), "") - errors(printed(checker, before), "")
    places = {(file.removeprefix("./"), int(number)) for file, number, _ in broken}
    return {
        (file, number)
        for file, number in places
        if number <= len(lines.get(file, ())) and word.search(lines[file][number - 1])
    } | {(name, line)}


def judge(
    project: Path, renames: list[Rename], results: list[Any], checker: list[str]
) -> Score:
    """Compare what Emacs has written with what may be written."""
    score = Score()
    before = {
        str(path.relative_to(project)): path.read_text()
        for path in project.rglob("*.*")
        # Git and clangd write into directories of their own.
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(project).parts)
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
        listed = listed_places(
            checker, before, relative[rename["file"]], rename["line"], rename
        )
        missed = [
            (name, line)
            for name, line in sorted(listed)
            if after[name].split("\n")[line - 1] == before[name].split("\n")[line - 1]
        ]
        problems += [f"{name}:{line} is as before" for name, line in missed
                     if name not in others and not told.get(name)]  # fmt: skip
        is_left = any(left.values())
        new_errors = printed(checker, after)
        broken = errors(new_errors, mask) - errors(found_before, mask)
        if broken and not is_left:
            problems.append(f"new errors: {sorted(broken)[:3]}")
        score.renamed += 1
        score.files += len(written)
        score.left += is_left
        score.broken += bool(broken)
        score.listed += len(listed)
        score.missed += len(missed)
        score.wrong += bool(problems)
        score.times.append(result["shown"])
        if problems:
            print(f"WRONG {old} in {rename['file']}: {problems}")
        elif broken:
            print(f"left {old}: {sum(left.values())}; checker {sorted(broken)[:2]}")
        elif missed:
            print(f"left {old}: {missed[:3]} of the list, told")
    return score
