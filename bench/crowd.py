# SPDX-License-Identifier: GPL-3.0-or-later
"""A desktop: many idle processes, until stdin is closed.

Run as ``crowd.py COUNT CLOSED``.  A quarter of the COUNT processes have a socket, and
half of them are another user's if root runs this.  CLOSED connections were closed
before READY is printed.
"""

import os
import socket
import sys

NOBODY = 65534


def main() -> None:
    count, closed = map(int, sys.argv[1:])
    listener = socket.create_server(("127.0.0.1", 0), backlog=count + 1)
    here = listener.getsockname()
    for _ in range(closed):
        socket.create_connection(here).close()
        listener.accept()[0].close()
    reader, writer = os.pipe()
    for number in range(count):
        if os.fork() == 0:
            os.close(writer)
            # It is closed when the process exits.
            connection = socket.create_connection(here) if number % 8 < 2 else None
            if number % 2 and os.geteuid() == 0:
                os.setuid(NOBODY)
            idle(reader, connection)
    print("READY", flush=True)
    sys.stdin.read()


def idle(reader: int, _connection: socket.socket | None) -> None:
    """Wait until the first process exits."""
    os.read(reader, 1)
    os._exit(0)


if __name__ == "__main__":
    main()
