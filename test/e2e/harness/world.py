# SPDX-License-Identifier: GPL-3.0-or-later
"""What one test starts: scratch folders, a tmux server, CLIs, an Emacs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from . import gemini, qwen
from .emacs import Emacs, Reviews, TerminalBuffer, lisp
from .gemini import Gemini
from .model import Model
from .qwen import Qwen
from .scratch import Scratch
from .terminal import Terminal, Tmux
from .tools import Tools
from .wait import eventually


class World:
    """What one test starts, so that it can be shown and ended."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.scratch = Scratch(tools)
        self.tmux = Tmux(tools, self.scratch)
        self.emacsen: list[Emacs] = []
        self._ends = ExitStack()
        gemini.configure(self.scratch)

    def emacs(self, *files: Path, name: str = "emacs", **options: Any) -> Emacs:
        """Start an Emacs that visits FILES, the last one on the screen."""
        emacs = Emacs(self.tools, self.scratch, self.tmux, files, name=name, **options)
        self.emacsen.append(emacs)
        return emacs

    def model(self) -> Model:
        """Start a model."""
        model = Model()
        self._ends.callback(model.close)
        return model

    def gemini(
        self, name: str = "gemini", directory: Path | None = None, connects: bool = True
    ) -> Gemini:
        """Start a CLI beside Emacs, and wait until it is connected if it CONNECTS."""
        model = self.model()
        program = gemini.script(self.tools, self.scratch, model, name)
        terminal = self._terminal(name, program, directory)
        cli = Gemini(terminal, model)
        if connects:
            cli.wait_until_connected()
        return cli

    def qwen(
        self, name: str = "qwen", directory: Path | None = None, **settings: object
    ) -> Qwen:
        """Start a Qwen Code beside Emacs with SETTINGS, and wait until it is ready."""
        model = self.model()
        qwen.configure(self.scratch, **settings)
        program = qwen.script(self.tools, self.scratch, model, name)
        terminal = self._terminal(name, program, directory)
        cli = Qwen(terminal, model)
        cli.wait_until_connected()
        return cli

    def _terminal(self, name: str, program: Path, directory: Path | None) -> Terminal:
        """Run PROGRAM, a CLI, in a terminal of its own, by default in the project."""
        return self.tmux.start(
            name,
            [str(program)],
            directory or self.scratch.project,
            gemini.in_container(),
            gemini.SIZE,
        )

    def gemini_inside(self, emacs: Emacs, start: str, buffer: str) -> Gemini:
        """Start a CLI in Emacs's BUFFER by START, Lisp with the program as %s."""
        model = self.model()
        name = f"inside-{emacs.name}"
        program = gemini.script(self.tools, self.scratch, model, name)
        emacs.eval(f"(progn {start % lisp(program)} (delete-other-windows))")
        cli = Gemini(TerminalBuffer(emacs, buffer), model)
        cli.wait_until_connected()
        return cli

    def pair(self, *files: Path, **options: Any) -> tuple[Emacs, Reviews, Gemini]:
        """Start an Emacs that visits FILES, and a CLI."""
        emacs = self.emacs(*files, **options)
        return emacs, Reviews(emacs), self.gemini()

    def report(self) -> str:
        """Return what a person reads after a failure."""
        screens = [f"=== {t.name}\n{t.screen()}" for t in self.tmux.terminals]
        buffers = [emacs.report() for emacs in self.emacsen]
        return "\n".join([*screens, *buffers, *self.scratch.logs()])

    def close(self) -> None:
        """End everything, and check that nothing of ours stays behind."""
        try:
            for emacs in self.emacsen:
                emacs.quit()
            eventually(lambda: not self.scratch.servers(), "the server is gone")
            eventually(lambda: not self.scratch.discovery_files(), "no discovery file")
            locks = self.scratch.home / ".qwen" / "ide"
            eventually(lambda: not list(locks.glob("*.lock")), "no lock for Qwen Code")
            self.tmux.close()
            eventually(lambda: not self.scratch.processes(), "nothing runs")
        finally:
            self._ends.close()
            self.tmux.close()
            self.scratch.kill()
            self.scratch.remove()
