# SPDX-License-Identifier: GPL-3.0-or-later
"""Print a port; read "IN OUT" and IN bytes, and send OUT bytes."""

import socket


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    data = bytearray()
    answer = bytes(1 << 20)
    while piece := connection.recv(1 << 20):
        data += piece
        head, mark, _ = data[:40].partition(b"\r\n")
        if not mark:
            continue
        there, back = map(int, head.split())
        left = there - (len(data) - len(head) - 2)
        while left > 0:
            left -= len(connection.recv(1 << 20))
        data.clear()
        view = memoryview(answer)
        while back > 0:
            connection.sendall(view[:back])
            back -= len(answer)


if __name__ == "__main__":
    main()
