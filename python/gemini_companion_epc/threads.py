# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls in threads for what may never return, as on a mount that does not answer.

The event loop must not wait for it, nor must the threads of `asyncio.to_thread`, of
which there are few.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TypeVar

from .types import NoAnswer

Result = TypeVar("Result")

LIMIT = 2
"""Seconds for which a call is awaited."""
_MOST = 32

_threads = ThreadPoolExecutor(_MOST, "files")
_hanging: dict[str, float] = {}
"""When calls began that have not returned in time, by key."""


async def in_thread(
    key: str,
    function: Callable[..., Result],
    *args: object,
    limit: float | None = None,
) -> Result:
    """Return ``function(*args)``; raise NoAnswer if it takes longer than ``limit``.

    Until it has returned, further calls with ``key``, which names the files in
    question, raise NoAnswer at once, so that they take no more threads.
    """
    if key in _hanging:
        raise NoAnswer(key, monotonic() - _hanging[key])
    began = monotonic()
    loop = asyncio.get_running_loop()
    call = loop.run_in_executor(_threads, function, *args)
    try:
        await asyncio.wait([call], timeout=limit or LIMIT)
    finally:
        if not call.done():
            _hanging[key] = began
            call.add_done_callback(lambda call: _return(key, call))
    if not call.done():
        raise NoAnswer(key, monotonic() - began)
    return call.result()


def _return(key: str, call: "asyncio.Future[Result]") -> None:
    """Record that ``call`` has returned after all."""
    _hanging.pop(key, None)
    if not call.cancelled():
        call.exception()
