# SPDX-License-Identifier: GPL-3.0-or-later
from collections.abc import Callable
from typing import Any

import pytest

from conftest import Alone
from fake_cli import FakeCli

CliOf = Callable[[Any], FakeCli]

ODD_TEXTS = [
    "",
    "\n",
    "no final newline",
    "a\r\nb\rc\n",
    "\ufeffBOM",
    "NUL \0 and \x07\x1b\x7f",
    "\u2028 \u2029 \x85",
    "e\u0301 \u200d \U0001f469\u200d\U0001f469 \U0010ffff",
    '\\ud800 "quoted" \\\\ \\n',
    "\ufffe\uffff\ufdd0",
    "x" * 1_000_000,
]


def test_context_only_lists_no_tools_but_answers_calls(
    serve_alone: Callable[..., Alone], cli_of: CliOf
) -> None:
    alone = serve_alone(offer_tools=False)
    cli = cli_of(alone)
    cli.connect()
    assert cli.ask("tools/list", {})["result"]["tools"] == []
    cli.tool("openDiff", filePath="/a", newContent="")
    assert [diff.path for diff in alone.emacs.opened] == ["/a"]


def test_odd_text_goes_there_and_back(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    events = cli.connect()
    path = "/dir \u00e9/\U0001f600.txt"
    assert cli.close_diff(path) == {}
    for text in ODD_TEXTS:
        cli.open_diff(path, text)
        diff = alone.emacs.opened[-1]
        assert (diff.path, diff.proposal) == (path, text)
        alone.do(alone.diffs.accept, diff.id, text)
        assert events.next()["params"] == {"filePath": path, "content": text}
        cli.open_diff(path, "proposal")
        alone.emacs.texts[diff.id + 1] = text
        assert cli.close_diff(path) == {"content": text}
    cli.open_diff(path, "x\ud800y")
    assert alone.emacs.opened[-1].proposal == "x\ufffdy"


def test_a_malformed_argument_is_named(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    cli.connect()
    paths = (None, 1, ["/a"], "a", "", "~/a", "/a\0", "/ssh:host:/a")
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("openDiff", {}, "filePath"),
        ("closeDiff", {}, "filePath"),
        ("openDiff", {"filePath": "/a"}, "newContent"),
        ("openDiff", {"filePath": "/a", "newContent": None}, "newContent"),
        *(
            ("openDiff", {"filePath": one, "newContent": ""}, "filePath")
            for one in paths
        ),
    ]
    for name, arguments, field in calls:
        result = cli.tool(name, **arguments)["result"]
        assert result["isError"] is True
        assert field in result["content"][0]["text"]
    assert alone.emacs.opened == []


def test_a_call_of_a_wrong_shape_is_refused(
    alone: Alone, cli_of: CliOf, caplog: pytest.LogCaptureFixture
) -> None:
    cli = cli_of(alone)
    cli.connect()
    assert "Unknown tool: other" in cli.tool("other")["error"]["message"]
    assert cli.ask("resources/list", {})["error"]["code"] == -32601
    calls: list[dict[str, Any]] = [
        {"name": "openDiff", "arguments": ["/a"]},
        {"name": "openDiff", "arguments": "x" * 100_000},
        {"name": 1, "arguments": {}},
        {"name": None},
        {"arguments": {}},
    ]
    for params in calls:
        assert cli.ask("tools/call", params)["error"]["code"] == -32602
    # A notification of a wrong shape is passed over.
    assert cli.post({"jsonrpc": "2.0", "method": "tools/call"})[0] == 202
    assert cli.ask("ping", {})["result"] == {}
    assert not any(record.exc_info for record in caplog.records)
