# SPDX-License-Identifier: GPL-3.0-or-later
"""A remote host, where CLIs run; this module is imported for the first one.

An `Outpost` runs the program ``outpost.js`` on a host while Emacs is connected to it.
Its `Tunnel` carries connections, and its `Mirror` has copies of files, up to date.  A
file has a remote name, and a local name, which is in the mirror or in a directory that
both hosts share.
"""

import asyncio
import base64
import json
import logging
import os
import posixpath
import re
import tempfile
import time
from asyncio import StreamReader, StreamWriter, SubprocessTransport
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from enum import Enum
from itertools import count
from pathlib import Path, PurePosixPath
from secrets import token_urlsafe
from typing import TYPE_CHECKING, NamedTuple

from .clients import remote_clients
from .system import make_own_directory
from .types import (
    DEEPEST,
    LONGEST_NAME,
    Address,
    Facts,
    MalformedArgument,
    MirrorError,
    RemoteError,
    clean,
)

if TYPE_CHECKING:
    from .hosts import Hosts

logger = logging.getLogger(__name__)

OUTPOST = "outpost-base64"
"""The word in a command that stands for the program of the outpost."""

_SOURCE = Path(__file__).with_name("outpost.js")
_PROGRAM = base64.b64encode(_SOURCE.read_bytes()).decode()
_DRAFT = ".draft"
_BLOCK = 4096
_LARGEST_FILE = 20 * 1024 * 1024
_LARGEST_MIRROR = 200 * 1024 * 1024
_LONGEST_LINE = 32 * 1024 * 1024
_MOST_CONNECTIONS = 256
_CHUNK = 64 * 1024
_GREETING = b"gemini-companion-outpost\n"
_BEAT = 15
_SILENCE = 45
_FOLLOWED = 75
_CHANGE = 0.2
_END = 1
_KILLED = 10
_DELAYS = (0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30)
_LONG_LIFE = 60
_VERSION = re.compile(r"\d+\.\d+\.\d+", re.ASCII)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Kind(str, Enum):
    """The kinds of lines between an outpost and this process, as in outpost.js.

    A line is a JSON list of its kind and values.  Those to an outpost begin with the
    number of a request, which the answer repeats, or of a connection.
    """

    HELLO = "H"
    """To an outpost: its settings.  From one: the facts of its host."""
    ROOTS = "R"
    """From an outpost: the workspace roots, before the files of their rules."""
    OPEN = "O"
    """From an outpost: a CLI has opened a connection."""
    DATA = "D"
    """Both ways: data of a connection."""
    CLOSE = "C"
    """Both ways: the end of a connection."""
    FILE = "F"
    """To an outpost: send a file.  From one: its stamp, and its text if that is new."""
    WRITE = "W"
    """To an outpost: change a file, then send it."""
    ARRIVED = "A"
    """To an outpost: a file that was sent has arrived."""
    BEAT = "P"
    """Both ways: a sign of life; to an outpost, with files no longer followed."""


@dataclass
class Remote:
    """A remote host, as Emacs describes it; the command runs the outpost."""

    name: str
    mirror: str
    command: Sequence[str]
    directories: Sequence[str]
    """Remote directories from which CLIs may connect."""
    files: Sequence[str] = ()
    """Names of what decides what is shared, in a root or, with a tilde, at home."""
    shared: Sequence[tuple[str, str]] = ()
    """Pairs of names, remote and local, of directories that both hosts share."""
    token: str = ""
    port: int = 0

    @classmethod
    def of(cls, facts: Facts) -> "Remote":
        """Return the host that Emacs describes by ``facts``."""
        names = [slot.name for slot in fields(cls)]
        return cls(**{name: facts[name] for name in names if name in facts})


class SentFile(NamedTuple):
    """A file that the outpost has sent, without a text if the copy has its stamp."""

    path: str
    true_name: str
    problem: str
    stamp: str
    time: int
    text: bytes | None


class Copy(NamedTuple):
    """The copy of a file: a symbolic link if it has another true name there."""

    true_name: str
    size: int


