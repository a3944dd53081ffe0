# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
from pathlib import Path

import pytest

from gemini_companion_epc.clients import CLIENTS, Client

GEMINI, QWEN = CLIENTS


@pytest.mark.parametrize(
    ("client", "environ", "expected"),
    [
        (GEMINI, {}, "/tmp/gemini/ide"),
        (GEMINI, {"TMPDIR": "/a/", "TMP": "/b", "TEMP": "/c"}, "/a/gemini/ide"),
        (GEMINI, {"TMPDIR": "", "TMP": "/b", "TEMP": "/c"}, "/b/gemini/ide"),
        (GEMINI, {"TEMP": "/c"}, "/c/gemini/ide"),
        (QWEN, {}, "/home/me/.qwen/ide"),
        (QWEN, {"QWEN_HOME": "~/q"}, "/home/me/q/ide"),
        (QWEN, {"HOME": "/other", "QWEN_HOME": ""}, "/other/.qwen/ide"),
    ],
)
def test_the_directory_is_the_one_that_the_client_reads(
    monkeypatch: pytest.MonkeyPatch,
    client: Client,
    environ: dict[str, str],
    expected: str,
) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert client.directory(environ) == Path(expected)


def test_a_root_with_a_separator_is_in_a_json_array_where_that_is_read() -> None:
    odd = f"/a{os.pathsep}b"
    assert GEMINI.workspace_path([odd, "/c"]) == "/c"
    assert json.loads(QWEN.workspace_path([odd, "/c"])) == [odd, "/c"]
