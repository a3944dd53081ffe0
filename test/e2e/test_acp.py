# SPDX-License-Identifier: GPL-3.0-or-later
"""A CLI that an ACP client controls asks that client, not Emacs."""

import json
import os
import subprocess
import threading
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from harness import gemini
from harness.emacs import Reviews
from harness.model import say, write_file
from harness.wait import BOUND
from harness.world import World


class AcpClient:
    """A client of `gemini --acp`, as agent-shell, which allows every edit."""

    def __init__(self, program: Path, directory: Path, env: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [str(program), "--acp"],
            cwd=directory,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._answers: Queue[dict[str, Any]] = Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, method: str, **params: Any) -> Any:
        """Call ``method`` with ``params`` and return its result."""
        self._send(id=1, method=method, params=params)
        answer = self._answers.get(timeout=BOUND)
        assert "result" in answer, answer
        return answer["result"]

    def close(self) -> None:
        """End the CLI."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _send(self, **message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line) if line.startswith("{") else {}
            if message.get("method") == "session/request_permission":
                self._allow(message)
            elif "method" not in message and "id" in message:
                self._answers.put(message)

    def _allow(self, question: dict[str, Any]) -> None:
        options = question["params"]["options"]
        once = next(one for one in options if one["kind"] == "allow_once")
        outcome = {"outcome": "selected", "optionId": once["optionId"]}
        self._send(id=question["id"], result={"outcome": outcome})


@pytest.mark.once
@pytest.mark.system
def test_turn_of_an_acp_client_ends(world: World) -> None:
    file = world.file("a.txt", "one\n")
    emacs = world.emacs(file)
    model = world.model()
    program = gemini.script(world.tools, world.scratch, model, "acp")
    environment = {**os.environ, **world.scratch.environment, **gemini.in_container()}
    client = AcpClient(program, world.project, environment)
    try:
        client.ask("initialize", protocolVersion=1, clientCapabilities={})
        session = client.ask("session/new", cwd=str(world.project), mcpServers=[])
        emacs.holds("(gemini-companion-sessions)", "the CLI is connected")
        model.script(write_file(file, "uno\n"), say("all done"))
        prompt = [{"type": "text", "text": "please"}]

        answer = client.ask(
            "session/prompt", sessionId=session["sessionId"], prompt=prompt
        )

        assert answer["stopReason"] == "end_turn"
        assert file.read_text() == "uno\n"
        assert Reviews(emacs).paths() == []
    finally:
        client.close()
