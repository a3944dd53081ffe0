# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for conditions."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import TypeVar

T = TypeVar("T")

INTERVAL = 0.05
# Long, because the machine may be busy.
BOUND = 180.0


def eventually(probe: Callable[[], T], what: str) -> T:
    """Return the first true value of ``probe``; fail with ``what`` after ``BOUND``."""
    deadline = time.monotonic() + BOUND
    pause = Event()
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {BOUND:g} s: {what} (last: {value!r})")
        pause.wait(INTERVAL)
