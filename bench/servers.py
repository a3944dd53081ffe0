# SPDX-License-Identifier: GPL-3.0-or-later
"""The processes that are compared: our server, and the one of Node."""

from __future__ import annotations

import json
import os
import resource
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from client import BOUND, Broken, Client

from fake_emacs import FakeEmacs

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
NODE = ROOT / ".deps" / "bench" / "node"


def install_node() -> None:
    """Install what the comparator needs, unless that was done."""
    NODE.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "node" / "server.mjs", NODE)
    wanted = (HERE / "node" / "package.json").read_bytes()
    copy = NODE / "package.json"
    if copy.exists() and copy.read_bytes() == wanted:
        return
    needed: dict[str, str] = json.loads(wanted)["dependencies"]
    packages = [f"{name}@{version}" for name, version in needed.items()]
    subprocess.run(
        ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund",
         "--no-update-notifier", "--no-save", *packages],
        cwd=NODE, check=True, stdout=subprocess.DEVNULL,
        env={**os.environ, "npm_config_cache": str(ROOT / ".deps/cache/npm")},
    )  # fmt: skip
    copy.write_bytes(wanted)


def wait_for_port(port: int) -> float:
    """Return when ``port`` was seen to accept a connection."""
    deadline = time.time() + BOUND
    while time.time() < deadline:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return time.time()
        time.sleep(0.001)  # no finer than what is measured needs
    raise Broken(f"port {port} does not accept")


def start_of_python(code: str = "pass") -> float:
    """Return the ms that a Python takes to start and to run ``code``."""
    began = time.time()
    subprocess.run([sys.executable, "-c", code], check=True)
    return 1000 * (time.time() - began)


def start_of_python_on_processor() -> float:
    """Return the ms of a processor that a Python takes to start."""
    began = _used_by_children()
    start_of_python()
    return 1000 * (_used_by_children() - began)


def _used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Ours:
    """Our server, started as Emacs starts it, by a process that speaks EPC."""

    def __init__(self, directory: Path, **start: Any) -> None:
        self.emacs = FakeEmacs(directory, **start).connect()
        self.port, self.token = self.emacs.port, self.emacs.token
        self.process = psutil.Process(self.emacs.process.pid)

    def close(self) -> None:
        self.emacs.close()


class Node:
    """The comparator, fed by a file of events."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._events = (directory / "events").open("a", encoding="utf-8")
        self.token = secrets.token_urlsafe(32)
        self.started = time.time()
        self._process = subprocess.Popen(
            ["node", "server.mjs", self.token, directory / "events"],
            cwd=NODE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.listening = time.time()
        if not line.strip().isdigit():
            raise Broken("the server of Node did not start")
        self.port = int(line)
        self.process = psutil.Process(self._process.pid)

    def event(self, **event: Any) -> None:
        """Pass ``event`` to it."""
        self._events.write(json.dumps(event) + "\n")
        self._events.flush()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._events.close()


def file_of(path: str, number: int) -> dict[str, Any]:
    """Return the context's active file, as JSON."""
    cursor = {"line": 1, "character": 1}
    return {"path": path, "timestamp": number, "isActive": True, "cursor": cursor}


Side = Ours | Node


@contextmanager
def sides(directory: Path) -> Iterator[tuple[Ours, Node]]:
    """Our server and the comparator, both without clients."""
    with ExitStack() as stack:
        ours = Ours(directory / "ours")
        stack.callback(ours.close)
        node = Node(directory / "node")
        stack.callback(node.close)
        yield ours, node


def client(side: Side) -> Client:
    """Return a client of ``side``."""
    return Client(side.port, side.token)
