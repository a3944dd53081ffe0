# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
import sexpdata
from hypothesis import given
from hypothesis import strategies as st

from gemini_companion_epc.epc_server import parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r'("\377\303x")', "\ufffd\ufffdx"),
        (r'("a\\b\"c\\377")', 'a\\b"c\\377'),
        (r'("\n\t\11b\0c\0331")', "\n\t\tb\0c\x1b1"),
        ('("a\udcffb")', "a\ufffdb"),
    ],
)
def test_strings_are_read_as_emacs_writes_them(text: str, expected: str) -> None:
    assert parse(text.encode(errors="surrogateescape")) == [expected]


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_text_is_read_back(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert parse(f'("{quoted}")'.encode()) == [text]
    assert parse(sexpdata.dumps([text]).encode()) == [text]


@pytest.mark.parametrize(
    "text",
    ["", "a", "(", ")", '("', '("\\', "(a) (b)", "(a]", "'", "(" * 100_000, "\xff"],
)
def test_what_is_not_one_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not"):
        parse(text.encode("latin-1"))
