# SPDX-License-Identifier: GPL-3.0-or-later
"""Start, serve and stop, in order; what wires the two ends together."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from . import __version__, discovery
from .asgi import Asgi
from .config import Config, parse_start_line
from .discovery import Discovery
from .emacs import Emacs, read_start_line, watch_stdin
from .exceptions import DiscoveryError, StartError
from .ide import Ide
from .types import IdeContext

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

logger = logging.getLogger(__name__)

Serve: TypeAlias = Callable[[asyncio.Event], Awaitable[None]]

_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK")
# Node keeps an idle connection for 4 s, and must never meet one that we close.
# Not much longer: hypercorn keeps one that the client has closed as long, too.
_KEEP_ALIVE = 10


def run(cure: str) -> int:
    """Serve the Emacs that started this process; return the exit status.

    CURE is the command that installs the packages which the server needs.
    """
    _log_to_stderr()
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


def _log_to_stderr() -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("mcp").setLevel(logging.WARNING)


async def _run(config: Config) -> None:
    await Server(config).run()


class Server:
    """The process: two ends, the discovery file, and one way out."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._socket, busy = bind_http(config.port)
        self._port: int = self._socket.getsockname()[1]
        self._emacs = Emacs(config, self)
        self._ide = Ide(config, self._emacs)
        self._tmpdir = discovery.node_tmpdir(os.environ, os.name == "nt")
        self._discovery = Discovery(config.emacs_pid, self._port, (), config.token)
        self._discovery_path: Path | None = None
        self._said: set[str] = set()
        self._stop = asyncio.Event()
        if busy:
            self._emacs.warn(
                f"Port {config.port} is taken, now it is {self._port}; "
                "type /ide enable in each running Gemini CLI"
            )

    async def run(self) -> None:
        """Serve until Emacs leaves, asks for it, or a signal comes."""
        _on_signals(self.stop)
        watch_stdin(self.stop)
        self._emacs.listen()
        discovery.sweep(self._tmpdir)
        self.roots_update(self._config.roots)
        print(self._emacs.port, flush=True)
        logger.info(
            "gemini-companion %s: pid %d, HTTP port %d, EPC port %d",
            __version__,
            os.getpid(),
            self._port,
            self._emacs.port,
        )
        stop_http = asyncio.Event()
        serving = asyncio.create_task(self._serve(stop_http))
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if serving.done():
            self._stop.set()
            await self._leave()
            await serving
        else:
            await self._leave()
            await self._end_http(serving, stop_http)

    async def _serve(self, stop_http: asyncio.Event) -> None:
        serve = await asyncio.to_thread(
            prepare_http, self._config, self._socket, self._port, self._ide
        )
        await serve(stop_http)

    # Stop

    def stop(self) -> None:
        """Begin to stop, once."""
        if not self._stop.is_set():
            logger.info("Stopping")
            self._stop.set()

    async def _leave(self) -> None:
        _abandon_after(self._config.exit_limit)
        self._remove_discovery()
        self._ide.reject_all()
        await self._ide.flush()
        await self._emacs.close()
        await self._ide.end_streams()

    async def _end_http(
        self, serving: "asyncio.Task[None]", stop_http: asyncio.Event
    ) -> None:
        """End hypercorn, which waits for a stalled client, maybe for ever."""
        stop_http.set()
        await asyncio.wait([serving], timeout=self._config.end_limit)
        if not serving.done():
            _abandon()
        if (error := serving.exception()) is not None:
            logger.error("The HTTP server ended badly", exc_info=error)

    def _remove_discovery(self) -> None:
        if self._discovery_path is not None:
            with suppress(OSError):
                discovery.remove(self._discovery_path, self._discovery)

    # What Emacs calls

    def hello(self) -> dict[str, object]:
        """Return what Emacs is to know, now that it has proved itself."""
        path = self._discovery_path
        return {
            "version": __version__,
            "port": self._port,
            "token": self._config.token,
            "discovery": None if path is None else str(path),
        }

    def context_update(self, context: IdeContext) -> None:
        """Take the files that are open in Emacs."""
        self._ide.broadcast(context)

    def roots_update(self, roots: Sequence[str]) -> None:
        """Take the folders of the open projects."""
        if self._stop.is_set():
            return
        workspaces, refused = discovery.workspaces(roots)
        for root in refused:
            self._say(f"Gemini CLI cannot find {root}: its name contains {os.pathsep}")
        self._discovery = Discovery(
            self._config.emacs_pid, self._port, workspaces, self._config.token
        )
        try:
            self._discovery_path = discovery.write(self._discovery, self._tmpdir)
        except DiscoveryError as error:
            self._say(str(error))

    def _say(self, message: str) -> None:
        """Tell the person MESSAGE, but not again with every change of the roots."""
        if message not in self._said:
            self._said.add(message)
            self._emacs.warn(message)

    def diff_accepted(self, diff_id: int, text: str) -> None:
        """Take the outcome of a review that was accepted with TEXT."""
        self._ide.accept(diff_id, text)

    def diff_rejected(self, diff_id: int) -> None:
        """Take the outcome of a review that was rejected."""
        self._ide.reject(diff_id)


def bind_http(port: int) -> tuple[socket.socket, bool]:
    """Return a listening socket, and whether PORT was taken by another."""
    try:
        return _bound(port), False
    except OSError:
        if not port:
            raise StartError("No port of 127.0.0.1 can be bound") from None
        return bind_http(0)[0], True


def _bound(port: int) -> socket.socket:
    # Without IPPROTO_TCP asyncio leaves Nagle on, 40 ms for each answer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    return listener


def prepare_http(config: Config, listener: socket.socket, port: int, ide: Ide) -> Serve:
    # Half a second of imports; until then clients wait in the listen queue.
    from hypercorn.asyncio import serve
    from hypercorn.config import Config as HypercornConfig

    from .tools import session_manager

    hypercorn = HypercornConfig()
    hypercorn.bind = [f"fd://{listener.detach()}"]
    hypercorn.errorlog = logging.getLogger("hypercorn")
    hypercorn.graceful_timeout = config.exit_limit
    hypercorn.keep_alive_timeout = _KEEP_ALIVE
    hypercorn.include_server_header = False

    async def serve_until(stop_http: asyncio.Event) -> None:
        manager = session_manager(ide, config)
        app = Asgi(config, port, ide, manager.handle_request)
        async with manager.run():
            await serve(
                cast("ASGIFramework", app),
                hypercorn,
                shutdown_trigger=stop_http.wait,
                mode="asgi",
            )

    return serve_until


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
    logging.shutdown()
    os._exit(0)
