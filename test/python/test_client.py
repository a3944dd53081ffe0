# SPDX-License-Identifier: GPL-3.0-or-later
"""What a CLI needs is in its own module: a fourth one works with no other change."""

import ast
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import Alone, CliOf, until
from fake_cli import FakeCli
from fourth import FOURTH
from gemini_companion_epc import clients
from gemini_companion_epc.clients import (
    CLIENTS,
    client_of,
    is_acp,
    reconnection,
    remote_clients,
)
from gemini_companion_epc.discovery import DiscoveryFiles
from gemini_companion_epc.port import UnixPort

PACKAGE = Path(clients.__file__).parent


@pytest.fixture(autouse=True)
def row() -> Iterator[None]:
    CLIENTS.append(FOURTH)
    yield
    CLIENTS.remove(FOURTH)


@pytest.fixture
def fourth(alone: Alone, cli_of: CliOf) -> FakeCli:
    cli = cli_of(alone)
    cli.token = FOURTH.bearer(alone.token)
    return cli


def test_its_discovery_file_is_written_once_it_is_installed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    environ = {"TMPDIR": str(tmp_path), "PATH": "", "FOURTH_HOME": str(home)}
    files = DiscoveryFiles(os.getpid(), 4711, "token", environ, UnixPort(4711))
    path = home / "ide" / f"fourth-{os.getpid()}-4711.json"
    assert ["fourth", str(path)] in files.names()
    files.update(["/p"])
    assert not path.exists()
    home.mkdir()
    files.update(["/p"])
    content = json.loads(path.read_text())
    assert (content["authToken"], content["workspacePath"]) == ("token.fourth", "/p")
    files.remove()
    assert not path.exists()


def test_it_is_known_by_its_bearer_and_its_edit_is_reviewed(
    alone: Alone, fourth: FakeCli
) -> None:
    events = fourth.connect()
    fourth.open_diff("/a", "text")
    until(lambda: alone.emacs.opened)
    assert alone.emacs.facts["client"] == "fourth"
    alone.do(alone.diffs.decide, 1, "mine")
    outcomes = (event for event in iter(events.next, None))
    accepted = next(
        outcome for outcome in outcomes if outcome["method"] == "ide/diffAccepted"
    )
    assert accepted["params"] == {"filePath": "/a", "content": "mine"}


def test_its_events_are_refused_as_it_has_no_hooks(
    alone: Alone, fourth: FakeCli
) -> None:
    alone.answer({})
    body = {"method": "event", "event": {"cwd": "/", "hook_event_name": "Stop"}}
    assert fourth.request("POST", json.dumps(body), path="/tools")[0] == 400
    listed = {"method": "list", "directory": "/"}
    assert fourth.request("POST", json.dumps(listed), path="/tools")[0] == 200


def test_it_is_known_by_its_command_and_options() -> None:
    assert client_of(["node", "/usr/bin/fourth", "-p"]) is FOURTH
    assert is_acp(["fourth", "--serve-editor=1"])
    assert not is_acp(["fourth", "--other"])
    assert FOURTH in remote_clients()
    assert reconnection() == (
        "run /ide enable in Gemini CLI and Qwen Code, run /connect in Fourth CLI"
    )


def test_no_other_module_names_a_cli() -> None:
    own = {f"{client.name}.py" for client in CLIENTS} | {"clients.py", "common.py"}
    names = re.compile(r"gemini(?![-_]companion)|qwen|copilot", re.IGNORECASE)
    for path in PACKAGE.glob("*.py"):
        if path.name not in own:
            code = _code(path.read_text(encoding="utf-8"))
            assert not names.findall(code), path.name
    outpost = (PACKAGE / "outpost.js").read_text(encoding="utf-8")
    assert not names.findall(re.sub(r"(?m)//.*$", "", outpost))


def _code(text: str) -> str:
    """Return the Python code ``text`` without comments and docstrings."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
    return ast.unparse(tree)
