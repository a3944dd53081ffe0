# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what the CLIs saw with what Emacs did."""

from collections import Counter, defaultdict

import texts
from cli import Log, Session

# With these, the end of a session may lose a message in transit.
UNSURE = ("server killed", "cut", "wrong answer")

Ends = dict[tuple[str, str, str], list[str]]


def judge(log: Log, entries: list[dict[str, str]]) -> None:
    """Report to ``log`` each diff without an outcome, or with another than in Emacs."""
    ends: Ends = defaultdict(list)
    for entry in entries:
        key = (entry["session"], entry["path"], entry["state"])
        ends[key].append(entry["sha"] or "")
    for session in log.sessions:
        for path, diffs in session.diffs.items():
            for diff in diffs:
                if len(diff.ends) != 1:
                    log.problem(f"{path}: ends {diff.ends}")
            _compare(log, session, path, ends)


def _compare(log: Log, session: Session, path: str, ends: Ends) -> None:
    name = session.fake.session_id
    in_emacs = Counter(ends[name, path, "accepted"])
    here = Counter(session.accepted.get(path, []))
    closed = Counter(session.closed.get(path, []))
    if here - in_emacs:
        log.problem(f"{name} {path}: received a text that was not accepted")
    rejects = len(ends[name, path, "rejected"])
    if session.rejected[path] > rejects:
        log.problem(f"{name} {path}: {session.rejected[path]} rejects, {rejects}")
    if session.fate in UNSURE:
        return
    if in_emacs - here - closed:
        log.problem(f"{name} {path}: an accepted text never came")
    if session.rejected[path] < rejects and not closed:
        log.problem(f"{name} {path}: a reject never came")
    edited = Counter(ends[name, path, "edited"])
    if "holdedit-" in path and closed - edited:
        proposed = {texts.sha(diff.text) for diff in session.diffs[path]}
        if set(closed - edited) - proposed:
            log.problem(f"{name} {path}: closeDiff returned an unknown text")
