# SPDX-License-Identifier: GPL-3.0-or-later
"""The real Emacs, in which soak.el is the user."""

import json
from pathlib import Path

import psutil
from harness.emacs import Emacs, lisp
from harness.scratch import Scratch
from harness.terminal import Tmux
from harness.tools import ROOT, Tools

HERE = Path(__file__).resolve().parent


class User(Emacs):
    def __init__(self, tools: Tools, scratch: Scratch, seed: int) -> None:
        self._journal = scratch.root / "journal"
        setup = f"""
            (random "{seed}")
            (setq soak-journal {lisp(self._journal)})
            (load {lisp(HERE / "soak.el")})"""
        files = sorted(scratch.project.glob("c*/*.txt"))
        self._tmux = Tmux(scratch)
        super().__init__(
            tools, scratch, self._tmux, files, mode=False, extra=setup, root=ROOT
        )
        self._process = psutil.Process(self.pid)

    def server_pid(self) -> int | None:
        text = self.eval("(plist-get (gemini-companion-server-info) :pid)")
        return None if text == "nil" else int(text)

    def rss(self) -> float:
        return float(self._process.memory_info().rss) / 2**20

    def quit(self) -> None:
        super().quit()
        self._tmux.close()

    def entries(self) -> list[dict[str, str]]:
        lines = self._journal.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
