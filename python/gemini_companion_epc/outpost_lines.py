# SPDX-License-Identifier: GPL-3.0-or-later
"""The lines between an outpost and this process, see `Kind`.

Lines from an outpost are checked and converted here: any user of the other host may
have sent them.
"""

import base64
import re
from enum import Enum
from typing import NamedTuple

from .clients import remote_clients
from .types import LONGEST_NAME, Facts, MalformedArgument, clean

CHUNK = 64 * 1024
_VERSION = re.compile(r"\d{1,9}\.\d{1,9}\.\d{1,9}", re.ASCII)
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]+")


class Kind(str, Enum):
    """The kinds of lines between an outpost and this process, as in outpost.js.

    A line is a JSON list of its kind and values.  Those to an outpost begin with the
    number of a request, which the answer repeats, or of a connection.
    """

    HELLO = "H"
    """To an outpost: its settings.  From one: the facts of its host."""
    ROOTS = "R"
    """From an outpost: the workspace roots, before the files of their rules."""
    OPEN = "O"
    """From an outpost: a CLI has opened a connection."""
    DATA = "D"
    """Both ways: data of a connection."""
    CLOSE = "C"
    """Both ways: the end of a connection."""
    FILE = "F"
    """To an outpost: send a file.  From one: its stamp, and its text if that is new."""
    WRITE = "W"
    """To an outpost: change a file, then send it."""
    ARRIVED = "A"
    """To an outpost: a file that was sent has arrived."""
    BEAT = "P"
    """Both ways: a sign of life; to an outpost, with files no longer followed."""


class SentFile(NamedTuple):
    """A file that the outpost has sent, without a text if the copy has its stamp."""

    path: str
    true_name: str
    problem: str
    stamp: str
    time: int
    text: bytes | None


def sent_file(sent: Facts) -> SentFile:
    """Return the file that is described by ``sent``."""
    text = sent.get("text")
    return SentFile(
        clean(sent["path"]),
        clean(sent.get("true", "")),
        shown(sent.get("problem", "")),
        sent["stamp"],
        int(sent["stamp"].partition("-")[0] or 0),
        None if text is None else base64.b64decode(text),
    )


def sent_roots(sent: Facts) -> Facts:
    """Return the home and, by name, the roots of ``sent``, or raise an error."""
    roots = {name: root and clean(root) for name, root in sent["roots"].items()}
    home = clean(sent["home"])
    if any(
        len(directory) > LONGEST_NAME
        for directory in (home, *filter(None, roots.values()))
    ):
        raise MalformedArgument("a root is too long")
    return {"home": home, "roots": roots}


def sent_facts(sent: Facts) -> Facts:
    """Return the facts of a host that it has ``sent``, or raise an error."""
    versions = sent["versions"]
    names = [client.name for client in remote_clients() if client.name in versions]
    return {
        **{number: int(sent[number]) for number in ("port", "pid")},
        **sent_roots(sent),
        "tmp": shown(sent["tmp"]),
        "node": _version(sent["node"]),
        "container": bool(sent["container"]),
        "problems": [
            shown(problem) for problem in sent["problems"][: len(remote_clients())]
        ],
        "versions": [[name, _version(versions[name])] for name in names],
    }


def shown(text: str) -> str:
    """Return ``text``, which came from another host, for a message."""
    return _CONTROLS.sub(" ", clean(text)).strip()[:200]


def _version(text: str) -> str:
    """Return ``text`` without what Emacs cannot compare, such as "-nightly"."""
    match = _VERSION.match(text)
    return match[0] if match else "0"
