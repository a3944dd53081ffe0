# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of the server process: start, serve, stop."""

import asyncio
import gc
import logging
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from . import __version__, directory, log
from .config import Config, new_token, parse_start_line
from .connections import Listener, listen
from .discovery import DiscoveryFiles, true_names
from .emacs import Emacs, read_start_line, watch_stdin
from .exceptions import StartError
from .ide import Ide
from .processes import lives, on_exit, process_of
from .questions import Questions
from .session import next_tick
from .system import Handover, on_signals, raise_descriptor_limit
from .types import Diff

logger = logging.getLogger(__name__)

Serve: TypeAlias = Callable[[asyncio.Event, asyncio.Event], Awaitable[None]]


def run(install_command: str) -> int:
    """Serve the Emacs that started this process, and return the exit status.

    ``install_command`` installs the packages that the server needs.
    """
    try:
        config = parse_start_line(read_start_line())
        asyncio.run(Server(config).run())
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    except ImportError as error:
        print(
            f"Incompatible Python package: {error}; to fix it, run: {install_command}",
            file=sys.stderr,
        )
        return 3
    return 0


class Server:
    """The server process, which connects Emacs, the sessions and the files."""

    def __init__(self, config: Config) -> None:
        self._listener, is_busy = listen(config.port, config.predecessor)
        if is_busy:
            # The program that has the port now receives the previous token.
            config = replace(config, token=new_token(), is_exposed=False)
        elif config.port and not self._listener.is_inherited:
            # A program that had the port for a while may have received the token.
            config = replace(config, is_exposed=True)
        self._config = config
        self._port = self._listener.port
        self._emacs = Emacs(config)
        find_process = partial(process_of, server_port=self._port)
        self._ide = Ide(config, self._emacs, find_process)
        self._questions = Questions(config, self._emacs)
        self._discovery = DiscoveryFiles(
            config.emacs_pid, self._port, config.token, os.environ
        )
        self._warnings: set[str] = set()
        self._serves = asyncio.Event()
        self._stop = asyncio.Event()
        self._is_retiring = False
        self._handover: Handover | None = None
        self._hurry = asyncio.Event()
        if is_busy:
            self._emacs.warn(
                f"Port {config.port} is in use, so the server uses {self._port}; "
                "run /ide enable in each CLI"
            )

    async def run(self) -> None:
        """Serve until Emacs asks to stop or disconnects, or a signal arrives."""
        raise_descriptor_limit()
        self._open_log()
        on_signals(self.interrupt)
        watch_stdin(self.stop)
        # Another process may have inherited stdin and keep it open.
        if lives(self._config.emacs_pid):
            on_exit(self._config.emacs_pid, self.stop)
        else:
            logger.info("Emacs runs on another machine or in another container")
        self._emacs.listen(
            self.hello,
            {
                "context-update": self._ide.broadcast,
                "roots-update": self.roots_update,
                "tools-update": self.tools_update,
                "answered": self._questions.answered,
                "diff-accepted": self._ide.accept,
                "diff-rejected": self._ide.reject,
                "adopt-diff": lambda *args: self._ide.adopt(Diff(*args)),
                "drop-diff": self._ide.drop,
                "retire": self.retire,
                "stop": self.stop,
            },
        )
        if self._emacs.directory.path is not None:
            self._handover = Handover(self._listener, self._emacs.directory.path)
        directory.sweep()
        self._discovery.sweep()
        self.roots_update(self._config.roots)
        print(self._emacs.port, flush=True)
        logger.info(
            "gemini-companion %s: pid %d, HTTP port %d, EPC port %d",
            __version__,
            os.getpid(),
            self._port,
            self._emacs.port,
        )
        if self._config.port:
            asyncio.get_running_loop().call_later(
                self._config.return_limit, self._ide.report_sessions
            )
        stop_http = asyncio.Event()
        serving = asyncio.create_task(self._serve(stop_http))
        stopping = asyncio.create_task(self._stop.wait())
        keeping = asyncio.create_task(self._keep_files())
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        keeping.cancel()
        self._stop.set()
        await self._shut_down()
        stop_http.set()
        # Hypercorn would wait for a client that does not read.
        await asyncio.wait([serving], timeout=self._config.end_limit)
        await self._emacs.close()
        if not serving.done():
            _exit()
        await serving

    def _open_log(self) -> None:
        config = self._config
        secrets = (config.token, config.secret)
        log.to_stderr(secrets)
        if config.log_file:
            try:
                log.to_file(config.log_file, config.log_level, secrets)
            except OSError as error:
                self._emacs.warn(
                    f"Cannot write the log {config.log_file}: {error.strerror}; "
                    "customize `gemini-companion-log-file'"
                )

    async def _serve(self, stop_http: asyncio.Event) -> None:
        # CLIs reconnect to the port of the previous server.
        if not self._config.port:
            await self._first_client()
            if self._stop.is_set() and not self._is_retiring:
                return
        try:
            serve = await asyncio.to_thread(
                prepare_http, self._config, self._listener, self._ide, self._questions
            )
            await serve(self._serves, stop_http)
        finally:
            # If this has failed, a server that retires must not wait for it.
            self._serves.set()

    async def _first_client(self) -> None:
        """Wait until a client connects, or the server is to stop."""
        connected = asyncio.Event()
        loop = asyncio.get_running_loop()
        try:
            loop.add_reader(self._listener, connected.set)
        except NotImplementedError:  # Windows
            return
        waits = [asyncio.create_task(event.wait()) for event in (connected, self._stop)]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        loop.remove_reader(self._listener)
        for wait in waits:
            wait.cancel()

    # Stop

    def stop(self) -> None:
        """Begin to stop; if retiring, stop waiting for the clients."""
        self._hurry.set()
        if not self._stop.is_set():
            logger.info("Stopping")
            self._stop.set()

    def interrupt(self) -> None:
        """Begin to stop because of a signal, and report it to Emacs."""
        if not self._stop.is_set():
            self._emacs.warn(
                "The server was stopped by a signal; open reviews were rejected"
            )
        self.stop()

    def retire(self) -> None:
        """Begin to stop for a successor, which takes over the diffs."""
        if not self._stop.is_set():
            logger.info("Retiring")
            self._is_retiring = True
            self._stop.set()

    async def _shut_down(self) -> None:
        if self._handover is not None:
            self._handover.close()
        waiting_limit = self._config.headers_time if self._is_retiring else 0
        _exit_after(self._config.exit_limit + waiting_limit)
        if self._is_retiring:
            # The event loop would begin to listen on a socket that was ended before.
            await self._serves.wait()
            self._listener.end()
            await asyncio.sleep(self._config.request_time)
            # Emacs does not wait for the end of this process.
            answer_limit = self._config.exit_limit
            flush_limit = self._config.retire_limit
        else:
            self._discovery.remove()
            self._discovery.sweep()
            self._ide.reject_all()
            answer_limit = self._config.answer_limit
            flush_limit = self._config.flush_limit
        await self._ide.finish_closing(answer_limit)
        self._emacs.give_up()
        await self._ide.flush(flush_limit)
        await self._ide.end_streams()
        if self._is_retiring:
            await self._answer_late_requests()

    async def _answer_late_requests(self) -> None:
        """Serve the clients that have connected but not yet sent a request."""
        while self._listener.is_awaited and not self._hurry.is_set():
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), self._config.request_time)

    # Methods that Emacs calls

    def hello(self) -> dict[str, object]:
        """Return the description of the server for Emacs."""
        return {
            "version": __version__,
            "port": self._port,
            "token": self._config.token,
            "is-exposed": self._config.is_exposed,
            "discovery": [str(path) for path in self._discovery.paths],
        }

    def roots_update(self, roots: Sequence[str]) -> None:
        """Update the workspace roots."""
        if self._stop.is_set():
            return
        known = true_names(roots)
        self._questions.roots = known
        self._warn_once(self._discovery.update(known))

    def tools_update(self, is_on: bool) -> None:
        """Answer the questions of models, or stop doing so."""
        self._questions.is_on = is_on

    async def _keep_files(self) -> None:
        """Restore the files that a cleanup of temporary files removes."""
        clock = asyncio.get_running_loop().time
        while True:
            now = clock()
            await asyncio.sleep(next_tick(now, self._config.file_check) - now)
            self._emacs.directory.restore()
            if self._handover is not None:
                self._handover.restore()
            self._warn_once(self._discovery.restore())

    def _warn_once(self, messages: Iterable[str]) -> None:
        """Show ``messages`` to the user, except those shown before."""
        for message in messages:
            if message not in self._warnings:
                self._warnings.add(message)
                self._emacs.warn(message)


def prepare_http(
    config: Config, listener: Listener, ide: Ide, questions: Questions
) -> Serve:
    """Import the HTTP server, and return the function that runs it.

    This takes half a second, in which clients wait in the listen queue, and 40 MB.
    """
    # Importing creates no garbage, and collecting it takes a tenth of the time.
    gc.disable()
    try:
        from .http import serve
    finally:
        gc.enable()
    gc.freeze()
    return partial(serve, config, listener, ide, questions)


def _exit_after(limit: float) -> None:
    watch = threading.Timer(limit, _exit)
    watch.daemon = True
    watch.start()


def _exit() -> None:
    """Exit at once, although connections are still open."""
    logger.info("Exiting with open connections")
    logging.shutdown()
    os._exit(0)