class Mirror:
    """The names of the files of a host, and the copies that are followed.

    Only files that were asked for have a copy, at most one each, whatever true name the
    host gives them.
    """

    def __init__(self, remote: Remote) -> None:
        self.directory = remote.mirror
        self._files = remote.files
        self._pairs = [*remote.shared, ("/", self.directory)]
        self._rules: frozenset[str] = frozenset()
        """The files that decide what is shared, by their whole names."""
        self._copies: dict[str, Copy] = {}
        """The copies by the name that was asked for, the oldest first."""
        self.followed: dict[str, float] = {}
        """The files whose copies are kept up to date, and until when."""
        with suppress(MirrorError):
            self.check()
            self._adopt()

    def _adopt(self) -> None:
        """Follow the copies that a previous server has left."""
        top = len(self.directory)
        for path in Path(self.directory).rglob("*"):
            name, true_name = str(path)[top:], os.path.realpath(path)[top:]
            if name.startswith(f"/{_DRAFT}"):
                path.unlink(missing_ok=True)
            elif path.is_file():
                self._copies[name] = Copy(true_name, path.stat().st_size)
        self.follow(self._copies)

    def check(self) -> None:
        """Make the directory if it is missing, or raise MirrorError.

        Systems clean up temporary directories, and another user may then make it.
        """
        try:
            make_own_directory(Path(self.directory))
        except OSError as error:
            detail = error.strerror or error
            raise MirrorError(f"copies of its files cannot be made: {detail}") from None

    # Names

    def local_name(self, path: str) -> str:
        """Return the local name of ``path``, or raise MalformedArgument."""
        local_name = _moved(path, self._pairs)
        if local_name is None or posixpath.normpath(path) != path or "\0" in path:
            raise MalformedArgument("filePath must be an absolute path without dots")
        names = local_name, *(directory for _, directory in self._pairs)
        true_name, *tops = (Path(os.path.realpath(local)) for local in names)
        if any(true_name.is_relative_to(top) for top in tops):
            return local_name
        # A link in a shared directory may lead to another file on the other host.
        return self.directory + path

    def remote_name(self, path: str) -> str | None:
        """Return the remote name of the local file ``path``, or None."""
        name = _moved(path, [(local, remote) for remote, local in self._pairs])
        # It may be the name of another file there.
        return name if name and self.local_name(name) == path else None

    # Copies

    def set_roots(self, home: str, roots: Iterable[str]) -> None:
        """Want copies of the files of rules and settings in ``home`` and ``roots``."""
        self._rules = frozenset(
            posixpath.normpath(posixpath.join(top, name.removeprefix("~/")))
            for name in self._files
            for top in ([home] if name.startswith("~/") else roots)
        )

    def follow(self, paths: Iterable[str]) -> list[str]:
        """Follow the files ``paths`` for a while; return those that are no longer.

        Raise MirrorError if there can be no copies.
        """
        self.check()
        now = time.monotonic()
        self.followed |= dict.fromkeys(paths, now + _FOLLOWED)
        old = [path for path, end in self.followed.items() if end < now]
        for path in old:
            del self.followed[path]
        return old

    def stamp(self, path: str) -> str:
        """Return the time and size of the copy of the file ``path``, or ""."""
        with suppress(OSError):
            found = os.stat(self.directory + path)
            return f"{found.st_mtime_ns}-{found.st_size}"
        return ""

    def decides(self, path: str) -> bool:
        """Return whether ``path`` is a file of rules or settings in a root."""
        return path in self._rules

    def is_wanted(self, path: str) -> bool:
        """Return whether the file ``path`` is followed, or decides what is shared."""
        return path in self.followed or self.decides(path)

    def store(self, sent: SentFile) -> str:
        """Write or delete the copy of ``sent``; return a problem or "".

        The remote name in a symbolic link becomes a local one.  Raise MirrorError if
        there can be no copies.
        """
        self.check()
        try:
            if sent.text is None:
                self._drop(sent.path)
            else:
                self._write(sent, sent.text)
        except (OSError, OverflowError) as error:
            return f"cannot be copied: {getattr(error, 'strerror', None) or error}"
        return ""

    def _write(self, sent: SentFile, text: bytes) -> None:
        self.local_name(sent.true_name)
        if len(text) > _LARGEST_FILE:
            raise OSError("it is too large")
        if sent.true_name.count("/") > DEEPEST:
            raise OSError("it is in too many directories")
        new = Copy(sent.true_name, max(len(text), _BLOCK))
        self._make_room(sent.path, new)
        # A link could replace one of the directories if that is shared.
        name = Path(self.directory + sent.path)
        copy = Path(self.directory + sent.true_name)
        # The draft has a new name, so it is no file or link of another user.
        descriptor, draft = tempfile.mkstemp(prefix=_DRAFT, dir=self.directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text)
            os.utime(draft, ns=(sent.time, sent.time))
            for path in (copy, name):
                path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(draft, copy)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)
        self._copies[sent.path] = new
        if name != copy and os.path.realpath(name) != str(copy):
            name.unlink(missing_ok=True)
            name.symlink_to(copy)

    def _make_room(self, path: str, new: Copy) -> None:
        """Delete the oldest copies that are not wanted, as ``path`` gets the ``new``.

        A previous copy of ``path`` with another true name is deleted, too.
        """
        others = [other for other in self._copies if other != path]
        excess = sum(self._copies[other].size for other in others)
        excess += new.size - _LARGEST_MIRROR
        for other in others:
            if excess > 0 and not self.is_wanted(other):
                excess -= self._copies[other].size
                self._drop(other)
        if excess > 0:
            raise OSError("too many files are being reviewed")
        if path in self._copies and self._copies[path].true_name != new.true_name:
            self._drop(path)

    def _drop(self, path: str) -> None:
        """Delete the copy of ``path``, unless it is that of another name, too."""
        Path(self.directory + path).unlink(missing_ok=True)
        copy = self._copies.pop(path, None)
        names = [other.true_name for other in self._copies.values()]
        if copy is None or copy.true_name in (path, *names):
            return
        true_copy = Path(self.directory + copy.true_name)
        true_copy.unlink(missing_ok=True)
        # The host has chosen these directories, and may choose any number.
        with suppress(OSError):
            for directory in true_copy.parents:
                if directory == Path(self.directory):
                    break
                directory.rmdir()


