# SPDX-License-Identifier: GPL-3.0-or-later
"""The entries of doc/conformance.org, checked on a running server."""

import json
import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from conftest import Start
from fake_cli import BOUND, PING, FakeCli
from fake_emacs import FakeEmacs

ROOTS = ["/", "/tmp"]


class Scene:
    def __init__(self, emacs: FakeEmacs) -> None:
        self.emacs = emacs
        self.cli = FakeCli(self.emacs.port, self.emacs.token)
        self.events = self.cli.connect()
        self.file = Path(self.emacs.hello["discovery"][0][1])
        self.found: dict[str, Any] = json.loads(self.file.read_text())

    def status(self, path: str = "/mcp", **headers: str) -> int:
        """Return the status of a request with ``headers`` in place of its own."""
        changed = {**self.cli.headers(self.cli.session_id), **headers}
        return self.cli.request("POST", json.dumps(PING), changed, path)[0]

    def schema(self, name: str) -> dict[str, Any]:
        tools = self.cli.ask("tools/list", {})["result"]["tools"]
        (schema,) = (tool["inputSchema"] for tool in tools if tool["name"] == name)
        types = {key: value["type"] for key, value in schema["properties"].items()}
        return {"type": schema["type"], "required": schema["required"], **types}

    def opened(self, path: str) -> int:
        self.cli.open_diff(path, "proposal")
        while (call := self.emacs.expect("open-diff"))[2] != path:
            pass
        diff_id: int = call[0]
        return diff_id

    def workspace_state(self, path: str) -> Any:
        """Return the next state with ``path`` as the first file."""
        state = {"openFiles": [{"path": ""}]}
        while [file["path"] for file in state["openFiles"]][:1] != [path]:
            state = self.next("ide/contextUpdate")["workspaceState"]
        return state

    def next(self, method: str) -> Any:
        while (event := self.events.next())["method"] != method:
            pass
        return event["params"]


@pytest.fixture(scope="module")
def emacs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeEmacs]:
    emacs = FakeEmacs(tmp_path_factory.mktemp("conformance"), roots=ROOTS)
    yield emacs.connect()
    emacs.close()


@pytest.fixture
def scene(emacs: FakeEmacs) -> Iterator[Scene]:
    scene = Scene(emacs)
    yield scene
    scene.cli.close()


def test_each_entry_of_the_document_has_its_test() -> None:
    document = Path(__file__).parents[2] / "doc" / "conformance.org"
    text = document.read_text(encoding="utf-8")
    section = text.split("\n* Checked on a running server\n")[1].split("\n* ")[0]
    entries = re.findall(r"^- (.+?) ::", section, re.M)
    tests = [name[5:].replace("_", " ") for name in globals() if name[:5] == "test_"]
    assert sorted(tests) == sorted(
        [*entries, "each entry of the document has its test"]
    )


def test_mcp_server(scene: Scene) -> None:
    assert "tools" in scene.cli.initialize()["result"]["capabilities"]
    for path in ("/", "/mcp/", "/other"):
        assert scene.status(path) == 404
    for method in ("PUT", "HEAD", "DELETE"):
        status, headers, _ = scene.cli.request(method)
        assert (status, headers["allow"]) == (405, "GET, POST")


def test_dynamic_port(scene: Scene, start: Start) -> None:
    other = start(roots=ROOTS)
    assert scene.emacs.port != other.port


def test_loopback_only(scene: Scene) -> None:
    process = psutil.Process(scene.emacs.process.pid)
    listening = [c for c in process.net_connections() if c.status == "LISTEN"]
    assert {connection.laddr[0] for connection in listening} == {"127.0.0.1"}


def test_discovery_file(scene: Scene) -> None:
    assert scene.file.parent == scene.emacs.tmp / "gemini" / "ide"
    name = f"gemini-ide-server-{os.getpid()}-{scene.emacs.port}.json"
    assert scene.file.name == name


def test_discovery_json(scene: Scene) -> None:
    expected = {
        "port": scene.emacs.port,
        "authToken": scene.emacs.token,
        "ideInfo": {"name": "emacs", "displayName": "Emacs"},
    }
    assert expected.items() <= scene.found.items()
    assert isinstance(scene.found["workspacePath"], str)


def test_workspace_path(scene: Scene) -> None:
    expected = os.pathsep.join(map(os.path.realpath, ROOTS))
    assert scene.found["workspacePath"] == expected


def test_discovery_mode(scene: Scene) -> None:
    assert stat.S_IMODE(scene.file.stat().st_mode) == 0o600
    assert stat.S_IMODE(scene.file.parent.stat().st_mode) == 0o700


def test_token_required(scene: Scene) -> None:
    token = scene.emacs.token
    wrong = "", "Bearer", "Bearer wrong", f"Basic {token}", token, f"bearer {token}"
    for headers in ({}, *({"Authorization": value} for value in wrong)):
        for method in ("GET", "POST", "PUT"):
            for path in ("/mcp", "/tools", "/other"):
                status, _, body = scene.cli.request(method, b"{}", headers, path)
                assert (status, body) == (401, b"Unauthorized")
    assert scene.status() == 200


def test_token_random(scene: Scene, start: Start) -> None:
    other = start(roots=ROOTS)
    assert other.token != scene.emacs.token
    assert len(scene.emacs.token) >= 32


def test_origin_refused(scene: Scene) -> None:
    for origin in ("null", "http://localhost", "https://evil"):
        for path in ("/mcp", "/tools"):
            assert scene.status(path, Origin=origin) == 403


