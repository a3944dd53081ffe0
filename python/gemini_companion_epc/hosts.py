# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts where CLIs run: this one, and those that are connected.

The module `outpost`, with the connection to a host, is imported for the first one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, TypeAlias

from .types import Address, Facts, RemoteError

if TYPE_CHECKING:
    from .outpost import Outpost

Flush: TypeAlias = Callable[[], Awaitable[None]]


@dataclass(eq=False, repr=False)
class Hosts:
    """All hosts by name, "" for this one; ``report`` is called with facts."""

    server_port: int
    report: Callable[[Facts], None]
    reviewed: Callable[[str], Iterable[str]]
    """Function that returns the files of a host that are being reviewed."""
    outposts: "dict[str, Outpost]" = field(default_factory=dict)
    """The connections to other hosts, by the name of the host."""
    # Also those of hosts that are disconnected.
    _copies: set[PurePosixPath] = field(default_factory=set)

    def start(self, facts: Facts) -> None:
        """Connect the host that Emacs describes; if connected, update directories."""
        from .outpost import Outpost, Remote

        remote = Remote.of(facts)
        outpost = self.outposts.get(remote.name)
        if outpost is None or not outpost.connect_from(remote.directories):
            self.outposts[remote.name] = Outpost(
                remote, self.server_port, self.report, self.reviewed
            )
            self._copies.add(PurePosixPath(remote.copies))

    async def stop(self, name: str, flush: Flush | None = None) -> None:
        """Disconnect the host ``name``, after a ``flush`` of outcomes for its CLIs."""
        if outpost := self.outposts.pop(name, None):
            if flush is not None:
                await flush()
                await outpost.passed_on()
            await asyncio.wait([outpost.stop()])

    async def stop_all(self) -> None:
        """Disconnect all hosts."""
        await asyncio.gather(*map(self.stop, self.outposts))

    def of_address(self, address: Address) -> "Outpost | None":
        """Return the outpost that carries the connection from ``address``."""
        outposts = self.outposts.values()
        return next(
            (outpost for outpost in outposts if outpost.tunnel.carries(address)), None
        )

    def remote_name(self, name: str, path: str) -> str | None:
        """Return the name on the host ``name`` of the local file ``path``, or None."""
        if name:
            outpost = self.outposts.get(name)
            return None if outpost is None else outpost.copies.remote_name(path)
        return path if self._copies.isdisjoint(PurePosixPath(path).parents) else None

    async def write(self, name: str, path: str, *change: str) -> None:
        """Change the file ``path`` of the host ``name``; see `Outpost.update`."""
        if (outpost := self.outposts.get(name)) is None:
            raise RemoteError(f"{name} is not connected")
        await outpost.update(path, *change)
