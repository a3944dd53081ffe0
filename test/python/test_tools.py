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


def test_the_tools_are_listed_with_exact_schemas(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    cli.connect()
    tools = {
        tool["name"]: tool for tool in cli.ask("tools/list", {})["result"]["tools"]
    }
    assert set(tools) == {"openDiff", "closeDiff"}
    assert tools["openDiff"]["inputSchema"] == {
        "type": "object",
        "properties": {
            "filePath": {"type": "string"},
            "newContent": {"type": "string"},
        },
        "required": ["filePath", "newContent"],
    }
    assert tools["closeDiff"]["inputSchema"]["required"] == ["filePath"]


def test_context_only_lists_no_tools_but_answers_calls(
    serve_alone: Callable[..., Alone], cli_of: CliOf
) -> None:
    alone = serve_alone(offer_tools=False)
    cli = cli_of(alone)
    cli.connect()
    assert cli.ask("tools/list", {})["result"]["tools"] == []
    cli.tool("openDiff", filePath="/a", newContent="")
    assert [diff.path for diff in alone.emacs.opened] == ["/a"]


@pytest.mark.parametrize("text", ODD_TEXTS, ids=[ascii(t)[:20] for t in ODD_TEXTS])
def test_odd_text_goes_there_and_back(alone: Alone, cli_of: CliOf, text: str) -> None:
    cli = cli_of(alone)
    events = cli.connect()
    path = "/dir \u00e9/\U0001f600.txt"
    cli.open_diff(path, text)
    assert (alone.emacs.opened[0].path, alone.emacs.opened[0].proposal) == (path, text)
    alone.do(alone.diffs.accept, 1, text)
    assert events.next()["params"] == {"filePath": path, "content": text}
    cli.open_diff(path, "proposal")
    alone.emacs.texts[2] = text
    assert cli.close_diff(path) == {"content": text}


def test_a_lone_surrogate_becomes_visible(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    cli.connect()
    cli.open_diff("/a", "x\ud800y")
    assert alone.emacs.opened[0].proposal == "x\ufffdy"


def test_close_diff_without_a_diff_answers_an_empty_object(
    alone: Alone, cli_of: CliOf
) -> None:
    cli = cli_of(alone)
    cli.connect()
    assert cli.close_diff("/a") == {}


def test_a_diff_is_closed_without_emacs(alone: Alone, cli_of: CliOf) -> None:
    cli = cli_of(alone)
    cli.connect()
    cli.open_diff("/a", "proposal")
    alone.emacs.is_gone = True
    assert cli.close_diff("/a") == {"content": "proposal"}


@pytest.mark.parametrize(
    ("name", "arguments", "field"),
    [
        ("openDiff", {}, "filePath"),
        ("openDiff", {"newContent": "x"}, "filePath"),
        ("openDiff", {"filePath": "/a"}, "newContent"),
        ("openDiff", {"filePath": "/a", "newContent": None}, "newContent"),
        ("openDiff", {"filePath": ["/a"], "newContent": ""}, "filePath"),
        ("openDiff", {"filePath": "a", "newContent": ""}, "filePath"),
        ("openDiff", {"filePath": "", "newContent": ""}, "filePath"),
        ("openDiff", {"filePath": "~/a", "newContent": ""}, "filePath"),
        ("openDiff", {"filePath": "/a\0", "newContent": ""}, "filePath"),
        ("openDiff", {"filePath": "/ssh:host:/a", "newContent": ""}, "filePath"),
        ("closeDiff", {}, "filePath"),
        ("closeDiff", {"filePath": 1}, "filePath"),
    ],
)
def test_a_malformed_argument_is_named(
    alone: Alone, cli_of: CliOf, name: str, arguments: dict[str, Any], field: str
) -> None:
    cli = cli_of(alone)
    cli.connect()
    result = cli.tool(name, **arguments)["result"]
    assert result["isError"] is True
    assert field in result["content"][0]["text"]
    assert alone.emacs.opened == []


def test_an_unknown_tool_and_an_unknown_method_are_errors(
    alone: Alone, cli_of: CliOf
) -> None:
    cli = cli_of(alone)
    cli.connect()
    assert "Unknown tool: other" in cli.tool("other")["error"]["message"]
    assert cli.ask("resources/list", {})["error"]["code"] == -32601


@pytest.mark.parametrize(
    "params",
    [
        {"name": "openDiff", "arguments": ["/a"]},
        {"name": "openDiff", "arguments": "x" * 100_000},
        {"name": 1, "arguments": {}},
        {"name": None},
        {"arguments": {}},
    ],
)
def test_a_call_of_a_wrong_shape_is_refused(
    alone: Alone, cli_of: CliOf, params: dict[str, Any]
) -> None:
    cli = cli_of(alone)
    cli.connect()
    assert cli.ask("tools/call", params)["error"]["code"] == -32602
    assert cli.ask("ping", {})["result"] == {}


def test_a_notification_of_a_wrong_shape_is_passed_over(
    alone: Alone, cli_of: CliOf, caplog: pytest.LogCaptureFixture
) -> None:
    cli = cli_of(alone)
    cli.connect()
    for _ in range(10):
        assert cli.post({"jsonrpc": "2.0", "method": "tools/call"})[0] == 202
        assert cli.ask("ping", {})["result"] == {}
    assert not any(record.exc_info for record in caplog.records)
