# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what each flow enters: see dev/flows."""

from __future__ import annotations

import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from client import Client, until
from editor import Editor, on_screen
from harness.emacs import lisp
from harness.tools import ROOT, Tools

LOAD = f"""(setq load-path (append '({lisp(ROOT / "dev")} {lisp(ROOT / "bench")})
                                   load-path))
(require 'flows)
(flows-load)
(setq gemini-companion-review-arrival 'now)"""
COMMAND = "rm -rf build && make"
HEADS = ("path", "files", "asked again", "upward")
DRAWN = ("changes", "marks", "overview")


NAMES = "--names" in sys.argv[1:]
TABLE: list[str] = []


def row(name: str, *cells: object) -> None:
    """Print a row of the table."""
    widths = map(len, HEADS)
    texts = (f"{cell!s:>{width}}" for cell, width in zip(cells, widths, strict=True))
    TABLE.append(f"| {name:35} | {' | '.join(texts)} |")
    print(TABLE[-1], flush=True)


def write() -> None:
    """Put the table, with its age, into the map of the code."""
    design = ROOT / "doc" / "design.org"
    head, rule, *rows = TABLE
    commit = subprocess.run(
        ["git", "-C", ROOT, "log", "-1", "--format=%h"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    age = f"Made by =dev/flows --write= on {datetime.date.today()}, at {commit}:"
    table = "\n".join([age, "", head, rule, *rows, ""])
    text = re.sub(
        r"Made by =dev/flows .*\n\n(?:\|.*\n)+", table, design.read_text(), count=1
    )
    design.write_text(text)


@contextmanager
def counted(emacs: Editor, name: str, end: Callable[[], object]) -> Iterator[None]:
    """Count what Emacs calls from now until ``end`` is true."""
    emacs.ask("(flows-begin)")
    yield
    until(end, name)
    *numbers, path, again, upward = emacs.ask("(flows-end)")
    row(name, *numbers)
    if NAMES:
        for title, names in ("path", path), ("again", again), ("upward", upward):
            print(f"  {title}:", *names or ["-"], sep="\n    ", flush=True)


@contextmanager
def drawn(emacs: Editor, name: str) -> Iterator[None]:
    """Count what Emacs computes and draws until it has nothing more to do."""
    emacs.ask("(flows-draw-begin)")
    yield
    until(lambda: emacs.ask("(flows-quiet-p)"), name, pause=0.1)
    numbers = emacs.ask("(flows-draw-end)")
    cells = zip(numbers, DRAWN, strict=True)
    texts = (f"{number:>{len(head)}}" for number, head in cells)
    print(f"| {name:35} | {' | '.join(texts)} |", flush=True)


def keys(emacs: Editor, file: Path, write: Callable[[str, str], None]) -> None:
    """Print what a write and the keys of the walk and the overview draw."""
    print(f"\n| {'key':35} | {' | '.join(DRAWN)} |", flush=True)
    before = file.read_text()
    numbers = "|".join(str(number) for number in range(5, 40, 5))
    with drawn(emacs, "a write of seven changes"):
        write(before, re.sub(rf"line (?=({numbers})$)", "row ", before, flags=re.M))
    emacs.ask("(progn (call-interactively 'gemini-companion-next-change) nil)")
    typed(emacs, "walk")
    with drawn(emacs, "the overview appears"):
        emacs.ask("(progn (gemini-companion-turn-page) nil)")
    typed(emacs, "overview")


def typed(emacs: Editor, place: str) -> None:
    """Type keys in ``place``, and print what each of them draws."""
    for key in "n", "p", "u", "C-_", "k", "C-_", "U", "C-_":
        with drawn(emacs, f"{key} of the {place}"):
            emacs.tmux.call("send-keys", "-t", "emacs", key)


def run(emacs: Editor, cli: Client, file: Path) -> None:
    def seen(form: str) -> Callable[[], object]:
        return lambda: emacs.ask(form)

    def ask(kind: str, arguments: str, *texts: str) -> None:
        facts = f'(list :client "gemini" :pids (list {os.getpid()}) {arguments})'
        # A form is one line.
        given = " ".join(lisp(text).replace("\n", "\\n") for text in texts)
        emacs.ask(f"(flows-ask '{kind} {facts} {given})")

    lines = [f"line {number}" for number in range(1, 41)]

    def text(*changed: str) -> str:
        return "\n".join([*changed, *lines[len(changed) :]]) + "\n"

    row("flow", *HEADS)
    TABLE.append(re.sub(r"[^|]", "-", TABLE[0]).replace("-|-", "-+-"))
    # Only keys are commands of the user.
    with counted(emacs, "point moves, until the CLI has it", cli.cursor):
        emacs.tmux.call("send-keys", "-t", "emacs", "Down")
    with counted(
        emacs, "openDiff, until it is on the screen", seen('(flows-shown-p "one")')
    ):
        cli.send(cli.call("openDiff", filePath=str(file), newContent=text("one")))
    with counted(
        emacs, "accept, until diffAccepted", lambda: cli.until("ide/diffAccepted")
    ):
        emacs.ask("(gemini-companion-edit-accept)")
    file.write_text(text("one"))
    until(seen('(not (flows-shown-p "line 1\\n"))'), "the accepted text")
    # Emacs may display the text before it has asked whose it is.
    until(seen("(flows-written-p)"), "the accepted edit is written")
    emacs.ask(f"(progn (select-window (get-buffer-window {lisp(file.name)})) nil)")
    with counted(emacs, "a write, until its mark", seen("(flows-marked-p)")):
        file.write_text(text("one", "two"))
        ask("edited", f":path {lisp(file)}", text("one"), text("one", "two"))
    with counted(emacs, "undo of the change", lambda: file.read_text() == text("one")):
        emacs.ask("(progn (goto-line 2) (gemini-companion-undo-change))")
    emacs.ask("(gemini-companion-list)")
    with counted(
        emacs, "a permission, until its row", seen(f"(flows-shown-p {lisp(COMMAND)})")
    ):
        tool = json.dumps({"tool": "Shell", "command": COMMAND})
        ask("permission", f":directory {lisp(file.parent)}", tool)
    emacs.ask(f"(progn (find-file {lisp(file)}) (delete-other-windows) nil)")

    def write(before: str, after: str) -> None:
        file.write_text(after)
        ask("edited", f":path {lisp(file)}", before, after)

    keys(emacs, file, write)


with tempfile.TemporaryDirectory() as directory:
    file = Path(directory).resolve() / "file.txt"
    file.write_text("".join(f"line {number}\n" for number in range(1, 41)))
    with (
        on_screen(Tools.find(), file, library="bench", load=LOAD) as emacs,
        closing(emacs.client()) as cli,
    ):
        run(emacs, cli, file)
if "--write" in sys.argv[1:]:
    write()
