# SPDX-License-Identifier: GPL-3.0-or-later
"""References to 50 names of a public package, asked by the real Gemini CLI.

The package is mypy, with which this one is checked, and the language server is
basedpyright.  The comparator is the CLI's own grep_search for the name as a word;
the bytes are those that reach the model.  "Our share" is the time of a question at
the bridge without the time of the language server; its limit is the start
of an empty Python.  "Without keys" is the longest
processor time that Emacs spends at once while a question is answered, without the
collection of garbage, which is due whatever allocates; or the longest time for which
it waits until the language server reads.

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
from asked import Bridge
from client import Broken, until
from editor import Editor, on_screen
from harness import gemini
from harness.emacs import lisp
from harness.gemini import Gemini
from harness.model import Model, call, say
from harness.tools import Tools
from rows import Goal, Row, Samples, row
from servers import start_of_python

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / ".deps" / "bench" / "basedpyright"
PACKAGE = "basedpyright==1.40.2"
NAMES = 50
SEED = 1
AT_ONCE = 10
WARM = 300
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
        figures = [ask(emacs, bridge, name) for name in names]
    shares, work, starts = (list(each) for each in zip(*figures, strict=True))
    samples = {"ours": shares, "limit": starts}
    what = "references, our share, p25, ms"
    yield row(what, samples, Goal(times=4, side="limit"), part=0.25)
    # The slowest tenth may have waited for other programs.  Where the pipe of the
    # language server is full, Emacs itself waits for 20 ms.
    samples = {"ours": work, "limit": starts}
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


def ask(emacs: Editor, bridge: Bridge, name: Name) -> tuple[float, float, float]:
    """Ask for the references to ``name``.

    Return our share, the longest work, and the start of an empty Python.
    """
    emacs.ask("(bench-names-begin)")
    began = time.monotonic()
    bridge.call("references", **name.arguments())
    ms = 1000 * (time.monotonic() - began)
    server, work = emacs.ask("(bench-names-end)")
    return ms - server, work, start_of_python()
