# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts for a model: answers to its questions, and errors introduced by its edit.

A text has relative file names, and a bounded number of characters.
"""

import os
from collections.abc import Sequence

from .types import Facts, clean

LONGEST_LINE = 120
LONGEST_TEXT = 72
LONGEST_ANSWER = 8000
LONGEST_ERROR = 200
MOST_FILES = 5
MOST_OTHERS = 2
"""Maximum number of names of files in which a language server found no use."""
MOST_LINES = 50
UNKNOWN = "unknown"
"""In place of the other files with a word: Emacs could not search for them."""
_SEVERITIES = ("error", "warning", "note")


def _references_text(facts: Facts, directory: str, checked: Facts) -> str:
    """Return the locations in ``facts``, by file and text, as many as fit."""
    total, shown = facts.get("total") or 0, checked.get("after", 0)
    symbol, locations = checked.get("symbol", ""), facts.get("locations") or []
    lines = [f"{total} reference" if total == 1 else f"{total} references"]
    limits = _limits(facts, directory)
    size = sum(map(len, lines + limits)) + 200
    files: dict[str, dict[str, list[str]]] = {}
    for path, line, text in locations:
        path, text = _relative(path, directory), _around(symbol, text)
        size += len(str(line)) + 1
        if text not in files.get(path, {}):
            size += len(text) + 1 + (0 if path in files else len(path) + 1)
        if size > LONGEST_ANSWER:
            break
        files.setdefault(path, {}).setdefault(text, []).append(str(line))
        shown += 1
    for path, rows in files.items():
        lines.append(path)
        for text, numbers in rows.items():
            lines.append(",".join(numbers) + (f":{text}" if text else ""))
    if shown < total:
        lines.append(f"… {total - shown} more; ask with after: {shown}")
    return "\n".join(lines + limits)


def _limits(facts: Facts, directory: str) -> list[str]:
    """Return lines for the model about what the language server may not know."""
    lines, others = [], facts.get("elsewhere") or []
    if facts.get("busy"):
        lines.append("The language server is still loading; ask again for all uses.")
    if others == UNKNOWN:
        lines.append("Emacs could not search other files for this word; search them.")
    elif others:
        names = _first_names(others, directory, MOST_OTHERS)
        lines.append(f"No use found, or not read, in files with this word: {names}")
    return lines


def _first_names(paths: Sequence[str], directory: str, most: int = MOST_FILES) -> str:
    names = ", ".join(_relative(path, directory) for path in paths[:most])
    return names + f" and {len(paths) - most} more" * (len(paths) > most)


def _around(symbol: str, text: str) -> str:
    """Return the piece of the line ``text`` around ``symbol``, "" if that is all."""
    text = text.strip()
    if text.rstrip(",") == symbol:
        return ""
    start = max(0, text.find(symbol) + len(symbol) + 1 - LONGEST_TEXT)
    cut = text[start : start + LONGEST_TEXT]
    before = "…" + cut[1:] if start else cut
    return before if start + LONGEST_TEXT >= len(text) else before[:-1] + "…"


def _definition_text(facts: Facts, directory: str, _: Facts) -> str:
    lines = [
        f"{_relative(path, directory)}:{line}"
        for path, line in facts.get("locations") or []
    ]
    for part in (facts.get("documentation"), facts.get("source")):
        if part:
            lines += ["", *map(_cut, part.strip("\n").split("\n"))]
    return _fitting(lines)


def _diagnostics_text(facts: Facts, directory: str, checked: Facts) -> str:
    rows = facts.get("rows") or []
    if "path" in checked:
        rows = sorted(rows, key=lambda row: (_SEVERITIES.index(row[1]), row[0] or 0))
        lines = [_cut(f"{line}: {severity}: {text}") for line, severity, text in rows]
        return _fitting(lines or ["Emacs has no errors or warnings for this file."])
    if not rows:
        return "Emacs checks no file that is shared; run the project's own checks"
    lines = [
        f"{_relative(path, directory)}: {errors} errors, {warnings} warnings"
        for path, errors, warnings in sorted(rows, key=lambda row: -row[1])
        if errors or warnings
    ]
    return _fitting(lines or ["Emacs has no errors or warnings."])


TEXTS = {
    "references": _references_text,
    "definition": _definition_text,
    "diagnostics": _diagnostics_text,
}
"""By question: called with the facts of Emacs, the directory of the CLI, arguments."""


_REFUSALS = {
    "refused": "the user refused",
    "changed": "a file has changed meanwhile",
    "ended": "the review was closed",
}
NO_EDITS = "Do not rename by other edits; ask the user."
AGAIN = "Do not rename by other edits; ask for the rename again."


def rename_text(facts: Facts, directory: str, symbol: str, new: str) -> str:
    """Return the text for the end of the rename of ``symbol`` to ``new``."""
    if "left" in facts:
        if not facts["left"]:
            return f"Nothing was renamed: a file could not be written. {NO_EDITS}"
        names = _first_names(facts["left"], directory)
        return (
            "A file could not be written, so the rename was not completed. These files "
            f"were written, and could not be restored: {names}. Ask the user."
        )
    if refused := facts.get("refused"):
        remedy = AGAIN if refused == "changed" else NO_EDITS
        text = f"Nothing was renamed: {_REFUSALS.get(refused, refused)}. {remedy}"
        reason = facts.get("reason")
        return f"{text}\nReason of the user: {reason}" if reason else text
    rows = [f"Renamed {symbol} to {new} and saved; lines changed:"]
    for path, done, left in facts.get("files") or []:
        row = f"{_relative(path, directory)}: {_numbers(done)}"
        if left:
            row += f"; {left} time{'s' * (left > 1)} still {symbol}"
        rows.append(row)
    others, last = facts.get("elsewhere") or [], []
    if others == UNKNOWN:
        last.append(
            f"Emacs could not search other files for the word {symbol}; search them."
        )
    elif others:
        names = _first_names(others, directory)
        last.append(f"Other files with the word {symbol}, unchanged: {names}")
    # What is left is not cut off by many files.
    end = _fitting(last, LONGEST_ANSWER // 2)
    return "\n".join(filter(None, [_fitting(rows, LONGEST_ANSWER - len(end)), end]))


def _numbers(lines: Sequence[int] | None) -> str:
    lines = lines or []
    numbers = ",".join(map(str, lines[:MOST_LINES]))
    more = len(lines) - MOST_LINES
    return numbers + f" and {more} more" * (more > 0)


def errors_text(facts: Facts, directory: str) -> str:
    """Return the text for the errors in ``facts``, which an edit introduced."""
    name, count = _escaped(_relative(facts["path"], directory)), facts["count"]
    errors, others = facts.get("errors") or [], facts.get("others") or []
    total = count + sum(number for _, number, _ in others)
    where = f"{name} and other files" if others else name
    lines = [
        f"Emacs sees {total} new error{'s' if total > 1 else ''} in "
        f"{where if count else 'other files'} "
        f"(a later edit may already fix {'them' if total > 1 else 'it'}):",
        *(_error("", *error) for error in errors),
    ]
    if count > len(errors):
        lines.append(f"... {count - len(errors)} more")
    for other, number, first in others[:MOST_FILES]:
        more = f" (and {number - 1} more there)" if number > 1 else ""
        lines.append(_error(f"{_relative(other, directory)}:", *first) + more)
    if len(others) > MOST_FILES:
        lines.append(f"... {len(others) - MOST_FILES} more files")
    return clean("\n".join(lines))


def _error(where: str, line: int, text: str, source: str | None) -> str:
    words = " ".join(text.split()) + (f" [{source}]" if source else "")
    error = _escaped(f"{where}{line}: error: {words}")
    return error if len(error) <= LONGEST_ERROR else error[: LONGEST_ERROR - 3] + "..."


def _escaped(text: str) -> str:
    """Return ``text`` with invisible characters escaped."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04X}" for c in text)


def _fitting(lines: list[str], longest: int = LONGEST_ANSWER) -> str:
    """Return ``lines`` as one text, without the last ones if it is too long."""
    size = 0
    for number, line in enumerate(lines):
        size += len(line) + 1
        if size > longest - 40:
            return "\n".join([*lines[:number], f"… {len(lines) - number} more"])
    return "\n".join(lines)


def _relative(path: str, directory: str) -> str:
    if path.startswith(directory.rstrip("/") + "/"):
        return os.path.relpath(path, directory)
    return path


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else line[: LONGEST_LINE - 1] + "…"
