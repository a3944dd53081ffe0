# SPDX-License-Identifier: GPL-3.0-or-later
"""The world of one test: directories, a tmux server, CLIs and an Emacs."""

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Timer
from types import ModuleType
from typing import Any, TypeVar

from . import copilot, gemini, pi, qwen
from .copilot import Copilot
from .emacs import SESSION, SIZE, Emacs, Reviews, TerminalBuffer, lisp
from .gemini import Gemini
from .model import Model, Part, write_file
from .pi import Pi
from .qwen import Qwen
from .scratch import Scratch
from .terminal import Tmux
from .tools import Tools
from .wait import BOUND, eventually

Cli = TypeVar("Cli", bound=Gemini)
CLIS = {
    "gemini": (gemini, Gemini),
    "qwen": (qwen, Qwen),
    "copilot": (copilot, Copilot),
    "pi": (pi, Pi),
}

# Until then, names of files are not relative to the project of the CLI.
KNOWN = """(seq-every-p #'gemini-companion-session-directory
                        (gemini-companion-sessions))"""
SESSIONS = "(mapcar #'gemini-companion-session-id (gemini-companion-sessions))"


class World:
    """The processes that one test starts, and their end."""

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.scratch = Scratch(tools)
        self.project, self.home = self.scratch.project, self.scratch.home
        self.file = self.scratch.file
        self.tmux = Tmux(self.scratch)
        self.emacsen: list[Emacs] = []
        # The row of the contract that is being tested.
        self.row = ""
        self._emacs: Emacs | None = None
        self._cli: Gemini | None = None
        self._ends = ExitStack()
        gemini.configure(self.scratch)

    def emacs(
        self, *files: Path, name: str = "emacs", extra: str = "", **options: Any
    ) -> Emacs:
        """Return an Emacs that evaluates ``extra``, and displays the last of ``files``.

        In a shared world, it is that of the previous test.
        """
        previous = self._emacs
        if previous and name == "emacs" and previous.terminal.is_open():
            visits = " ".join(f"(find-file {lisp(file)})" for file in files)
            previous.resize(options.get("size", SIZE))
            previous.eval(f"(progn {extra} {visits} nil)")
            return previous
        emacs = Emacs(
            self.tools, self.scratch, self.tmux, files, name, extra=extra, **options
        )
        self.emacsen.append(emacs)
        if name == "emacs":
            self._emacs = emacs
        return emacs

    def follows(self, previous: Emacs, *files: Path) -> Emacs:
        """Start an Emacs after the ``previous`` one, which has ended or ends now.

        The CLI of a shared world connects to it.
        """
        previous.wait_until_exited()
        self.emacsen.remove(previous)
        emacs = self.emacs(*files)
        if self._cli:
            self._cli.reset()
            self._cli.enable()
        return emacs

    def model(self) -> Model:
        model = Model()
        self._ends.callback(model.close)
        return model

    def gemini(self, name: str = "gemini", connects: bool = True) -> Gemini:
        """Start a CLI outside Emacs; wait until it is connected if it ``connects``."""
        return self._start(gemini, Gemini, name, connects=connects)

    def qwen(
        self, directory: Path | None = None, name: str = "qwen", **settings: object
    ) -> Qwen:
        qwen.configure(self.scratch, **settings)
        return self._start(qwen, Qwen, name, directory)

    def copilot(self, *options: str, name: str = "copilot") -> Copilot:
        copilot.configure(self.scratch)
        return self._start(copilot, Copilot, name, options=options)

    def pi(
        self, name: str = "pi", connects: bool = True, is_extended: bool = True
    ) -> Pi:
        pi.configure(self.scratch, is_extended)
        return self._start(pi, Pi, name, connects=connects)

    def pi_pair(self, *files: Path) -> tuple[Emacs, Reviews, Pi]:
        """Return an Emacs that visits ``files``, and a connected Pi.

        In a shared world, they are those of the previous test.
        """
        emacs, cli = self.emacs(*files), self.cli(self.pi)
        assert isinstance(cli, Pi)
        emacs.becomes("(length (gemini-companion-sessions))", 1)
        return emacs, Reviews(emacs), cli

    def copilot_pair(self, *files: Path) -> tuple[Emacs, Reviews, Copilot]:
        """Return an Emacs that visits ``files``, and a connected Copilot CLI.

        In a shared world, they are those of the previous test.
        """
        emacs = self.emacs(*files)
        if not isinstance(self._cli, Copilot):
            self._cli = self.copilot()
        emacs.becomes("(length (gemini-companion-sessions))", 1)
        return emacs, Reviews(emacs), self._cli

    def end_cli(self) -> None:
        """End the CLI of a shared world, so that the next test starts its own."""
        assert self._cli
        self.tmux.call("kill-session", "-t", f"={self._cli.terminal.name}")
        self._cli = None
        if self._emacs:
            self._emacs.holds("(null (gemini-companion-sessions))", "it has ended")

    def cli(self, start: Callable[[], Gemini]) -> Gemini:
        """Return the CLI of the previous test in a shared world, or ``start`` it."""
        if not self._cli:
            self._cli = start()
        return self._cli

    def _start(
        self,
        module: ModuleType,
        kind: type[Cli],
        name: str,
        directory: Path | None = None,
        connects: bool = True,
        options: tuple[str, ...] = (),
    ) -> Cli:
        model = self.model()
        program = module.script(self.tools, self.scratch, model, name)
        place = directory or self.project
        for emacs in self.emacsen:
            # Its directory is new; the server would find that within a minute.
            emacs.expects(kind.__name__.lower())
        # Inside Emacs, Qwen Code starts itself again, as it does for users; that takes
        # two seconds of a processor, and nothing here depends on it.
        environment = {**gemini.in_container(), "QWEN_CODE_NO_RELAUNCH": "1"}
        terminal = self.tmux.start(
            name, [str(program), *options], place, environment, gemini.SIZE
        )
        cli = kind(terminal, model)
        if connects:
            cli.wait_until_connected()
        return cli

    def run(
        self, emacs: Emacs, client: str = "gemini", *questions: str, host: str = ""
    ) -> Gemini:
        """Start ``client`` by the command, and answer its ``questions`` by yes.

        Wait until it takes prompts, in a terminal of ``emacs``.
        """
        module, kind = CLIS[client]
        model = self.model()
        program = module.script(self.tools, self.scratch, model, "inside")
        name, commands = lisp(client), f"'(({lisp(client)} . {lisp(program)}))"
        emacs.eval(f"(setq gemini-companion-run-client {name}"
                   f" gemini-companion-run-commands {commands})")  # fmt: skip
        emacs.command("gemini-companion-run", *questions)
        buffer = f"*{client}: {host}{self.project.name}*"
        emacs.holds(f"(get-buffer {lisp(buffer)})")
        cli = kind(TerminalBuffer(emacs, buffer), model)
        cli.wait_for(cli.placeholder)
        return cli

    def run_pair(
        self, *files: Path, spins: bool = True, **options: Any
    ) -> tuple[Emacs, Gemini]:
        """Return an Emacs that visits ``files``, and a CLI that it has started.

        That is Gemini CLI in term; its window title shows its state, as by default.
        While it ``spins``, Emacs draws its terminal twelve times a second.  In a shared
        world, they are those of the previous test.
        """
        emacs = self.emacs(*files, **options)
        if self._cli:
            emacs.eval('(progn (pop-to-buffer "*gemini: project*") nil)')
        else:
            ui = {"hideTips": True, "showSpinner": spins}
            gemini.configure(self.scratch, ui=ui)
            emacs.eval("(setq gemini-companion-terminal 'term)")
            self._cli = self.run(emacs)
        self._cli.wait_until_connected()
        emacs.holds(SESSION, "connected")
        return emacs, self._cli

    def gemini_inside(self, emacs: Emacs) -> Gemini:
        """Start a CLI in the buffer *terminal* of ``emacs``."""
        model = self.model()
        name = f"inside-{emacs.name}"
        program = gemini.script(self.tools, self.scratch, model, name)
        emacs.eval(f"(progn (term {lisp(program)}) (delete-other-windows))")
        cli = Gemini(TerminalBuffer(emacs, "*terminal*"), model)
        cli.wait_until_connected()
        return cli

    def pair(
        self, *files: Path, inside: bool = False, **options: Any
    ) -> tuple[Emacs, Reviews, Gemini]:
        """Return an Emacs that visits ``files``, and a connected CLI.

        If that is ``inside``, its terminal is the selected window and the only one.
        """
        emacs = self.emacs(*files, **options)
        if self._cli and inside:
            emacs.eval('(progn (switch-to-buffer "*terminal*") nil)')
        if self._cli:
            self._cli.wait_until_connected()
        else:
            self._cli = self.gemini_inside(emacs) if inside else self.gemini()
        emacs.holds(KNOWN, "it knows where the CLIs run")
        return emacs, Reviews(emacs), self._cli

    def review(
        self, old: str, new: str, *turns: Part, inside: bool = False, **options: Any
    ) -> tuple[Path, Emacs, Reviews, Gemini]:
        """Return a.txt, which holds ``old``, and a pair that reviews ``new`` for it.

        The model's ``turns`` come after that; the CLI may be ``inside`` Emacs.
        """
        file = self.file("a.txt", old)
        emacs, reviews, cli = self.pair(file, inside=inside, **options)
        reviews.proposed(cli, file, write_file(file, new), *turns)
        return file, emacs, reviews, cli

    @contextmanager
    def piped(
        self, *command: str, environment: Mapping[str, str] | None = None
    ) -> Iterator["subprocess.Popen[str]"]:
        """Run the CLI ``command`` in the project, with pipes instead of a terminal."""
        with subprocess.Popen(
            command,
            cwd=self.project,
            env={**os.environ, **self.scratch.environment, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as cli:
            late = Timer(BOUND, cli.kill)
            late.start()
            try:
                yield cli
            finally:
                late.cancel()
                cli.kill()

    def reset(self) -> None:
        emacs = self._emacs if self._emacs and self._emacs.terminal.is_open() else None
        if emacs and isinstance(self._cli, Pi):
            emacs.holds("(gemini-companion-sessions)", "it is connected")
        if emacs:
            emacs.eval(f"(progn (setq e2e-old {SESSIONS}) nil)")
            emacs.reset()
        if self._cli:
            self._cli.reset()
        if emacs and isinstance(self._cli, Pi):
            is_new = f"(not (seq-intersection {SESSIONS} e2e-old))"
            emacs.holds(is_new, "the old session of Pi has ended")
            self._cli.wait_until_connected()
        self.scratch.clear()

    def report(self) -> str:
        screens = [f"=== {t.name}\n{t.screen()}" for t in self.tmux.terminals]
        buffers = [emacs.report() for emacs in self.emacsen]
        return "\n".join([*screens, *buffers, *self.scratch.logs()])

    def close(self) -> None:
        """End everything, and check that nothing of the package is left behind."""
        try:
            for emacs in self.emacsen:
                emacs.quit()
            eventually(lambda: not self.scratch.servers(), "the server is gone")
            eventually(lambda: not self.scratch.discovery_files(), "no discovery file")
            locks = self.scratch.home.glob
            eventually(lambda: not list(locks(".*/ide/*.lock")), "no lock file")
            eventually(lambda: not list(locks(".*/ide/*/*.sock")), "no socket")
            self.tmux.close()
            eventually(lambda: not self.scratch.processes(), "nothing runs")
        finally:
            self._ends.close()
            self.tmux.close()
            self.scratch.kill()
            self.scratch.remove()
