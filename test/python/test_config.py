# SPDX-License-Identifier: GPL-3.0-or-later
import pytest

from gemini_companion_epc.config import parse_start_line
from gemini_companion_epc.types import StartError


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"", "M-x gemini-companion-mode"),
        (b"{\n", "malformed"),
        (b"{}\n", "secret"),
    ],
)
def test_a_bad_start_line_is_refused(line: bytes, expected: str) -> None:
    with pytest.raises(StartError, match=expected):
        parse_start_line(line)
