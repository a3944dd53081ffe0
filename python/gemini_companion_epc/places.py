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
from .types import EmacsError, Facts, MalformedArgument, clean

logger = logging.getLogger(__name__)

Address: TypeAlias = tuple[str, int]
Report: TypeAlias = Callable[[Facts], None]
Flush: TypeAlias = Callable[[], Awaitable[None]]

OUTPOST = "outpost-base64"
"""The word in a command that stands for the program of the outpost."""

_SOURCE = Path(__file__).with_name("outpost.js")
_PROGRAM = base64.b64encode(_SOURCE.read_bytes()).decode()
_LARGEST_FILE = 20 * 1024 * 1024
_LARGEST_MIRROR = 200 * 1024 * 1024
_LONGEST_LINE = 32 * 1024 * 1024
_MOST_CONNECTIONS = 256
_CHUNK = 64 * 1024
_GREETING = b"gemini-companion-outpost"
_BEAT = 15
_SILENCE = 45
_FOLLOWED = 75
_END = 1
_KILLED = 10
_DELAYS = (0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30)
_LONG_LIFE = 60
_VERSION = re.compile(r"\d+\.\d+\.\d+", re.ASCII)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Place:
    """A place, whose outpost is started again when it has ended.

    ``wanted`` is the description by Emacs.
    """

    def __init__(self, wanted: Facts, places: "Places") -> None:
        self.name: str = wanted["name"]
        self.mirror: str = wanted["mirror"]
        self.token: str = wanted.get("token") or new_token()
        self._writers: dict[int, StreamWriter] = {}
        """By their numbers, the connections that the outpost carries."""
        self._wanted = wanted
        self._places = places
        self._files: Sequence[str] = wanted.get("files") or ()
        """Names of what decides what is shared, in a root or, with a tilde, at home."""
        self._pairs = [*(wanted.get("shared") or ()), ("/", self.mirror)]
        self._facts: Facts = {"port": wanted.get("port") or 0}
        self._stdin: StreamWriter | None = None
        """The input of the outpost, or None if it does not run."""
        # A previous server may have left some.
        copies = [one for one in Path(self.mirror).rglob("*") if one.is_file()]
        self._sizes = {
            str(one)[len(self.mirror) :]: one.stat().st_size for one in copies
        }
        """The size of each copy, the oldest first."""
        end = asyncio.get_running_loop().time() + _FOLLOWED
        self._followed = dict.fromkeys(self._sizes, end)
        """The files whose copies are kept up to date, and until when."""
        self._requests: dict[int, asyncio.Future[str]] = {}
        """By number of each request, what will be wrong, or ""."""
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

    async def update(self, path: str, *change: str | None) -> None:
        """Bring the copy of the file ``path`` up to date, and follow it for a while.

        Before, ``change`` the file: from a text with a SHA-256 to another one, in
        base64, or delete it if that is None.  Raise EmacsError if that fails, there is
        another text, or the file cannot be read.
        """
        if _is_below(self.here(path), self.mirror):
            # Systems delete old files from the temporary directory.
            os.makedirs(self.mirror, 0o700, exist_ok=True)
            self._followed[path] = asyncio.get_running_loop().time() + _FOLLOWED
            kind, data = ("W", change) if change else ("F", (self._stamp(path),))
            if problem := await self._request(kind, path, *data):
                raise EmacsError(problem)

    def _stamp(self, path: str) -> str:
        """Return the time and size of the copy of the file ``path``, or ""."""
        with suppress(OSError):
            found = os.stat(self.mirror + path)
            return f"{found.st_mtime_ns}-{found.st_size}"
        return ""

    async def _receive(self, sent: Facts, number: int) -> None:
        """Bring a copy up to date, and answer the request ``number``, if it is one."""
        self.here(sent["path"])
        problem = sent["problem"]
        is_same = sent["text"] is None and sent["stamp"] and not problem
        if not is_same and self._is_wanted(sent["path"]):
            problem = await asyncio.to_thread(self._store, sent) or problem
        self._answer(number, problem)
        self._send("A")

    def _is_wanted(self, path: str) -> bool:
        """Return whether the file ``path`` is followed, or decides what is shared."""
        names = tuple(f"/{name.removeprefix('~/')}" for name in self._files)
        return path in self._followed or path.endswith(names)

    def _store(self, sent: Facts) -> str:
        """Write or delete the copy of a file that was ``sent``; return a problem or "".

        The name of a symbolic link there becomes one here.
        """
        # A link could replace one of its directories if that is the same there.
        name, text = Path(self.mirror + sent["path"]), sent["text"]
        try:
            if text is None:
                name.unlink(missing_ok=True)
            else:
                self.here(sent["true"])
                copy = Path(self.mirror + sent["true"])
                self._make_room(sent["path"], max(len(text), 4096))
                # It fails if Emacs has deleted the mirror meanwhile.
                draft = Path(self.mirror, ".draft")
                draft.write_bytes(text)
                os.utime(draft, ns=(sent["time"], sent["time"]))
                for one in (copy, name):
                    one.parent.mkdir(parents=True, exist_ok=True)
                os.replace(draft, copy)
                if name != copy and os.path.realpath(name) != str(copy):
                    name.unlink(missing_ok=True)
                    name.symlink_to(copy)
        except (OSError, OverflowError) as error:
            return f"cannot be copied: {getattr(error, 'strerror', None) or error}"
        return ""

    def _make_room(self, path: str, size: int) -> None:
        """Delete the oldest copies that are not wanted, as ``path`` needs ``size``."""
        self._sizes.pop(path, None)
        excess = sum(self._sizes.values()) + size - _LARGEST_MIRROR
        for old in list(self._sizes):
            if excess > 0 and not self._is_wanted(old):
                Path(os.path.realpath(self.mirror + old)).unlink(missing_ok=True)
                excess -= self._sizes.pop(old)
        if excess > 0:
            raise OSError("too many files are being reviewed")
        self._sizes[path] = size

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
        self._places.report({"roots": [], **self._facts, **facts, "problem": problem})

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
        assert process.stderr is not None
        errors = asyncio.create_task(_error(process.stderr))
        try:
            problem = await self._serve(process)
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

    async def _serve(self, process: Process) -> str:
        """Handle what an outpost sends until it ends, and return what is wrong."""
        assert process.stdout is not None
        beat = asyncio.create_task(self._beat())
        try:
            async for line in _lines(process.stdout):
                if self._stdin is not None:
                    await self._handle(*_parsed(line))
                elif line == _GREETING:  # the shell there may print others before
                    self._stdin = process.stdin
                    self._greet()
        except asyncio.TimeoutError:
            return "no answer"
        except MalformedArgument as error:
            logger.warning("Malformed output of an outpost: %s", error)
            return "malformed output"
        except OSError:
            pass
        except Exception:
            logger.exception("The server failed at what an outpost has sent")
            return "an error in the server, see its log"
        finally:
            beat.cancel()
        return ""

    async def is_alive(self) -> bool:
        """Wait for a sign of life; return False if the connection is lost."""
        return self._stdin is not None and not await self._request("P")

    def _drop(self) -> None:
        """Close the connections, and give up what the outpost has not answered."""
        for writer in self._writers.values():
            writer.transport.abort()
        for number in list(self._requests):
            self._answer(number, f"the connection to {self.name} was lost")

    def _greet(self) -> None:
        """Send what the outpost needs, again when it has changed."""
        os.makedirs(self.mirror, 0o700, exist_ok=True)
        clients = [client.remote_description(self.token) for client in CLIENTS]
        settings = {
            "directories": self._wanted["directories"],
            "clients": clients,
            "files": self._files,
            "limit": _LARGEST_FILE,
            "port": self._facts["port"],
        }
        self._request("H", settings)

    # Lines

    def _send(self, *line: object) -> None:
        if self._stdin is None:
            raise EmacsError(f"{self.name} is not connected")
        self._stdin.write(json.dumps(line).encode() + b"\n")

    def _request(self, kind: str, *data: Any) -> asyncio.Future[str]:
        """Send a request, and return the future of its problem, or ""."""
        number = next(self._numbers)
        self._send(kind, number, *data)
        answer = asyncio.get_running_loop().create_future()
        self._requests[number] = answer
        return answer

    def _answer(self, number: int, problem: str = "") -> bool:
        """Answer a request with ``problem``; return whether it awaits an answer."""
        answer = self._requests.pop(number, None)
        if answer is not None and not answer.done():
            answer.set_result(problem)
        return answer is not None

    async def _beat(self) -> None:
        """Send signs of life, so that the outpost does not end."""
        while True:
            await asyncio.sleep(_BEAT)
            if self._stdin is not None:
                self._follow()

    def _follow(self) -> None:
        """Follow the reviewed files, and no longer those whose reviews ended before."""
        now = asyncio.get_running_loop().time()
        self._followed |= dict.fromkeys(self._places.reviewed(self), now + _FOLLOWED)
        old = [path for path, end in self._followed.items() if end < now]
        for path in old:
            del self._followed[path]
        self._send("P", 0, old)

    async def _handle(self, kind: str, key: Any, data: Any) -> None:
        if kind == "O":
            await self._open(key)
        elif kind == "D" and key in self._writers:
            self._writers[key].write(data)
            with suppress(OSError):
                await self._writers[key].drain()
        elif kind == "C" and key in self._writers:
            self._writers[key].close()
        elif kind == "F":
            await self._receive(key, data)
        elif kind == "H" and self._answer(data):
            # Others could keep Emacs busy.
            self._know(key)
        elif kind == "P":
            self._answer(data)

    def _know(self, sent: Facts) -> None:
        """Take the facts that the outpost has ``sent``, and follow the reviews."""
        roots, names = sent["roots"], self._wanted["directories"]
        for path in (sent["home"], *filter(None, roots.values())):
            self.here(path)
        # The answer to a greeting may be older than some directories.
        sent["roots"] = [[name, roots[name]] for name in names if name in roots]
        if self._facts["port"] not in (0, sent["port"]):
            # The program that has the previous port there may have got the token.
            self._facts["port"] = sent["port"]
            self.token = new_token()
            self._greet()
            return
        self._facts = sent
        self._report("connected")
        self._follow()
        # They may have changed since the previous outpost.
        for path in self._followed:
            self._request("F", path, self._stamp(path))

    # Connections

    async def _open(self, number: int) -> None:
        """Connect a connection there to the server of this process."""
        if number in self._writers or len(self._writers) >= _MOST_CONNECTIONS:
            self._send("C", number)
            return
        port = self._places.server_port
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
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
        self.server_port = server_port
        self.report = report
        self.reviewed: Callable[[Place], Iterable[str]] = lambda _: ()
        """Function that returns the files of a place that are being reviewed."""
        self._all: dict[str, Place] = {}
        self._ends: set[asyncio.Task[None]] = set()

    def start(self, wanted: Facts) -> None:
        """Connect the place that Emacs describes, from more directories if it is."""
        name, directories = wanted["name"], wanted["directories"]
        if name not in self._all or not self._all[name].connect_from(directories):
            self._all[name] = Place(wanted, self)

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


