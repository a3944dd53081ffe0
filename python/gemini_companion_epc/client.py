# SPDX-License-Identifier: GPL-3.0-or-later
"""All that differs by CLI, as values of one class.

Each CLI has a module, which makes a `Client`; the defaults here are for a CLI without
the feature.  The counterpart in Emacs is gemini-companion-client.el.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import which

from .common import HOMES, directory_in
from .hooks import Hooks
from .protocol import Protocol
from .types import Json


@dataclass(frozen=True)
class Client:
    """A CLI that reads discovery files."""

    name: str
    """The key of the client in calls between Emacs and the server, and its program."""
    title: str
    """The name of the client in messages."""
    program: str
    """Regular expression for a word of its command line."""
    file_name: Callable[[object, object], str]
    """Function that returns the file name for the PID of Emacs and the HTTP port."""
    protocol: Protocol
    acp_options: Sequence[str] = ()
    """The options with which it is controlled by another program, by ACP."""
    states_version: bool = False
    """Whether ``clientInfo`` has the version of the CLI, not of a library."""
    has_plain_token: bool = False
    """Whether its bearer is the token alone, without its name."""
    reconnect: str = ""
    """Its command that connects it again after the server has moved to another port.

    Without one, it does so by itself.
    """
    search_tool: str = ""
    """Its tool that searches for text."""
    awaits_tools: bool = False
    """Whether it waits for a tool that asks the user."""
    hooks: Hooks | None = None
    """The shape of the events that it reports by hooks, if it can be linked."""
    identity: tuple[str, ...] = ()
    """Headers that name its session over several connections; the first has its PID."""
    socket_name: Callable[[], str] | None = None
    """Function that returns the name of the Unix socket of this process.

    It uses nothing else, so it runs on this host, and it watches its discovery file.
    """
    takes_any_root: bool = False
    """Whether it can be sent a workspace root whose name has a separator."""

    @property
    def has_socket(self) -> bool:
        """Whether it uses a Unix socket of this host, and watches its file."""
        return self.socket_name is not None

    @property
    def can_be_remote(self) -> bool:
        """Whether an outpost can carry its connections from another host."""
        return not self.has_socket

    @property
    def home_variable(self) -> str:
        """The environment variable for its directory, see `common.HOMES`."""
        return HOMES[self.name][0]

    @property
    def searches_temporary(self) -> bool:
        """Whether it searches for Emacs in a temporary directory, not in the home."""
        return not self.home_variable

    def directory(self, environ: Mapping[str, str]) -> Path:
        """Return the directory of discovery files for an environment."""
        return Path(directory_in(self.name, environ))

    def bearer(self, token: str) -> str:
        """Return the bearer token that names this client to the server."""
        return token if self.has_plain_token else f"{token}.{self.name}"

    def discovery(self, port: int, token: str, roots: Sequence[str] = ()) -> Json:
        """Return the content of its discovery file, see `Protocol.discovery`."""
        usable = [root for root in roots if self.can_take(root)]
        return self.protocol.discovery(port, self.bearer(token), usable)

    def can_take(self, root: str) -> bool:
        """Return whether the client can be sent the workspace root ``root``."""
        return self.takes_any_root or os.pathsep not in root

    def remote_description(self, token: str) -> Json:
        """Return the description of the discovery file for an outpost."""
        return {
            "name": self.name,
            "home": self.home_variable,
            "top": HOMES[self.name][1],
            "file": self.file_name("PID", "PORT"),
            "content": self.discovery(0, token),
        }

    def has_run(self, environ: Mapping[str, str]) -> bool:
        """Return whether the client has its directory, or needs none of its own."""
        # Unlike Path.is_dir, this does not fail if the home cannot be read.
        has_home = os.path.isdir(self.directory(environ).parent)
        return self.searches_temporary or has_home

    def is_in_path(self, environ: Mapping[str, str]) -> bool:
        """Return whether the program of the client is installed.

        A CLI that runs for the first time searches before the next check.
        """
        # A CLI with a socket waits, and another program may have its name.
        path = "" if self.has_socket else environ.get("PATH", "")
        return bool(which(self.name, path=path))
