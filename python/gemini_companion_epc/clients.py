# SPDX-License-Identifier: GPL-3.0-or-later
"""The CLIs that connect, and how each finds an editor.

All that differs by CLI is in three tables: `CLIENTS`, its counterpart in
gemini-companion-client.el, and `bridge`, which runs without this package.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which

from .bridge import HOMES, directory_of
from .companion import COMPANION
from .copilot import Copilot
from .protocol import Protocol
from .types import Json

_RUNNER = r"(.*/)?(node(js)?|bun|deno)"


@dataclass(frozen=True)
class Client:
    """A CLI that reads discovery files."""

    name: str
    """The key of the client in calls between Emacs and the server."""
    title: str
    """The name of the client in messages."""
    program: str
    """Regular expression for a word of its command line."""
    file_name: Callable[[object, object], str]
    """Function that returns the file name for the PID of Emacs and the HTTP port."""
    protocol: Protocol
    states_version: bool = False
    """Whether ``clientInfo`` has the version of the CLI, not of a library."""
    events: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What events of its hooks, or their notifications, report; others are edits."""
    identity: tuple[str, ...] = ()
    """Headers that name its session over several connections; the first has its PID."""
    has_socket: bool = False
    """Whether it uses a Unix socket of this host, and watches its discovery file."""
    takes_any_root: bool = False
    """Whether it can be sent a workspace root whose name has a separator."""

    @property
    def can_be_remote(self) -> bool:
        """Whether an outpost can carry its connections from another host."""
        return not self.has_socket

    def directory(self, environ: Mapping[str, str]) -> Path:
        """Return the directory of discovery files for an environment."""
        return Path(directory_of(self.name, environ))

    def bearer(self, token: str) -> str:
        """Return the bearer token that names this client to the server."""
        return token if self is CLIENTS[0] else f"{token}.{self.name}"

    def discovery(self, port: int, token: str, roots: Sequence[str] = ()) -> Json:
        """Return the content of its discovery file, see `Protocol.discovery`."""
        taken = [root for root in roots if self.can_take(root)]
        return self.protocol.discovery(port, self.bearer(token), taken)

    def can_take(self, root: str) -> bool:
        """Return whether the client can be sent the workspace root ``root``."""
        return self.takes_any_root or os.pathsep not in root

    def remote_description(self, token: str) -> Json:
        """Return the description of the discovery file for an outpost."""
        variable, top = HOMES.get(self.name, ("", "gemini"))
        return {
            "name": self.name,
            "home": variable,
            "top": top,
            "file": self.file_name("PID", "PORT"),
            "content": self.discovery(0, token),
        }

    def is_installed(self, environ: Mapping[str, str]) -> bool:
        """Return whether a discovery file may be written for the client."""
        # Unlike Path.is_dir, this is no error if the home cannot be read.
        has_run = os.path.isdir(self.directory(environ).parent)
        # When it runs for the first time, it searches before the next check; the
        # CLI with a socket waits, and another program has its name.
        path = "" if self.has_socket else environ.get("PATH", "")
        return self.name not in HOMES or has_run or bool(which(self.name, path=path))


CLIENTS = (
    Client(
        name="gemini",
        title="Gemini CLI",
        program=r"(.*/)?gemini(-cli)?(\.m?js)?",
        file_name=lambda pid, port: f"gemini-ide-server-{pid}-{port}.json",
        protocol=COMPANION,
        states_version=True,
        events={
            "BeforeAgent": "prompt",
            "AfterAgent": "end",
            "Notification": "question",
        },
    ),
    Client(
        name="qwen",
        title="Qwen Code",
        program=r"(.*/)?qwen|.*/qwen-code/(dist/)?cli(-entry)?\.js",
        file_name=lambda pid, port: f"{port}.lock",
        protocol=COMPANION,
        takes_any_root=True,
        events={
            "UserPromptSubmit": "prompt",
            "Stop": "end",
            "Notification": "question",
            # It sends this also after Esc and after an error, where it does not stop.
            "idle_prompt": "end",
            "auth_success": "",
        },
    ),
    Client(
        name="copilot",
        title="Copilot CLI",
        program=r"(.*/)?copilot|.*/@github/copilot/npm-loader\.js",
        file_name=lambda pid, port: f"emacs-{pid}-{port}.lock",
        protocol=Copilot(),
        states_version=True,
        identity=("X-Copilot-PID", "X-Copilot-Session-Id"),
        has_socket=True,
        takes_any_root=True,
    ),
)


def client_of(command: Sequence[str]) -> Client | None:
    """Return the client that the command line ``command`` runs, if it runs one."""
    first, *others = command or [""]
    names = others[:3] if re.fullmatch(_RUNNER, first) else [first]
    if "--version" in others:
        return None
    for client in CLIENTS:
        if any(re.fullmatch(client.program, name) for name in names):
            return client
    return None


def bearers(token: str, clients: Sequence[Client] = CLIENTS) -> dict[bytes, Client]:
    """Return ``clients`` by what they send for authorization by ``token``."""
    return {f"Bearer {client.bearer(token)}".encode(): client for client in clients}


REMOTE_CLIENTS = tuple(client for client in CLIENTS if client.can_be_remote)
"""The clients that may run on another host; only these can authenticate there."""
