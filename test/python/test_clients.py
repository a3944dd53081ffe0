# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
from pathlib import Path

import pytest

from gemini_companion_epc.clients import CLIENTS

GEMINI, QWEN = CLIENTS


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "/tmp"),
        ({"TMPDIR": "/a/", "TMP": "/b", "TEMP": "/c"}, "/a"),
        ({"TMPDIR": "", "TMP": "/b", "TEMP": "/c"}, "/b"),
        ({"TEMP": "/c"}, "/c"),
    ],
)
def test_the_temporary_directory_is_the_one_of_node(
    environ: dict[str, str], expected: str
) -> None:
    assert CLIENTS[0].directory(environ) == Path(expected, "gemini", "ide")


def test_the_home_of_qwen_is_the_one_that_it_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert QWEN.directory({}) == Path("/home/me/.qwen/ide")
    assert QWEN.directory({"QWEN_HOME": "~/q"}) == Path("/home/me/q/ide")
    assert QWEN.directory({"HOME": "/other"}) == Path("/other/.qwen/ide")
    assert QWEN.directory({"QWEN_HOME": ""}) == Path("/home/me/.qwen/ide")


def test_a_root_with_a_separator_is_in_a_json_array_where_that_is_read() -> None:
    odd = f"/a{os.pathsep}b"
    assert GEMINI.workspace_path([odd, "/c"]) == "/c"
    assert json.loads(QWEN.workspace_path([odd, "/c"])) == [odd, "/c"]
