# SPDX-License-Identifier: GPL-3.0-or-later
"""A private world for one test: folders, environment, processes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psutil

from .tools import Tools

MARK = "GC_E2E"


class Scratch:
    """Folders that only this test uses, and what runs in them."""

    def __init__(self, tools: Tools) -> None:
        # The path is short because Unix sockets live below it.
        self.root = Path(os.path.realpath(tempfile.mkdtemp(prefix="gc")))
        self.home = self._folder("home")
        self.tmp = self._folder("tmp")
        self.run = self._folder("run")
        self.project = self._folder("project")
        self._tools = tools
        if git := shutil.which("git"):
            subprocess.run([git, "init", "-q", str(self.project)], check=True)

    @property
    def discovery(self) -> Path:
        """The folder that the CLI looks into."""
        return self.tmp / "gemini" / "ide"

    @property
    def environment(self) -> dict[str, str]:
        """The whole environment of what the test starts."""
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "SHELL": "/bin/sh",
            "HOME": str(self.home),
            "TMPDIR": str(self.tmp),
            "XDG_RUNTIME_DIR": str(self.run),
            "TERM": self._tools.term,
            MARK: str(self.root),
        }

    def file(self, name: str, content: str | bytes = "") -> Path:
        """Write CONTENT to NAME in the project and return its path."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def discovery_files(self) -> list[Path]:
        """Return the discovery files that are there."""
        return sorted(self.discovery.glob("gemini-ide-server-*.json"))

    def temporary_files(self) -> list[Path]:
        """Return the files that are left where temporary ones are made."""
        return sorted(path for path in self.tmp.rglob("*") if path.is_file())

    def logs(self) -> list[str]:
        """Return the ends of the CLIs' logs."""
        return [
            f"=== {log.name}\n{log.read_text(errors='replace')[-2000:]}"
            for log in sorted(self.root.glob("*.log"))
        ]

    def processes(self, word: str = "") -> list[psutil.Process]:
        """Return the live processes of this world whose command has WORD."""
        return [
            process
            for process in psutil.process_iter()
            if self._is_ours(process) and word in _command(process)
        ]

    def servers(self) -> list[psutil.Process]:
        """Return the Python servers that run."""
        return self.processes("gemini_companion_epc")

    def kill(self) -> None:
        """End what still runs, without asking."""
        for process in self.processes():
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue

    def remove(self) -> None:
        """Delete the folders."""
        shutil.rmtree(self.root, ignore_errors=True)

    def _folder(self, name: str) -> Path:
        folder = self.root / name
        folder.mkdir(mode=0o700)
        return folder

    def _is_ours(self, process: psutil.Process) -> bool:
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            return bool(process.environ().get(MARK) == str(self.root))
        except psutil.Error:
            return False


def _command(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""
