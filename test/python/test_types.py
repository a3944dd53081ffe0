# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from hypothesis import given
from hypothesis import strategies as st

from client_schema import refusal
from gemini_companion_epc.types import clean, context_update, outcome


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


@pytest.mark.parametrize("is_trusted", [True, False])
def test_trust_is_sent_only_on_request(is_trusted: bool) -> None:
    assert context_update([], is_trusted)["params"] == {
        "workspaceState": {"openFiles": [], "isTrusted": is_trusted}
    }
    assert context_update([], None)["params"] == {"workspaceState": {"openFiles": []}}


texts = st.text(st.characters(codec="utf-8"))


@given(texts, texts)
def test_outcomes_carry_any_path_and_text_as_received(path: str, content: str) -> None:
    accepted, rejected = outcome(path, content), outcome(path, None)
    assert accepted["params"] == {"filePath": path, "content": content}
    assert rejected["params"] == {"filePath": path}
    assert refusal(accepted) is None
    assert refusal(rejected) is None
