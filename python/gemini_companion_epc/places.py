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
from asyncio import StreamReader, StreamWriter, SubprocessTransport
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias

from .clients import CLIENTS
from .config import new_token
from .exceptions import EmacsError, MalformedArgument
from .types import Facts, clean

logger = logging.getLogger(__name__)

Address: TypeAlias = tuple[str, int]
Report: TypeAlias = Callable[[Facts], None]
Flush: TypeAlias = Callable[[], Awaitable[None]]

OUTPOST = "outpost-base64"
"""The word in a command that stands for the program of the outpost."""

_SOURCE = Path(__file__).with_name("outpost.js")
_PROGRAM = base64.b64encode(_SOURCE.read_bytes()).decode()
_LARGEST_FILE = 20 * 1024 * 1024
_LONGEST_LINE = 32 * 1024 * 1024
_MOST_CONNECTIONS = 256
_CHUNK = 64 * 1024
_GREETING = b"gemini-companion-outpost"
_SILENCE = 45
_END = 1
_KILLED = 10
_DELAYS = (0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30)
_LONG_LIFE = 60
_VERSION = re.compile(r"\d+\.\d+\.\d+", re.ASCII)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Place:
    """A place, whose outpost is started again when it has ended.

    ``wanted`` is the description by Emacs; ``report`` is called with facts for Emacs.
    """

    def __init__(self, wanted: Facts, server_port: int, report: Report) -> None:
        self.name: str = wanted["name"]
        self.mirror: str = wanted["mirror"]
        self.token: str = wanted.get("token") or new_token()
        self._writers: dict[int, StreamWriter] = {}
        """By their numbers, the connections that the outpost carries."""
        self._wanted = wanted
        self._server_port = server_port
        self._report_to_emacs = report
        self._pairs = [*(wanted.get("shared") or ()), ("/", self.mirror)]
        self._facts: Facts = {"port": wanted.get("port") or 0}
        self._stdin: StreamWriter | None = None
        """The input of the outpost, or None if it does not run."""
        self._asked: dict[str, asyncio.Future[str]] = {}
        """The last request for each file that has a copy, if the file exists."""
        self._answers: dict[tuple[str, int], asyncio.Future[str]] = {}
        """By kind and number of each request, what will be wrong, or ""."""
        self._numbers = count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._life = asyncio.create_task(self._live())

    # Names

    def here(self, path: str) -> str:
        """Return the name here of the file ``path`` there.

        Raise MalformedArgument unless it is absolute and without dots.
        """
        here = _moved(path, self._pairs)
        if here is None or posixpath.normpath(path) != path or "\0" in path:
            raise MalformedArgument("filePath must be an absolute path without dots")
        names = here, *(directory for _, directory in self._pairs)
        true_name, *tops = (Path(os.path.realpath(one)) for one in names)
        if any(true_name.is_relative_to(top) for top in tops):
            return here
        # A link in a directory that is the same may lead to another file there.
        return self.mirror + path

    def there(self, path: str) -> str | None:
        """Return the name there of the file ``path`` here, or None."""
        return _moved(path, [(here, there) for there, here in self._pairs])

    # Files

    async def update(self, path: str, *text: str | None) -> None:
        """Copy the file ``path`` into the mirror, and keep the copy up to date.

        Before, write ``text``, in base64, to the file, or delete it if that is None.
        Raise EmacsError if that fails, or the file cannot be read.
        """
        if _is_below(self.here(path), self.mirror):
            # Systems delete old files from the temporary directory.
            os.makedirs(self.mirror, 0o700, exist_ok=True)
            self._asked[path] = self._request("F", path, *text)
            if problem := await self._asked[path]:
                raise EmacsError(problem)

    def _store(self, facts: Facts) -> str:
        """Write or delete the copy of a file that was sent; return a problem or "".

        The name of a symbolic link there becomes one here.
        """
        # A link could replace one of its directories if that is the same there.
        name = Path(self.mirror + facts["path"])
        text = facts.get("text")
        try:
            if text is None:
                name.unlink(missing_ok=True)
            else:
                self.here(facts["true"])
                copy = Path(self.mirror + facts["true"])
                # It fails if Emacs has deleted the mirror meanwhile.
                draft = Path(self.mirror, ".draft")
                draft.write_bytes(base64.b64decode(text))
                os.utime(draft, ns=(time := int(facts["mtime"] * 1e6), time))
                for one in (copy, name):
                    one.parent.mkdir(parents=True, exist_ok=True)
                os.replace(draft, copy)
                if name != copy and os.path.realpath(name) != str(copy):
                    name.unlink(missing_ok=True)
                    name.symlink_to(copy)
        except OSError as error:
            return f"cannot be copied: {error.strerror or error}"
        return ""

    # The life of the outpost

    def connect_from(self, directories: Sequence[str]) -> bool:
        """Serve CLIs in ``directories``, and report to Emacs.

        Return False if no outpost runs, and none will be started again.
        """
        self._wanted["directories"] = directories
        if self._stdin is not None:
            self._greet()
        return not self._life.done()

    def stop(self) -> "asyncio.Task[None]":
        """End the outpost soon; return the task that ends then."""
        self._life.cancel()
        return self._life

    async def _live(self) -> None:
        delays = iter(_DELAYS)
        now = asyncio.get_running_loop().time
        while True:
            began = now()
            problem = await self._run_once()
            logger.info("The outpost of a place has ended: %s", problem)
            if now() - began > _LONG_LIFE:
                delays = iter(_DELAYS)
            delay = next(delays, None) if "home" in self._facts else None
            self._report("ended" if delay is None else "lost", problem)
            if delay is None:
                return
            await asyncio.sleep(delay)

    def _report(self, state: str, problem: str = "") -> None:
        facts = {"name": self.name, "token": self.token, "state": state}
        self._report_to_emacs({"roots": [], **self._facts, **facts, "problem": problem})

    async def _run_once(self) -> str:
        """Run an outpost until it ends, and return why it did."""
        command = [one.replace(OUTPOST, _PROGRAM) for one in self._wanted["command"]]
        loop = asyncio.get_running_loop()
        try:
            transport, streams = await loop.subprocess_exec(
                lambda: SubprocessStreamProtocol(_CHUNK, loop), *command
            )
        except OSError as error:
            return f"cannot run {command[0]}: {error.strerror or error}"
        process = Process(transport, streams, loop)
        assert process.stdout is not None
        assert process.stderr is not None
        errors = asyncio.create_task(_error(process.stderr))
        problem = ""
        try:
            async for line in _lines(process.stdout):
                if self._stdin is not None:
                    await self._handle(*json.loads(line))
                elif line == _GREETING:  # the shell there may print others before
                    self._stdin = process.stdin
                    self._greet()
        except asyncio.TimeoutError:
            problem = "no answer"
        except OSError:
            pass
        except Exception as error:  # whatever the other host has sent
            logger.warning("Malformed output of an outpost: %r", error)
            problem = "malformed output"
        finally:
            self._stdin = None
            self._drop()
            end = asyncio.create_task(_end(process, transport, errors))
            try:
                await asyncio.shield(end)
            finally:
                # If `stop` has cancelled that, it is not yet done.
                await end
        words = filter(None, (problem, await errors))
        return ": ".join(words) or f"exit status {process.returncode}"

    async def is_alive(self) -> bool:
        """Wait for a sign of life; return False if the connection is lost."""
        return self._stdin is not None and not await self._request("P")

    def _drop(self) -> None:
        """Close the connections, and give up what the outpost has not answered."""
        for writer in self._writers.values():
            writer.transport.abort()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_result(f"the connection to {self.name} was lost")
        self._answers.clear()

    def _greet(self) -> None:
        """Send what the outpost needs, again when it has changed."""
        clients = [client.elsewhere(self.token) for client in CLIENTS]
        self._request(
            "H",
            {
                "directories": self._wanted["directories"],
                "clients": clients,
                "limit": _LARGEST_FILE,
                "port": self._facts["port"],
            },
        )

    # Lines

    def _send(self, *line: object) -> None:
        if self._stdin is None:
            raise EmacsError(f"{self.name} is not connected")
        self._stdin.write(json.dumps(line).encode() + b"\n")

    def _request(self, kind: str, *data: object) -> asyncio.Future[str]:
        """Send a request, and return the future of its problem, or ""."""
        number = next(self._numbers)
        self._send(kind, number, *data)
        answer = asyncio.get_running_loop().create_future()
        self._answers[kind, number] = answer
        return answer

    def _answer(self, kind: str, number: int, problem: str = "") -> bool:
        """Answer a request with ``problem``; return whether it awaits an answer."""
        answer = self._answers.pop((kind, number), None)
        if answer is not None and not answer.done():
            answer.set_result(problem)
        return answer is not None

    async def _handle(self, kind: str, key: Any = None, data: Any = None) -> None:
        if kind == "O":
            await self._open(key)
        elif kind == "D" and key in self._writers:
            self._writers[key].write(base64.b64decode(data))
            with suppress(OSError):
                await self._writers[key].drain()
        elif kind == "C" and key in self._writers:
            self._writers[key].close()
        elif kind == "F" and key["path"] in self._asked:
            problem = _shown(str(key.get("problem", "")))
            last = self._asked[key["path"]]
            # Before a later request is answered, this may be an earlier text.
            if last.done() or last is self._answers.get(("F", data)):
                problem = await asyncio.to_thread(self._store, key) or problem
            self._answer("F", data, problem)
        elif kind == "H" and self._answer("H", data):
            # Others could keep Emacs busy.
            self._know(key)
        elif kind == "P" and not self._answer("P", data):
            # The outpost ends when it hears nothing.
            self._send("P")

    def _know(self, sent: Facts) -> None:
        """Take the facts that the outpost has ``sent``, and ask for files of roots."""
        roots, home, versions = sent["roots"], sent["home"], sent["versions"]
        # The answer to a greeting may be older than some directories.
        directories = [one for one in self._wanted["directories"] if one in roots]
        tops = {root for name in directories if (root := roots[name])}
        for path in (home, *tops):
            self.here(path)
        port = int(sent["port"])
        if self._facts["port"] not in (0, port):
            # The program that has the previous port there may have got the token.
            self._facts["port"] = port
            self.token = new_token()
            self._greet()
            return
        names = [client.name for client in CLIENTS if client.name in versions]
        self._facts = {
            "port": port,
            "pid": int(sent["pid"]),
            "node": _version(sent["node"]),
            **{key: _shown(sent[key]) for key in ("home", "tmp")},
            "container": bool(sent["container"]),
            "problems": [_shown(one) for one in sent["problems"][: len(CLIENTS)]],
            "versions": [[name, _version(versions[name])] for name in names],
            "roots": [[name, roots[name]] for name in directories],
        }
        files = {
            posixpath.join(top, name.removeprefix("~/"))
            for name in self._wanted.get("files") or ()
            for top in ([home] if name.startswith("~/") else tops)
        }
        # Those of the previous outpost may have changed since.
        asked = [self.update(path) for path in files | self._asked.keys()]
        copied = asyncio.gather(*asked, return_exceptions=True)
        copied.add_done_callback(self._connected)

    def _connected(self, _: object) -> None:
        if self._stdin is not None:
            self._report("connected")

    # Connections

    async def _open(self, number: int) -> None:
        """Connect a connection there to the server of this process."""
        if number in self._writers or len(self._writers) >= _MOST_CONNECTIONS:
            raise ValueError("too many connections")
        reader, writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        self._writers[number] = writer
        task = asyncio.create_task(self._carry_back(number, reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_back(
        self, number: int, reader: StreamReader, writer: StreamWriter
    ) -> None:
        with suppress(OSError, EmacsError):
            while data := await reader.read(_CHUNK):
                self._send("D", number, base64.b64encode(data).decode())
                if self._stdin is not None:
                    await self._stdin.drain()
            self._send("C", number)
        writer.close()
        self._writers.pop(number, None)

    def carries(self, address: Address) -> bool:
        """Return whether a connection from ``address`` here comes from there."""
        writers = self._writers.values()
        return any(one.get_extra_info("sockname") == address for one in writers)


class Places:
    """All remote places, by name; ``report`` is called with facts about one."""

    def __init__(self, server_port: int, report: Report) -> None:
        self._server_port = server_port
        self._report = report
        self._all: dict[str, Place] = {}
        self._ends: set[asyncio.Task[None]] = set()

    def start(self, wanted: Facts) -> None:
        """Connect the place that Emacs describes, from more directories if it is."""
        name, directories = wanted["name"], wanted["directories"]
        if name not in self._all or not self._all[name].connect_from(directories):
            self._all[name] = Place(wanted, self._server_port, self._report)

    def get(self, name: str) -> Place | None:
        """Return the place ``name``, if it has been started."""
        return self._all.get(name)

    def stop(self, name: str, flush: Flush | None = None) -> None:
        """Disconnect the place ``name``.

        Call ``flush`` before, which writes what its CLIs are waiting for.
        """
        if place := self._all.pop(name, None):
            end = asyncio.create_task(self._finish(place, flush))
            self._ends.add(end)
            end.add_done_callback(self._ends.discard)

    async def _finish(self, place: Place, flush: Flush | None) -> None:
        if flush is not None:
            await flush()
            # The outpost answers after it has passed on what was written.
            await asyncio.wait([asyncio.create_task(place.is_alive())], timeout=_END)
        await asyncio.wait([place.stop()])

    async def stop_all(self) -> None:
        """Disconnect all places."""
        for name in list(self._all):
            self.stop(name)
        await asyncio.gather(*self._ends, return_exceptions=True)

    def name_for(self, place: Place | None, path: str) -> str | None:
        """Return the name in ``place`` of the file ``path`` in Emacs, or None."""
        if place is not None:
            return place.there(path)
        mirrors = [one.mirror for one in self._all.values()]
        return None if any(_is_below(path, one) for one in mirrors) else path

    def of_address(self, address: Address) -> Place | None:
        """Return the place that a connection from ``address`` comes from."""
        places = self._all.values()
        return next((place for place in places if place.carries(address)), None)


async def _lines(stream: StreamReader) -> AsyncIterator[bytearray]:
    """Yield the lines of ``stream``; a long one takes its time, if data arrives."""
    loop = asyncio.get_running_loop()
    line = bytearray()
    while True:
        # Up to Python 3.11, `asyncio.wait_for` may ignore that it is cancelled.
        late = asyncio.TimeoutError()
        timer = loop.call_later(_SILENCE, stream.set_exception, late)
        try:
            data = await stream.read(_CHUNK)
        finally:
            timer.cancel()
        if not data:
            return
        *ends, data = data.split(b"\n")
        for end in ends:
            yield line + end
            line.clear()
        line += data
        if len(line) > _LONGEST_LINE:
            raise ValueError("too long a line")


async def _end(
    process: Process, transport: SubprocessTransport, errors: asyncio.Task[str]
) -> None:
    """End ``process``, by the end of its input if it can."""
    assert process.stdin is not None
    process.stdin.close()
    end = asyncio.create_task(process.wait())
    await asyncio.wait([end, errors], timeout=_END)
    # Output that is no longer read, or that another process may write, keeps `wait`
    # from returning.
    with suppress(PermissionError):  # of a process of sudo
        transport.close()
    await asyncio.wait([end], timeout=_KILLED)


async def _error(stream: StreamReader) -> str:
    """Return the line of ``stream`` that has an error, or the last, for the user."""
    last = ""
    while piece := await stream.read(_CHUNK):
        last = (last + piece.decode(errors="replace"))[-1000:]
    lines = [line for one in last.splitlines() if (line := _shown(one))]
    return next((line for line in lines if "Error" in line), "".join(lines[-1:]))


def _shown(text: str) -> str:
    """Return ``text``, which came from a place, for a message."""
    return _CONTROLS.sub(" ", clean(text)).strip()[:200]


def _version(text: str) -> str:
    """Return ``text`` without what Emacs cannot compare, such as "-nightly"."""
    found = _VERSION.match(text)
    return found[0] if found else "0"


def _is_below(path: str, directory: str) -> bool:
    """Return whether ``path`` is ``directory`` or below it."""
    return PurePosixPath(path).is_relative_to(directory)


def _moved(path: str, pairs: Iterable[Sequence[str]]) -> str | None:
    """Return the name of the file ``path`` by the first of ``pairs`` that has it."""
    for old, new in pairs:
        if _is_below(path, old):
            return str(PurePosixPath(new, PurePosixPath(path).relative_to(old)))
    return None
