# SPDX-License-Identifier: GPL-3.0-or-later
"""A proposal for a file of another host, whose program runs here.

- The time of openDiff there after 300 files were reviewed, each of which is followed
  for a minute; the comparator is the same after 30.
- The bytes that the other host sends while 30 files without a review change; the
  comparator is what it sends when nothing happens.
- The time of openDiff over a line that delays all by 50 ms each way; the limit is
  twice the time of closeDiff, which needs nothing of the file: one round trip more.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

from client import Client, result, until
from rows import Goal, Row, alternate, row
from servers import Ours

MANY, FEW = 300, 30
ROUNDS = 21
RUN = "eval(Buffer.from(process.argv[1],'base64')+'')"
"""What Emacs runs there; the program replaces ``outpost-base64``."""
COPY = """"$@" | tee "$0" """
DELAY = """
import os, subprocess, sys, threading, time, queue
def carry(source, sink):
    waiting = queue.Queue()
    def write():
        while data := waiting.get():
            time.sleep(max(0, data[0] - time.monotonic()))  # the delay of the line
            os.write(sink, data[1])
        os.close(sink)
    threading.Thread(target=write).start()
    while data := os.read(source, 65536):
        waiting.put((time.monotonic() + 0.05, data))
    waiting.put(None)
with subprocess.Popen(sys.argv[1:], stdin=-1, stdout=-1) as command:
    threading.Thread(target=carry, args=(0, command.stdin.fileno())).start()
    carry(command.stdout.fileno(), 1)
"""


def measure(directory: Path) -> Iterator[Row]:
    with ExitStack() as stack:
        many, few, slow = (
            stack.enter_context(closing(Host(directory / str(number), *within)))
            for number, within in enumerate([(), (), (sys.executable, "-c", DELAY)])
        )
        for host, files in ((many, MANY), (few, FEW)):
            for _ in range(files):
                host.open()
        samples = alternate(ROUNDS, ours=many.open, comparator=few.open)
        what = "remote openDiff after 300 files (comparator: 30), p10, ms"
        yield row(what, samples, Goal(times=2), part=0.1)
        quiet = few.sent(0)
        figures = {"ours": [few.sent(FEW)], "comparator": [quiet]}
        what = "the same, sent for 30 changed files without a review, bytes"
        yield row(what, figures, Goal(more=500))
        samples = alternate(ROUNDS, ours=slow.open, limit=slow.ask)
        what = "remote openDiff, 100 ms away (limit: closeDiff), p25, ms"
        yield row(what, samples, Goal(times=2.3, side="limit"), part=0.25)


class Host:
    """Another host, with a CLI there."""

    def __init__(self, directory: Path, *within: str) -> None:
        self._numbers = count()
        self._ours = Ours(directory / "ours")
        self._ours.emacs.epc.answers["close-diff"] = lambda *_: []
        self._project = directory / "project"
        self._output = directory / "output"
        (self._project / ".git").mkdir(parents=True)
        environment = f"HOME={directory}", f"TMPDIR={directory}"
        command = ["env", *environment, "node", "-e", RUN, "outpost-base64"]
        facts = {
            "name": "/test:there:",
            "command": [*within, "sh", "-c", COPY, str(self._output), *command],
            "copies": str(directory / "copies"),
            "directories": [str(self._project)],
        }
        self._ours.emacs.call("remote-start", facts)
        until(lambda: [*directory.glob("gemini/ide/*.json")], "the host is connected")
        (discovery_file,) = directory.glob("gemini/ide/*.json")
        content = json.loads(discovery_file.read_text(encoding="utf-8"))
        self._cli = Client(content["port"], content["authToken"]).connect()

    def open(self) -> float:
        """Return the ms of an openDiff for a new file."""
        file = self._project / f"{next(self._numbers)}.txt"
        file.write_text("old\n" * 100)
        request = self._cli.call("openDiff", filePath=str(file), newContent="new\n")
        return self._timed(request)

    def ask(self) -> float:
        """Return the ms of a closeDiff for a file without a review."""
        return self._timed(self._cli.call("closeDiff", filePath="/none"))

    def _timed(self, request: bytes) -> float:
        began = time.perf_counter()
        result(*self._cli.send(request))
        return 1000 * (time.perf_counter() - began)

    def sent(self, files: int) -> float:
        """Return the bytes that it sends in 3 s in which new ``files`` change."""
        before = self._output.stat().st_size
        for change in range(15):
            for number in range(files):
                (self._project / f"other{number}.txt").write_text(f"{change}\n" * 100)
            time.sleep(0.2)  # it would notice the changes meanwhile
        return float(self._output.stat().st_size - before)

    def close(self) -> None:
        self._cli.close()
        self._ours.close()
