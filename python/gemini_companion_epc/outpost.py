# SPDX-License-Identifier: GPL-3.0-or-later
"""The process on a remote host where CLIs run; imported for the first such host.

An `Outpost` runs the program ``outpost.js`` on a host while Emacs is connected to it.
Its `Tunnel` carries connections, and its `Copies` has copies of files, up to date.
"""

import asyncio
import base64
import json
import logging
import time
from asyncio import StreamReader, StreamWriter, SubprocessTransport
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from itertools import count
from pathlib import Path
from secrets import token_urlsafe

from .clients import remote_clients
from .copies import LARGEST_FILE, Copies
from .outpost_lines import (
    CHUNK,
    Kind,
    SentFile,
    sent_facts,
    sent_file,
    sent_roots,
    shown,
)
from .threads import in_thread
from .tunnel import Tunnel
from .types import CopiesError, Facts, MalformedArgument, NoAnswer, RemoteError

logger = logging.getLogger(__name__)

OUTPOST = "outpost-base64"
"""The word in a command that stands for the program of the outpost."""

_SOURCE = Path(__file__).with_name("outpost.js")
_PROGRAM = base64.b64encode(_SOURCE.read_bytes()).decode()
_LONGEST_LINE = 32 * 1024 * 1024
_GREETING = b"gemini-companion-outpost\n"
_BEAT = 15
_SILENCE = 45
_CHANGE = 0.2
# As long as Emacs has for opening a review; a large file takes its time.
_ANSWER = 120
_END = 1
_KILLED = 10
_DELAYS = (0, 0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30)
_LONG_LIFE = 60


@dataclass
class Remote:
    """A remote host, as Emacs describes it; the command runs the outpost."""

    name: str
    copies: str
    command: Sequence[str]
    directories: Sequence[str]
    """Remote directories from which CLIs may connect."""
    files: Sequence[str] = ()
    """Names of files with sharing rules, in a root or, with a tilde, at home."""
    shared: Sequence[tuple[str, str]] = ()
    """Pairs of names, remote and local, of directories that both hosts share."""
    token: str = ""
    port: int = 0

    @classmethod
    def of(cls, facts: Facts) -> "Remote":
        """Return the host that Emacs describes by ``facts``."""
        names = [slot.name for slot in fields(cls)]
        return cls(**{name: facts[name] for name in names if name in facts})


class Output(SubprocessStreamProtocol):
    """The output of an outpost, and the time of its last data."""

    last = 0.0

    def pipe_data_received(self, fd: int, data: bytes | str) -> None:
        if fd == 1:  # stderr has messages of ssh
            self.last = time.monotonic()
        super().pipe_data_received(fd, data)


