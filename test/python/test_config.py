# SPDX-License-Identifier: GPL-3.0-or-later
import json
from typing import Any

import pytest

from gemini_companion_epc.config import parse_start_line
from gemini_companion_epc.exceptions import StartError

LINE = {"secret": "s", "emacs_pid": 7, "roots": ["/a"]}


def _parse(**changes: Any) -> Any:
    return parse_start_line(json.dumps({**LINE, **changes}).encode())


def test_a_start_line_is_read() -> None:
    config = _parse(port=99, token="t", offer_tools=False)
    assert (config.secret, config.emacs_pid, config.roots) == ("s", 7, ["/a"])
    assert (config.port, config.token, config.offer_tools) == (99, "t", False)
    assert "'s'" not in repr(config)
    assert "'t'" not in repr(config)
    config = _parse()
    assert (config.port, config.offer_tools, config.is_trusted) == (0, True, None)
    assert (config.log_file, config.log_level) == ("", "info")
    assert len(config.token) >= 32


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"", "M-x gemini-companion-mode"),
        (b"\n", "M-x gemini-companion-mode"),
        (b"{\n", "malformed"),
        (b"\xff\n", "malformed"),
        (b"[]\n", "malformed"),
        (b"{}\n", "secret"),
    ],
)
def test_a_bad_start_line_is_refused_with_a_sentence(
    line: bytes, expected: str
) -> None:
    with pytest.raises(StartError, match=expected):
        parse_start_line(line)
