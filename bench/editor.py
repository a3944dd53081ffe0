# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Emacs with the compiled package, controlled over a socket."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from client import BOUND, Broken, Client, until
from harness.emacs import BARE, Emacs, configure, lisp
from harness.scratch import Scratch
from harness.terminal import Tmux
from harness.tools import ROOT, Tools

HERE = Path(__file__).resolve().parent
PACKAGE = ROOT / ".deps" / "bench" / "package"

LARGE = "(setq large-file-warning-threshold nil)"

COMPILE = """
(progn
  (setq package-user-dir {elpa} package-directory-list nil)
  (package-initialize)
  (push default-directory load-path)
  (unless (seq-every-p #'byte-compile-file (directory-files "." t "\\\\.el\\\\'"))
    (kill-emacs 1))
  (package-generate-autoloads "gemini-companion" default-directory))
"""

INIT = """
(setq package-user-dir {elpa} package-directory-list nil)
(package-initialize)
(add-to-list 'load-path {package})
{load}
(require 'bench)
(setq gemini-companion-server-command '({python} "-m" "gemini_companion_epc"))
(bench-connect {port})
"""


def build(tools: Tools) -> None:
    """Compile the package as it is installed."""
    shutil.rmtree(PACKAGE, ignore_errors=True)
    PACKAGE.mkdir(parents=True)
    for file in (*ROOT.glob("gemini-companion*.el"), *HERE.glob("*.el")):
        shutil.copy(file, PACKAGE)
    shutil.copytree(
        ROOT / "python",
        PACKAGE / "python",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    code = COMPILE.format(elpa=lisp(tools.elpa))
    subprocess.run(
        [tools.emacs, "-Q", "--batch", "-l", "package", "-l", "seq", "--eval", code],
        cwd=PACKAGE, check=True, capture_output=True,
    )  # fmt: skip


class Editor:
    """An Emacs, controlled over the socket that bench.el opens."""

    def __init__(self, connection: socket.socket, scratch: Scratch) -> None:
        self.scratch = scratch
        self.tmux: Tmux
        connection.settimeout(BOUND)
        self._file = connection.makefile("rw", encoding="utf-8", newline="\n")
        self._reported: list[Any] = []
        self.pid = int(self.ask("(emacs-pid)"))

    def ask(self, form: str) -> Any:
        """Return the value of ``form``, which must be on one line."""
        self.send(form)
        return self.answer(form)

    def send(self, form: str) -> None:
        """Evaluate ``form``, which must be on one line, without waiting."""
        self._file.write(form + "\n")
        self._file.flush()

    def answer(self, form: str = "") -> Any:
        """Return the value of the ``form`` that was sent."""
        while "reported" in (answer := self._read()):
            self._reported.append(answer["reported"])
        if "error" in answer:
            raise Broken(f"{form}: {answer['error']}")
        return answer["value"]

    def reported(self) -> Any:
        """Return the next value that Emacs reports by itself."""
        return self._reported.pop(0) if self._reported else self._read()["reported"]

    def client(self) -> Client:
        """Return a connected client of the server of this Emacs."""
        self.wait_until_ready()
        (path,) = self.scratch.discovery_files()
        found = json.loads(path.read_text(encoding="utf-8"))
        return Client(found["port"], found["authToken"]).connect()

    def wait_until_ready(self) -> None:
        """Wait until Gemini CLI can connect."""
        until(lambda: self.ask("bench-ready"), "the server of Emacs is ready")

    def _read(self) -> dict[str, Any]:
        try:
            line = self._file.readline()
        except TimeoutError:
            raise Broken("Emacs does not answer in time") from None
        if not line:
            raise Broken("Emacs has ended")
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def on_screen(tools: Tools, *files: Path, library: str = "bench") -> Iterator[Editor]:
    """An Emacs in a terminal with the mode and ``library``, visiting ``files``."""
    scratch = Scratch(tools)
    tmux = Tmux(scratch)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(BOUND)
    try:
        port = listener.getsockname()[1]
        setup = f"{LARGE} (require '{library}) (bench-connect {port})"
        Emacs(tools, scratch, tmux, files, root=PACKAGE, extra=setup)
        editor = Editor(listener.accept()[0], scratch)
        editor.tmux = tmux
        yield editor
    finally:
        listener.close()
        tmux.close()
        _end(scratch)


@contextmanager
def in_background(tools: Tools, load: str) -> Iterator[Editor]:
    """An Emacs without a frame and without the mode, which has evaluated ``load``."""
    scratch = Scratch(tools)
    configure(scratch)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(BOUND)
    init = scratch.root / "init.el"
    init.write_text(
        INIT.format(
            elpa=lisp(tools.elpa),
            package=lisp(PACKAGE),
            python=lisp(tools.python),
            port=listener.getsockname()[1],
            load=load,
        ),
        encoding="utf-8",
    )
    with (scratch.root / "emacs.log").open("wb") as log:
        process = subprocess.Popen(
            [tools.emacs, *BARE, "--fg-daemon=bench", "-l", init],
            cwd=scratch.project,
            env={**scratch.environment, "PYTHONPATH": str(PACKAGE / "python")},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield Editor(listener.accept()[0], scratch)
    except TimeoutError:
        raise Broken((scratch.root / "emacs.log").read_text()[-2000:]) from None
    finally:
        listener.close()
        with suppress(OSError):
            os.kill(process.pid, 15)
        process.wait(BOUND)
        _end(scratch)


def _end(scratch: Scratch) -> None:
    deadline = time.monotonic() + BOUND
    while scratch.servers() and time.monotonic() < deadline:
        time.sleep(0.05)  # killed, so that no error hides another
    scratch.kill()
    scratch.remove()
