# SPDX-License-Identifier: GPL-3.0-or-later
"""A CLI that proposes edits without a pause, until its stdin is closed.

Run as ``busy_cli.py PORT TOKEN NAME``.  It prints DONE, or else a traceback: at the
first request that fails, at an outcome that is wrong, unknown or the second of its
proposal, and when one does not come.
"""

import queue
import random
import sys
import threading
import time

from fake_cli import BOUND, Events, FakeCli

# Gemini CLI opens its event stream again after this time.
REOPEN = 1.0

outcomes: queue.Queue[tuple[str, str, str]] = queue.Queue()


def main() -> None:
    port, token, name = sys.argv[1:]
    cli = FakeCli(int(port), token)
    listening = threading.Thread(target=listen, args=(cli, cli.connect()), daemon=True)
    listening.start()
    last = threading.Thread(target=sys.stdin.read, daemon=True)
    last.start()
    number = 0
    while last.is_alive():
        number += 1
        propose(cli, f"/{name}-{number}", f"text {number}\n", bool(number % 2))
        time.sleep(random.random() / 50)
    assert outcomes.empty(), outcomes.get()
    print("DONE", flush=True)


def listen(cli: FakeCli, stream: Events) -> None:
    while True:
        try:
            event = stream.next()
        except AssertionError:
            assert stream.is_graceful
            time.sleep(REOPEN)
            stream = cli.listen()
            continue
        params = event["params"]
        if event["method"] != "ide/contextUpdate":
            content = params.get("content", "")
            outcomes.put((event["method"], params["filePath"], content))


def propose(cli: FakeCli, path: str, text: str, waits: bool) -> None:
    cli.open_diff(path, text)
    held = {}
    if not waits:
        time.sleep(random.random() / 50)
        held = cli.close_diff(path)
        assert held.get("content", text) in (text, f"!{text}"), held
    # It may have been accepted before it was closed.
    if held == {}:
        outcome = outcomes.get(timeout=BOUND)
        assert outcome == ("ide/diffAccepted", path, f"!{text}"), outcome


if __name__ == "__main__":
    main()
