# SPDX-License-Identifier: GPL-3.0-or-later
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sexpdata import Symbol

from client_schema import refusal
from gemini_companion_epc.sexp import context_from
from gemini_companion_epc.types import (
    Accepted,
    Cursor,
    File,
    IdeContext,
    Rejected,
    clean,
    cut_utf16,
    encode,
)


@pytest.mark.parametrize(
    ("text", "units", "expected"),
    [
        ("", 3, ""),
        ("abc", 3, "abc"),
        ("abcd", 3, "abc"),
        ("\U0001f600\U0001f600", 4, "\U0001f600\U0001f600"),
        ("\U0001f600\U0001f600", 3, "\U0001f600"),
        ("a\U0001f600", 2, "a"),
    ],
)
def test_a_cut_splits_no_pair(text: str, units: int, expected: str) -> None:
    assert cut_utf16(text, units) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\ud800b\udfff\U0001f600", "a\ufffdb\ufffd\U0001f600"),
        ("\u00e9\ud800", "\u00e9\ufffd"),
        ("\u00e9", "\u00e9"),
        ("\u20ac", "\u20ac"),
        ("", ""),
    ],
)
def test_lone_surrogates_become_visible(text: str, expected: str) -> None:
    assert clean(text) == expected
    assert encode(text) == expected.encode()


def test_a_context_has_the_spelling_of_the_protocol() -> None:
    active = File("/a", 2, True, Cursor(11, 21), "selected")
    context = IdeContext.of([active, File("/b", 1)])
    assert context.notification() == {
        "jsonrpc": "2.0",
        "method": "ide/contextUpdate",
        "params": {
            "workspaceState": {
                "openFiles": [
                    {
                        "path": "/a",
                        "timestamp": 2,
                        "isActive": True,
                        "cursor": {"line": 11, "character": 21},
                        "selectedText": "selected",
                    },
                    {"path": "/b", "timestamp": 1},
                ]
            }
        },
    }


def test_no_open_file_is_an_empty_list() -> None:
    params = IdeContext.of([]).notification()["params"]
    assert params == {"workspaceState": {"openFiles": []}}


@pytest.mark.parametrize("is_trusted", [True, False])
def test_trust_is_sent_only_on_request(is_trusted: bool) -> None:
    context = IdeContext.of([])
    assert context.notification(is_trusted)["params"] == {
        "workspaceState": {"openFiles": [], "isTrusted": is_trusted}
    }
    assert context.notification() == context.notification(None)
    assert "isTrusted" not in str(context.notification())


def test_a_context_holds_ten_files_and_one_active_file_at_most() -> None:
    files = IdeContext.of(File(f"/{i}", 20 - i, True) for i in range(12)).files
    assert [file.path for file in files] == [f"/{i}" for i in range(10)]
    assert [file.is_active for file in files] == [True] + [False] * 9


def test_only_the_active_file_carries_cursor_and_selection() -> None:
    file = File("/a", 1, False, Cursor(1, 1), "x")
    assert file.payload() == {"path": "/a", "timestamp": 1}


def test_a_selection_is_cut_to_what_the_client_takes() -> None:
    (file,) = IdeContext.of([File("/a", 1, True, None, "x" * 20000)]).files
    assert file.selected_text == "x" * 16384


def test_outcomes_carry_path_and_text_as_received() -> None:
    accepted = Accepted("/a b/\u00e9", "x\u20ac").notification()
    assert accepted["params"] == {"filePath": "/a b/\u00e9", "content": "x\u20ac"}
    assert Rejected("/a").notification()["params"] == {"filePath": "/a"}


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


@given(st.lists(files, max_size=12), st.sampled_from([None, True, False]))
def test_any_context_suits_the_client(
    notifications: list[dict[str, Any]], is_trusted: bool | None
) -> None:
    plists = [
        [part for key, value in one.items() for part in (Symbol(f":{key}"), value)]
        for one in notifications
    ]
    notification = context_from(plists).notification(is_trusted)
    assert refusal(notification) is None


@given(texts.map(clean), texts.map(clean))
def test_any_outcome_suits_the_client(path: str, content: str) -> None:
    assert refusal(Accepted(path, content).notification()) is None
    assert refusal(Rejected(path).notification()) is None
