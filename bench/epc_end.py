# SPDX-License-Identifier: GPL-3.0-or-later
"""A Python process with only the EPC part, which reports when texts arrive.

It is started by Emacs in place of the server, and uses the same modules.  The
bench listens on BENCH_PORT: for each size that it sends, a text of that size is
proposed.  It gets one line for each text that was sent (open-diff) or has come
(diff-accepted): a time and the digest of the text.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Callable
from itertools import count

from texts import digest, of_size

from gemini_companion_epc import __version__
from gemini_companion_epc.config import parse_start_line
from gemini_companion_epc.emacs import Emacs, read_start_line
from gemini_companion_epc.types import Diff, SessionFacts


class Owner:
    """Receiver of the calls from Emacs."""

    def __init__(self) -> None:
        self.emacs: Emacs
        self.stopped = asyncio.Event()
        self._bench: asyncio.StreamWriter
        self._ids = count(1)

    def hello(self) -> dict[str, object]:
        return {"version": __version__, "port": 1, "token": "t", "discovery": None}

    def diff_accepted(self, diff_id: int, text: str) -> None:
        self._report(time.time(), text)

    def stop(self) -> None:
        self.stopped.set()

    async def follow(self) -> None:
        """Propose a text of each size that the bench sends."""
        port = int(os.environ["BENCH_PORT"])
        sizes, self._bench = await asyncio.open_connection("127.0.0.1", port)
        while line := await sizes.readline():
            self._propose(int(line))

    def _propose(self, size: int) -> None:
        diff = Diff(next(self._ids), "s", "/x", of_size(size))
        at = time.time()
        self.emacs.open_diff(diff, SessionFacts("s", None))
        self._report(at, diff.proposal)

    def _report(self, at: float, text: str) -> None:
        self._bench.write(f"{at} {digest(text)}\n".encode())


async def main() -> None:
    owner = Owner()
    owner.emacs = Emacs(parse_start_line(read_start_line()))
    methods: defaultdict[str, Callable[..., object]]
    methods = defaultdict(lambda: lambda *_: None)
    methods["diff-accepted"] = owner.diff_accepted
    methods["stop"] = owner.stop
    owner.emacs.listen(owner.hello, methods)
    print(owner.emacs.port, flush=True)
    following = asyncio.create_task(owner.follow())
    await owner.stopped.wait()
    following.cancel()
    await owner.emacs.close()


if __name__ == "__main__":
    asyncio.run(main())