class Output(SubprocessStreamProtocol):
    """The output of an outpost, and when some has come last."""

    last = 0.0

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if fd == 1:  # not what ssh says
            self.last = time.monotonic()
        super().pipe_data_received(fd, data)


@dataclass(eq=False, repr=False)
class Tunnel:
    """The connections from a host to the server of this process, by number."""

    _port: int
    _send: Callable[..., Awaitable[None]]
    _writers: dict[int, StreamWriter] = field(default_factory=dict)
    _tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    async def open(self, number: int) -> None:
        """Connect the connection ``number`` to the server."""
        if number in self._writers or len(self._writers) >= _MOST_CONNECTIONS:
            await self._send(Kind.CLOSE, number)
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers[number] = writer
        self._tasks[number] = asyncio.create_task(self._carry_back(number, reader))

    async def _carry_back(self, number: int, reader: StreamReader) -> None:
        with suppress(OSError, RemoteError):
            while data := await reader.read(_CHUNK):
                await self._send(Kind.DATA, number, base64.b64encode(data).decode())
            await self._send(Kind.CLOSE, number)
        self._writers.pop(number).close()
        del self._tasks[number]

    async def write(self, number: int, data: bytes) -> None:
        """Write ``data``, which the outpost has read."""
        if number in self._writers:
            self._writers[number].write(data)
            with suppress(OSError):
                await self._writers[number].drain()

    async def close(self, number: int) -> None:
        """Close the connection ``number``, which the CLI has closed."""
        if number in self._writers:
            self._writers[number].close()

    def abort(self) -> None:
        """Close all connections at once."""
        for writer in self._writers.values():
            writer.transport.abort()

    def carries(self, address: Address) -> bool:
        """Return whether a connection from ``address`` comes from the host."""
        writers = self._writers.values()
        return any(writer.get_extra_info("sockname") == address for writer in writers)


