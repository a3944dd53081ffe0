# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python end of the EPC wire alone, which notes when things come and go.

It is started by Emacs in place of the server, and uses the same modules.  Each
line that it writes to the file BENCH_TIMES is a time and the digest of a text:
of one that came (diff-accepted), or of one that was sent (open-diff) because
Emacs asked for it by diff-rejected, with the size as the id.
"""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

from texts import digest, of_size

from gemini_companion_epc import __version__
from gemini_companion_epc.config import parse_start_line
from gemini_companion_epc.emacs import Emacs, read_start_line
from gemini_companion_epc.types import Diff, SessionFacts


class Owner:
    """What the calls of Emacs reach."""

    def __init__(self) -> None:
        self.emacs: Emacs
        self.stopped = asyncio.Event()
        self._times = Path(os.environ["BENCH_TIMES"])

    def hello(self) -> dict[str, object]:
        return {"version": __version__, "port": 1, "token": "t", "discovery": None}

    def diff_accepted(self, diff_id: int, text: str) -> None:
        self._note(time.time(), text)

    def diff_rejected(self, diff_id: int) -> None:
        # Not while the answer to this call is on its way.
        asyncio.get_running_loop().call_later(0.02, self._send, diff_id)

    def _send(self, size: int) -> None:
        diff = Diff(size, "s", "/x", of_size(size))
        at = time.time()
        self.emacs.open_diff(diff, SessionFacts("s", None))
        self._note(at, diff.proposal)

    def _note(self, at: float, text: str) -> None:
        with self._times.open("a") as times:
            times.write(f"{at} {digest(text)}\n")

    def stop(self) -> None:
        self.stopped.set()

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


async def main() -> None:
    owner = Owner()
    owner.emacs = Emacs(parse_start_line(read_start_line()), owner)
    owner.emacs.listen()
    print(owner.emacs.port, flush=True)
    await owner.stopped.wait()
    await owner.emacs.close()


if __name__ == "__main__":
    asyncio.run(main())