def test_host_checked(scene: Scene) -> None:
    for host in ("evil", f"evil:{scene.emacs.port}", "127.0.0.1", "[::1]:1"):
        for path in ("/mcp", "/tools"):
            assert scene.status(path, Host=host) == 403
    # By these the client dials.
    for host in ("127.0.0.1", "localhost", "host.docker.internal"):
        assert scene.status(Host=f"{host}:1") == 200


def test_context_update(scene: Scene) -> None:
    file = {"path": "/a", "timestamp": 2, "active": True, "line": 3, "character": 4}
    other = {"path": "/b", "timestamp": 1}
    scene.emacs.context({**file, "selected-text": "x"}, other)
    assert scene.workspace_state("/a")["openFiles"] == [
        {
            "path": "/a",
            "timestamp": 2,
            "isActive": True,
            "cursor": {"line": 3, "character": 4},
            "selectedText": "x",
        },
        {"path": "/b", "timestamp": 1},
    ]


def test_is_trusted(scene: Scene) -> None:
    scene.emacs.context({"path": "/trusted", "timestamp": 1})
    assert list(scene.workspace_state("/trusted")) == ["openFiles"]


def test_context_at_connection(scene: Scene) -> None:
    cli = FakeCli(scene.emacs.port, scene.emacs.token)
    events = cli.connect()
    # Emacs sends it when the client is reported.
    scene.emacs.context({"path": "/late", "timestamp": 1})
    (file,) = events.next()["params"]["workspaceState"]["openFiles"]
    assert file["path"] == "/late"
    cli.close()


def test_open_diff_schema(scene: Scene) -> None:
    expected = {"type": "object", "required": ["filePath", "newContent"]}
    strings = {"filePath": "string", "newContent": "string"}
    assert scene.schema("openDiff") == {**expected, **strings}


def test_open_diff_success(scene: Scene) -> None:
    result = scene.cli.tool("openDiff", filePath="/b", newContent="x")["result"]
    assert result["content"] == []
    assert not result.get("isError")


def test_open_diff_failure(scene: Scene) -> None:
    result = scene.cli.tool("openDiff", filePath="a", newContent="x")["result"]
    assert result["isError"] is True
    assert result["content"][0]["type"] == "text"


def test_close_diff_schema(scene: Scene) -> None:
    expected = {"type": "object", "required": ["filePath"]}
    types = {"filePath": "string", "suppressNotification": "boolean"}
    assert scene.schema("closeDiff") == {**expected, **types}


def test_close_diff_success(scene: Scene) -> None:
    scene.opened("/a")
    scene.emacs.epc.answers["close-diff"] = lambda diff_id, reason: "edited"
    (item,) = scene.cli.tool("closeDiff", filePath="/a")["result"]["content"]
    assert item["type"] == "text"
    assert json.loads(item["text"]) == {"content": "edited"}


def test_close_diff_failure(scene: Scene) -> None:
    result = scene.cli.tool("closeDiff", filePath="/not-open")["result"]
    assert not result.get("isError")
    assert json.loads(result["content"][0]["text"]) == {}
    assert scene.cli.tool("closeDiff", filePath="a")["result"]["isError"] is True


def test_diff_accepted(scene: Scene) -> None:
    scene.emacs.call("diff-accepted", scene.opened("/a"), "edited")
    expected = {"filePath": "/a", "content": "edited"}
    assert scene.next("ide/diffAccepted") == expected


def test_diff_rejected(scene: Scene) -> None:
    scene.emacs.call("diff-rejected", scene.opened("/a"))
    assert scene.next("ide/diffRejected") == {"filePath": "/a"}


def test_shutdown(start: Start) -> None:
    other = start(roots=ROOTS)
    scene = Scene(other)
    scene.opened("/a")
    other.call("stop")
    assert scene.next("ide/diffRejected") == {"filePath": "/a"}
    assert other.wait() == 0
    assert not scene.file.exists()
    with pytest.raises(ConnectionRefusedError):
        scene.status()
    scene.cli.close()


def test_session_ended(scene: Scene) -> None:
    assert scene.status(**{"Mcp-Session-Id": "ended"}) == 200


def test_protocol_version(scene: Scene) -> None:
    for version in ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"):
        answer = scene.cli.initialize(version)["result"]
        assert answer["protocolVersion"] == version
    # The first one is of a later era of the protocol.
    discover = {**PING, "method": "server/discover"}
    for version, message in (
        ("2026-07-28", PING),
        ("x", PING),
        ("", PING),
        ("2026-07-28", discover),
        ("2025-06-18", discover),
    ):
        headers = scene.cli.headers(scene.cli.session_id)
        headers["Mcp-Protocol-Version"] = version
        if message is discover:
            del headers["Mcp-Session-Id"]
        status, _, body = scene.cli.request("POST", json.dumps(message), headers)
        answer = json.loads(body)
        assert (status, answer["id"]) == (400, PING["id"])
        assert answer["error"]["code"] == -32022
        data = answer["error"]["data"]
        assert data["requested"] == version
        assert data["supported"][:2] == ["2025-11-25", "2025-06-18"]


def test_notification_accepted(scene: Scene) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert scene.cli.post(message)[0] == 202


def test_connection_closed(scene: Scene) -> None:
    with socket.create_connection(("127.0.0.1", scene.cli.port), BOUND) as peer:
        peer.sendall(b"POST /mcp HTTP/1.1\r\n\r\n")
        # The stream ends although the client does not close its side.
        answer = b"".join(iter(lambda: peer.recv(1000), b""))
    assert b"connection: close\r\n" in answer
