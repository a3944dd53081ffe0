# SPDX-License-Identifier: GPL-3.0-or-later
"""Start-up configuration and limits."""

import json
import secrets
from dataclasses import dataclass, field

from .exceptions import StartError


def new_token() -> str:
    """Return a random bearer token."""
    return secrets.token_urlsafe(32)


@dataclass(frozen=True)
class Config:
    """Settings that are fixed for the life of the process; times in seconds."""

    secret: str = field(repr=False)
    emacs_pid: int
    roots: tuple[str, ...] = ()
    port: int = 0
    predecessor: str = ""
    """The private directory of the process whose port this one takes over."""
    token: str = field(default_factory=new_token, repr=False)
    is_exposed: bool = False
    """Whether another user may know the token: only own processes may use it then."""
    offer_tools: bool = True
    is_trusted: bool | None = None
    log_file: str = ""
    log_level: str = "info"

    hello_limit: float = 5
    """How long an EPC peer may take to authenticate."""
    review_grace: float = 30
    """How long the diffs of a session stay open after its event stream has closed.

    A Gemini CLI that formats a large edit takes more than 10 s to connect again.
    """
    return_limit: float = 2
    """How long the clients of the previous process take to open their streams."""
    session_grace: float = 120
    """How long a session without an event stream and without requests is kept."""
    max_sessions: int = 2000
    """The largest number of sessions; further clients are refused."""
    report_interval: float = 0.1
    """The shortest time between two reports of the sessions to Emacs."""
    cancel_window: float = 2
    """How long the next openDiff after an interrupted one still belongs to it."""
    list_limit: float = 1
    """How long tools/list waits for the process of its session to be found."""
    open_limit: float = 0.05
    """How long openDiff waits for the process of its session to be found."""
    question_limit: float = 15
    """How long a question of the model may take."""
    edit_limit: float = 4
    """How long Emacs may take to find the new errors after an edit."""
    count_limit: float = 1
    """How long counting the lines that have a word may take."""
    close_limit: float = 120
    """How long Emacs may take to answer close-diff."""
    file_check: float = 15
    """The time between two checks of the files that a cleanup may remove."""
    headers_time: float = 300
    """How long a client may take from connecting to sending its request.

    Gemini CLI connects, then lays out a long line for more than 30 s, and fails
    if it finds the connection closed.
    """
    comment_interval: float = 30
    """The time between two comments in a silent event stream.

    A multiple of ``file_check``, so that one wake-up serves both.
    """
    body_limit: int = 65 * 1024 * 1024
    """The largest HTTP body in bytes: 64 MiB of text, and what JSON adds."""
    body_time: float = 30
    """How long a client may take to send a body."""
    answer_limit: float = 0.3
    """How long closeDiff may still wait for Emacs when the server stops."""
    flush_limit: float = 1
    """How long writing the outcomes may take when the server stops."""
    retire_limit: float = 0.3
    """How long writing the outcomes may take when a successor takes over."""
    request_time: float = 0.05
    """Within this time after connecting, most clients have sent their request."""
    done_limit: float = 0.5
    """How long Emacs may take to answer its calls when the server ends."""
    end_limit: float = 0.5
    """How long the event streams, and then hypercorn, may take to end."""
    exit_limit: float = 3
    """How long a stop may take before the process exits anyway."""


def parse_start_line(line: bytes) -> Config:
    """Return the Config in the first line of stdin.

    Raise StartError if it is malformed.
    """
    if not line.strip():
        raise StartError(
            "No start line on stdin; this program is started by Emacs, with "
            "M-x gemini-companion-mode"
        )
    try:
        start = json.loads(line)
        return Config(
            secret=start["secret"],
            emacs_pid=start["emacsPid"],
            roots=tuple(start.get("roots") or ()),
            port=start.get("port") or 0,
            predecessor=start.get("predecessor") or "",
            token=start.get("token") or new_token(),
            is_exposed=bool(start.get("isExposed")),
            offer_tools=start.get("offerTools", True),
            is_trusted=start.get("isTrusted"),
            log_file=start.get("logFile") or "",
            log_level=start.get("logLevel") or "info",
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StartError(f"The start line is malformed: {error!r}") from None
