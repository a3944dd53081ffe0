# SPDX-License-Identifier: GPL-3.0-or-later
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import TypeVar

T = TypeVar("T")

# Seconds between two probes; the longer the wait, the fewer they are.
SHORTEST = 0.03
LONGEST = 0.2
# Long, because the machine may be busy.
BOUND = 180.0


def eventually(probe: Callable[[], T], what: str) -> T:
    """Return the first true value of ``probe``; fail with ``what`` after ``BOUND``."""
    began = time.monotonic()
    pause = Event()
    while True:
        value = probe()
        if value:
            return value
        waited = time.monotonic() - began
        if waited > BOUND:
            raise AssertionError(f"not within {BOUND:g} s: {what} (last: {value!r})")
        pause.wait(min(LONGEST, max(SHORTEST, waited / 8)))


def wait_until_saved(file: Path, text: str) -> None:
    """Wait until ``file`` holds ``text``; an editor that saves it may rename it."""
    eventually(lambda: _held(file) == text.encode(), f"{file.name} holds {text!r}")


def _held(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except FileNotFoundError:
        return None
