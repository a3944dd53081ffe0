# SPDX-License-Identifier: GPL-3.0-or-later
"""Memory for large texts: kept from one copy to the next, given back at rest.

glibc returns large memory to the kernel as soon as it is freed, and 10 MB anew
cost 2,500 page faults, which take longer than to copy a text into them.  On its
way through this process a text is copied ten times.  Other systems are left as
they are.
"""

import asyncio
import sys
from collections.abc import Callable
from functools import cache

MEGABYTE = 1024 * 1024
LARGE = MEGABYTE // 4
MOST_KEPT = 256 * MEGABYTE
# Larger ones are not kept; glibc takes no higher value.
LARGEST_KEPT = 32 * MEGABYTE
REST = 3.0

# As mallopt(3) names them.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


class Heap:
    """What this process has from the kernel and does not use."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def used(self, size: int) -> None:
        """Note that a text of SIZE bytes comes, or has just been let go.

        What is free once no more is noted for REST seconds is given back.  To be
        called in the event loop.
        """
        give_back = _keep() if size >= LARGE else None
        if give_back is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(REST, give_back, 0)


heap = Heap()
"""The one of this process."""


@cache
def _keep() -> Callable[[int], object] | None:
    """Have glibc keep what is freed; return what gives it back, None elsewhere."""
    if sys.platform != "linux":
        return None
    try:
        # Not every Python is built with it.
        import ctypes

        libc = ctypes.CDLL(None)
        give_back: Callable[[int], object] = libc.malloc_trim
    except (ImportError, OSError, AttributeError):
        return None
    libc.mallopt(_M_TRIM_THRESHOLD, MOST_KEPT)
    libc.mallopt(_M_MMAP_THRESHOLD, LARGEST_KEPT)
    return give_back
