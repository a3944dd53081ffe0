# SPDX-License-Identifier: GPL-3.0-or-later
from typing import Any

import pytest

from conftest import Alone
from fake_cli import FakeCli


def test_a_malformed_argument_is_named(alone: Alone, cli: FakeCli) -> None:
    cli.connect()
    long = "/" + 2100 * "é", "/a" * 1000
    odd = None, 1, ["/a"], "a", "", "~/a", "/a\0", "/ssh:host:/a", *long
    text = {"newContent": ""}
    calls: list[tuple[str, dict[str, Any], str]] = [
        ("closeDiff", {}, "filePath"),
        ("openDiff", text, "filePath"),
        ("openDiff", {"filePath": "/a"}, "newContent"),
        *(("openDiff", {"filePath": path, **text}, "filePath") for path in odd),
    ]
    for name, arguments, field in calls:
        result = cli.tool(name, **arguments)["result"]
        assert result["isError"] is True
        assert field in result["content"][0]["text"]
    assert alone.emacs.opened == []


def test_a_call_of_a_wrong_shape_is_refused(
    cli: FakeCli, caplog: pytest.LogCaptureFixture
) -> None:
    cli.connect()
    assert "Unknown tool: other" in cli.tool("other")["error"]["message"]
    assert cli.ask("resources/list", {})["error"]["code"] == -32601
    for name, arguments in (("openDiff", ["/a"]), (1, {})):
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        assert cli.ask("tools/call", params)["error"]["code"] == -32602
    # A notification of a wrong shape is passed over.
    assert cli.post({"jsonrpc": "2.0", "method": "tools/call"})[0] == 202
    assert cli.ask("ping", {})["result"] == {}
    assert not any(record.exc_info for record in caplog.records)
