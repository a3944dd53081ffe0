# SPDX-License-Identifier: GPL-3.0-or-later
"""relay SECONDS COMMAND...: run COMMAND, and delay what it reads and writes."""

import os
import queue
import subprocess
import sys
import threading
import time


def carry(source: int, target: int, delay: float) -> None:
    """Copy ``source`` to ``target``, everything ``delay`` seconds later."""
    arrived: queue.Queue[tuple[float, bytes]] = queue.Queue()

    def read() -> None:
        data = b"-"
        while data:
            data = os.read(source, 65536)
            arrived.put((time.monotonic() + delay, data))

    threading.Thread(target=read, daemon=True).start()
    while True:
        due, data = arrived.get()
        time.sleep(max(0, due - time.monotonic()))
        if not data:
            break
        view = memoryview(data)
        while view:
            view = view[os.write(target, view) :]
    os.close(target)


def main() -> None:
    delay = float(sys.argv[1])
    with subprocess.Popen(
        sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        arguments = (0, process.stdin.fileno(), delay)
        threading.Thread(target=carry, args=arguments, daemon=True).start()
        carry(process.stdout.fileno(), 1, delay)


if __name__ == "__main__":
    main()
