# SPDX-License-Identifier: GPL-3.0-or-later
"""An event loop in a thread; the EPC endpoint in one, and the connections to it."""

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from fake_cli import BOUND
from fake_emacs import EpcClient
from gemini_companion_epc import __version__
from gemini_companion_epc.config import Config
from gemini_companion_epc.emacs import Emacs
from gemini_companion_epc.types import Diff

Result = TypeVar("Result")

SECRET = "the secret"
SESSION = {"id": "session", "pid": 12}

METHODS = "roots-update", "diff-accepted", "diff-rejected", "stop", "disconnected"


class Loop:
    def __init__(self) -> None:
        ready: Future[None] = Future()
        main = self._run(ready)
        self._thread = threading.Thread(target=asyncio.run, args=(main,), daemon=True)
        self._thread.start()
        ready.result(BOUND)

    async def _run(self, ready: "Future[None]") -> None:
        self._loop = asyncio.get_running_loop()
        self._end = asyncio.Event()
        ready.set_result(None)
        await self._end.wait()

    def start(self, call: Coroutine[Any, Any, Result]) -> "Future[Result]":
        return asyncio.run_coroutine_threadsafe(call, self._loop)

    def run(self, call: Coroutine[Any, Any, Result]) -> Result:
        return self.start(call).result(BOUND)

    def do(self, function: Callable[..., Result], *args: Any) -> Result:
        async def call() -> Result:
            return function(*args)

        return self.run(call())

    def end(self) -> None:
        self.do(self._end.set)
        self._thread.join(BOUND)
        assert not self._thread.is_alive()


class Endpoint(Loop):
    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self.taken: queue.Queue[tuple[Any, ...]] = queue.Queue()
        self.emacs = Emacs(Config(secret=SECRET, emacs_pid=1, **fields))
        self.clients: list[EpcClient] = []
        hello = {"version": __version__, "port": 1, "token": "t", "discovery": None}
        methods = {name: partial(self._take, name) for name in METHODS}
        self.port = self.run(
            self.emacs.listen({"hello": lambda: hello, "late": _late, **methods})
        )

    def _take(self, name: str, *args: Any) -> None:
        self.taken.put((name, *args))

    def next(self) -> tuple[Any, ...]:
        return self.taken.get(timeout=BOUND)

    def open(self, diff: Diff) -> "Future[None]":
        return self.start(self.emacs.open_diff(diff, SESSION))

    def connect(self) -> EpcClient:
        self.clients.append(EpcClient(self.port))
        return self.clients[-1]

    def peer(self) -> EpcClient:
        epc = self.connect()
        epc.call("hello", SECRET, __version__)
        return epc

    def close(self) -> None:
        self.run(self.emacs.close())
        for epc in self.clients:
            epc.close()
        self.end()


async def _late(text: str) -> str:
    await asyncio.sleep(0)
    return text.upper()


def diff_of(text: str) -> Diff:
    return Diff(1, "session", "/a", text)