class Outpost:
    """The process on a host, which is started again when it has ended."""

    def __init__(self, remote: Remote, hosts: "Hosts") -> None:
        self.name = remote.name
        self._title = self.name[1:-1]
        self.token = remote.token or token_urlsafe()
        self.mirror = Mirror(remote)
        self.tunnel = Tunnel(hosts.server_port, self._carry)
        self._remote = remote
        self._hosts = hosts
        self._facts: Facts = {"port": remote.port or 0}
        self._state = ""
        self._stdin: StreamWriter | None = None
        """Its input, or None if it does not run."""
        self._stdout: StreamReader | None = None
        self._is_over = False
        """Whether it must not be started again."""
        self._pending: dict[int, asyncio.Future[str]] = {}
        """By number of each request, the future of its problem, or ""."""
        self._numbers = count(1)
        self._life = asyncio.create_task(self._live())

    # Files

    async def update(self, path: str, *change: str) -> None:
        """Bring the copy of the file ``path`` up to date, and follow it for a while.

        Before, ``change`` the file: from a text with a SHA-256 to another one, in
        base64, or delete it without one.  Raise RemoteError if that fails, there is
        another text, or the file cannot be read.
        """
        mirror = self.mirror
        if mirror.local_name(path) == mirror.directory + path:
            self._follow(path)
            if change:
                answer = self._request(Kind.WRITE, path, *change)
            else:
                answer = self._request(Kind.FILE, path, mirror.stamp(path))
            if problem := await answer:
                raise RemoteError(problem)

    async def _receive(self, sent: SentFile, number: int) -> None:
        """Bring a copy up to date, and answer the request ``number``, if it is one."""
        self.mirror.local_name(sent.path)
        problem = sent.problem
        is_same = sent.text is None and sent.stamp and not problem
        if not is_same and self.mirror.is_wanted(sent.path):
            previous = self.mirror.stamp(sent.path)
            problem = await asyncio.to_thread(self.mirror.store, sent) or problem
            is_new = self.mirror.stamp(sent.path) != previous
            if is_new and self.mirror.decides(sent.path) and self._state == "connected":
                # Emacs reads it soon, once for several files.
                self._state = "changed"
                asyncio.get_running_loop().call_later(_CHANGE, self._report_change)
        self._answer(number, problem)
        self._send(Kind.ARRIVED)

    def _report_change(self) -> None:
        if self._state == "changed":
            self._report("connected")

    def _follow(self, *others: str) -> None:
        """Follow the reviewed files, and no longer those whose reviews ended before.

        Raise MirrorError if there can be no copies; the connection ends then.
        """
        reviewed = self._hosts.reviewed(self.name)
        try:
            released = self.mirror.follow([*reviewed, *others])
        except MirrorError as error:
            self._fail(error)
            raise
        self._send(Kind.BEAT, 0, released)

    def _fail(self, error: Exception) -> None:
        """End the connection with ``error``."""
        if self._stdout is not None:
            self._stdout.set_exception(error)

    # Life

    def connect_from(self, directories: Sequence[str]) -> bool:
        """Serve CLIs in ``directories``; return False if the outpost ended for good."""
        self._remote.directories = directories
        if self._stdin is not None:
            with suppress(MirrorError):
                self._greet()
        return not self._life.done()

    async def passed_on(self) -> None:
        """Wait until the host has passed on what was written, for a second at most."""
        alive = asyncio.create_task(self.is_alive())
        await asyncio.wait([alive], timeout=_END)

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
            logger.info("An outpost has ended: %s", problem)
            if now() - began > _LONG_LIFE:
                delays = iter(_DELAYS)
            may_return = "home" in self._facts and not self._is_over
            delay = next(delays, None) if may_return else None
            self._report("ended" if delay is None else "lost", problem)
            if delay is None:
                return
            await asyncio.sleep(delay)

    def _report(self, state: str, problem: str = "") -> None:
        self._state = state
        facts = {"name": self.name, "token": self.token, "state": state}
        self._hosts.report({"roots": [], **self._facts, **facts, "problem": problem})

    async def _run_once(self) -> str:
        """Run an outpost until it ends, and return why it did."""
        command = [word.replace(OUTPOST, _PROGRAM) for word in self._remote.command]
        loop = asyncio.get_running_loop()
        try:
            transport, output = await loop.subprocess_exec(
                lambda: Output(_LONGEST_LINE, loop), *command
            )
        except OSError as error:
            return f"cannot run {command[0]}: {error.strerror or error}"
        process = Process(transport, output, loop)
        assert process.stderr is not None
        errors = asyncio.create_task(_error(process.stderr))
        try:
            problem = await self._serve(process, output)
        finally:
            self._stdin = self._stdout = None
            self.tunnel.abort()
            for number in list(self._pending):
                self._answer(number, f"the connection to {self._title} was lost")
            end = asyncio.create_task(_end(process, transport, errors))
            try:
                await asyncio.shield(end)
            finally:
                # If `stop` has cancelled that, it is not yet done.
                await end
        words = filter(None, (problem, await errors))
        return ": ".join(words) or f"exit status {process.returncode}"

    async def _serve(self, process: Process, output: Output) -> str:
        """Handle what an outpost sends until it ends, and return what is wrong."""
        assert process.stdout is not None
        self._stdout = process.stdout
        beat = asyncio.create_task(self._beat(output))
        try:
            while line := await process.stdout.readuntil():
                if self._stdin is not None:
                    await self._handling(line)
                elif line == _GREETING:  # the remote shell may print others before
                    self._stdin = process.stdin
                    self._greet()
                await asyncio.sleep(0)  # many may have come
        except asyncio.TimeoutError:
            return "no answer"
        except MirrorError as error:
            self._is_over = True
            return str(error)
        except (MalformedArgument, asyncio.LimitOverrunError) as error:
            logger.warning("Malformed output of an outpost: %s", error)
            return "malformed output"
        except (OSError, EOFError):  # the last line may be incomplete
            pass
        except Exception:
            logger.exception("The server failed at what an outpost has sent")
            return "an error in the server, see its log"
        finally:
            beat.cancel()
        return ""

    async def is_alive(self) -> bool:
        """Wait for a sign of life; return False if the connection is lost."""
        return self._stdin is not None and not await self._request(Kind.BEAT)

    def _greet(self) -> None:
        """Send what the outpost needs, again when it has changed."""
        self._follow()
        clients = [client.remote_description(self.token) for client in remote_clients()]
        settings = {
            "directories": self._remote.directories,
            "clients": clients,
            "files": self._remote.files,
            "limit": _LARGEST_FILE,
            "port": self._facts["port"],
        }
        self._request(Kind.HELLO, settings)

    # Lines

    def _send(self, *line: object) -> StreamWriter:
        if self._stdin is None:
            raise RemoteError(f"{self._title} is not connected")
        self._stdin.write(json.dumps(line).encode() + b"\n")
        return self._stdin

    async def _carry(self, *line: object) -> None:
        """Send ``line``, and wait while the outpost reads slowly."""
        await self._send(*line).drain()

    def _request(self, kind: Kind, *data: object) -> asyncio.Future[str]:
        """Send a request, and return the future of its problem, or ""."""
        number = next(self._numbers)
        self._send(kind, number, *data)
        answer = self._pending[number] = asyncio.get_running_loop().create_future()
        return answer

    def _answer(self, number: int, problem: str = "") -> bool:
        """Answer a request with ``problem``; return whether it awaits an answer."""
        answer = self._pending.pop(number, None)
        if answer is not None and not answer.done():
            answer.set_result(problem)
        return answer is not None

    async def _beat(self, output: Output) -> None:
        """Send signs of life, so that the outpost does not end; expect some."""
        began = time.monotonic()
        # A shell that only prints its own lines is not one.
        while time.monotonic() - (output.last if self._stdin else began) < _SILENCE:
            await asyncio.sleep(_BEAT)
            if self._stdin is not None:
                try:
                    self._follow()
                except MirrorError:
                    return
        self._fail(asyncio.TimeoutError())

    def _handling(self, line: bytes) -> Awaitable[None]:
        """Return what handles ``line``; raise MalformedArgument if it is no line."""
        try:
            kind, key, data = ([*json.loads(line), None, None])[:3]
            match Kind(kind):
                case Kind.FILE:
                    return self._receive(_sent_file(key), int(data or 0))
                case Kind.ROOTS:
                    return self._take_roots(int(data or 0), _sent_roots(key))
                case Kind.HELLO:
                    return self._take_answer(int(data or 0), _sent_facts(key))
                case Kind.BEAT:
                    return self._take_answer(int(data or 0))
                case Kind.OPEN:
                    return self.tunnel.open(int(key))
                case Kind.DATA:
                    return self.tunnel.write(int(key), base64.b64decode(data or ""))
                case Kind.CLOSE:
                    return self.tunnel.close(int(key))
            raise MalformedArgument(f"{kind} is no line of an outpost")
        except Exception as error:  # whatever the other host has sent
            raise MalformedArgument(repr(error)) from None

    async def _take_roots(self, number: int, sent: Facts) -> None:
        """Take the roots of the greeting ``number``, whose files of rules follow."""
        if number in self._pending:
            self._set_roots(sent)

    def _set_roots(self, sent: Facts) -> dict[str, str | None]:
        """Want the rules in the home and the named roots of ``sent``; return all."""
        home, roots = sent["home"], sent["roots"]
        named = [root for name in self._remote.directories if (root := roots.get(name))]
        for path in (home, *named):
            self.mirror.local_name(path)
        self.mirror.set_roots(home, named)
        return dict(roots)

    async def _take_answer(self, number: int, sent: Facts | None = None) -> None:
        """Take the facts that the outpost has ``sent``, and follow the reviews."""
        # Facts that were not asked for could keep Emacs busy.
        if not self._answer(number) or sent is None:
            return
        roots = self._set_roots(sent)
        names = self._remote.directories
        # The answer to a greeting may be older than some directories.
        sent["roots"] = [[name, roots[name]] for name in names if name in roots]
        sent["home"] = _shown(sent["home"])
        if self._facts["port"] not in (0, sent["port"]):
            # The program that has the previous port may have got the token.
            self._facts["port"] = sent["port"]
            self.token = token_urlsafe()
            self._greet()
            return
        self._facts = sent
        self._report("connected")
        # They may have changed since the previous outpost.
        for path in self.mirror.followed:
            self._request(Kind.FILE, path, self.mirror.stamp(path))


