# SPDX-License-Identifier: GPL-3.0-or-later
"""References to 50 names of a public package, asked by the real Gemini CLI.

The package is mypy, with which this one is checked, and the language server is
basedpyright.  The comparator is the CLI's own grep_search for the name as a word;
the bytes are those that reach the model.  Then each question is asked again, while
its file is visited and point is at its end.  "Our share" is the time of a question
at the bridge without that of the language server.  "Without keys" is the longest
processor time that Emacs spends at once while a question is answered, or the longest
time for which it waits until the language server reads.  The comparator is the same
Emacs when it asks the language server itself and does nothing with the answer: there,
too, garbage is collected, which takes most of that time.

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
from rows import Goal, Row, Samples, quantile, row

ROOT = Path(__file__).resolve().parent.parent
SERVER = ROOT / ".deps" / "bench" / "basedpyright"
PACKAGE = "basedpyright==1.40.2"
NAMES = 50
SEED = 1
AT_ONCE = 10
WARM = 300
TOOL = "mcp_emacs_references"
COUNT = re.compile(r"^\d+ references?[:;]", re.MULTILINE)


@dataclass(frozen=True)
class Name:
    """A function, method or class, and where it is defined."""

    text: str
    file: str
    line: int
    column: int

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
        emacs.ask(f'(bench-names-start \'({lisp(command)} "--stdio"))')
        home = project / "mypy" / "version.py"
        visit = f"(bench-names-visit {lisp(home)})"
        until(lambda: emacs.ask(visit), "the language server is ready")
        bridge = stack.enter_context(Bridge(tools, emacs.scratch, project))
        warm(bridge, names)
        ours, theirs = in_cli(tools, emacs, stack, names)
        sizes: Samples = {"ours": [ours], "comparator": [theirs]}
        yield row("references to 50 names, bytes", sizes, Goal(times=0.2))
        first: list[Answer] = []
        plain: list[Busy] = []
        for name in names:
            first.append(ask(emacs, bridge, name))
            plain.append(ask_itself(emacs, home, name))
        for file in sorted({project / name.file for name in names}):
            emacs.ask(f"(bench-names-visit {lisp(file)})")
        warm(bridge, names[:1])
        again = [ask(emacs, bridge, name) for name in names]
    pairs = [
        (one, two)
        for one, two in zip(first, again, strict=True)
        if one.places() != two.places()
    ]
    for one, two in pairs:
        print(one.text, two.text, sep="\n---\n", file=sys.stderr)
    others = {"ours": [float(len(pairs))]}
    yield row("the same, point elsewhere: other answers", others, Goal(most=0))
    shares = [one.ms - one.server for one in first + again]
    for part, most in (0.5, 20), (0.95, 50):
        what = f"references, our share, p{100 * part:.0f}, ms"
        yield row(what, {"ours": [quantile(shares, part)]}, Goal(most=most))
    # After files are visited, Emacs also handles their diagnostics.
    longest = {
        "ours": [max(one.busy.longest for one in first)],
        "comparator": [max(one.longest for one in plain)],
    }
    yield row("references, longest without keys, ms", longest, Goal(more=10))
    work = {
        "ours": [max(one.busy.work for one in first)],
        "comparator": [max(one.work for one in plain)],
    }
    yield row("the same, without garbage, ms", work, Goal(most=10))


def install() -> str:
    """Install the language server, unless that was done; return its program."""
    program = SERVER / "bin" / "basedpyright-langserver"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", SERVER], check=True)
        pip = SERVER / "bin" / "pip"
        subprocess.run([pip, "install", "-q", PACKAGE], check=True)
    return str(program)


def modern(tools: Tools) -> Tools:
    """Return ``tools`` with the newest Emacs, as older ones have no Eglot."""
    lines = (ROOT / ".deps" / "emacsen").read_text(encoding="utf-8").splitlines()
    version, directory = lines[-1].split(" ", 1)
    elpa = str(ROOT / ".eask" / version / "elpa")
    return replace(tools, emacs=f"{directory}/emacs", elpa=elpa)


def copy(project: Path) -> list[Name]:
    """Copy the package into ``project``; return some of the names in it."""
    source = Path(mypy.__file__).parent
    found: dict[str, Name] = {}
    for file in sorted(source.rglob("*.py")):
        place = f"mypy/{file.relative_to(source)}"
        target = project / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                column = lines[node.lineno - 1].index(node.name, node.col_offset + 3)
                name = Name(node.name, place, node.lineno, column)
                found.setdefault(node.name, name)
    return random.Random(SEED).sample(list(found.values()), NAMES)


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
        for name in names[start : start + AT_ONCE]:
            turns.append(call(TOOL, **name.arguments()))
            turns.append(call("grep_search", pattern=rf"\b{name.text}\b"))
        model.script(*turns, say(f"that is all from {start}"))
        cli.prompt()
        cli.wait_for(f"that is all from {start}")
    results = model.results()
    if len(results) != 2 * len(names):
        raise Broken(f"{len(results)} results")
    for one, name in zip(results[::2], names, strict=True):
        if not COUNT.search(one):
            raise Broken(f"{name}: {one}")
    sizes = [len(result.encode()) for result in results]
    return sum(sizes[::2]), sum(sizes[1::2])


@dataclass(frozen=True)
class Busy:
    """The most ms without keys, and those without the collection of garbage."""

    longest: float
    work: float


@dataclass(frozen=True)
class Answer:
    """An answer, with the ms that it took."""

    text: str
    ms: float
    server: float
    busy: Busy

    def places(self) -> str:
        """Return the text without its first line, that with the numbers."""
        return self.text.partition("\n")[2]


def ask(emacs: Editor, bridge: Bridge, name: Name) -> Answer:
    """Return the answer to the question for the references to ``name``."""
    emacs.ask("(bench-names-begin)")
    began = time.monotonic()
    text = bridge.call("references", **name.arguments())
    ms = 1000 * (time.monotonic() - began)
    server, longest, work = emacs.ask("(bench-names-end)")
    return Answer(text, ms, server, Busy(longest, work))


def ask_itself(emacs: Editor, home: Path, name: Name) -> Busy:
    """Ask the language server of ``home`` from Emacs for the references to ``name``."""
    file = home.parent.parent / name.file
    emacs.ask("(bench-names-begin)")
    emacs.ask(f"(bench-names-ask {lisp(home)} {lisp(file)} {name.line} {name.column})")
    if not emacs.reported():
        raise Broken(f"no answer about {name}")
    _, longest, work = emacs.ask("(bench-names-end)")
    return Busy(longest, work)