def _parsed(line: bytes | bytearray) -> tuple[str, Any, Any]:
    """Return the parts of ``line``; raise MalformedArgument if they are no line."""
    try:
        kind, key, data = ([*json.loads(line), None, None])[:3]
        if kind == "F":
            text = key.get("text")
            key = {
                "path": clean(key["path"]),
                "problem": _shown(key.get("problem", "")),
                "stamp": key["stamp"],
                "time": int(key["stamp"].partition("-")[0] or 0),
                "true": clean(key.get("true", "")),
                "text": None if text is None else base64.b64decode(text),
            }
        elif kind == "H":
            versions, roots = key["versions"], key["roots"]
            names = [client.name for client in CLIENTS if client.name in versions]
            key = {
                **{one: int(key[one]) for one in ("port", "pid")},
                **{one: _shown(key[one]) for one in ("home", "tmp")},
                "node": _version(key["node"]),
                "container": bool(key["container"]),
                "problems": [_shown(one) for one in key["problems"][: len(CLIENTS)]],
                "versions": [[name, _version(versions[name])] for name in names],
                "roots": {one: root and clean(root) for one, root in roots.items()},
            }
        elif kind != "P":
            key = int(key)
        data = base64.b64decode(data) if kind == "D" else int(data or 0)
    except Exception as error:  # whatever the other host has sent
        raise MalformedArgument(repr(error)) from None
    return kind, key, data


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
