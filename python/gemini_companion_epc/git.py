# SPDX-License-Identifier: GPL-3.0-or-later
"""The git that is started here, and what is read of repositories of strangers.

A repository may be hostile, and the environment of Emacs may name another one.  So git
never gets a variable that chooses a repository, an index, objects or a program; it
fetches nothing and starts no program; and it has a limit in time.  What is read of a
repository without git is a regular file of a limited size.
"""

import os
import re
import stat
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

LIMIT = 60.0
"""Seconds after which git is killed."""
LARGEST = 1024 * 1024
"""Maximum number of bytes that are read of a file of a repository."""

# Those that say which settings are read; others choose a repository or a program, as
# does GIT_CONFIG itself.
_KEPT = ("GIT_CONFIG_", "GIT_CEILING_DIRECTORIES", "GIT_DISCOVERY_ACROSS_FILESYSTEM")
_NEVER = {
    # git knows the first one since 2.44; no protocol has the name of the second one.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_OPTIONS = ("core.fsmonitor=false", f"core.hooksPath={os.devnull}")


class GitError(Exception):
    """git has failed; the message is a phrase for the user."""

    reason = ""
    """What git itself has said, in one line."""
    remedy = ""
    """What the user can do about it, an imperative, or ""."""


class GitTooSlow(GitError):
    """git was killed."""


class GitFailed(GitError):
    """git has ended with an error, as it has said in ``errors``."""

    def __init__(self, name: str, status: int, errors: str) -> None:
        lines = [line.strip() for line in errors.splitlines() if line.strip()]
        # The lines behind the first one are advice, such as a command.
        fatal = [line for line in lines if line.startswith(("fatal: ", "error: "))]
        reason = [*fatal[:1], *lines[-1:], f"status {status}"][0]
        if reason.endswith(":"):
            reason = " ".join(lines[lines.index(reason) :][:2])
        self.reason = re.sub(r"^(fatal|error): ", "", reason)[:200]
        commands = [line for line in lines if line.startswith("git config ")]
        self.remedy = f"run `{commands[0]}`" if commands else ""
        super().__init__(f"git {name} failed: {self.reason}")


def user_environ() -> dict[str, str]:
    """Return the environment of a git that reads the user's settings."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name.startswith(_KEPT)
    } | _NEVER


def own_environ() -> dict[str, str]:
    """Return the environment of a git that reads no settings of the user."""
    names = "PATH", "HOME", "SYSTEMROOT", "TMPDIR", "TMP", "TEMP"
    found = {name: os.environ[name] for name in names if name in os.environ}
    return found | _NEVER


def run(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    cwd: str | None = None,
    given: bytes = b"",
    limit: float = LIMIT,
) -> bytes:
    """Return the output of git with ``arguments``, or raise GitError."""
    return Process(arguments, environ, cwd).output(given, limit)


class Process:
    """A git that runs beside others."""

    def __init__(
        self,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        cwd: str | None = None,
    ) -> None:
        pipe = subprocess.PIPE
        self._name = arguments[0]
        options = [word for option in _OPTIONS for word in ("-c", option)]
        command = ["git", "--no-pager", *options, *arguments]
        try:
            self._process = subprocess.Popen(
                command, env=environ, cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe
            )
        except OSError as error:
            raise GitError(f"git failed: {error.strerror or error}") from None

    def output(self, given: bytes = b"", limit: float = LIMIT) -> bytes:
        """Return what it prints for ``given``, or raise GitError."""
        try:
            output, errors = self._process.communicate(given, limit)
        except subprocess.TimeoutExpired:
            self.kill()
            reason = f"git {self._name} took longer than {limit:g} s"
            raise GitTooSlow(reason) from None
        if status := self._process.returncode:
            raise GitFailed(self._name, status, errors.decode(errors="replace"))
        return output

    def kill(self) -> None:
        """End it, if it has not ended."""
        self._process.kill()
        # Its children may have the pipes.
        with suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=1)


def ask(root: str, *arguments: str, limit: float = LIMIT) -> str:
    """Return what git says about the user's repository in ``root``, "" if nothing.

    Raise GitTooSlow if it does not end.
    """
    try:
        output = run(arguments, user_environ(), root, limit=limit)
    except GitTooSlow:
        raise
    except GitError:
        return ""
    return os.fsdecode(output).removesuffix("\n")


def read(file: str, begin: int = 0, most: int = LARGEST) -> bytes:
    """Return at most ``most`` bytes of ``file`` from ``begin``, b"" if it is none.

    Neither a link nor a pipe nor a device is read.
    """
    if not file:
        return b""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(file, flags | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return b""
        os.lseek(descriptor, begin, os.SEEK_SET)
        # As much memory as this is allocated first.
        return os.read(descriptor, min(most, max(0, status.st_size - begin)))
    except OSError:
        return b""
    finally:
        os.close(descriptor)
