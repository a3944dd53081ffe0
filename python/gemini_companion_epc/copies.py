# SPDX-License-Identifier: GPL-3.0-or-later
"""The names of the files of a remote host, and the copies of some of them.

A file has a remote name, and a local name, which is in the directory of copies or in
one that both hosts share.
"""

import os
import posixpath
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from .outpost_lines import SentFile
from .system import make_own_directory
from .types import DEEPEST, CopiesError, MalformedArgument

LARGEST_FILE = 20 * 1024 * 1024
_DRAFT = ".draft"
_BLOCK = 4096
_LARGEST_COPIES = 200 * 1024 * 1024
_FOLLOWED = 75


class Copy(NamedTuple):
    """The copy of a file: a symbolic link if it has another true name there."""

    true_name: str
    size: int


class Copies:
    """The names of the files of a host, and the copies that are followed.

    Each file that was requested has at most one copy, whatever true name the host gives
    it; no other file has one.
    """

    def __init__(
        self, directory: str, files: Sequence[str], shared: Sequence[tuple[str, str]]
    ) -> None:
        self.directory = directory
        self._files = files
        """Names of files of sharing rules, in a root or, with a tilde, at home."""
        self._pairs = [*shared, ("/", directory)]
        """Pairs of names, remote and local, of directories; the first one counts."""
        self._rules: frozenset[str] = frozenset()
        """The files that decide what is shared, by their whole names."""
        self._copies: dict[str, Copy] = {}
        """The copies by the requested name, the oldest first."""
        self.followed: dict[str, float] = {}
        """The files whose copies are kept up to date, and until when."""
        with suppress(CopiesError):
            self.check()
            self._adopt()

    def _adopt(self) -> None:
        """Follow the copies that a previous server has left."""
        top = len(self.directory)
        for path in Path(self.directory).rglob("*"):
            name, true_name = str(path)[top:], os.path.realpath(path)[top:]
            if name.startswith(f"/{_DRAFT}"):
                path.unlink(missing_ok=True)
            elif path.is_file():
                self._copies[name] = Copy(true_name, path.stat().st_size)
        self.follow(self._copies)

    def check(self) -> None:
        """Make the directory if it is missing, or raise CopiesError.

        Systems clean up temporary directories, and another user may then make it.
        """
        try:
            make_own_directory(Path(self.directory))
        except OSError as error:
            detail = error.strerror or error
            raise CopiesError(f"copies of its files cannot be made: {detail}") from None

    # Names

    @staticmethod
    def check_name(path: str) -> None:
        """Raise MalformedArgument if ``path`` is no name of a file of a host."""
        if not path.startswith("/") or posixpath.normpath(path) != path or "\0" in path:
            raise MalformedArgument("filePath must be an absolute path without dots")

    def local_name(self, path: str) -> str:
        """Return the local name of ``path``, or raise MalformedArgument."""
        self.check_name(path)
        local_name = str(_moved(path, self._pairs))
        names = local_name, *(directory for _, directory in self._pairs)
        true_name, *tops = (Path(os.path.realpath(local)) for local in names)
        if any(true_name.is_relative_to(top) for top in tops):
            return local_name
        # A link in a shared directory may lead to another file on the other host.
        return self.directory + path

    def remote_name(self, path: str) -> str | None:
        """Return the remote name of the local file ``path``, or None."""
        name = _moved(path, [(local, remote) for remote, local in self._pairs])
        # On the host, ``name`` may be another file.
        return name if name and self.local_name(name) == path else None

    # Copies

    def set_roots(self, home: str, roots: Iterable[str]) -> None:
        """Want copies of the files of rules and settings in ``home`` and ``roots``."""
        self._rules = frozenset(
            posixpath.normpath(posixpath.join(top, name.removeprefix("~/")))
            for name in self._files
            for top in ([home] if name.startswith("~/") else roots)
        )

    def follow(self, paths: Iterable[str]) -> list[str]:
        """Follow the files ``paths`` for a while; return those no longer followed.

        Raise CopiesError if copies are impossible.
        """
        self.check()
        now = time.monotonic()
        self.followed |= dict.fromkeys(paths, now + _FOLLOWED)
        old = [path for path, end in self.followed.items() if end < now]
        for path in old:
            del self.followed[path]
        return old

    def stamp(self, path: str) -> str:
        """Return the time and size of the copy of the file ``path``, or ""."""
        with suppress(OSError):
            status = os.stat(self.directory + path)
            return f"{status.st_mtime_ns}-{status.st_size}"
        return ""

    def decides(self, path: str) -> bool:
        """Return whether ``path`` is a file of rules or settings in a root."""
        return path in self._rules

    def is_wanted(self, path: str) -> bool:
        """Return whether the file ``path`` is followed, or decides what is shared."""
        return path in self.followed or self.decides(path)

    def store(self, sent: SentFile) -> str:
        """Write or delete the copy of ``sent``; return a problem or "".

        The remote name in a symbolic link becomes a local one.  Raise CopiesError if
        there can be no copies.
        """
        self.check()
        try:
            if sent.text is None:
                self._drop(sent.path)
            else:
                self._write(sent, sent.text)
        except (OSError, OverflowError) as error:
            return f"cannot be copied: {getattr(error, 'strerror', None) or error}"
        return ""

    def _write(self, sent: SentFile, text: bytes) -> None:
        self.check_name(sent.true_name)
        if len(text) > LARGEST_FILE:
            raise OSError("it is too large")
        if sent.true_name.count("/") > DEEPEST:
            raise OSError("it is in too many directories")
        new = Copy(sent.true_name, max(len(text), _BLOCK))
        self._make_room(sent.path, new)
        # A link could replace one of the directories if that is shared.
        name = Path(self.directory + sent.path)
        copy = Path(self.directory + sent.true_name)
        # The draft has a new name, so it is no file or link of another user.
        descriptor, draft = tempfile.mkstemp(prefix=_DRAFT, dir=self.directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(text)
            os.utime(draft, ns=(sent.time, sent.time))
            for path in (copy, name):
                path.parent.mkdir(parents=True, exist_ok=True)
            os.replace(draft, copy)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(draft)
        self._copies[sent.path] = new
        if name != copy and os.path.realpath(name) != str(copy):
            name.unlink(missing_ok=True)
            name.symlink_to(copy)

    def _make_room(self, path: str, new: Copy) -> None:
        """Delete the oldest copies that are not wanted, as ``path`` gets the ``new``.

        Also delete a previous copy of ``path`` with another true name.
        """
        others = [other for other in self._copies if other != path]
        excess = sum(self._copies[other].size for other in others)
        excess += new.size - _LARGEST_COPIES
        for other in others:
            if excess > 0 and not self.is_wanted(other):
                excess -= self._copies[other].size
                self._drop(other)
        if excess > 0:
            raise OSError("too many files are being reviewed")
        if path in self._copies and self._copies[path].true_name != new.true_name:
            self._drop(path)

    def _drop(self, path: str) -> None:
        """Delete the copy of ``path``, unless another name has the same copy."""
        Path(self.directory + path).unlink(missing_ok=True)
        copy = self._copies.pop(path, None)
        names = [other.true_name for other in self._copies.values()]
        if copy is None or copy.true_name in (path, *names):
            return
        true_copy = Path(self.directory + copy.true_name)
        true_copy.unlink(missing_ok=True)
        # The host has chosen these directories, and may choose any number.
        with suppress(OSError):
            for directory in true_copy.parents:
                if directory == Path(self.directory):
                    break
                directory.rmdir()


def _moved(path: str, pairs: Iterable[Sequence[str]]) -> str | None:
    """Return the name of the file ``path`` by the first of ``pairs`` that has it."""
    for old, new in pairs:
        with suppress(ValueError):
            return str(PurePosixPath(new, PurePosixPath(path).relative_to(old)))
    return None
