# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of the server process: start, serve, stop.

All is in one event loop.  Sessions, diffs and remote hosts know neither HTTP nor EPC.
"""

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from errno import EMFILE, ENFILE
from functools import partial
from secrets import token_urlsafe

from . import __version__, log, texts
from .clients import CLIENTS, client_named, reconnection
from .config import Config, parse_start_line
from .diffs import Diffs
from .discovery import DiscoveryFiles
from .emacs import Emacs, watch_stdin
from .hosts import Hosts
from .linked import Linked
from .port import Port, UnixPort
from .processes import process_of, running
from .sessions import Sessions
from .system import IS_WINDOWS, on_signals
from .threads import in_thread
from .types import Facts, File, NoAnswer, StartError

logger = logging.getLogger(__name__)

# Seconds: for removing the files at the end, for the exit of an Emacs that has closed
# its pipes, and for a search for processes.
_CLEANING = 5
_EXITING = 30
_SEARCH = 60

_DEAD = (
    "A file system does not answer ({}), so CLIs may not find this Emacs; "
    "check the mounts"
)


def run() -> int:
    """Serve the Emacs that started this process, and return the exit status."""
    try:
        # All files are for this user only.
        os.umask(0o077)
        config = parse_start_line(sys.stdin.buffer.readline())
        if config.is_successor:
            # If it were loaded later, clients that connect would have to wait.
            load_http()
        asyncio.run(Server(config).run())
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


class Server:
    """The server process, which connects Emacs, the sessions and the files."""

    def __init__(self, config: Config) -> None:
        self._port = Port(config.port)
        number = self._port.number
        self._is_moved = config.port not in (0, number)
        if self._is_moved:
            # The program that has the port now receives the previous token.
            config = replace(config, token=token_urlsafe(), is_exposed=False)
        self._config = config
        if not config.is_successor:
            self._port.listen()
        self._emacs = Emacs(config)
        find_process = partial(
            process_of, server_port=number, emacs_pid=config.emacs_pid
        )
        self._hosts = Hosts(
            number,
            partial(self._emacs.report, "remote-update"),
            lambda name: self._diffs.reviewed(name),
        )
        self._sessions = Sessions(
            config,
            find_process,
            self._emacs.report,
            self._hosts.remote_name,
            lambda session, reason: self._diffs.abandon(session, reason),
        )
        self._diffs = Diffs(config, self._emacs, self._sessions, self._hosts)
        self._linked = Linked(config, self._emacs, self._sessions.set_directory)
        self._unix_port = UnixPort(number)
        self._discovery = DiscoveryFiles(
            config.emacs_pid, number, config.token, os.environ, self._unix_port
        )
        self._one_update = asyncio.Lock()
        self._warnings: set[str] = set()
        self._may_serve = asyncio.Event()
        self._cli_starts = asyncio.Event()
        self._starting_until = 0.0
        self._stop = asyncio.Event()
        self._has_successor = False
        self._is_disconnected = False
        self._exiting = threading.Lock()

    async def run(self) -> None:
        """Serve until Emacs asks to stop or disconnects, or a signal arrives."""
        self._open_log()
        on_signals(self.interrupt)
        asyncio.get_running_loop().set_exception_handler(self._log_failure)
        watch_stdin(self._disconnected)
        port = await self._emacs.listen(self._methods())
        texts.sweep()
        if self._is_moved:
            self._emacs.warn(
                f"Port {self._config.port} is in use, so the server uses "
                f"{self._port.number}; {reconnection()}"
            )
        self._linked.set_roots(self._config.roots)
        with suppress(NoAnswer):
            await in_thread("old discovery files", self._discovery.sweep)
        await self.temporaries_update(self._config.temporaries)
        print(port, flush=True)
        ports = self._port.number, port
        logger.info("Version %s: HTTP port %d, EPC port %d", __version__, *ports)
        serving = asyncio.create_task(self._serve())
        stopping = asyncio.create_task(self._stop.wait())
        keeping = asyncio.create_task(self._keep_files())
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        keeping.cancel()
        try:
            await self._end()
        except Exception:
            # The remaining files must still be removed.
            logger.exception("The server did not stop in order")
        if serving.done():
            await serving
        # Hypercorn would wait for clients that do not read.
        self._exit()

    def _methods(self) -> dict[str, Callable[..., object]]:
        return {
            "hello": self.hello,
            "processes": self.processes,
            "context-update": self.context_update,
            "temporaries-update": self.temporaries_update,
            "roots-update": self.roots_update,
            "cli-started": self.cli_started,
            "tools-update": self._linked.turn,
            "restore": self._linked.restore,
            "cli-ready": self._linked.ready,
            "diff-accepted": self._diffs.decide,
            "diff-rejected": self._diffs.reject,
            "prompt": self.prompt,
            "adopt-diff": self._diffs.adopt,
            "remote-start": self._hosts.start,
            "remote-stop": partial(self._hosts.stop, flush=self._sessions.flush),
            "remote-write": self._hosts.write,
            "serve": self.serve,
            "hand-over": partial(self.stop, has_successor=True),
            "stop": self.stop,
            "disconnected": self._disconnected,
        }

    def _open_log(self) -> None:
        config = self._config
        log.to_stderr()
        if config.log_file:
            try:
                log.to_file(config.log_file)
            except OSError as error:
                self._emacs.warn(
                    f"Cannot write the log {config.log_file}: {error.strerror}; "
                    "customize `gemini-companion-log-file'"
                )

    async def _serve(self) -> None:
        # CLIs reconnect to the port of the previous server.
        if not self._config.port:
            await self._first_client()
        serve = await asyncio.to_thread(load_http)
        # The clients know the diffs that Emacs hands over.
        await self._may_serve.wait()
        if self._config.port:
            asyncio.get_running_loop().call_later(
                self._config.return_limit, self._sessions.begin_reports
            )
        await serve(
            self._config,
            self._port,
            self._sessions,
            self._diffs,
            self._hosts,
            self._linked,
        )

    async def _first_client(self) -> None:
        """Wait until a client connects."""
        # A thread that waits for a client would keep the listener open at the end.
        connected, loop = asyncio.Event(), asyncio.get_running_loop()
        with suppress(NotImplementedError):  # Windows
            loop.add_reader(self._port.listener, connected.set)
            await connected.wait()
            loop.remove_reader(self._port.listener)

    # Stop

    def stop(self, has_successor: bool = False) -> None:
        """Begin to stop; a successor, if any, takes over connections and diffs."""
        if not self._stop.is_set():
            logger.info("Handing over" if has_successor else "Stopping")
            self._stop.set()
            self._linked.end()
        elif has_successor:
            return  # Emacs also stops the successor
        # If Emacs stops the successor, that has not taken over the diffs.
        self._has_successor = has_successor

    def _disconnected(self) -> None:
        """Begin to stop, as Emacs has exited, or is about to."""
        # After a stop that Emacs has asked for, it lives on.
        self._is_disconnected = self._is_disconnected or not self._stop.is_set()
        self.stop()

    def interrupt(self) -> None:
        """Begin to stop because of a signal, and report it to Emacs."""
        if not self._stop.is_set():
            self._emacs.warn(
                "The server was stopped by a signal; open reviews were rejected"
            )
            self.stop()

    async def _end(self) -> None:
        limits = self._config
        if self._has_successor:
            await self._port.stop_listening()
            await self._port.finish(limits.request_limit)
        watch = threading.Timer(limits.exit_limit, self._exit)
        watch.daemon = True
        watch.start()
        # If Emacs has sent a stop in the meantime, it also stops the successor.
        if not self._has_successor:
            self._sessions.is_stopping = True
            self._diffs.reject_all()
        await self._diffs.finish_closing(limits.end_limit)
        self._emacs.give_up()
        await self._sessions.flush()
        await self._sessions.end_streams()
        await self._port.finish(limits.end_limit)
        self._unix_port.close()
        await self._hosts.stop_all()
        await self._emacs.close()

    def _exit(self) -> None:
        """Exit soon, although connections may be open, and a mount may not answer."""
        # The time for the end may be over while it removes the files.  If two did that,
        # the first to be done would exit while the other removes a directory.
        with self._exiting:
            cleaning = threading.Thread(target=self._clean, daemon=True)
            cleaning.start()
            cleaning.join(_CLEANING + (_EXITING if self._is_disconnected else 0))
            os._exit(0)

    def _clean(self) -> None:
        """Remove all files of this process, and write the rest of the log."""
        self._unix_port.close()
        if not self._has_successor:
            # If the file were removed earlier, Copilot CLI would disconnect, and miss
            # the rejections.
            self._discovery.remove()
        # Emacs deletes the copies of remote files, unless it was killed.
        if self._is_disconnected:
            texts.wait_for_exit(self._config.emacs_pid, _EXITING)
        texts.sweep(os.getpid())
        logger.info("Exiting")
        logging.shutdown()

    # Methods that Emacs calls

    def hello(self) -> Facts:
        """Return the description of the server for Emacs, and listen."""
        # The previous process closes its socket next.
        self._port.listen()
        return {
            "version": __version__,
            "port": self._port.number,
            "token": self._config.token,
            "is-exposed": self._config.is_exposed,
            "discovery": self._discovery.names(),
            "files": texts.prefix(),
        }

    async def serve(self) -> None:
        """Accept connections: Emacs has handed over its diffs."""
        self._may_serve.set()
        if not IS_WINDOWS:
            self._unix_port.serve()
            await self._update_files()

    async def roots_update(self, roots: Sequence[str]) -> None:
        """Update the workspace roots, which have true names."""
        self._linked.set_roots(roots)
        await self._update_files()

    async def temporaries_update(self, temporaries: Sequence[str]) -> list[list[str]]:
        """Write discovery files in the temporary directories ``temporaries`` as well.

        Return all names of discovery files.
        """
        self._discovery.search_also(temporaries)
        await self._update_files()
        return self._discovery.names()

    async def processes(self) -> list[Facts]:
        """Return descriptions of the running CLIs of this user."""

        def find() -> list[Facts]:
            directories = {
                client: self._discovery.directories(client) for client in CLIENTS
            }
            return running(self._port.number, directories.__getitem__)

        return await in_thread("processes", find, limit=_SEARCH)

    def context_update(self, files: Sequence[Facts]) -> None:
        """Send the context of Emacs to the clients."""
        self._sessions.broadcast([File(**file) for file in files])

    async def prompt(self, session_id: str, text: str) -> bool:
        """Submit ``text`` in the CLI of a session; return whether it was sent."""
        session = self._sessions.find(session_id)
        return session is not None and await session.prompt(text)

    async def cli_started(self, name: str) -> None:
        """Check the discovery files, as Emacs has just started the client ``name``.

        Before its first start there is no directory for its discovery file, and the
        user types /ide within seconds; so check more often until it has made one.
        """
        client = client_named(name)
        key = f"home of {client.title}"
        if not await in_thread(key, self._discovery.may_connect, client):
            now = asyncio.get_running_loop().time()
            self._starting_until = now + self._config.start_limit
        self._cli_starts.set()

    async def _next_check(self) -> None:
        """Wait until the discovery files are to be checked again."""
        if asyncio.get_running_loop().time() < self._starting_until:
            await asyncio.sleep(self._config.start_check)
            return
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._cli_starts.wait(), self._config.file_check)
        self._cli_starts.clear()

    async def _keep_files(self) -> None:
        """Restore the files that a cleanup removes, and write those of new clients."""
        while True:
            await self._next_check()
            try:
                await self._update_files()
            except Exception:
                logger.exception("The discovery files cannot be checked")

    async def _update_files(self) -> None:
        """Write the discovery files that differ, in one thread, which wakes once.

        Where a file system does not answer, further threads write the files for which
        the earlier ones do not wait.
        """
        files = self._discovery
        async with self._one_update:
            for number in range(len(CLIENTS) + 2):
                if self._stop.is_set():
                    return
                update = files.update, self._linked.roots
                try:
                    self._warn_once(await in_thread(f"discovery {number}", *update))
                    return
                except NoAnswer as error:
                    if error.seconds > self._config.mount_limit:
                        self._warn_once([_DEAD.format(files.waits_for())])

    def _log_failure(
        self, loop: asyncio.AbstractEventLoop, context: dict[str, object]
    ) -> None:
        """Log what failed in ``loop``, which tries 100 times a second to accept."""
        if getattr(context.get("exception"), "errno", None) in (EMFILE, ENFILE):
            self._warn_once(
                ["Too many files are open to accept a CLI; raise `ulimit -n'"]
            )
        else:
            loop.default_exception_handler(context)

    def _warn_once(self, messages: Iterable[str]) -> None:
        for message in messages:
            if message not in self._warnings:
                self._warnings.add(message)
                self._emacs.warn(message)


def load_http() -> Callable[..., Awaitable[None]]:
    """Import the HTTP server, and return the function that runs it."""
    # This takes half a second, in which clients wait in the listen queue, and 40 MB.
    # A sixth of it would be garbage collections, though most of what is made stays.
    # Another sixth: the validators of all models of MCP.  Few are used, each made then.
    gc.disable()
    try:
        from pydantic import BaseModel

        BaseModel.model_config["defer_build"] = True
        from .http import serve
    finally:
        gc.enable()
    return serve
