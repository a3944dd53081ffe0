# SPDX-License-Identifier: GPL-3.0-or-later
"""An Emacs for tests: starts the server as Emacs does and speaks EPC itself.

It shares only the version with the server, so that one mistake is not made twice.
"""

import itertools
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import sexpdata
from sexpdata import Symbol

import forks
from fake_cli import BOUND
from gemini_companion_epc import __version__

PYTHON_PATH = str(Path(__file__).parents[2] / "python")


class ReturnedError(Exception):
    """The server answered a call with an error."""


class EpcClient:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), BOUND)
        self.socket.settimeout(None)
        self.calls: queue.Queue[tuple[str, list[Any]]] = queue.Queue()
        self.closed = threading.Event()
        self.answers: dict[str, Callable[..., Any]] = {}
        self.unanswered: list[int] = []
        self._replies: dict[int, queue.Queue[tuple[str, Any]]] = {}
        # The fuzz test sends others.
        self._uids = itertools.count(10**12)
        self._lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def call(self, name: str, *args: Any) -> Any:
        uid = next(self._uids)
        reply = self.reply_to(uid)
        self.send([Symbol("call"), uid, Symbol(name), list(args)])
        kind, value = reply.get(timeout=BOUND)
        if kind == "closed":
            raise ConnectionError("the server has closed the connection")
        if kind != "return":
            raise ReturnedError(value)
        return value

    def send(self, *forms: Any) -> None:
        self.send_bytes(b"".join(_message(sexpdata.dumps(form)) for form in forms))

    def send_text(self, text: str) -> None:
        self.send_bytes(_message(text))

    def send_bytes(self, data: bytes) -> None:
        with self._lock:
            self.socket.sendall(data)

    def expect(self, name: str) -> list[Any]:
        """Return the arguments of the next call of ``name``, skipping others."""
        while True:
            called, args = self.calls.get(timeout=BOUND)
            if called == name:
                return args

    def until(self, name: str, holds: Callable[[list[Any]], object]) -> None:
        """Wait for a call of ``name`` with arguments for which ``holds`` is true."""
        while not holds(self.expect(name)):
            pass

    def reply_to(self, uid: int) -> "queue.Queue[tuple[str, Any]]":
        reply = self._replies.setdefault(uid, queue.Queue())
        if self.closed.is_set():
            reply.put(("closed", None))
        return reply

    def close(self) -> None:
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def _read(self) -> None:
        try:
            file = self.socket.makefile("rb")
            while head := file.read(6):
                self._take(sexpdata.loads(file.read(int(head, 16)).decode()))
        except (OSError, ValueError):
            pass
        finally:
            self.closed.set()
            for reply in list(self._replies.values()):
                reply.put(("closed", None))

    def _take(self, form: list[Any]) -> None:
        kind, uid = form[0].value(), form[1]
        if kind != "call":
            self.reply_to(uid).put((kind, form[2] if len(form) > 2 else None))
            return
        name, args = form[2].value(), form[3]
        answer = self.answers.get(name, lambda *_: True)(*args)
        if answer is NO_ANSWER:
            self.unanswered.append(uid)
        else:
            self.send([Symbol("return"), uid, answer])
        self.calls.put((name, args))


def _message(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape") + b"\n"
    return b"%06x" % len(data) + data


NO_ANSWER = object()


class FakeEmacs:
    """An Emacs and its server, which is `forked` unless its start is tested."""

    def __init__(self, tmp: Path, forked: bool = False, **start: Any) -> None:
        tmp.mkdir(parents=True, exist_ok=True)
        self.tmp = tmp
        self.secret = "test-secret"
        self.log: list[str] = []
        environ = {
            **os.environ,
            "TMPDIR": str(tmp),
            "PYTHONPATH": PYTHON_PATH,
            "MALLOC_MMAP_THRESHOLD_": "1000000",
        }
        self.process: subprocess.Popen[bytes] | forks.Server
        if forked and sys.platform == "linux":
            self.process = forks.Server(environ)
        else:
            self.process = subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "gemini_companion_epc"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environ,
            )
        self._log_reader = threading.Thread(target=self._read_log, daemon=True)
        self._log_reader.start()
        line = {"secret": self.secret, "emacs_pid": os.getpid(), "roots": [], **start}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        self.process.stdin.flush()
        self.epc_port = int(self.process.stdout.readline())

    def connect(self) -> "FakeEmacs":
        """Say hello, and let the server serve its clients."""
        self.hello_only()
        self.call("serve")
        return self

    def hello_only(self) -> None:
        self.epc = EpcClient(self.epc_port)
        hello = self.epc.call("hello", self.secret, __version__)
        self.hello = plist(hello)
        self.port: int = self.hello["port"]
        self.token: str = self.hello["token"]

    def call(self, name: str, *args: Any) -> Any:
        return self.epc.call(name, *args)

    def send_call(self, name: str, *forms: Any) -> None:
        """Call ``name`` and send ``forms`` without waiting for the answer."""
        self.epc.send([Symbol("call"), 0, Symbol(name), []], *forms)

    def expect(self, name: str) -> list[Any]:
        return self.epc.expect(name)

    def context(self, *files: dict[str, Any]) -> None:
        self.call("context-update", list(files))

    def wait(self) -> int:
        """Return the exit status once the process has ended."""
        status = self.process.wait(BOUND)
        self._log_reader.join(BOUND)
        return status

    def hang_up(self) -> None:
        """Close stdin and the connection, as an Emacs that exits does."""
        if hasattr(self, "epc"):
            self.epc.close()
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()

    def close(self) -> None:
        self.hang_up()
        try:
            self.process.wait(BOUND)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self._log_reader.join(BOUND)
            for pipe in (self.process.stdout, self.process.stderr):
                assert pipe is not None
                pipe.close()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.decode())


def plist(value: list[Any]) -> dict[str, Any]:
    """Return the property list ``value`` as a dictionary without colons."""
    pairs = zip(value[::2], value[1::2], strict=True)
    return {key.value().removeprefix(":"): item for key, item in pairs}
