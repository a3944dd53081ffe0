# SPDX-License-Identifier: GPL-3.0-or-later
"""References to 50 names of a public package, asked by the real Gemini CLI.

The package is mypy, with which this one is checked, and the language server is
basedpyright.  The comparator is the CLI's own grep_search for the name as a word;
the bytes are those that reach the model.  "Our share" is the processor time of Emacs,
the server and the bridge for a question; its limit is the start of an empty Python.
"Without keys" is the longest
processor time that Emacs spends at once while a question is answered, without the
collection of garbage, which is due whatever allocates; or the longest time for which
it waits until the language server reads.  Emacs is watched for that by a timer that
runs all the time, so the questions are asked once more.

What is a reference is judged by the same language server, and in code without types
it misses some.
"""

from __future__ import annotations

import ast
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import mypy
import psutil
from asked import Bridge
from client import Broken, until
from editor import Editor, on_screen
from harness import gemini
from harness.emacs import lisp
from harness.gemini import Gemini
from harness.model import Model, call, say
from harness.tools import Tools
from rows import Goal, Row, Samples, row
from servers import start_of_python, start_of_python_on_processor
from usage import cpu

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / ".deps" / "bench" / "basedpyright"
PACKAGE = "basedpyright==1.40.2"
NAMES = 50
SEED = 1
AT_ONCE = 10
WARM = 900
TOOL = "mcp_emacs_references"
COUNT = re.compile(r"^\d+ references?$", re.MULTILINE)


@dataclass(frozen=True)
class Name:
    """A function, method or class, and where it is defined."""

    text: str
    file: str
    line: int

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the question for its references."""
        return {"file": self.file, "symbol": self.text, "line": self.line}


def measure(directory: Path) -> Iterator[Row]:
    command = install()
    tools = modern(Tools.find())
    with ExitStack() as stack:
        file = directory / "empty.txt"
        file.touch()
        emacs = stack.enter_context(on_screen(tools, file, library="bench-names"))
        project = emacs.scratch.project
        names = copy(project)
        emacs.wait_until_ready()
        server = f'\'({lisp(command)} "--stdio")'
        emacs.ask(f"(bench-names-start {server} {lisp(tools.gemini)})")
        home = project / "mypy" / "version.py"
        visit = f"(bench-names-visit {lisp(home)})"
        until(lambda: emacs.ask(visit), "the language server is ready")
        bridge = stack.enter_context(Bridge(tools, emacs.scratch, project))
        warm(bridge, names)
        ours, theirs = in_cli(tools, emacs, stack, names)
        sizes: Samples = {"ours": [ours], "comparator": [theirs]}
        yield row("references to 50 names, bytes", sizes, Goal(times=0.2))
        yield _share(emacs, bridge, names)
        emacs.ask("(bench-names-watch)")
        work = [_longest_work(emacs, bridge, name) for name in names]
    # The slowest tenth may have waited for other programs.  Where the pipe of the
    # language server is full, Emacs itself waits for 20 ms.
    samples = {"ours": work, "limit": [start_of_python() for _ in names]}
    what = "references, longest without keys, p90, ms"
    yield row(what, samples, Goal(more=15, side="limit"), part=0.9)


def install() -> str:
    """Install the language server, unless that was done; return its program."""
    program = SERVER / "bin" / "basedpyright-langserver"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", SERVER], check=True)
        pip = SERVER / "bin" / "pip"
        subprocess.run([pip, "install", "-q", PACKAGE], check=True)
    return str(program)


def modern(tools: Tools) -> Tools:
    """Return ``tools`` with the first Emacs, as the oldest has no Eglot."""
    lines = (ROOT / ".deps" / "emacsen").read_text(encoding="utf-8").splitlines()
    version, _, directory = lines[0].split(" ", 2)
    elpa = str(ROOT / ".eask" / version / "elpa")
    return replace(tools, emacs=f"{directory}/emacs", elpa=elpa)


def copy(project: Path) -> list[Name]:
    """Copy the package into ``project``; return some of the names in it."""
    source = Path(mypy.__file__).parent
    copies: dict[str, Name] = {}
    for file in sorted(source.rglob("*.py")):
        place = f"mypy/{file.relative_to(source)}"
        target = project / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                copies.setdefault(node.name, Name(node.name, place, node.lineno))
    return random.Random(SEED).sample(list(copies.values()), NAMES)


def warm(bridge: Bridge, names: list[Name]) -> None:
    """Wait until the language server has found each of ``names`` once."""
    deadline = time.monotonic() + WARM
    for name in names:
        text = ""
        while not COUNT.search(text) or "indexing" in text:
            text = bridge.call("references", **name.arguments())
            if time.monotonic() > deadline:
                raise Broken(f"the language server is slow: {text}")


def in_cli(
    tools: Tools, emacs: Editor, stack: ExitStack, names: list[Name]
) -> tuple[int, int]:
    """Return the bytes that reach the model, by our tool and by grep_search."""
    model = Model()
    stack.callback(model.close)
    gemini.configure(emacs.scratch)
    program = gemini.script(tools, emacs.scratch, model, "cli")
    terminal = emacs.tmux.start(
        "cli",
        [str(program)],
        emacs.scratch.project,
        gemini.in_container(),
        gemini.SIZE,
    )
    cli = Gemini(terminal, model)
    cli.wait_until_connected()
    for start in range(0, len(names), AT_ONCE):
        turns = []
        for definition in names[start : start + AT_ONCE]:
            turns.append(call(TOOL, **definition.arguments()))
            turns.append(call("grep_search", pattern=rf"\b{definition.text}\b"))
        model.script(*turns, say(f"that is all from {start}"))
        cli.prompt()
        cli.wait_for(f"that is all from {start}")
    results = model.results()
    if len(results) != 2 * len(names):
        raise Broken(f"{len(results)} results")
    for answer, definition in zip(results[::2], names, strict=True):
        if not COUNT.search(answer):
            raise Broken(f"{definition}: {answer}")
    sizes = [len(result.encode()) for result in results]
    return sum(sizes[::2]), sum(sizes[1::2])


def _share(emacs: Editor, bridge: Bridge, names: list[Name]) -> Row:
    """Measure the processor time of our programs for the references to ``names``."""
    programs = (psutil.Process(emacs.pid), *emacs.scratch.servers(), bridge.process)

    def ask(name: Name) -> float:
        used = sum(map(cpu, programs))
        bridge.call("references", **name.arguments())
        return 1000 * (sum(map(cpu, programs)) - used)

    samples = {
        "ours": list(map(ask, names)),
        "limit": [start_of_python_on_processor() for _ in names],
    }
    # A question makes 1 MB of garbage, most of it texts of files, so that a collection
    # falls into most questions, and takes two thirds of the time.
    what = "references, our share, p25, CPU, ms"
    return row(what, samples, Goal(times=5, side="limit"), part=0.25)


def _longest_work(emacs: Editor, bridge: Bridge, name: Name) -> float:
    """Ask for the references to ``name``; return the longest work of Emacs in ms."""
    emacs.ask("(bench-names-begin)")
    bridge.call("references", **name.arguments())
    return float(emacs.ask("(bench-names-end)"))
