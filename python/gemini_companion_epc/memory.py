# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory for large texts: kept from one copy to the next, given back at rest.

glibc returns large memory to the kernel as soon as it is freed, and 10 MB anew
cost 2,500 page faults, which take longer than to copy a text into them.  On its
way through this process a text is copied ten times.  Other systems are left as
they are.
"""

import asyncio
import ctypes
import sys
from collections.abc import Callable

MEGABYTE = 1024 * 1024
LARGE = MEGABYTE
MOST_KEPT = 64 * MEGABYTE
# Larger ones are not kept; glibc takes no higher value.
LARGEST_KEPT = 32 * MEGABYTE

# As mallopt(3) names them.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


class Memory:
    """What this process has from the kernel and does not use."""

    def __init__(self, rest: float) -> None:
        """Keep memory until no large text has passed for REST seconds."""
        self._rest = rest
        self._give_back = _keep()
        self._timer: asyncio.TimerHandle | None = None

    def used(self, size: int) -> None:
        """Note that a text of SIZE bytes passes; in the event loop only."""
        if size < LARGE or self._give_back is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._rest, self._give_back, 0)


def _keep() -> Callable[[int], object] | None:
    """Have glibc keep what is freed; return what gives it back, if it is glibc."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    try:
        give_back: Callable[[int], object] = libc.malloc_trim
    except AttributeError:
        return None
    libc.mallopt(_M_TRIM_THRESHOLD, MOST_KEPT)
    libc.mallopt(_M_MMAP_THRESHOLD, LARGEST_KEPT)
    return give_back
