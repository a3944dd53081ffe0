# SPDX-License-Identifier: GPL-3.0-or-later
"""The EPC endpoint in a thread, and the connections to it."""

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from fake_emacs import BOUND, EpcClient
from gemini_companion_epc import __version__
from gemini_companion_epc.config import Config
from gemini_companion_epc.emacs import Emacs
from gemini_companion_epc.exceptions import MalformedArgument
from gemini_companion_epc.types import (
    Diff,
)

Result = TypeVar("Result")

SECRET = "the secret"


SESSION = {"id": "session", "since": 1790000000000, "pid": 12}


class Owner:
    """Receiver of the calls from Emacs, as a queue."""

    def __init__(self) -> None:
        self.taken: queue.Queue[tuple[Any, ...]] = queue.Queue()

    def hello(self) -> dict[str, object]:
        return {"version": __version__, "port": 1, "token": "t", "discovery": None}

    def roots_update(self, roots: Sequence[str]) -> None:
        self.taken.put(("roots", tuple(roots)))

    def diff_accepted(self, diff_id: int, text: str) -> None:
        if diff_id == 404:
            raise MalformedArgument("no such diff")
        self.taken.put(("accepted", diff_id, text))

    def diff_rejected(self, diff_id: int) -> None:
        if diff_id == 500:
            raise RuntimeError("a bug")
        self.taken.put(("rejected", diff_id))

    def adopt_diff(self, *args: Any) -> None:
        self.taken.put(("adopted", *args))

    def hand_over(self) -> None:
        self.taken.put(("hand-over",))

    def stop(self) -> None:
        self.taken.put(("stop",))

    def methods(self) -> dict[str, Callable[..., object]]:
        return {
            "roots-update": self.roots_update,
            "diff-accepted": self.diff_accepted,
            "diff-rejected": self.diff_rejected,
            "adopt-diff": self.adopt_diff,
            "hand-over": self.hand_over,
            "stop": self.stop,
        }

    def next(self) -> tuple[Any, ...]:
        return self.taken.get(timeout=BOUND)


class Endpoint:
    """An endpoint for the tests."""

    def __init__(self, **fields: Any) -> None:
        self.owner = Owner()
        self.emacs = Emacs(Config(secret=SECRET, emacs_pid=1, **fields))
        self.port = self.emacs.port
        self.clients: list[EpcClient] = []
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()
        self.do(self.emacs.listen, self.owner.hello, self.owner.methods())

    def do(self, function: Callable[..., Result], *args: Any) -> Result:
        """Return what ``function`` returns in the event loop."""

        async def call() -> Result:
            return function(*args)

        return self.run(call())

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(BOUND)

    def open(self, diff: Diff) -> "Future[None]":
        return asyncio.run_coroutine_threadsafe(
            self.emacs.open_diff(diff, SESSION), self.loop
        )

    def epc(self) -> EpcClient:
        self.clients.append(EpcClient(self.port))
        return self.clients[-1]

    def peer(self) -> EpcClient:
        epc = self.epc()
        epc.call("hello", SECRET, __version__)
        return epc

    def close(self) -> None:
        self.run(self.emacs.close())
        for epc in self.clients:
            epc.close()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(BOUND)
        self.loop.close()


def diff_of(text: str) -> Diff:
    return Diff(1, "session", "/a", text)


def directory_of(rig: Endpoint) -> Path:
    assert rig.emacs.directory.path is not None
    return rig.emacs.directory.path
