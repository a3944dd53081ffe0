# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, serve and stop, in order; what wires the two ends together."""

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from . import __version__, folder, log
from .config import Config, new_token, parse_start_line
from .connections import Listener, listen
from .discovery import DiscoveryFiles
from .emacs import Emacs, read_start_line, watch_stdin
from .exceptions import StartError
from .ide import Ide
from .processes import ProcessWatch, lives, process_of
from .session import next_tick
from .types import Diff, IdeContext

logger = logging.getLogger(__name__)

Serve: TypeAlias = Callable[[asyncio.Event, asyncio.Event], Awaitable[None]]

_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")


def run(cure: str) -> int:
    """Serve the Emacs that started this process; return the exit status.

    CURE is the command that installs the packages which the server needs.
    """
    log.to_stderr()
    try:
        config = parse_start_line(read_start_line())
        asyncio.run(_run(config))
    except StartError as error:
        print(error, file=sys.stderr)
        return 1
    except ImportError as error:
        print(f"A Python package does not fit ({error}); run: {cure}", file=sys.stderr)
        return 3
    return 0


async def _run(config: Config) -> None:
    await Server(config).run()


class Server:
    """The process: two ends, the discovery file, and one way out."""

    def __init__(self, config: Config) -> None:
        self._listener, is_busy = listen(config.port)
        if is_busy:
            # The clients have sent the old one to whoever has that port now.
            config = replace(config, token=new_token())
        self._config = config
        self._port = self._listener.port
        self._emacs = Emacs(config, self)
        find_process = partial(process_of, server_port=self._port)
        self._ide = Ide(config, self._emacs, find_process)
        self._discovery = DiscoveryFiles(
            config.emacs_pid, self._port, config.token, os.environ
        )
        self._said: set[str] = set()
        self._serves = asyncio.Event()
        self._stop = asyncio.Event()
        self._is_retiring = False
        self._hurry = asyncio.Event()
        self._restored = 0.0
        self._restoring: asyncio.TimerHandle | None = None
        if is_busy:
            self._emacs.warn(
                f"Port {config.port} is taken, now it is {self._port}; "
                "run /ide enable in each running CLI"
            )

    async def run(self) -> None:
        """Serve until Emacs leaves, asks for it, or a signal comes."""
        self._open_log()
        _on_signals(self.interrupt)
        watch_stdin(self.stop)
        # Another process may have inherited stdin and hold it open.
        if lives(self._config.emacs_pid):
            ProcessWatch(self._config.emacs_pid, self.stop)
        else:
            logger.info("Emacs runs on another machine or in another container")
        self._emacs.listen()
        folder.sweep()
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
        await self._leave()
        stop_http.set()
        # Hypercorn waits for a stalled client, maybe for ever.
        await asyncio.wait([serving], timeout=self._config.end_limit)
        await self._emacs.close()
        if not serving.done():
            _abandon()
        await serving

    def _open_log(self) -> None:
        config = self._config
        secrets = (config.token, config.secret)
        log.hide(secrets)
        if config.log_file:
            try:
                log.to_file(config.log_file, config.log_level, secrets)
            except OSError as error:
                self._emacs.warn(
                    f"Cannot write the log {config.log_file}: {error.strerror}; "
                    "customize `gemini-companion-log-file'"
                )

    async def _serve(self, stop_http: asyncio.Event) -> None:
        serve = await asyncio.to_thread(
            prepare_http, self._config, self._listener, self._ide
        )
        await serve(self._serves, stop_http)

    # Stop

    def stop(self) -> None:
        """Begin to stop; a server that retires waits for no client any longer."""
        self._hurry.set()
        if not self._stop.is_set():
            logger.info("Stopping")
            self._stop.set()

    def interrupt(self) -> None:
        """Begin to stop, as a signal asks, of which Emacs knows nothing."""
        if not self._stop.is_set():
            self._emacs.warn(
                "A signal stopped the server, which rejects the reviews that are open"
            )
        self.stop()

    def retire(self) -> None:
        """Begin to make way for a successor: a stop that settles nothing."""
        if not self._stop.is_set():
            logger.info("Retiring")
            self._is_retiring = True
            self._stop.set()

    async def _leave(self) -> None:
        waiting_limit = self._config.headers_time if self._is_retiring else 0
        _abandon_after(self._config.exit_limit + waiting_limit)
        if self._is_retiring:
            # What the listen queue holds can be answered only then.
            await self._serves.wait()
            self._listener.end()
            await asyncio.sleep(self._config.request_time)
            flush_limit = self._config.retire_limit
        else:
            self._discovery.remove()
            self._discovery.sweep()
            self._ide.reject_all()
            flush_limit = self._config.flush_limit
        await self._ide.finish_closing()
        self._emacs.give_up()
        await self._ide.flush(flush_limit)
        await self._ide.end_streams()
        if self._is_retiring:
            await self._answer_late_requests()

    async def _answer_late_requests(self) -> None:
        """Serve the clients that have connected, but are busy at the moment."""
        while self._listener.is_awaited and not self._hurry.is_set():
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), self._config.request_time)

    # What Emacs calls

    def hello(self) -> dict[str, object]:
        """Return what Emacs is to know, now that it has proved itself."""
        return {
            "version": __version__,
            "port": self._port,
            "token": self._config.token,
            "discovery": [str(path) for path in self._discovery.paths],
        }

    def context_update(self, context: IdeContext) -> None:
        """Take the files that are open in Emacs."""
        self._ide.broadcast(context)
        if self._restoring is None:
            loop = asyncio.get_running_loop()
            self._restoring = loop.call_at(
                self._restored + self._config.busy_check, self._restore_files
            )

    def roots_update(self, roots: Sequence[str]) -> None:
        """Take the folders of the open projects."""
        if self._stop.is_set():
            return
        self._say(self._discovery.update(roots))

    def _restore_files(self) -> None:
        """Bring back what a cleaner of temporary files took."""
        self._restored = asyncio.get_running_loop().time()
        self._restoring = None
        if self._stop.is_set():
            return
        self._emacs.folder.restore()
        self._say(self._discovery.restore())

    async def _keep_files(self) -> None:
        clock = asyncio.get_running_loop().time
        while True:
            now = clock()
            await asyncio.sleep(next_tick(now, self._config.idle_check) - now)
            self._restore_files()

    def _say(self, messages: Iterable[str]) -> None:
        """Show the user ``messages``, each once."""
        for message in messages:
            if message not in self._said:
                self._said.add(message)
                self._emacs.warn(message)

    def adopt_diff(self, diff: Diff) -> None:
        """Take in DIFF, which a former process had open."""
        self._ide.adopt(diff)

    def drop_diff(self, diff_id: int) -> None:
        """Forget a diff that the former process has closed."""
        self._ide.drop(diff_id)

    def diff_accepted(self, diff_id: int, text: str) -> None:
        """Take the outcome of a review that was accepted with TEXT."""
        self._ide.accept(diff_id, text)

    def diff_rejected(self, diff_id: int) -> None:
        """Take the outcome of a review that was rejected."""
        self._ide.reject(diff_id)


def prepare_http(config: Config, listener: Listener, ide: Ide) -> Serve:
    # Half a second of imports; until then clients wait in the listen queue.  Of
    # what is imported nothing is garbage, and to look for it takes a tenth.
    gc.disable()
    try:
        from .http import serve
    finally:
        gc.enable()
    gc.freeze()
    return partial(serve, config, listener, ide)


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for name in _SIGNALS:
        number = getattr(signal, name, None)
        if number is None:
            continue
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))


def _abandon_after(limit: float) -> None:
    watch = threading.Timer(limit, _abandon)
    watch.daemon = True
    watch.start()


def _abandon() -> None:
    """Leave what still hangs; all that matters has been done."""
    logger.info("What still hung is abandoned")
    logging.shutdown()
    os._exit(0)
