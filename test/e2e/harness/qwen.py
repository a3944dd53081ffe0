# SPDX-License-Identifier: GPL-3.0-or-later
"""The real Qwen Code on a screen."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

from .gemini import Gemini
from .model import Model
from .scratch import Scratch
from .tools import Tools

SETTINGS = {
    "ide": {"enabled": True, "hasSeenNudge": True},
    "security": {
        "auth": {"selectedType": "openai"},
        "folderTrust": {"enabled": False},
    },
    "tools": {"approvalMode": "default"},
    "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
    "privacy": {"usageStatisticsEnabled": False},
    "ui": {"hideTips": True},
}
READY = "Type your message"


def configure(scratch: Scratch, **changes: object) -> None:
    """Write the settings of a Qwen Code that is ready to work, with ``changes``."""
    directory = scratch.home / ".qwen"
    directory.mkdir(exist_ok=True)
    settings = {**SETTINGS, **changes}
    directory.joinpath("settings.json").write_text(
        json.dumps(settings), encoding="utf-8"
    )


def script(tools: Tools, scratch: Scratch, model: Model, name: str) -> Path:
    """Write a program that runs Qwen Code, and return it."""
    path = scratch.root / name
    lines = [
        "#!/bin/sh",
        "export OPENAI_API_KEY=fake OPENAI_MODEL=model",
        f"export OPENAI_BASE_URL={model.url}/v1",
        f'exec {tools.qwen} "$@"',
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


class Qwen(Gemini):
    """A Qwen Code on a screen."""

    def wait_until_connected(self) -> None:
        """Wait until it takes prompts and has connected.

        It does that for 15 s at the most, in which a busy machine may not start it.
        """
        self.terminal.wait_for(READY)
        self.terminal.wait_until_gone("IDE connecting")
        if "IDE connection unavailable" in self.screen():
            self.ide("enable")

    def editor_context(self) -> str:
        """Return the editor context that reaches the model with a new prompt."""
        self.is_free()
        text = json.dumps(self.model.requests[-1]["messages"][-1])
        found = re.search(r"Active file:.*", text)
        return found[0] if found else ""
