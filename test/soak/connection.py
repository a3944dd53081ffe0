# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of a `FakeCli`, each in a thread."""

import asyncio
from collections.abc import Callable
from http.client import HTTPException
from typing import Any

from fake_cli import Events, FakeCli


class Lost(Exception):
    """The connection closed before the end of the answer."""


class Wrong(Exception):
    """The answer is malformed or wrong, or none came in time."""


async def call(function: Callable[..., Any], *args: Any) -> Any:
    """Return what ``function`` of a `FakeCli` returns."""
    try:
        return await asyncio.to_thread(function, *args)
    except (AssertionError, KeyError, TimeoutError) as error:
        raise Wrong(f"{function.__name__}: {error!r}"[:300]) from None
    except (OSError, HTTPException) as error:
        raise Lost(f"{function.__name__}: {error!r}") from None


async def listen(fake: FakeCli) -> Events:
    """Return a new event stream of ``fake``."""
    events: Events = await call(fake.listen)
    if events.response.status != 200:
        raise Wrong(f"GET was answered {events.response.status}")
    return events
