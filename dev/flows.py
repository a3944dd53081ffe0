# SPDX-License-Identifier: GPL-3.0-or-later
"""Print what each flow enters: see dev/flows."""

from __future__ import annotations

import json
import os
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


@contextmanager
def counted(emacs: Editor, name: str, end: Callable[[], object]) -> Iterator[None]:
    """Count what Emacs calls from now until ``end`` is true."""
    emacs.ask("(flows-begin)")
    yield
    until(end, name)
    files, calls, functions = emacs.ask("(flows-end)")
    print(f"| {name:36} | {files:5} | {calls:5} | {functions:9} |", flush=True)


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

    print(f"| {'flow':36} | files | calls | functions |")
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


with tempfile.TemporaryDirectory() as directory:
    file = Path(directory).resolve() / "file.txt"
    file.write_text("".join(f"line {number}\n" for number in range(1, 41)))
    with (
        on_screen(Tools.find(), file, library="bench", load=LOAD) as emacs,
        closing(emacs.client()) as cli,
    ):
        run(emacs, cli, file)
