# SPDX-License-Identifier: GPL-3.0-or-later
import pytest

from gemini_companion_epc.types import clean


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
