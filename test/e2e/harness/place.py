# SPDX-License-Identifier: GPL-3.0-or-later
"""A second host for tests: other files under the same names, by a mount namespace.

The project, HOME and TMPDIR there are other directories than here.  The network is
the same, so the port of the server is taken there, and a CLI reaches the model.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from . import qwen
from .emacs import lisp
from .gemini import SETTINGS
from .scratch import MARK, Scratch

ROOT = ("-U", "--preserve-credentials")
UNSHARE = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-U", "-r", "-m")

MAKE = """
mount --make-rprivate / && mount --bind "$1" "$2" && echo up && exec sleep infinity
"""

# What `ssh host' or `docker exec -i' would be.
RUN = """#!/bin/sh
# place NAME COMMAND...: run COMMAND in the place NAME.
name=$1; shift
echo "$@" >>{root}/$name/calls
exec nsenter -t "$(cat {root}/$name/pid)" -m {user} \\
    env -i HOME={root}/$name/home TMPDIR={root}/$name/tmp PATH="$PATH" \\
    LANG=C.UTF-8 SHELL=/bin/sh TERM="$TERM" {mark}={root} \\
    sh -c 'cd {project} && exec "$@"' sh "$@"
"""

INIT = """
(require 'tramp)
(setq tramp-verbose 1
      tramp-allow-unsafe-temporary-files t)
(add-to-list 'tramp-methods
             '("place" (tramp-login-program {program})
               (tramp-login-args (("%h") ("sh")))
               (tramp-remote-shell "/bin/sh") (tramp-remote-shell-args ("-c"))))
(require 'gemini-companion-place)
(add-to-list 'gemini-companion-place-commands '(("place") {program} "%h"))
"""


def why_not() -> str:
    """Return why there can be no place, or an empty string."""
    if sys.platform != "linux":
        return "mount namespaces are of Linux"
    if not all(map(shutil.which, ("unshare", "nsenter", "mount", "node"))):
        return "unshare, nsenter, mount or node is not installed"
    command = [*UNSHARE, "mount", "--make-rprivate", "/"]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        return "mount namespaces are not permitted"
    return ""


class Place:
    """A place called ``name``; TRAMP calls it /place:NAME:."""

    def __init__(self, scratch: Scratch, name: str) -> None:
        self.scratch = scratch
        self.name = name
        self.prefix = f"/place:{name}:"
        self.root = scratch.root / name
        self.project = self._directory("project")
        self.home = self._directory("home")
        self.tmp = self._directory("tmp")
        (self.project / ".git").mkdir()
        self.program = scratch.root / "place"
        user = "" if os.geteuid() == 0 else " ".join(ROOT)
        self.program.write_text(
            RUN.format(root=scratch.root, project=scratch.project, user=user, mark=MARK)
        )
        self.program.chmod(0o755)
        self._holder = subprocess.Popen(
            [*UNSHARE, "sh", "-c", MAKE, "sh", self.project, scratch.project],
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"up\n"
        (self.root / "pid").write_text(str(self._holder.pid))
        for client, settings in (("gemini", SETTINGS), ("qwen", qwen.SETTINGS)):
            directory = self._directory(f"home/.{client}")
            (directory / "settings.json").write_text(json.dumps(settings))

    @property
    def init(self) -> str:
        """The Lisp by which Emacs knows this place and all others."""
        return INIT.format(program=lisp(self.program))

    def file(self, name: str, content: str = "") -> Path:
        """Write the file ``name`` in the project there, and return its name there."""
        (self.project / name).write_text(content)
        return self.scratch.project / name

    def remote(self, path: Path) -> str:
        """Return the name in Emacs of the file ``path`` there."""
        return f"{self.prefix}{path}"

    def discovery_files(self) -> list[Path]:
        """Return the discovery files there."""
        return [*self.tmp.glob("gemini/ide/*"), *self.home.glob(".qwen/ide/*")]

    def calls(self) -> int:
        """Return how many programs were started there by the command."""
        return len((self.root / "calls").read_text().splitlines())

    def close(self) -> None:
        """End the place."""
        self._holder.send_signal(signal.SIGKILL)
        self._holder.communicate()

    def _directory(self, name: str) -> Path:
        directory = self.root / name
        directory.mkdir(parents=True, exist_ok=True)
        return directory
