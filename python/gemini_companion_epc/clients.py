# SPDX-License-Identifier: GPL-3.0-or-later
"""The CLIs that speak the companion protocol, and how each finds an editor.

They share everything but discovery.  A further client is one more row of
`CLIENTS`, and its directory and variable in `bridge`, which runs without this package.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from .bridge import directory_of

IDE_INFO = {"name": "emacs", "displayName": "Emacs"}

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
    parts: tuple[str, ...] = ()
    """The directory of these files, below the temporary one or `home_variable`."""
    home_variable: str = ""
    """The variable that replaces the first of the parts, which is in the home."""
    states_version: bool = False
    """Whether ``clientInfo`` has the version of the CLI, not of a library."""
    takes_json_roots: bool = False
    """Whether the client reads workspace roots from a JSON array in a string."""

    def directory(self, environ: Mapping[str, str]) -> Path:
        """Return the directory of discovery files for an environment."""
        return Path(directory_of(self.name, environ))

    def bearer(self, token: str) -> str:
        """Return the bearer token that names this client to the server."""
        return token if self is CLIENTS[0] else f"{token}.{self.name}"

    def workspace_path(self, roots: Sequence[str]) -> str:
        """Return ``roots`` as the client reads them; see `can_take`."""
        if self.takes_json_roots and any(os.pathsep in root for root in roots):
            return json.dumps(list(roots))
        return os.pathsep.join(root for root in roots if self.can_take(root))

    def can_take(self, root: str) -> bool:
        """Return whether the client can be sent the workspace root ``root``."""
        return self.takes_json_roots or os.pathsep not in root

    def elsewhere(self, token: str) -> dict[str, object]:
        """Return the description of the discovery file for an outpost."""
        return {
            "name": self.name,
            "home": self.home_variable,
            "parts": self.parts,
            "file": self.file_name("PID", "PORT"),
            "suffix": self.file_name("PID", "PORT").rpartition("PORT")[2],
            "content": {"authToken": self.bearer(token), "ideInfo": IDE_INFO},
        }

    def is_installed(self, environ: Mapping[str, str]) -> bool:
        """Return whether a discovery file may be written for the client."""
        # Unlike Path.is_dir, this is no error if the home cannot be read.
        has_run = os.path.isdir(self.directory(environ).parent)
        # When it runs for the first time, it searches before the next check.
        is_found = which(self.name, path=environ.get("PATH", ""))
        return not self.home_variable or has_run or bool(is_found)


CLIENTS = (
    Client(
        name="gemini",
        title="Gemini CLI",
        program=r"(.*/)?gemini(-cli)?(\.m?js)?",
        file_name=lambda pid, port: f"gemini-ide-server-{pid}-{port}.json",
        parts=("gemini", "ide"),
        states_version=True,
    ),
    Client(
        name="qwen",
        title="Qwen Code",
        program=r"(.*/)?qwen|.*/qwen-code/(dist/)?cli(-entry)?\.js",
        file_name=lambda pid, port: f"{port}.lock",
        parts=(".qwen", "ide"),
        home_variable="QWEN_HOME",
        takes_json_roots=True,
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


def bearers(token: str) -> dict[bytes, Client]:
    """Return the clients by what they send for authorization by ``token``."""
    return {f"Bearer {client.bearer(token)}".encode(): client for client in CLIENTS}
