# SPDX-License-Identifier: GPL-3.0-or-later
"""A CLI that an ACP client controls asks that client, not Emacs."""

import json
import subprocess
from typing import Any

import pytest
from harness import gemini
from harness.emacs import Reviews
from harness.model import say, write_file
from harness.world import World


def ask(cli: "subprocess.Popen[str]", method: str, **params: Any) -> Any:
    """Call ``method`` of ``cli``, allow every edit, and return the result."""
    assert cli.stdout

    def send(**message: Any) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message})
        print(line, file=cli.stdin, flush=True)

    send(id=1, method=method, params=params)
    for line in cli.stdout:
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("method") == "session/request_permission":
            options = message["params"]["options"]
            once = next(option for option in options if option["kind"] == "allow_once")
            outcome = {"outcome": "selected", "optionId": once["optionId"]}
            send(id=message["id"], result={"outcome": outcome})
        elif "method" not in message and "id" in message:
            return message["result"]
    raise AssertionError(f"no answer to {method}")


@pytest.mark.shared("no-cli")
def test_turn_of_an_acp_client_ends(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs = world.emacs(file)
    model = world.model()
    program = gemini.script(world.tools, world.scratch, model, "acp")
    with world.piped(str(program), "--acp", environment=gemini.in_container()) as cli:
        ask(cli, "initialize", protocolVersion=1, clientCapabilities={})
        session = ask(cli, "session/new", cwd=str(world.project), mcpServers=[])
        emacs.holds("(gemini-companion-sessions)", "the CLI is connected")
        model.script(write_file(file, "uno\n"), say("all done"))
        prompt = [{"type": "text", "text": "please"}]
        name = session["sessionId"]
        answer = ask(cli, "session/prompt", sessionId=name, prompt=prompt)

    assert answer["stopReason"] == "end_turn"
    assert file.read_text() == "uno\n"
    Reviews(emacs).wait_until(0)
