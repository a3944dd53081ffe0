# SPDX-License-Identifier: GPL-3.0-or-later
"""A Copilot CLI that reports its state by OSC 7501, as version 1.0.106 does.

It is run in a terminal of Emacs.  Each line of its input is a state to report, or
"edit FILE", for which it opens a diff.
"""

import json
import os
import sys
import termios
import tty
from pathlib import Path

from fake_cli import FakeCopilot

QUERY = b"\x1b]7501;?\x1b\\"


def connected() -> FakeCopilot:
    (lock,) = Path("~/.copilot/ide").expanduser().glob("*.lock")
    headers = json.loads(lock.read_text())["headers"]
    port = int(headers["Host"].rpartition(":")[2])
    cli = FakeCopilot(port, headers["Authorization"].removeprefix("Bearer "))
    cli.connect()
    return cli


def report(state: str) -> None:
    """Write a report in two parts, between texts."""
    for part in (f"{state}\x1b]7501;sta", f"te={state}:app=copilot\x1b\\ reported\r\n"):
        sys.stdout.write(part)
        sys.stdout.flush()


def main() -> None:
    before = termios.tcgetattr(0)
    tty.setraw(0)
    os.write(1, QUERY)
    answer = b""
    while not answer.endswith(QUERY):
        answer += os.read(0, 1)
    termios.tcsetattr(0, termios.TCSANOW, before)
    cli = connected()
    report("idle")
    for line in sys.stdin:
        word, _, file = line.strip().partition(" ")
        if word == "edit":
            cli.review(file, "uno\n", "1")
        else:
            report(word)


if __name__ == "__main__":
    main()
