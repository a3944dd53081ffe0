# SPDX-License-Identifier: GPL-3.0-or-later
"""What the bridge and the server have in common: CLIs, discovery files, processes.

It runs without this package, beside the bridge, and imports little.
"""

from __future__ import annotations

import errno
import json
import os
import socket
import stat
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, TypeAlias

    Facts: TypeAlias = dict[str, Any]

LARGEST_FILE = 65536

# The tool whose answer waits for the user.
RENAME = "rename_symbol"
UNKNOWN_RENAME = (
    "Emacs no longer answers, so it is not known whether anything was renamed; look "
    "at the files, and ask the user."
)


# The CLIs

# The directory above that of the discovery files, in the home of the user, and the
# variable that replaces it.  Without one, it is in the temporary directory of Node.
HOMES = {
    "gemini": ("", "gemini"),
    "qwen": ("QWEN_HOME", ".qwen"),
    "copilot": ("COPILOT_HOME", ".copilot"),
    "pi": ("PI_CODING_AGENT_DIR", ".pi/agent"),
}
# The answers to the hook before an edit with which a CLI asks.  Gemini CLI then shows
# its dialog and opens the review, once, in any mode.  Qwen Code asks in its terminal,
# with the diff, and opens no review.
ASK: dict[str, Facts] = {
    "gemini": {"decision": "ask"},
    "qwen": {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "ask",
            "permissionDecisionReason": "A rule in Emacs is for this file",
        }
    },
}
# The modes in which a CLI asks before an edit by itself, or writes none.  With that
# answer, it would ask twice.
ASKING_MODES = {"qwen": ("default", "plan")}


def may_be_plan(file: str) -> bool:
    """Return whether ``file`` may be the plan of a CLI; Emacs decides."""
    directory, _, name = file.rpartition("/")
    return directory.endswith("/plans") and name.endswith(".md")


# Discovery files


def directory_in(client: str, environ: Mapping[str, str]) -> str:
    """Return the directory of the discovery files of ``client`` in ``environ``."""
    variable, name = HOMES[client]
    if variable:
        home = environ.get(variable) or os.path.join("~", name)
        user = environ.get("USERPROFILE" if os.name == "nt" else "HOME")
        if user and home[:2] in ("~", "~" + os.sep):
            home = user + home[1:]
        return os.path.join(os.path.expanduser(home), "ide")
    # The CLI takes the temporary directory of Node.
    names = ("TEMP", "TMP") if os.name == "nt" else ("TMPDIR", "TMP", "TEMP")
    directories = [environ[name] for name in names if environ.get(name)]
    return os.path.join([*directories, "/tmp"][0], name, "ide")


def content_of(path: str | os.PathLike[str]) -> Facts:
    """Return the object in the discovery file ``path``, empty if it is unusable."""
    # Read only a small regular file of this user: a device may be endless.
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(path, "rb", opener=lambda *to: os.open(to[0], to[1] | flags)) as file:
            status = os.fstat(file.fileno())
            is_usable = stat.S_ISREG(status.st_mode) and is_own(status)
            return object_in(file.read(LARGEST_FILE)) if is_usable else {}
    except (OSError, ValueError):
        return {}


def object_in(text: bytes) -> Facts:
    """Return the object of JSON in ``text``, or raise ValueError."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def is_own(status: os.stat_result) -> bool:
    """Return whether a file with ``status`` belongs to this user."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()


def this_host() -> str:
    """Return the host and its PID namespace, within which a PID is unique."""
    host = socket.gethostname()
    if os.path.exists("/proc/self/ns/pid"):
        host += " " + os.readlink("/proc/self/ns/pid")
    return host


def is_left_behind(content: Facts) -> bool:
    """Return whether the Emacs of a discovery file is known to have exited.

    It is not known on Windows.  Without /proc, as on macOS, a zombie counts as running:
    the bridge has no psutil, and a run of ps would cost each hook more than it tells.
    """
    pid = content.get("ppid")
    # Another host may share this home directory; its PIDs mean nothing here.
    if content.get("host") != this_host() or type(pid) is not int or pid <= 0:
        return False
    if os.name == "nt":  # there, the call below would end the process
        return False
    try:
        os.kill(pid, 0)
    except (OSError, OverflowError) as error:
        # PermissionError: it runs as another user; OverflowError: it is no PID.
        return isinstance(error, ProcessLookupError)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The parent of a zombie has not yet noticed that it has exited.
            return file.read().rpartition(b") ")[2].startswith(b"Z")
    except OSError:
        return False


def server_in(content: Facts) -> tuple[int, str]:
    """Return port and token of the Emacs of a discovery file with ``content``.

    Raise an error if it is of another editor, or malformed.
    """
    if "headers" in content:  # of Copilot CLI, which connects to a socket
        host, bearer = (content["headers"][name] for name in ("Host", "Authorization"))
        if content["ideName"] != "Emacs" or not bearer.startswith("Bearer "):
            raise ValueError("another editor")
        return port_in(host.rpartition(":")[2]), bearer[len("Bearer ") :]
    if content["ideInfo"]["name"] != "emacs":
        raise ValueError("another editor")
    return port_in(content["port"]), str(content["authToken"])


def port_in(value: object) -> int:
    """Return the port ``value``, a number or its digits; raise ValueError if none."""
    if not isinstance(value, (int, str)):
        raise ValueError("not a port")
    port = int(value)
    if not 0 < port < 65536:
        raise ValueError("not a port")
    return port


# The process at the other end


DIAGNOSE = 20


def socket_between(local: tuple[str, int], remote: tuple[str, int]) -> bytes | None:
    """Return what Linux reports about the TCP socket from ``local`` to ``remote``.

    It may be the socket that listens at ``local``.  The value is the answer of the
    kernel (struct inet_diag_msg behind a header, see sock_diag(7)), empty if there is
    no such socket.  It is None if this system cannot tell.  Linux looks up one socket
    in any number of connections.
    """
    ports = struct.pack(">HH", local[1], remote[1])
    ends = b"".join(socket.inet_aton(end[0]) + bytes(12) for end in (local, remote))
    lookup = struct.pack("=IHHQ", 72, DIAGNOSE, 1, 0)
    lookup += struct.pack("=BBHI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as kernel:
            kernel.send(lookup + ports + ends + bytes(4) + b"\xff" * 8)
            answer = kernel.recv(4096)
    except (AttributeError, OSError):
        return None
    if struct.unpack_from("=H", answer, 4)[0] != DIAGNOSE:
        error = struct.unpack_from("=i", answer, 16)[0]
        return b"" if error == -errno.ENOENT else None
    return answer


def is_own_listener(port: int) -> bool:
    """Return whether this user's process listens at ``port``, as far as is known.

    Where the system cannot tell, as on macOS and Windows, it is taken for this user's.
    """
    answer = socket_between(("127.0.0.1", port), ("127.0.0.1", 0))
    if answer is None:
        return True
    uid = struct.unpack_from("=I", answer, 80)[0] if answer else None
    return bool(uid == os.geteuid())