def _sent_file(sent: Facts) -> SentFile:
    text = sent.get("text")
    return SentFile(
        clean(sent["path"]),
        clean(sent.get("true", "")),
        _shown(sent.get("problem", "")),
        sent["stamp"],
        int(sent["stamp"].partition("-")[0] or 0),
        None if text is None else base64.b64decode(text),
    )


def _sent_roots(sent: Facts) -> Facts:
    roots = {one: root and clean(root) for one, root in sent["roots"].items()}
    home = clean(sent["home"])
    if any(
        len(directory) > LONGEST_NAME
        for directory in (home, *filter(None, roots.values()))
    ):
        raise MalformedArgument("a root is too long")
    return {"home": home, "roots": roots}


def _sent_facts(sent: Facts) -> Facts:
    versions = sent["versions"]
    names = [client.name for client in remote_clients() if client.name in versions]
    return {
        **{number: int(sent[number]) for number in ("port", "pid")},
        **_sent_roots(sent),
        "tmp": _shown(sent["tmp"]),
        "node": _version(sent["node"]),
        "container": bool(sent["container"]),
        "problems": [
            _shown(problem) for problem in sent["problems"][: len(remote_clients())]
        ],
        "versions": [[name, _version(versions[name])] for name in names],
    }


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
    lines = [line for part in last.splitlines() if (line := _shown(part))]
    return next((line for line in lines if "Error" in line), "".join(lines[-1:]))


def _shown(text: str) -> str:
    """Return ``text``, which came from another host, for a message."""
    return _CONTROLS.sub(" ", clean(text)).strip()[:200]


def _version(text: str) -> str:
    """Return ``text`` without what Emacs cannot compare, such as "-nightly"."""
    found = _VERSION.match(text)
    return found[0] if found else "0"


def _moved(path: str, pairs: Iterable[Sequence[str]]) -> str | None:
    """Return the name of the file ``path`` by the first of ``pairs`` that has it."""
    for old, new in pairs:
        with suppress(ValueError):
            return str(PurePosixPath(new, PurePosixPath(path).relative_to(old)))
    return None
