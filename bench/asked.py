# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting times of a linked CLI: its hook after an edit, a question of its model.

The hook is the bridge with an event on stdin, as the CLI starts it, about a file in
which nothing is new; the comparator is a hook as one would write it, a Python that
is started plainly, reads the event and prints {}.  Both are processor time.  So are
those of the hook before an edit; without rules, its comparator is an echo.  The
question is for the diagnostics of a file, by a bridge that runs: HTTP, EPC, Emacs,
and back, without any language server; its limit is the start of an empty Python.
"""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from client import Broken, until
from editor import Editor, on_screen
from harness.scratch import Scratch
from harness.tools import Tools
from rows import Goal, Row, Samples, alternate, row
from servers import start_of_python
from usage import memory_at_rest

ROUNDS = 21
QUESTIONS = 100
OPTIONS = ("-E", "-s", "-S")
TRIVIAL = "import json, sys; json.load(sys.stdin); print('{}')"
BRIDGE = Path(".emacs.d", "gemini-companion", "extension", "__main__.py")
# An event is a list (TIME received ask (KIND)).
ASKED = """
(cl-count '(edited) gemini-companion-log--events
          :key #'cadddr :test #'equal)
"""
START = """
(progn (require 'gemini-companion-tools) (gemini-companion-tools--write-extension)
 (gemini-companion-part-ready 'tools 'started) t)
"""


def measure(directory: Path) -> Iterator[Row]:
    file = directory / "file.txt"
    file.write_text("a line\n")
    with on_screen(Tools.find(), file) as emacs:
        emacs.wait_until_ready()
        emacs.ask(" ".join(START.split()))
        yield from _hook(emacs, file)
        yield from _review(emacs, file)
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
        began = _used()
        answer = json.loads(_output(emacs, file, event, *command))
        added.append(len(str(answer)) if answer else 0)
        return 1000 * (_used() - began)

    samples = alternate(
        ROUNDS,
        ours=lambda: run(*OPTIONS, bridge, "gemini", "--hook"),
        comparator=lambda: run("-c", TRIVIAL),
    )
    if emacs.ask(" ".join(ASKED.split())) != ROUNDS:
        raise Broken("Emacs was not asked about each edit")
    what = "hook after an edit, nothing new, p10, CPU, ms"
    yield row(what, samples, Goal(times=1.3), part=0.1)
    sizes: Samples = {"ours": added[::2], "comparator": added[1::2]}
    yield row("the same, in the context, bytes", sizes, Goal(more=0))


def _review(emacs: Editor, file: Path) -> Iterator[Row]:
    """Measure the hook before an edit, with a rule of the user and without one."""
    event = {
        "hook_event_name": "BeforeTool",
        "cwd": str(file.parent),
        "tool_name": "write_file",
        "tool_input": {"file_path": str(file)},
    }
    extension = (emacs.scratch.home / BRIDGE).parent
    hooks = json.loads(extension.joinpath("hooks", "hooks.json").read_text())
    line = hooks["hooks"]["BeforeTool"][0]["hooks"][0]["command"]

    def run(line: str) -> float:
        began = _used()
        subprocess.run(
            ["sh", "-c", line],
            cwd=file.parent,
            env=emacs.scratch.environment,
            input=json.dumps(event).encode(),
            capture_output=True,
            check=True,
        )
        return 1000 * (_used() - began)

    def samples(rules: str, other: str) -> Samples:
        emacs.ask(f"(progn (setq gemini-companion-review-rules '({rules})) t)")
        until(
            lambda: any(extension.glob("rules-*")) == bool(rules),
            "the file of rules follows them",
        )
        return alternate(ROUNDS, ours=lambda: run(line), comparator=lambda: run(other))

    # The shell starts cat, since the event may be of a plan; the shell alone would be
    # slow in a long event.  Python takes fifty times the time of the shell.
    what = "hook before an edit, no rules, p10, CPU, ms"
    yield row(what, samples("", "echo {}"), Goal(times=3.5), part=0.1)
    plain = shlex.join([Tools.find().python, "-c", TRIVIAL])
    # The search of the shell takes 2 ms of it, and the module of sockets as many.
    what = "the same, with rules, p10, CPU, ms"
    yield row(what, samples('("*.c" . always)', plain), Goal(times=1.5), part=0.1)
    emacs.ask("(progn (setq gemini-companion-review-rules nil) t)")


def _output(
    emacs: Editor, file: Path, event: dict[str, Any], *program: object
) -> bytes:
    """Return what a Python ``program`` prints for ``event``, beside ``file``."""
    done = subprocess.run(
        [Tools.find().python, *map(str, program)],
        cwd=file.parent,
        env=emacs.scratch.environment,
        input=json.dumps(event).encode(),
        capture_output=True,
        check=True,
    )
    return done.stdout


def _used() -> float:
    """Return the processor time of all programs that have been run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _question(emacs: Editor, file: Path) -> Iterator[Row]:
    with Bridge(Tools.find(), emacs.scratch, file.parent) as bridge:

        def ours() -> float:
            began = time.monotonic()
            text = bridge.call("diagnostics", file=file.name)
            if "Emacs" not in text:
                raise Broken(f"no answer: {text}")
            return 1000 * (time.monotonic() - began)

        samples = alternate(QUESTIONS, ours=ours, limit=start_of_python)
        memory = {"ours": [memory_at_rest(bridge.process)], "limit": [_empty()]}
    what = "question without a language server, p10, ms"
    # From 0.7 to 0.8 times on a quiet machine and on a busy one; a wait for a timer
    # makes it more than 1.7.
    yield row(what, samples, Goal(times=1.5, side="limit"), part=0.1)
    goal = Goal(times=1.6, side="limit")
    yield row("bridge of a session, memory, MB", memory, goal)


def _empty() -> float:
    """Return the memory of an empty Python in MB."""
    command = [Tools.find().python, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        memory = memory_at_rest(psutil.Process(process.pid))
        process.communicate(b"\n")
    return memory


class Bridge:
    """The bridge, as a CLI runs it."""

    def __init__(self, tools: Tools, scratch: Scratch, directory: Path) -> None:
        self._process = subprocess.Popen(
            [tools.python, *OPTIONS, str(scratch.home / BRIDGE), "gemini"],
            cwd=directory,
            env=scratch.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.process = psutil.Process(self._process.pid)

    def __enter__(self) -> Bridge:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()

    def call(self, name: str, **arguments: Any) -> str:
        """Return what the tool ``name`` answers."""
        assert self._process.stdin
        assert self._process.stdout
        params = {"name": name, "arguments": arguments}
        message = {"id": 1, "method": "tools/call", "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return str(answer["result"]["content"][0]["text"])
