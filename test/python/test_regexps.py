# SPDX-License-Identifier: GPL-3.0-or-later
"""Regular expressions take linear time for hostile texts.

A name, a command, a title, a prompt or a line of a file is any text.
"""

import ast
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import gemini_companion_epc

FUNCTIONS = {"compile", "findall", "fullmatch", "match", "search", "split", "sub"}
PACKAGE = Path(gemini_companion_epc.__file__).parent


def regexps() -> Iterator[str]:
    """Yield the regular expressions of the package that are constants."""
    for file in PACKAGE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id == "re"
                and node.func.attr in FUNCTIONS
                and isinstance(node.args[0], ast.Constant)
            ):
                value = node.args[0].value
                if isinstance(value, bytes):
                    value = value.decode("latin-1")
                assert isinstance(value, str)
                yield value


def hostile(regexp: str) -> Iterator[str]:
    """Yield texts of 60 characters, and of 10 kB, that may take ``regexp`` long."""
    pieces = sorted({*"a1 \n/.~", *regexp} - {*"()|?*+'"})
    pairs = [a + b for a in pieces for b in pieces if a != b]
    for length, texts in ((60, pairs), (10_000, pieces)):
        for text in texts:
            yield from (text * (length // len(text)) + end for end in ("", "\0/!"))


def seconds(search: Callable[[str], object], text: str) -> float:
    """Return the CPU time of a ``search``, best of five if it is 10 ms or more."""
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        search(text)
        best = min(best, time.process_time() - began)
        if best < 0.01:
            break
    return best


@pytest.mark.parametrize("regexp", sorted(set(regexps())))
def test_takes_linear_time(regexp: str) -> None:
    search = re.compile(regexp).search
    for text in hostile(regexp):
        assert seconds(search, text) < 0.01, text[:60]


def test_finds_regexps() -> None:
    assert len(set(regexps())) > 10
