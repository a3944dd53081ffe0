# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Emacs with the compiled package, controlled over a socket."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from client import BOUND, Broken, Client, until
from harness.emacs import BARE, SIZE, configure, lisp
from harness.scratch import Scratch
from harness.terminal import Tmux
from harness.tools import ROOT, Tools

HERE = Path(__file__).resolve().parent
PACKAGE = ROOT / ".deps" / "bench" / "package"

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
(setq package-user-dir {elpa} package-directory-list nil
      inhibit-startup-screen t
      ring-bell-function #'ignore
      large-file-warning-threshold nil)
(package-initialize)
(add-to-list 'load-path {package})
{load}
(require '{library})
(setq gemini-companion-server-command '({python} "-m" "gemini_companion_epc"))
(bench-connect {port})
(dolist (file (list {files})) (find-file file))
{mode}
"""
LOAD = "(require 'gemini-companion)"


def build(tools: Tools) -> None:
    """Compile the package as it is installed."""
    shutil.rmtree(PACKAGE, ignore_errors=True)
    PACKAGE.mkdir(parents=True)
    ours = (ROOT / "gemini-companion.el", *ROOT.glob("lisp/*/*.el"))
    for file in (*ours, *HERE.glob("*.el")):
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
        facts = json.loads(path.read_text(encoding="utf-8"))
        return Client(facts["port"], facts["authToken"]).connect()

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
        message: dict[str, Any] = json.loads(line)
        return message


@contextmanager
def on_screen(
    tools: Tools,
    *files: Path,
    library: str = "bench",
    load: str = LOAD,
    mode: bool = True,
) -> Iterator[Editor]:
    """An Emacs in a terminal with the mode and ``library``, visiting ``files``.

    It has evaluated ``load``, and turned the mode on if ``mode`` is true.
    """
    scratch = Scratch(tools)
    configure(scratch)
    tmux = Tmux(scratch)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(BOUND)
    init = scratch.root / "init.el"
    init.write_text(
        INIT.format(
            elpa=lisp(tools.elpa),
            package=lisp(PACKAGE),
            load=load,
            library=library,
            python=lisp(tools.python),
            port=listener.getsockname()[1],
            files=" ".join(map(lisp, files)),
            mode="(gemini-companion-mode 1)" if mode else "",
        ),
        encoding="utf-8",
    )
    try:
        tmux.start(
            "emacs",
            [tools.emacs, *BARE, "-nw", "-l", str(init)],
            scratch.project,
            {"PYTHONPATH": str(PACKAGE / "python")},
            SIZE,
        )
        editor = Editor(listener.accept()[0], scratch)
        editor.tmux = tmux
        yield editor
    finally:
        listener.close()
        tmux.close()
        _end(scratch)


def _end(scratch: Scratch) -> None:
    deadline = time.monotonic() + BOUND
    while scratch.servers() and time.monotonic() < deadline:
        time.sleep(0.05)  # killed, so that no error hides another
    scratch.kill()
    scratch.remove()
