# SPDX-License-Identifier: GPL-3.0-or-later
"""Costs beside many other processes, 400 of them, and 5,000 closed connections.

The processes are those of `crowd`, younger than the client, so that a search for the
client finds it last.

- A request after a crash: any user may know the token then, so the server asks whose
  the connection is; the comparator is a server that has not crashed.
- A client that was not started in Emacs connects: the processor time of the server
  until its process is known; the comparator is the same with 100 processes.
- The longest answer of the server while it describes the processes for Emacs, and the
  longest processor time of Emacs without keys while its status is opened.  The limit
  is the start of an empty Python, of 8 ms on a quiet machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import crowd
from client import Broken, Client, until
from editor import on_screen
from harness.tools import Tools
from rows import Goal, Row, alternate, row
from servers import Ours, client, start_of_python
from usage import cpu

FEW, MANY = 100, 400
CLOSED = 5_000
REQUESTS = 100
SEARCHES = 5
ROUNDS = 9


def measure(directory: Path) -> Iterator[Row]:
    with ExitStack() as stack:
        few = stack.enter_context(crowded(FEW, CLOSED))
        # What the crowd has started is the family of an Emacs.
        ours = Ours(directory / "ours", emacs_pid=few)
        stack.callback(ours.close)
        after = Ours(directory / "after", is_exposed=True, emacs_pid=few)
        stack.callback(after.close)
        yield _searches(ours)
        stack.enter_context(crowded(MANY - FEW))
        our_client, other_client = (
            stack.enter_context(closing(client(x))) for x in (after, ours)
        )
        our_client.connect(), other_client.connect()
        samples = alternate(
            REQUESTS,
            ours=lambda: _request(our_client),
            comparator=lambda: _request(other_client),
        )
        yield row(
            "request after a crash, 400 processes, p10, ms",
            samples,
            Goal(times=3),
            part=0.1,
        )
        yield _answers(ours, other_client)
        yield _status()


@contextmanager
def crowded(count: int, closed: int = 0) -> Iterator[int]:
    """Run ``count`` more processes; the value is the one that has started them."""
    command = [sys.executable, crowd.__file__, str(count), str(closed)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout
        if process.stdout.readline() != b"READY\n":
            raise Broken("there is no crowd")
        yield process.pid
        process.communicate()


def _searches(ours: Ours) -> Row:
    """Return the row of the searches for the process of a client."""
    few, many = [], []
    for _ in range(SEARCHES):
        few += [_connect(ours) for _ in range(SEARCHES)]
        with crowded(MANY - FEW):
            many += [_connect(ours) for _ in range(SEARCHES)]
    what = "connect, process known, 400 processes (comparator: 100), CPU, ms"
    return row(what, {"ours": many, "comparator": few}, Goal(times=2))


def _connect(ours: Ours) -> float:
    with closing(client(ours)) as our_client:
        before = cpu(ours.process)
        our_client.connect()
        used = cpu(ours.process) - before
        ours.emacs.epc.until("sessions-update", _is_known)
    ours.emacs.epc.until("sessions-update", lambda args: not args[0])
    return 1000 * used


def _is_known(args: list[list[list[object]]]) -> bool:
    return any(os.getpid() in facts for facts in args[0])


def _request(requester: Client) -> float:
    began = time.perf_counter()
    requester.check()
    return 1000 * (time.perf_counter() - began)


def _answers(ours: Ours, requester: Client) -> Row:
    """Return the row of the longest answers."""

    def longest() -> float:
        times = []
        with ThreadPoolExecutor() as pool:
            processes = pool.submit(ours.emacs.call, "processes")
            while not processes.done():
                times.append(_request(requester))
        return max(times)

    samples = alternate(ROUNDS, ours=longest, limit=start_of_python)
    what = "longest answer while 400 processes are described, p10, ms"
    return row(what, samples, Goal(times=6, side="limit"), part=0.1)


def _status() -> Row:
    """Return the row of the status."""
    with on_screen(Tools.find(), library="bench-names") as emacs:
        emacs.wait_until_ready()
        emacs.ask("(bench-names-watch)")

        def ours() -> float:
            emacs.ask("(bench-names-begin)")
            emacs.ask("(progn (gemini-companion-status) nil)")
            until(lambda: emacs.ask("(bench-names-status-p)"), "the status is complete")
            return float(emacs.ask("(bench-names-end)"))

        samples = alternate(ROUNDS, ours=ours, limit=start_of_python)
    what = "status, longest without keys, 400 processes, p25, CPU, ms"
    return row(what, samples, Goal(times=2.5, side="limit"), part=0.25)
