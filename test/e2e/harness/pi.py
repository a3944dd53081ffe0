# SPDX-License-Identifier: GPL-3.0-or-later
import json
import re
from pathlib import Path
from typing import Any

from .gemini import Gemini, type_until, write_program, write_settings
from .model import Model, Part, call
from .scratch import Scratch
from .tools import ROOT, Tools
from .wait import eventually

EXTENSION = ROOT / "python" / "gemini_companion_epc" / "extensions"
PROVIDER = "scripted"
# The rows of the prompt, between two lines; the first may say what Pi does.
PROMPT = re.compile(r"(?m)^──.*─{20,}\s*\n((?:(?!─{20}).*\n)*?)─{20,}")


def write(path: object, text: str) -> Part:
    return call("write", path=str(path), content=text)


def replace(path: object, old: str, new: str) -> Part:
    return call("edit", path=str(path), edits=[{"oldText": old, "newText": new}])


def configure(scratch: Scratch, is_extended: bool = True, **settings: object) -> None:
    """Write the ``settings`` of Pi, and its extension if it ``is_extended``."""
    model = {"defaultProvider": PROVIDER, "defaultModel": "model"}
    write_settings(home_of(scratch), {**model, "quietStartup": True, **settings})
    if is_extended:
        directory = home_of(scratch) / "extensions" / "gemini-companion"
        directory.mkdir(parents=True, exist_ok=True)
        for file in EXTENSION.iterdir():
            name = "index.js" if file.name == "pi.js" else file.name
            (directory / name).write_bytes(file.read_bytes())


def home_of(scratch: Scratch) -> Path:
    return scratch.home / ".pi" / "agent"


def script(tools: Tools, scratch: Scratch, model: Model, name: str) -> Path:
    provider = {
        "baseUrl": f"{model.url}/v1",
        "api": "openai-completions",
        "apiKey": "fake",
        "models": [{"id": "model"}],
    }
    models = home_of(scratch) / "models.json"
    models.write_text(json.dumps({"providers": {PROVIDER: provider}}), encoding="utf-8")
    values = {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"}
    return write_program(scratch.root / name, values, f"'{tools.pi}'")


class Pi(Gemini):
    """Pi, whose prompt is between two lines and has no sign."""

    placeholder = "Emacs"
    question = "In review in Emacs"

    def wait_until_connected(self) -> None:
        self.terminal.wait_for_match(r"(?m)^Emacs( \(no review of .*\))? *$")

    def _takes_text(self) -> bool:
        return self._typed_text() is not None

    def _is_typed(self, text: str) -> bool:
        return self._typed_text() == text

    def _typed_text(self) -> str | None:
        """Return the text in the prompt, None if the screen has no prompt."""
        prompts = PROMPT.findall(self.screen())
        return prompts[-1].strip() if prompts else None

    def command(self, command: str) -> None:
        """Run ``command``, whose text the prompt has until it is run."""
        self._enter(command)
        type_until(
            lambda: self.terminal.keys("Enter") if self._is_typed(command) else None,
            lambda: self._typed_text() == "",
            f"{command!r} run",
        )

    def reset(self) -> None:
        """Begin a new conversation, which is another session to Emacs."""
        self.model.script()
        self.command("/new")
        eventually(self._is_new, "the conversation is new")
        self._typed.clear()
        self._prompts = 0
        self.model.requests.clear()

    def _is_new(self) -> bool:
        """Return whether nothing of the last conversation is on the screen."""
        screen = self.screen()
        is_left = any(text in screen for text in self._typed)
        return "New session started" in screen and not is_left

    def results(self) -> list[str]:
        """Return the results of tools in the last request."""
        return [
            json.dumps(message["content"])
            for message in self.model.requests[-1]["messages"]
            if message["role"] == "tool"
        ]

    def messages(self) -> list[Any]:
        return list(self.model.requests[-1]["messages"])

    def is_reviewing(self, name: str) -> None:
        self.terminal.wait_for_match(rf"In review in Emacs: .*{re.escape(name)}")
