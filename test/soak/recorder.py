# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python of the hooks of a judged run: it records what the bridge reads and prints.

It is started in place of Python, with the same arguments, and runs the same program in
this process, so that the processes are those that the CLI and the server know.  Records
are lines of JSON in the file that JUDGE_RECORDS names.
"""

import contextlib
import io
import json
import os
import runpy
import sys
import time
from pathlib import Path
from typing import Any


def record(what: str, **facts: Any) -> None:
    """Append a record of ``what``, with the time and ``facts``."""
    line = json.dumps({"at": time.time(), "what": what, **facts}) + "\n"
    file = os.open(os.environ["JUDGE_RECORDS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())  # at once, as others write, too
    os.close(file)


class Printed(io.RawIOBase):
    """What the bridge prints, which is recorded before the CLI can read it."""

    def __init__(self) -> None:
        self._out = os.fdopen(os.dup(1), "wb", buffering=0)

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        text = bytes(data)
        record("hook-out", pid=os.getpid(), text=text.decode(errors="replace"))
        with contextlib.suppress(BrokenPipeError):  # the CLI has gone
            self._out.write(text)
        return len(text)


def main() -> None:
    data = sys.stdin.buffer.read()
    event = json.loads(data)
    record("hook-in", pid=os.getpid(), options=sys.argv[2:], event=event)
    sys.stdin = io.TextIOWrapper(io.BytesIO(data))
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(Printed()))
    sys.argv[:] = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
