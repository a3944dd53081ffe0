# SPDX-License-Identifier: GPL-3.0-or-later
"""The real Emacs, without a frame, in which soak.el is the user."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil
from harness.emacs import BARE, configure
from harness.scratch import Scratch
from harness.tools import ROOT, Tools

HERE = Path(__file__).resolve().parent
NAME = "soak"


class Emacs:
    """An Emacs that runs as a daemon with its own directories."""

    def __init__(self, tools: Tools, scratch: Scratch, seed: int) -> None:
        self._tools = tools
        self.scratch = scratch
        self.journal = scratch.root / "journal"
        configure(scratch)
        self._environment = {
            **scratch.environment,
            "GC_ELPA": tools.elpa,
            "GC_PYTHON": tools.python,
            "GC_SOAK_SEED": str(seed),
            "SOAK_ROOT": str(ROOT),
            "SOAK_JOURNAL": str(self.journal),
            "SOAK_PROJECT": str(scratch.project),
        }
        self._output = scratch.root / "emacs.log"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [tools.emacs, *BARE, f"--fg-daemon={NAME}", "-l", HERE / "soak.el"],
                cwd=scratch.project,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        self.process = psutil.Process(self._process.pid)

    async def eval(self, code: str) -> str:
        """Evaluate ``code`` and return the printed value."""
        client = await asyncio.create_subprocess_exec(
            self._tools.emacsclient, "-s", NAME, "--eval", code,
            cwd=self.scratch.project,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            output, _ = await asyncio.wait_for(client.communicate(), 30)
        except asyncio.TimeoutError:
            client.kill()
            raise AssertionError(f"Emacs does not answer {code}") from None
        text = output.decode(errors="replace").strip()
        if client.returncode:
            raise AssertionError(f"{code}: {text}")
        return text

    async def value(self, code: str) -> object:
        """Evaluate ``code`` and return its value, converted by JSON."""
        printed = await self.eval(
            "(base64-encode-string"
            f" (encode-coding-string (json-encode {code}) 'utf-8) t)"
        )
        return json.loads(base64.b64decode(printed))

    async def until(self, code: str, seconds: float = 30) -> None:
        """Wait until ``code`` is true."""
        deadline = asyncio.get_running_loop().time() + seconds
        while True:
            try:
                if await self.eval(f"(and {code} t)") == "t":
                    return
            except AssertionError:
                if self._process.poll() is not None:
                    raise AssertionError(self.output()) from None
            if asyncio.get_running_loop().time() > deadline:
                raise AssertionError(f"not within {seconds} s: {code}")
            await asyncio.sleep(0.1)

    async def server_pid(self) -> int | None:
        """Return the process id of the server that Emacs uses."""
        text = await self.eval("(plist-get (gemini-companion-server-info) :pid)")
        return None if text == "nil" else int(text)

    def rss(self) -> float:
        """Return its memory in MiB."""
        return float(self.process.memory_info().rss) / 2**20

    async def quit(self) -> None:
        """Exit Emacs, and wait until it has exited."""
        with suppress(AssertionError):
            await self.eval("(kill-emacs)")
        await asyncio.to_thread(self._process.wait, 30)

    def output(self) -> str:
        return self._output.read_text(errors="replace")[-3000:]

    def entries(self) -> list[dict[str, str]]:
        """Return the entries of the journal that soak.el wrote."""
        lines = self.journal.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]
