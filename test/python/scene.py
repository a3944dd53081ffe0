# SPDX-License-Identifier: GPL-3.0-or-later
"""The diffs and the sessions with the stub of an Emacs, in an event loop."""

import asyncio
import json
import os
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from fake_cli import BOUND
from gemini_companion_epc.clients import CLIENTS
from gemini_companion_epc.companion import COMPANION
from gemini_companion_epc.config import Config
from gemini_companion_epc.diffs import Diffs
from gemini_companion_epc.emacs import Emacs
from gemini_companion_epc.hosts import Hosts
from gemini_companion_epc.protocol import Protocol
from gemini_companion_epc.sessions import Session, Sessions, Stream
from gemini_companion_epc.types import (
    CloseReason,
    Diff,
    EmacsError,
    Facts,
    File,
    Process,
)


async def never() -> Any:
    await asyncio.Event().wait()


async def nothing() -> None:
    """Do nothing."""


class StubEmacs(Emacs):
    """An Emacs that only records the calls."""

    def __init__(self) -> None:
        self.opened: list[Diff] = []
        self.closed: list[tuple[int, CloseReason]] = []
        self.sessions: list[list[str]] = []
        self.reported: defaultdict[str, list[Any]] = defaultdict(list)
        self.written = self.reported["outcome-written"]
        self.undelivered = self.reported["outcome-undelivered"]
        self.acknowledged = self.reported["diff-opened"]
        self.warnings: list[str] = []
        self.texts: dict[int, str | None] = {}
        self.asked: list[tuple[str, Any, Sequence[str | None]]] = []
        self.on_question: Callable[[], Awaitable[Facts]] = never
        self.is_gone = self.is_silent = False
        self.before_answer: Callable[[int], None] = lambda diff_id: None
        self.before_opening: Callable[[], Awaitable[object]] = nothing

    async def open_diff(self, diff: Diff, session: Facts) -> None:
        self.facts = session
        self.opened.append(diff)
        await self.before_opening()

    async def close_diff(self, diff_id: int, reason: CloseReason) -> str | None:
        self.closed.append((diff_id, reason))
        if self.is_gone:
            raise EmacsError("gone")
        if self.is_silent:
            await never()
        self.before_answer(diff_id)
        return self.texts.get(diff_id)

    async def ask(self, kind: str, facts: Facts, parts: Sequence[str | None]) -> Facts:
        self.asked.append((kind, facts, parts))
        return dict(await self.on_question())

    def asked_of(self, *kinds: str) -> list[str]:
        """Return which of ``kinds`` were asked, in order.

        Between them, a snapshot may ask, such as which files were saved.
        """
        return [kind for kind, *_ in self.asked if kind in kinds]

    async def ping(self) -> None:
        if self.is_silent:
            await never()

    def report(self, name: str, *args: Any) -> None:
        fact = args[0]
        if name == "sessions-update":
            self.sessions.append([session["id"] for session in fact])
        else:
            self.reported[name].append(fact)

    def warn(self, message: str) -> None:
        self.warnings.append(message)


class Rig:
    """The parts between HTTP and EPC, with a stub for Emacs."""

    def __init__(self, http_port: int = 0, **fields: Any) -> None:
        config = Config(**{"secret": "s", "emacs_pid": os.getpid(), **fields})
        self.config = config
        self.emacs = StubEmacs()
        self.find_process: Callable[[Any], Process | None] = lambda peer: None
        self.remote_facts: list[dict[str, Any]] = self.emacs.reported["remote-update"]
        self.hosts = Hosts(
            http_port,
            self.remote_facts.append,
            lambda name: self.diffs.reviewed(name),
        )
        self.sessions = Sessions(
            config,
            lambda peer: self.find_process(peer),
            self.emacs.report,
            self.hosts.remote_name,
            lambda session, reason: self.diffs.abandon(session, reason),
        )
        self.diffs = Diffs(config, self.emacs, self.sessions, self.hosts)

    def session(self, protocol: Protocol = COMPANION) -> tuple[Session, Stream]:
        client = replace(CLIENTS[0], protocol=protocol)
        session = self.sessions.open(uuid4().hex, client)
        return session, self.sessions.open_stream(session)


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


def tick(root: Path) -> None:
    """Wait until what is written is later than what was written before.

    Times at which files were made are told apart by 10 ms.
    """
    clock = Path(f"{root}.clock")
    clock.write_bytes(b"1")
    later = clock.stat().st_mtime_ns + 12_000_000
    while clock.stat().st_mtime_ns < later:
        time.sleep(0.004)
        clock.write_bytes(b"1")
    clock.unlink()