class Outpost:
    """The process on a host, which is restarted when it has ended.

    The connections of its CLIs go to ``server_port``.  ``report`` is called with the
    facts of the host when its state changes, ``reviewed`` returns the files of the host
    with a name that are being reviewed.
    """

    def __init__(
        self,
        remote: Remote,
        server_port: int,
        report: Callable[[Facts], None],
        reviewed: Callable[[str], Iterable[str]],
    ) -> None:
        self.name = remote.name
        self._title = self.name[1:-1]
        self.token = remote.token or token_urlsafe()
        self.copies = Copies(remote.copies, remote.files, remote.shared)
        self.tunnel = Tunnel(server_port, self._carry)
        self._remote = remote
        self._report_facts = report
        self._reviewed = reviewed
        self._facts: Facts = {"port": remote.port or 0}
        self._state = ""
        self._stdin: StreamWriter | None = None
        """The input of the process, or None if it does not run."""
        self._stdout: StreamReader | None = None
        self._is_over = False
        """Whether it must not be started again."""
        self._pending: dict[int, asyncio.Future[str]] = {}
        """By number of each request, the future of its problem, or ""."""
        self._numbers = count(1)
        self._life = asyncio.create_task(self._live())

    # Files

    async def update(self, path: str, *change: str) -> str:
        """Bring the copy of the file ``path`` up to date, and follow it for a while.

        Return its local name.

        First ``change`` the file: its arguments are the SHA-256 of the present text,
        and the new text in base64; without a new text, delete the file.  Raise
        RemoteError if that fails, if the file has another text, if it cannot be read,
        or if the host does not answer in time.
        """
        copies = self.copies
        try:
            local_name = await in_thread(self.name, copies.local_name, path)
        except NoAnswer as error:
            raise RemoteError(str(error)) from None
        if local_name == copies.directory + path:
            self._follow(path)
            if change:
                answer = self._request(Kind.WRITE, path, *change)
            else:
                answer = self._request(Kind.FILE, path, copies.stamp(path))
            try:
                problem = await asyncio.wait_for(answer, _ANSWER)
            except asyncio.TimeoutError:
                problem = f"{self._title} did not answer within {_ANSWER} s"
            if problem:
                raise RemoteError(problem)
        return local_name

    async def _receive(self, sent: SentFile, number: int) -> None:
        """Update a copy, and answer the request ``number``, unless that is 0."""
        self.copies.check_name(sent.path)
        problem = sent.problem
        is_same = sent.text is None and sent.stamp and not problem
        if not is_same and self.copies.is_wanted(sent.path):
            previous = self.copies.stamp(sent.path)
            problem = await asyncio.to_thread(self.copies.store, sent) or problem
            is_new = self.copies.stamp(sent.path) != previous
            if is_new and self.copies.decides(sent.path) and self._state == "connected":
                # Emacs reads it soon, once for several files.
                self._state = "changed"
                asyncio.get_running_loop().call_later(_CHANGE, self._report_change)
        self._answer(number, problem)
        self._send(Kind.ARRIVED)

    def _report_change(self) -> None:
        if self._state == "changed":
            self._report("connected")

    def _follow(self, *others: str) -> None:
        """Follow the reviewed files, and release those whose reviews have ended.

        Raise CopiesError, and end the connection, if copies are impossible.
        """
        reviewed = self._reviewed(self.name)
        try:
            released = self.copies.follow([*reviewed, *others])
        except CopiesError as error:
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
            with suppress(CopiesError):
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
        self._report_facts({"roots": [], **self._facts, **facts, "problem": problem})

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
                # If `stop` has cancelled the shield, `end` is not done yet.
                await end
        words = filter(None, (problem, await errors))
        return ": ".join(words) or f"exit status {process.returncode}"

    async def _serve(self, process: Process, output: Output) -> str:
        """Handle the lines of an outpost until it ends; return the problem, or ""."""
        assert process.stdout is not None
        self._stdout = process.stdout
        beat = asyncio.create_task(self._beat(output))
        try:
            while line := await process.stdout.readuntil():
                if self._stdin is not None:
                    await self._handling(line)
                elif line == _GREETING:  # the remote shell may print lines before it
                    self._stdin = process.stdin
                    self._greet()
                await asyncio.sleep(0)  # many lines may be buffered
        except asyncio.TimeoutError:
            return "no answer"
        except CopiesError as error:
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
        """Send the settings of the outpost; called again when they have changed."""
        self._follow()
        clients = [client.remote_description(self.token) for client in remote_clients()]
        settings = {
            "directories": self._remote.directories,
            "clients": clients,
            "files": self._remote.files,
            "limit": LARGEST_FILE,
            "port": self._facts["port"],
            "silence": _SILENCE,
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
                except CopiesError:
                    return
        self._fail(asyncio.TimeoutError())

    def _handling(self, line: bytes) -> Awaitable[None]:
        """Return the coroutine that handles ``line``, or raise MalformedArgument."""
        try:
            kind, key, data = ([*json.loads(line), None, None])[:3]
            match Kind(kind):
                case Kind.FILE:
                    return self._receive(sent_file(key), int(data or 0))
                case Kind.ROOTS:
                    return self._take_roots(int(data or 0), sent_roots(key))
                case Kind.HELLO:
                    return self._take_answer(int(data or 0), sent_facts(key))
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
            self.copies.check_name(path)
        self.copies.set_roots(home, named)
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
        sent["home"] = shown(sent["home"])
        if self._facts["port"] not in (0, sent["port"]):
            # The program that has the previous port may have got the token.
            self._facts["port"] = sent["port"]
            self.token = token_urlsafe()
            self._greet()
            return
        self._facts = sent
        self._report("connected")
        # The files may have changed since the previous outpost.
        for path in self.copies.followed:
            self._request(Kind.FILE, path, self.copies.stamp(path))


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
    while piece := await stream.read(CHUNK):
        last = (last + piece.decode(errors="replace"))[-1000:]
    lines = [line for part in last.splitlines() if (line := shown(part))]
    return next((line for line in lines if "Error" in line), "".join(lines[-1:]))
