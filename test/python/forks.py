# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers that are forked from a process which has loaded what they import.

Importing mcp takes more than a second of processor time, and most tests of the whole
process are not about that.  Run as a program, this file is that process.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import BinaryIO


class Server:
    """A forked server, with those members of `subprocess.Popen` that tests use."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        pipes = os.pipe()[::-1], os.pipe(), os.pipe(), os.pipe()
        ours, theirs = zip(*pipes, strict=True)
        request = json.dumps({"environ": dict(environ), "directory": os.getcwd()})
        socket.send_fds(_parent(), [request.encode()], theirs)
        for descriptor in theirs:
            os.close(descriptor)
        self.stdin: BinaryIO = os.fdopen(ours[0], "wb")
        self.stdout: BinaryIO = os.fdopen(ours[1], "rb")
        self.stderr: BinaryIO = os.fdopen(ours[2], "rb")
        self._reports = os.fdopen(ours[3], "rb")
        self.pid = int(self._reports.readline())
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._reports], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("server", timeout or 0)
            self.returncode = int(self._reports.readline())
            self._reports.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@cache
def _parent() -> socket.socket:
    """Start the process from which servers are forked; return its socket."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-W", "error", __file__, str(theirs.fileno())]
        # The package of another work tree may be installed.
        package = Path(__file__).parents[2] / "python"
        environ = {**os.environ, "PYTHONPATH": str(package)}
        parent = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environ)

    def end() -> None:
        ours.close()
        parent.wait()

    atexit.register(end)
    return ours


def _serve_requests(channel: socket.socket) -> int:
    """Fork a server for each request, until there are no more.

    That happens in a child, which waits for the server, as nothing else here can.
    Return, in the server only, its exit status.
    """
    # Children that have ended leave nothing.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, descriptors, *_ = socket.recv_fds(channel, 1_000_000, 4)
        if not message:
            return 0
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if pid := os.fork():
                _report(pid, descriptors)
            return _serve(json.loads(message), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def _report(pid: int, descriptors: list[int]) -> None:
    """Report that the server ``pid`` has started, and its end; then exit."""
    *others, reports = descriptors
    for descriptor in others:
        os.close(descriptor)
    os.write(reports, b"%d\n" % pid)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    os.write(reports, b"%d\n" % status)
    os._exit(0)


def _serve(request: dict[str, object], descriptors: list[int]) -> int:
    """Be a server that was started with the standard ``descriptors``."""
    from gemini_companion_epc.__main__ import main

    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    os.closerange(3, max(descriptors) + 1)
    os.environ.clear()
    os.environ.update(request["environ"])  # type: ignore[call-overload]
    os.chdir(str(request["directory"]))
    tempfile.tempdir = None
    return main()


if __name__ == "__main__":
    from gemini_companion_epc.server import load_http

    load_http()
    sys.exit(_serve_requests(socket.socket(fileno=int(sys.argv[1]))))
