# SPDX-License-Identifier: GPL-3.0-or-later
"""Remote places: where CLIs run that are not on this host.

The outpost, the program ``outpost.js``, runs in a place while Emacs is connected to
it.  A file of a place has two names: one there, and one here.  The latter is in the
mirror, a private directory in which copies are kept up to date, or in a directory
that is the same there and here.

Everything runs in the event loop.  This module depends neither on HTTP nor on EPC.
"""

import asyncio
import base64
import json
import logging
import os
import posixpath
import re
import shutil
from asyncio import StreamReader
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeAlias

from .clients import CLIENTS, IDE_INFO, bearers
from .config import Config, new_token
from .exceptions import EmacsError, MalformedArgument
from .types import Facts, clean

logger = logging.getLogger(__name__)

Address: TypeAlias = tuple[str, int]
Report: TypeAlias = Callable[[Facts], None]
Incoming: TypeAlias = "asyncio.Queue[bytes | None]"

OUTPOST = "outpost-base64"
"""The word in a command that stands for the program of the outpost."""

_LARGEST_FILE = 20 * 1024 * 1024
_LARGEST_FRAME = 72 * 1024 * 1024
_LARGEST_NOISE = 1024 * 1024
_CHUNK = 64 * 1024
_GREETING = b"gemini-companion-outpost\n"
_PORT_TRIES = 60
_PING = 15
_DELAYS = (0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


@dataclass(frozen=True)
class Spec:
    """The description of a place by Emacs."""

    name: str
    """The prefix of the names of its files in Emacs."""
    command: tuple[str, ...]
    """The command that starts the outpost; `OUTPOST` stands for the program."""
    mirror: str
    directories: tuple[str, ...] = ()
    """Directories there from which the user wants to connect a CLI."""
    files: tuple[str, ...] = ()
    """Names of files that are copied if they are in a workspace root."""
    shared: tuple[tuple[str, str], ...] = ()
    """The directories that are the same there and here."""
    port: int = 0
    """The port of the previous outpost, or 0."""
    token: str = field(default_factory=new_token, repr=False)


class Place:
    """A place, whose outpost is started again when it has ended.

    ``report`` is called with the facts about the place for Emacs.
    """

    def __init__(
        self, spec: Spec, config: Config, server_port: int, report: Report
    ) -> None:
        self.name = spec.name
        self.mirror = spec.mirror
        self.token = spec.token
        self.bearers = bearers(spec.token)
        self.addresses: set[Address] = set()
        """The addresses here of the connections that the outpost carries."""
        self._spec = spec
        self._config = config
        self._server_port = server_port
        self._report_to_emacs = report
        self._directories = list(spec.directories)
        self._pairs = sorted(
            [*spec.shared, ("/", spec.mirror)], key=lambda pair: -len(pair[0])
        )
        self._facts: Facts = {"port": spec.port}
        self._process: Process | None = None
        self._numbers = count(1)
        self._awaited: dict[int, asyncio.Future[Facts]] = {}
        self._carried: dict[int, tuple[Incoming, asyncio.Task[None]]] = {}
        self.has_ended = False
        self._is_ending = False
        self._heard = 0.0
        self._life = asyncio.get_running_loop().create_task(self._live())

    # Names

    def here(self, path: str) -> str:
        """Return the name here of the file ``path`` there.

        Raise MalformedArgument unless it is absolute and without dots.
        """
        if not path.startswith("/") or posixpath.normpath(path) != path or "\0" in path:
            raise MalformedArgument("filePath must be an absolute path without dots")
        for there, here in self._pairs:
            if _is_below(path, there):
                return _joined(here, path[len(there) :])
        raise AssertionError("every path is below /")

    def there(self, path: str) -> str | None:
        """Return the name there of the file ``path`` here, or None."""
        for there, here in self._pairs:
            if _is_below(path, here):
                return _joined(there, path[len(here) :].replace(os.sep, "/"))
        return None

    def copies(self, path: str) -> bool:
        """Return whether the file ``path`` there has a copy in the mirror."""
        return _is_below(self.here(path), self.mirror)

    # Files

    async def fetch(self, path: str) -> None:
        """Copy the file ``path`` into the mirror, and keep the copy up to date.

        Raise EmacsError if it cannot be read.
        """
        if self.copies(path):
            facts = await self._ask(path)
            if problem := facts.get("problem"):
                raise EmacsError(_shown(str(problem)))

    async def _ask(self, path: str) -> Facts:
        number = next(self._numbers)
        answer = asyncio.get_running_loop().create_future()
        self._awaited[number] = answer
        try:
            self._send(b"R", number, path.encode())
            return await asyncio.wait_for(answer, self._config.diff_limit)
        except asyncio.TimeoutError:
            raise EmacsError(f"{self.name} does not answer") from None
        finally:
            del self._awaited[number]

    def _store(self, body: bytes) -> Facts:
        """Write the copy of a file that the outpost has sent; return its facts."""
        line, _, content = body.partition(b"\n")
        facts: Facts = json.loads(line)
        try:
            copy = Path(self.here(facts["path"]))
            if facts.get("problem") or not self.copies(facts["path"]):
                return facts
            if facts.get("absent"):
                copy.unlink(missing_ok=True)
                return facts
            copy.parent.mkdir(parents=True, exist_ok=True)
            draft = Path(self.mirror, ".draft")
            draft.write_bytes(content)
            os.utime(draft, ns=(time := int(facts["mtime"] * 1e6), time))
            os.replace(draft, copy)
        except (MalformedArgument, OSError) as error:
            facts["problem"] = f"cannot be copied: {error}"
        return facts

    # The life of the outpost

    def add(self, directories: Iterable[str]) -> None:
        """Let CLIs connect from ``directories``, too, and report to Emacs."""
        self._directories += [
            one for one in directories if one not in self._directories
        ]
        if self._process is not None:
            self._greet()

    async def stop(self) -> None:
        """End the outpost, and wait for its end, but not for long."""
        self._is_ending = True
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        await asyncio.wait([self._life], timeout=self._config.end_limit)
        self._life.cancel()
        with suppress(asyncio.CancelledError):
            await self._life

    async def _live(self) -> None:
        delays = iter(_DELAYS)
        while True:
            problem = await self._run_once()
            if self._is_ending:
                return
            logger.info("The outpost of a place has ended: %s", problem)
            if self._facts.get("roots"):
                delays = iter(_DELAYS)
            delay = next(delays, None) if "home" in self._facts else None
            self.has_ended = delay is None
            state = "ended" if delay is None else "lost"
            self._facts = {**self._facts, "roots": {}}
            self._report(state, problem)
            if delay is None:
                return
            await asyncio.sleep(delay)

    def _report(self, state: str, problem: str = "") -> None:
        facts = {**self._facts, "name": self.name, "state": state, "token": self.token}
        roots = [[name, root] for name, root in self._facts.get("roots", {}).items()]
        self._report_to_emacs({**facts, "roots": roots, "problem": problem})

    async def _run_once(self) -> str:
        """Run an outpost until it ends, and return why it did."""
        program = base64.b64encode(Path(__file__).with_name("outpost.js").read_bytes())
        command = [one.replace(OUTPOST, program.decode()) for one in self._spec.command]
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_LARGEST_NOISE
            )
        except OSError as error:
            return f"cannot run {command[0]}: {error.strerror or error}"
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(_last_line(process.stderr))
        problem = ""
        try:
            await asyncio.wait_for(
                process.stdout.readuntil(_GREETING), self._config.place_limit
            )
            self._process = process
            self._greet()
            await self._receive(process.stdout)
        except asyncio.TimeoutError:
            problem = f"no answer in {self._config.place_limit:.0f} seconds"
        except (asyncio.IncompleteReadError, OSError):
            pass
        except (asyncio.LimitOverrunError, ValueError, KeyError, TypeError) as error:
            logger.warning("Malformed output of an outpost: %r", error)
            problem = "malformed output"
        finally:
            self._process = None
            self._drop()
            status = await _ended(process)
        with suppress(asyncio.TimeoutError):
            # A process that it has left may keep its stderr.
            problem = problem or await asyncio.wait_for(errors, 0.5)
        return problem or f"exit status {status}"

    def _drop(self) -> None:
        """Close the connections, and give up what the outpost has not answered."""
        for _, task in self._carried.values():
            task.cancel()
        for answer in self._awaited.values():
            if not answer.done():
                error = EmacsError(f"the connection to {self.name} was lost")
                answer.set_exception(error)

    def _greet(self) -> None:
        """Send what the outpost needs, again when it has changed."""
        facts = {
            "directories": self._directories,
            "clients": [
                {**client.elsewhere, "bearer": client.bearer(self.token)}
                for client in CLIENTS
            ],
            "ide": IDE_INFO,
            "limit": _LARGEST_FILE,
            "port": self._facts["port"] or self._server_port,
            "tries": _PORT_TRIES if self._facts["port"] else 1,
        }
        self._send(b"H", 0, json.dumps(facts).encode())

    # Frames

    def _send(self, kind: bytes, number: int, body: bytes = b"") -> None:
        if self._process is None or self._process.stdin is None:
            raise EmacsError(f"{self.name} is not connected")
        head = kind + number.to_bytes(4, "big") + len(body).to_bytes(4, "big")
        self._process.stdin.write(head + body)

    async def _receive(self, stream: StreamReader) -> None:
        pinging = asyncio.create_task(self._ping())
        try:
            while True:
                head = await stream.readexactly(9)
                number = int.from_bytes(head[1:5], "big")
                length = int.from_bytes(head[5:], "big")
                if length > _LARGEST_FRAME:
                    raise ValueError("frame too long")
                await self._handle(head[:1], number, await stream.readexactly(length))
                self._heard = asyncio.get_running_loop().time()
        finally:
            pinging.cancel()

    async def _ping(self) -> None:
        """End the process of the outpost when that answers no more."""
        clock = asyncio.get_running_loop().time
        self._heard = clock()
        while self._process is not None and clock() - self._heard < 3 * _PING:
            self._send(b"P", 0)
            await asyncio.sleep(_PING)
        if self._process is not None:
            self._process.kill()

    async def _handle(self, kind: bytes, number: int, body: bytes) -> None:
        if kind == b"O":
            queue: Incoming = asyncio.Queue(maxsize=256)
            task = asyncio.create_task(self._carry(number, queue))
            self._carried[number] = queue, task
        elif kind in (b"D", b"C"):
            if number in self._carried:
                await self._carried[number][0].put(body if kind == b"D" else None)
        elif kind == b"H":
            self._facts = {**self._facts, **json.loads(body)}
            for root in filter(None, self._facts["roots"].values()):
                for name in self._spec.files:
                    self._send(b"R", 0, posixpath.join(root, name).encode())
            # The answer comes after these files.
            self._send(b"P", 1)
        elif kind == b"P" and number == 1:
            self._report("connected")
        elif kind == b"F":
            facts = await asyncio.to_thread(self._store, body)
            answer = self._awaited.get(number)
            if answer is not None and not answer.done():
                answer.set_result(facts)

    # Connections

    async def _carry(self, number: int, incoming: Incoming) -> None:
        """Connect a connection there to the server of this process."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        address = writer.get_extra_info("sockname")
        self.addresses.add(address)
        back = asyncio.create_task(self._carry_back(number, reader))
        try:
            while (data := await incoming.get()) is not None:
                with suppress(OSError):
                    writer.write(data)
                    await writer.drain()
        finally:
            back.cancel()
            writer.close()
            del self._carried[number]
            self.addresses.discard(address)

    async def _carry_back(self, number: int, reader: StreamReader) -> None:
        with suppress(OSError, EmacsError):
            while data := await reader.read(_CHUNK):
                self._send(b"D", number, data)
                if self._process is not None and self._process.stdin is not None:
                    await self._process.stdin.drain()
            self._send(b"E", number)


class Places:
    """All remote places, by name; ``report`` is called with facts about one."""

    def __init__(self, config: Config, server_port: int, report: Report) -> None:
        self._config = config
        self._server_port = server_port
        self._report = report
        self._all: dict[str, Place] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def start(self, spec: Spec) -> None:
        """Connect the place of ``spec``, or let CLIs connect from more directories."""
        if spec.name in self._all and not self._all[spec.name].has_ended:
            self._all[spec.name].add(spec.directories)
        else:
            place = Place(spec, self._config, self._server_port, self._report)
            self._all[spec.name] = place

    def stop(self, name: str) -> None:
        """Disconnect the place ``name``."""
        if place := self._all.pop(name, None):
            task = asyncio.create_task(place.stop())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def stop_all(self, is_last: bool) -> None:
        """Disconnect all places, and delete the copies unless a process follows."""
        await asyncio.gather(*(place.stop() for place in self._all.values()))
        for place in self._all.values():
            if is_last:
                shutil.rmtree(place.mirror, ignore_errors=True)

    def name_for(self, place: Place | None, path: str) -> str | None:
        """Return the name in ``place`` of the file ``path`` in Emacs, or None."""
        if place is not None:
            return place.there(path)
        return None if self.of_copy(path)[0] else path

    def of_address(self, address: Address) -> Place | None:
        """Return the place that a connection from ``address`` comes from."""
        for place in self._all.values():
            if address in place.addresses:
                return place
        return None

    def of_copy(self, path: str) -> tuple[Place | None, str]:
        """Return the place whose mirror has ``path``, and the name there."""
        for place in self._all.values():
            name = place.there(path)
            if name is not None and place.copies(name):
                return place, name
        return None, path


async def _ended(process: Process) -> int:
    """End ``process`` if it does not by itself, and return its exit status."""
    with suppress(asyncio.TimeoutError):
        return await asyncio.wait_for(process.wait(), 0.5)
    with suppress(ProcessLookupError):
        process.kill()
    return await process.wait()


async def _last_line(stream: StreamReader) -> str:
    """Return the last line of ``stream`` for the user."""
    last = ""
    while piece := await stream.read(_CHUNK):
        last = (last + piece.decode(errors="replace"))[-1000:]
    lines = [_shown(line) for line in last.splitlines()]
    return next((line for line in reversed(lines) if line), "")


def _shown(text: str) -> str:
    """Return ``text``, which came from a place, for a message."""
    return _CONTROLS.sub(" ", clean(text)).strip()[:200]


def _is_below(path: str, directory: str) -> bool:
    """Return whether ``path`` is ``directory`` or below it."""
    return (path + os.sep).startswith(directory.rstrip("/") + os.sep)


def _joined(directory: str, rest: str) -> str:
    return directory.rstrip("/") + "/" + rest.lstrip("/") if rest else directory
