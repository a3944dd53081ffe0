# SPDX-License-Identifier: GPL-3.0-or-later
import contextlib
from contextlib import suppress
from typing import Any

import pytest
import sexpdata
from hypothesis import given
from hypothesis import strategies as st
from sexpdata import Symbol

from client_schema import refusal
from gemini_companion_epc.exceptions import MalformedArgument
from gemini_companion_epc.sexp import context_from, parse
from gemini_companion_epc.types import (
    context_update,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'("\377\303x")', "\ufffd\ufffdx"),
        (r'("\101\0")', "A\0"),
        (r'("a\\b\"c")', 'a\\b"c'),
        (r'("\n\t\e")', "\n\te"),
        ('("a\\\nb\\ c")', "abc"),
        ('("\u2028\U0001f600\0")', "\u2028\U0001f600\0"),
    ],
)
def test_strings_are_read_as_emacs_writes_them(text: str, expected: str) -> None:
    assert parse(text.encode()) == [expected]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_is_read_back(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert parse(f'("{quoted}")'.encode()) == [text]
    assert parse(sexpdata.dumps([text]).encode()) == [text]


@given(st.binary(max_size=200))
def test_no_bytes_raise_anything_but_a_refusal(message: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse(message)


def test_bytes_that_are_not_utf8_become_visible() -> None:
    assert parse(b'("a\xffb")') == ["a\ufffdb"]


@pytest.mark.parametrize(
    "text",
    ["", "a", "(", ")", '("', '("\\', "(a) (b)", "(a]", "'", "(" * 100_000, "\xff"],
)
def test_what_is_not_one_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        parse(text.encode("latin-1"))


def test_a_context_is_read_from_property_lists() -> None:
    form = parse(
        rb"""((:path "/a" :timestamp 5 :active t :line 11 :character 21
               :selected-text "x") (:path "/b" :timestamp 4 :active nil))"""
    )
    active = {"isActive": True, "cursor": {"line": 11, "character": 21}}
    assert context_from(form) == [
        {"path": "/a", "timestamp": 5, **active, "selectedText": "x"},
        {"path": "/b", "timestamp": 4},
    ]
    assert context_from([]) == []


@pytest.mark.parametrize(
    "entry",
    [
        "1",
        "nil",
        "(:path)",
        '(:path "/b")',
        "(:path b :timestamp 1)",
        '(:path "/b" :timestamp "1")',
        '(:path "/b" :timestamp 1.0e+INF)',
        '(:path "/b" :timestamp 1 :line "1")',
        '("path" "/b")',
    ],
)
def test_a_malformed_file_is_refused(entry: str) -> None:
    with pytest.raises(MalformedArgument):
        context_from(parse(f"({entry})".encode()))


texts = st.text(st.sampled_from("a\u00e9\ud800\udfff\U0001f600")) | st.text()


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    texts,
    st.sampled_from([[], Symbol("t")]),
)


optional = ["active", "line", "character", "selected-text"]


files = st.fixed_dictionaries(
    {"path": texts, "timestamp": st.integers() | st.floats()},
    optional=dict.fromkeys(optional, values),
)


@given(files, st.sampled_from([None, True, False]))
def test_any_file_suits_the_client_or_is_refused(
    file: dict[str, Any], is_trusted: bool | None
) -> None:
    plist = [part for key, value in file.items() for part in (Symbol(f":{key}"), value)]
    with suppress(MalformedArgument):
        assert refusal(context_update(context_from([plist]), is_trusted)) is None
