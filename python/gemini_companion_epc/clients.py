# SPDX-License-Identifier: GPL-3.0-or-later
"""The CLIs that can connect, each with a module, and look-ups among them."""

import re
from collections.abc import Sequence

from .client import Client
from .copilot import COPILOT
from .gemini import GEMINI
from .pi import PI
from .qwen import QWEN

_RUNNER = r"(.*/)?(node(js)?|bun|deno)"

CLIENTS = [GEMINI, QWEN, COPILOT, PI]


def remote_clients() -> list[Client]:
    """Return the clients that may run on other hosts; no others authenticate there."""
    return [client for client in CLIENTS if client.can_be_remote]


def client_named(name: str) -> Client:
    """Return the client with the key ``name``, or raise StopIteration."""
    return next(client for client in CLIENTS if client.name == name)


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


def is_acp(command: Sequence[str]) -> bool:
    """Return whether another program controls the CLI of ``command`` by ACP."""
    options = {option for client in CLIENTS for option in client.acp_options}
    return any(word.split("=")[0] in options for word in command)


def bearers(token: str, clients: Sequence[Client]) -> dict[bytes, Client]:
    """Return ``clients`` by what they send for authorization by ``token``."""
    return {f"Bearer {client.bearer(token)}".encode(): client for client in clients}


def reconnection() -> str:
    """Return how the user reconnects CLIs that do not find a server that has moved.

    For example "run /ide enable in Gemini CLI and Qwen Code".
    """
    titles: dict[str, list[str]] = {}
    for client in CLIENTS:
        if client.reconnect:
            titles.setdefault(client.reconnect, []).append(client.title)
    return ", ".join(
        f"run {command} in {' and '.join(names)}" for command, names in titles.items()
    )
