# SPDX-License-Identifier: GPL-3.0-or-later
"""What the server is told when it starts, and its limits."""

import json
import re
import secrets
from dataclasses import dataclass, field
from typing import TypeVar

from .exceptions import StartError
from .log import LEVELS

Value = TypeVar("Value")
Default = TypeVar("Default")

_VISIBLE_ASCII = re.compile(r"[\x21-\x7e]+")


def new_token() -> str:
    """Return a random bearer token."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Config:
    """Everything that is fixed for the life of the process; times in seconds."""

    secret: str = field(repr=False)
    emacs_pid: int
    roots: tuple[str, ...] = ()
    port: int = 0
    token: str = field(default_factory=new_token, repr=False)
    offer_tools: bool = True
    is_trusted: bool | None = None
    log_file: str = ""
    log_level: str = "info"

    hello_limit: float = 5
    """An EPC connection that has not said hello by then is closed."""
    review_grace: float = 10
    """The diffs of a session whose event stream has closed live this long."""
    return_limit: float = 2
    """By then the clients of a former process have opened their streams."""
    session_grace: float = 120
    """A session without an event stream and without requests lives this long."""
    max_sessions: int = 2000
    """A client that asks for one more is refused."""
    report_interval: float = 0.1
    """Emacs gets the list of sessions no more often."""
    cancel_window: float = 2
    """How long after an interrupted proposal the next one is still part of it."""
    list_limit: float = 1
    """How long tools/list waits to know the process of its session."""
    open_limit: float = 0.05
    """The same for openDiff."""
    close_limit: float = 120
    """How long Emacs may take to answer close-diff."""
    busy_check: float = 5
    """Seconds between looks for the files while the person works."""
    idle_check: float = 15
    """The same while nothing happens."""
    headers_time: float = 300
    """How long a client may take from connecting to sending its request.

    Gemini CLI connects, then lays out a long line for more than 30 s, and fails
    if it finds the connection closed.
    """
    comment_interval: float = 30
    """An event stream is never silent for longer.

    A multiple of idle_check, so that both wake the process together.
    """
    body_limit: int = 65 * 1024 * 1024
    """The largest HTTP body in bytes: 64 MiB of text and what JSON adds."""
    body_time: float = 30
    """How long a client may take to send a body."""
    answer_limit: float = 0.3
    """How long a closeDiff may still wait for Emacs when the server stops."""
    flush_limit: float = 1
    """How long the outcomes may take to leave when the server stops."""
    retire_limit: float = 0.3
    """The same when a successor takes over."""
    request_time: float = 0.05
    """Within this time after connecting, most clients have sent their request."""
    done_limit: float = 0.5
    """How long Emacs may take to do what it was asked when the server ends."""
    end_limit: float = 0.5
    """How long the event streams, and then hypercorn, may take to end."""
    exit_limit: float = 3
    """Whatever still hangs this long after a stop began is abandoned."""


def parse_start_line(line: bytes) -> Config:
    """Return the Config that the first line of stdin asks for."""
    if not line.strip():
        raise StartError(
            "No start line came on stdin; this program is started by Emacs, "
            "use M-x gemini-companion-mode there"
        )
    try:
        start = json.loads(line)
    except ValueError as error:
        raise StartError(f"The start line is not JSON ({error})") from None
    if not isinstance(start, dict):
        raise StartError("The start line is not a JSON object")
    return _config(start)


def _config(start: dict[str, object]) -> Config:
    token = _take(start, "token", str, "") or new_token()
    if not _VISIBLE_ASCII.fullmatch(token):
        raise StartError("token in the start line must be visible ASCII")
    secret = _take(start, "secret", str, "")
    if not secret:
        raise StartError("secret in the start line is missing")
    port = _take(start, "port", int, 0)
    if not 0 <= port <= 65535:
        raise StartError(f"port in the start line is not a port: {port}")
    log_level = _take(start, "logLevel", str, "info")
    if log_level not in LEVELS:
        levels = ", ".join(LEVELS)
        raise StartError(f"logLevel in the start line must be one of {levels}")
    roots = _take(start, "roots", list, [])
    return Config(
        secret=secret,
        emacs_pid=_take(start, "emacsPid", int, 0),
        roots=tuple(root for root in roots if isinstance(root, str)),
        port=port,
        token=token,
        offer_tools=_take(start, "offerTools", bool, True),
        is_trusted=_take(start, "isTrusted", bool, None),
        log_file=_take(start, "logFile", str, ""),
        log_level=log_level,
    )


def _take(
    start: dict[str, object], key: str, kind: type[Value], default: Default
) -> Value | Default:
    value = start.get(key)
    if value is None:
        return default
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise StartError(f"{key} in the start line must be of type {kind.__name__}")
    return value
