# SPDX-License-Identifier: GPL-3.0-or-later
"""Start-up configuration and limits."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from secrets import token_urlsafe

from .types import StartError

LARGEST_BODY = 64 * 1024 * 1024
"""Maximum number of bytes of the body of a request."""


@dataclass(frozen=True)
class Config:
    """Settings that are fixed for the life of the process; times in seconds."""

    secret: str = field(repr=False)
    emacs_pid: int
    roots: Sequence[str] = ()
    temporaries: Sequence[str] = ()
    """Temporary directories for `DiscoveryFiles.search_also`."""
    port: int = 0
    is_successor: bool = False
    """Whether another process serves at ``port`` until this one is to listen."""
    token: str = field(default_factory=token_urlsafe, repr=False)
    is_exposed: bool = False
    """Whether another user may know the token; then each connection is checked."""
    offer_tools: bool = True
    log_file: str = ""

    return_limit: float = 2
    """Time in which the clients of the previous process open their streams."""
    session_grace: float = 30
    """Time for which a session without an event stream and requests is kept."""
    # A Gemini CLI that formats a large edit takes more than 10 s to connect again.
    cancel_window: float = 2
    """Time in which the next openDiff after an interrupted one belongs to it."""
    # Also the time in which a closeDiff may cross the outcome of its diff.
    list_limit: float = 10
    """Time limit of tools/list for finding the process of its session."""
    question_limit: float = 15
    """Time limit for a question of the model."""
    edit_limit: float = 4
    """Time limit for Emacs to find the new errors after an edit."""
    addition_limit: float = 0.8
    """Time limit for Emacs to return what to add to a prompt."""
    # Less than the time limit of the hook, which then lets the CLI ask.  Just after an
    # answer, Emacs closes the review, which takes seconds on a busy machine.
    review_limit: float = 5
    """Time limit for Emacs to decide whether a rule requires a review of an edit."""
    permission_limit: float = 86000
    """Time limit for the user to answer a permission in Emacs."""
    # Less than the time limit of the hook, which is a day.
    ping_interval: float = 2
    """Time between two signs of life while a permission waits."""
    silence_limit: float = 5
    """Time without a sign of life of Emacs after which the CLI asks in its terminal."""
    rename_silence_limit: float = 300
    """Time without a sign of life of Emacs after which a rename ends."""
    # Nothing else asks the user, and a command of the user may take a minute.
    process_check: float = 0.5
    """Time between two checks of the process of a CLI whose permission waits."""
    notice_limit: float = 0.2
    """Time limit for Emacs to answer a hook for which a CLI waits before it asks."""
    call_limit: float = 1.5
    """Time limit for the snapshot before a call of a tool, for which a CLI waits."""
    after_limit: float = 4
    """Time limit for the snapshot after it."""
    failure_check: float = 5
    """Time between two checks of the file to which hooks write their failures."""
    quiet_time: float = 1
    """Time after a turn in which nothing is written, so that its calls have ended."""
    commit_check: float = 2
    """Time between two checks after that whether the user has committed."""
    diff_limit: float = 120
    """Time limit for Emacs to answer open-diff and close-diff."""
    file_check: float = 60
    """Time between two checks of the files that a cleanup may remove."""
    mount_limit: float = 10
    """Time without an answer of a file system after which the user is warned."""
    start_check: float = 0.5
    """Time between two checks while a CLI starts for the first time."""
    start_limit: float = 120
    """Time in which a CLI that starts for the first time makes its directory."""
    # Copilot CLI unpacks 235 MB first.
    headers_time: float = 300
    """Time limit for a client from connecting to sending its request."""
    # Gemini CLI connects, then lays out a long line for more than 30 s, and fails
    # if it finds the connection closed.
    comment_interval: float = 30
    """Time between two comments in a silent event stream."""
    request_limit: float = 5
    """Time limit for the requests in progress when a successor takes over."""
    # Emacs, which may be busy, answers some of them.
    end_limit: float = 1
    """Time limit for the outcomes, the event streams, answers and Emacs, at the end."""
    exit_limit: float = 6
    """Time limit for a stop, after which the process exits anyway."""


def parse_start_line(line: bytes) -> Config:
    """Return the Config in the first line of stdin; raise StartError if malformed."""
    try:
        return Config(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise StartError(
            f"The start line is missing or malformed: {error!r}; this program is "
            "started by Emacs, with M-x gemini-companion-mode"
        ) from None
