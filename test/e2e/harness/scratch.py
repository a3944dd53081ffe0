# SPDX-License-Identifier: GPL-3.0-or-later
"""The directories, environment and processes of one test."""

import os
import shutil
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

import psutil

from .tools import Tools

MARK = "GC_E2E"


def registry() -> dict[str, str]:
    """Return the variables by which this machine reaches the package registries."""
    names = ("PIP_", "UV_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    return {k: v for k, v in os.environ.items() if k.upper().startswith(names)}


class Scratch:
    """Directories that only this test uses, and the processes in them."""

    def __init__(self, tools: Tools) -> None:
        # The path is short because Unix sockets live below it.
        self.root = Path(os.path.realpath(tempfile.mkdtemp(prefix="gc")))
        self.home = self._directory("home")
        self.tmp = self._directory("tmp")
        self.run = self._directory("run")
        self.project = self._directory("project")
        self._tools = tools
        # More variables, by name.
        self.variables: dict[str, str] = {}
        self._git = shutil.which("git")
        if self._git:
            self.git("init", "-q")

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "LANG": os.environ.get("LC_ALL", "C.UTF-8"),
            "SHELL": "/bin/sh",
            "HOME": str(self.home),
            # What is deleted goes to a trash there.
            "XDG_DATA_HOME": str(self.home / ".local/share"),
            "TMPDIR": str(self.tmp),
            "XDG_RUNTIME_DIR": str(self.run),
            "TERM": self._tools.term,
            "NODE_COMPILE_CACHE": os.environ.get("NODE_COMPILE_CACHE", ""),
            MARK: str(self.root),
            **self.variables,
        }

    def file(self, name: str, content: str | bytes = "") -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def discovery_files(self) -> list[Path]:
        return sorted(self.tmp.glob("gemini/ide/gemini-ide-server-*.json"))

    def temporary_files(self) -> list[Path]:
        return sorted(path for path in self.tmp.rglob("*") if path.is_file())

    def logs(self) -> list[str]:
        return [
            f"=== {log.name}\n{log.read_text(errors='replace')[-2000:]}"
            for log in sorted(self.root.glob("*.log"))
        ]

    def processes(self, word: str = "") -> list[psutil.Process]:
        """Return the live processes of this test with ``word`` in their command."""
        processes = []
        for process in psutil.process_iter():
            # It may exit meanwhile.
            with suppress(psutil.Error):
                # The mark is known of most, whose state takes longer to ask.
                if _mark(process) != str(self.root):
                    continue
                is_live = process.status() != psutil.STATUS_ZOMBIE
                if is_live and word in " ".join(process.cmdline()):
                    processes.append(process)
        return processes

    def servers(self) -> list[psutil.Process]:
        return self.processes("gemini_companion_epc")

    def kill(self) -> None:
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def git(self, *arguments: str) -> str:
        """Run git in the project, and return what it prints."""
        assert self._git, "git is not installed"
        identity = "-c", "user.name=a", "-c", "user.email=a@b"
        command = [self._git, *identity, "-C", str(self.project), *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout

    def clear(self) -> None:
        """Delete the files of the project; if some were committed, commit that."""
        for path in self.project.iterdir():
            if path.name == ".git":
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        if any(self.project.glob(".git/refs/heads/*")):
            self.git("commit", "-qam", "cleared", "--allow-empty")

    def remove(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def _directory(self, name: str) -> Path:
        directory = self.root / name
        directory.mkdir(mode=0o700)
        return directory


@cache
def _mark(process: psutil.Process) -> str:
    """Return the root of the test that has started ``process``, or ""."""
    environment = process.environ()
    if not environment:
        # It may be about to run a program, and then has one.
        raise psutil.AccessDenied(process.pid)
    return environment.get(MARK, "")
