# SPDX-License-Identifier: GPL-3.0-or-later
import json
import time
from pathlib import Path

from .gemini import AGAIN, Gemini, write_program, write_settings
from .model import Model, Part, call
from .scratch import Scratch
from .tools import DEPS, Tools

QUESTION = "Do you want to"
SETTINGS = {"banner": "never", "showTipsOnStartup": False, "tabs": {"enabled": False}}


def create(path: object, text: str) -> Part:
    return call("create", path=str(path), file_text=text)


def replace(path: object, old: str, new: str) -> Part:
    return call("edit", path=str(path), old_str=old, new_str=new)


def configure(scratch: Scratch) -> None:
    home = scratch.home / ".copilot"
    trusted = {"trustedFolders": [str(scratch.project)]}
    write_settings(home, {**SETTINGS, **trusted})
    (home / "config.json").write_text(json.dumps(trusted), encoding="utf-8")
    cache = scratch.home / ".cache"
    cache.mkdir(exist_ok=True)
    if not (cache / "copilot").exists():
        # It unpacks itself, which takes 235 MB.
        (cache / "copilot").symlink_to(DEPS / "copilot" / ".cache" / "copilot")


def script(tools: Tools, scratch: Scratch, model: Model, name: str) -> Path:
    values = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{model.url}/v1",
        "COPILOT_PROVIDER_API_KEY": "fake",
        "COPILOT_MODEL": "claude-sonnet-4.6",
        "COPILOT_AUTO_UPDATE": "false",
    }
    return write_program(scratch.root / name, values, f"'{tools.copilot}'")


class Copilot(Gemini):
    # The sign behind the frame is missing while its terminal has not the focus.
    mark = "[\u276f\u2503]"
    # There may be no room for what follows it.
    placeholder = " · / commands"
    question = QUESTION
    # With that in Emacs.
    server_count = 1
    _allows_all = False

    def wait_until_connected(self) -> None:
        """Wait until it takes prompts and shows the active file of Emacs.

        It does not always say that it is connected.
        """
        self.terminal.wait_for(self.placeholder)
        self.terminal.wait_for_match(r"(?m) @\S+$")

    def allow_all(self, word: str = "on") -> None:
        """Let it ask for no permissions, or by the ``word`` off, ask again."""
        said = {"on": "All permissions are now enabled", "off": "have been disabled"}[
            word
        ]
        self.type(f"/allow-all {word}", lambda: said in self.screen())
        self._allows_all = word == "on"

    def reset(self) -> None:
        if self._allows_all:
            self.allow_all("off")
        super().reset()

    def _is_clear(self) -> bool:
        """Return whether the new conversation also has the server in Emacs.

        The CLI cancels a turn that begins before.
        """
        is_clear = super()._is_clear()
        said = f"MCP Servers reloaded: {self.server_count} server"
        if is_clear and said not in self.screen():
            # It says that twice, before and after it connects to Emacs, which is in the
            # second count only.  Once in many runs, both counted no server.
            if time.monotonic() - self._entered > AGAIN:
                self._enter("/clear")
            return False
        return is_clear
