# SPDX-License-Identifier: GPL-3.0-or-later
"""The diffs and the sessions with the stub of an Emacs, in an event loop."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from conftest import StubEmacs
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.config import Config
from gemini_companion_epc.diffs import Diffs
from gemini_companion_epc.remote import Remotes
from gemini_companion_epc.sessions import Session, Sessions, Stream
from gemini_companion_epc.types import Facts, File

BOUND = 120.0


class Rig:
    def __init__(self, **fields: Any) -> None:
        self.emacs = StubEmacs()
        self.remote_facts: list[Facts] = []
        config = Config(secret="s", emacs_pid=1, **fields)
        self.sessions = Sessions(
            config,
            lambda peer: None,
            self.emacs.report,
        )
        remotes = Remotes(0, self.remote_facts.append)
        self.diffs = Diffs(config, self.sessions, self.emacs, remotes)

    def stop(self) -> None:
        self.sessions.is_stopping = True
        self.diffs.reject_all()

    def session(self) -> tuple[Session, Stream]:
        session = self.sessions.get(uuid4().hex, CLIENTS[0])
        return session, self.sessions.open_stream(session)


Scene = Callable[[Rig], Awaitable[None]]


def run_scene(scene: Scene, **fields: Any) -> None:
    async def run() -> None:
        await asyncio.wait_for(scene(Rig(**fields)), BOUND)

    asyncio.run(run())


def in_loop(**fields: Any) -> Callable[[Scene], Callable[[], None]]:
    """Return a decorator that makes a scene a test, see `run_scene`."""

    def decorate(scene: Scene) -> Callable[[], None]:
        return lambda: run_scene(scene, **fields)

    return decorate


def context_of(path: str) -> list[File]:
    return [File(path, 1)]


def paths_of(event: dict[str, Any]) -> list[str]:
    assert event["method"] == "ide/contextUpdate"
    files = event["params"]["workspaceState"]["openFiles"]
    return [file["path"] for file in files]


async def take(stream: Stream) -> Any:
    """Return the next notification as (method, params), written at once."""
    event = await stream.next(BOUND)
    assert event is not None
    stream.written(event)
    message = json.loads(event.split(b"data: ")[1])
    return message["method"], message["params"]


def accepted(path: str, content: str) -> Any:
    return "ide/diffAccepted", {"filePath": path, "content": content}


def rejected(path: str) -> Any:
    return "ide/diffRejected", {"filePath": path}


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - most have no event
        await asyncio.sleep(0.001)
