# SPDX-License-Identifier: GPL-3.0-or-later
"""What a linked CLI waits for: its hook after an edit, and a question of its model.

The hook is the bridge with an event on stdin, as the CLI starts it, about a file in
which nothing is new; the comparator is a hook as one would write it, a Python that
is started plainly, reads the event and prints {}.  The question is for the
diagnostics of a file, by a bridge that runs: HTTP, EPC, Emacs, and back, without any
language server.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from client import Broken
from editor import Editor, on_screen
from harness.tools import Tools
from rows import Goal, Row, alternate, quantile, row

ROUNDS = 21
QUESTIONS = 200
TRIVIAL = "import json, sys; json.load(sys.stdin); print('{}')"
BRIDGE = Path(".emacs.d", "gemini-companion", "extension", "__main__.py")
START = """
(progn (require 'gemini-companion-tools) (gemini-companion-extension-write)
 (gemini-companion-tools-ready 'started) t)
"""


def measure(directory: Path) -> Iterator[Row]:
    file = directory / "file.txt"
    file.write_text("a line\n")
    with on_screen(Tools.find(), file) as emacs:
        emacs.wait_until_ready()
        emacs.ask(" ".join(START.split()))
        yield from _hook(emacs, file)
        yield from _question(emacs, file)


def _hook(emacs: Editor, file: Path) -> Iterator[Row]:
    display = {"filePath": str(file), "originalContent": "", "newContent": "a line\n"}
    event = {
        "hook_event_name": "AfterTool",
        "cwd": str(file.parent),
        "tool_name": "write_file",
        "tool_input": {"file_path": str(file)},
        "tool_response": {"returnDisplay": display},
    }
    bridge = emacs.scratch.home / BRIDGE
    added: list[float] = []

    def run(*command: object) -> float:
        began = time.monotonic()
        done = subprocess.run(
            [Tools.find().python, *map(str, command)],
            cwd=file.parent,
            env=emacs.scratch.environment,
            input=json.dumps(event).encode(),
            capture_output=True,
            check=True,
        )
        elapsed = 1000 * (time.monotonic() - began)
        answer = json.loads(done.stdout)
        added.append(len(str(answer)) if answer else 0)
        return elapsed

    samples = alternate(
        ROUNDS,
        ours=lambda: run("-E", "-s", "-S", bridge, "gemini", "--hook"),
        comparator=lambda: run("-c", TRIVIAL),
    )
    if emacs.ask("(nth 1 (gemini-companion-tools-counts))") != ROUNDS:
        raise Broken("Emacs was not asked about each edit")
    yield row("hook after an edit, nothing new, ms", samples, Goal(times=1.3))
    yield row("the same, in the context, bytes", {"ours": added}, Goal(most=0))


def _question(emacs: Editor, file: Path) -> Iterator[Row]:
    bridge = subprocess.Popen(
        [
            Tools.find().python,
            "-E",
            "-s",
            "-S",
            str(emacs.scratch.home / BRIDGE),
            "gemini",
        ],
        cwd=file.parent,
        env=emacs.scratch.environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert bridge.stdin
    assert bridge.stdout
    times = []
    params = {"name": "diagnostics", "arguments": {"file": file.name}}
    for number in range(QUESTIONS):
        message: dict[str, Any] = {"id": number, "method": "tools/call"}
        began = time.monotonic()
        bridge.stdin.write(json.dumps({**message, "params": params}).encode() + b"\n")
        bridge.stdin.flush()
        answer = json.loads(bridge.stdout.readline())
        times.append(1000 * (time.monotonic() - began))
        if "Emacs" not in answer["result"]["content"][0]["text"]:
            raise Broken(f"no answer: {answer}")
    bridge.stdin.close()
    bridge.wait()
    for part, most in (0.5, 20), (0.95, 50):
        what = f"question without a language server, p{100 * part:.0f}, ms"
        yield row(what, {"ours": [quantile(times, part)]}, Goal(most=most))
