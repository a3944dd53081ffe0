# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that a command has written get the contents of another snapshot.

A file is changed only if it is exactly as one snapshot has it.  It has its old or its
new bytes, whole, whenever this process is killed.  What is to be deleted is compared
only, as Emacs moves it to the trash.

All functions here block, and run in threads.
"""

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from .snapshots import LARGEST_STORE, Change, Store, blob_name
from .system import extended_attributes
from .types import MalformedArgument

LINK = 0o120000
_EXECUTABLE = 0o100755
_PLAIN = 0o100644
DRAFT = f".gemini-companion-{os.getpid()}-"
"""How the name of a file begins that gets the name of another one, as in Emacs.

Emacs deletes those of processes that were killed.
"""


class File(NamedTuple):
    """A file below a root, as one snapshot has it, and as another one has it."""

    name: str
    now: str | None
    """The name of the blob, "" without a file, None if only the modes count."""
    now_mode: int
    """As in git, see `Change`."""
    then: str | None
    then_mode: int

    @property
    def is_written(self) -> bool:
        """Whether the file gets another content."""
        if not self.then:
            return False
        return self.then != self.now or LINK in (self.now_mode, self.then_mode)


class Plan(NamedTuple):
    """How files are restored, and what Emacs has deleted before that."""

    modes: int
    """The permissions of a new directory, to which those of a new file are limited."""
    backups: str
    """The directory for the bytes of files while they are written in place."""
    checks: bool
    """Whether to compare the files only, before Emacs deletes some of them."""
    gone: Sequence[str]
    """Files that were deleted; of their directories, those of `tree` stay."""
    tree: str


class _Problem(Exception):
    """A file is not changed; the message is a phrase about it."""


def restore(store: Store, files: Sequence[File], plan: Plan) -> list[str]:
    """Restore ``files`` below the root of ``store``.

    Return for each "", or the reason why it was not restored.  Only compare those that
    are to be deleted, and all if ``plan.checks``.
    Raise GitError, and change nothing, if ``store`` lacks any content.
    """
    for name in [*(file.name for file in files), *plan.gone]:
        if os.path.isabs(name) or ".." in name.split("/"):
            raise MalformedArgument(f"name is not below the root: {name}")
    blobs = [file.then for file in files if file.then and file.is_written]
    # What is deleted can be taken back.
    going = [file.now for file in files if file.now and not file.then_mode]
    for _ in store.contents(blobs + going):
        pass
    directories = _directories(store, plan)
    if not plan.checks:
        # A file may come in the place of a directory.
        for name in directories:
            with suppress(OSError):
                os.rmdir(os.path.join(store.root, name))
    problems = []
    with closing(store.contents(blobs)) as contents:
        for file in files:
            content = next(contents) if file.is_written else b""
            try:
                _put(store, file, content, plan)
                problems.append("")
            except _Problem as error:
                problems.append(str(error))
            except OSError as error:
                problems.append(f"cannot be written ({error.strerror or error})")
    return problems


def _directories(store: Store, plan: Plan) -> list[str]:
    """Return the directories of deleted files that the snapshot has not.

    The deepest ones come first.
    """
    files = [Change(name, "", "", 0, 0) for name in plan.gone]
    return sorted(store.new_directories(plan.tree, files), key=len, reverse=True)


def _put(store: Store, file: File, content: bytes, plan: Plan) -> None:
    """Write ``content`` to ``file`` below the root of ``store``, or only compare it.

    Raises _Problem if the file is not what ``file`` says that it is now.
    """
    path = os.path.join(store.root, file.name)
    parent = os.path.dirname(file.name)
    while parent:
        above = os.path.join(store.root, parent)
        if os.path.islink(above):
            if plan.checks and parent in plan.gone:
                # There is nothing once that is deleted.
                return
            raise _Problem("is behind a symbolic link now")
        if file.then_mode and os.path.isfile(above) and parent not in plan.gone:
            raise _Problem("is below a file now")
        parent = os.path.dirname(parent)
    status, mode, old = _now(path)
    is_same = file.now is None or (
        file.now == ("" if old is None else blob_name(old, file.now))
    )
    if mode != file.now_mode or not is_same:
        raise _Problem("has changed since")
    if plan.checks or file.then_mode == 0:
        return
    _make_directories(os.path.dirname(path), plan.modes)
    if file.then_mode == LINK:
        _replace(path, status, _link(path, content))
        return
    modes = _modes(status, file, store, plan)
    if file.is_written:
        _write(path, status, old or b"", content, modes, plan)
    elif mode != file.then_mode:
        assert status is not None
        os.chmod(path, modes)


def _now(path: str) -> tuple[os.stat_result | None, int, bytes | None]:
    """Return the status, the mode as in git, and the content that ``path`` has."""
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None, 0, None
    if stat.S_ISLNK(status.st_mode):
        return status, LINK, os.fsencode(os.readlink(path))
    if stat.S_ISDIR(status.st_mode):
        # What is in it may be going.
        return None, 0, None
    if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST_STORE:
        raise _Problem("has changed since")
    with open(path, "rb", opener=_opener(os.O_RDONLY)) as file:
        content = file.read(LARGEST_STORE)
    mode = _EXECUTABLE if status.st_mode & stat.S_IXUSR else _PLAIN
    return status, mode, content


def _opener(flags: int) -> Callable[[str, int], int]:
    # The file may be another one meanwhile.
    odd = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    return lambda path, _: os.open(path, flags | odd | getattr(os, "O_BINARY", 0))


def _make_directories(path: str, modes: int) -> None:
    """Make the directory ``path`` and those above it, with ``modes``."""
    if not os.path.isdir(path):
        _make_directories(os.path.dirname(path), modes)
        try:
            os.mkdir(path)
        except FileExistsError:
            # Emacs may make it at the same time, for another file.
            if not os.path.isdir(path):
                raise
            return
        # This process gives its own files to nobody else.
        os.chmod(path, modes)


def _modes(status: os.stat_result | None, file: File, store: Store, plan: Plan) -> int:
    """Return the modes of ``file``, which has ``status``, once it is restored."""
    is_executable = file.then_mode == _EXECUTABLE
    if status is None or stat.S_ISLNK(status.st_mode):
        modes = (0o777 if is_executable else 0o666) & plan.modes
        # Since the text was written, it may have been made executable, or no more so.
        modes = store.private.get(file.name, modes)
    else:
        # More people may read the text that is there now.
        modes = stat.S_IMODE(status.st_mode)
        modes &= store.private.get(file.name, 0o777) | ~0o777
    if is_executable == bool(modes & stat.S_IXUSR):
        return modes
    # Those who can read it can execute it.
    return modes | (modes & 0o444) >> 2 if is_executable else modes & ~0o111


# Writing


def _write(
    path: str,
    status: os.stat_result | None,
    old: bytes,
    content: bytes,
    modes: int,
    plan: Plan,
) -> None:
    """Write ``content`` to ``path``, which gets ``modes``.

    It has ``status``, and the bytes ``old``.
    """
    is_regular = status is not None and stat.S_ISREG(status.st_mode)
    try:
        descriptor, draft = tempfile.mkstemp(prefix=DRAFT, dir=os.path.dirname(path))
    except PermissionError:
        if not is_regular:
            raise
        _write_in_place(path, old, content, plan)
    else:
        with _removed(draft), os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.chmod(draft, modes)
            if status is not None:
                _touch(draft, status)
            if not is_regular or _is_like(path, draft):
                _replace(path, status, draft)
                return
        _write_in_place(path, old, content, plan)
    if status is not None and modes != stat.S_IMODE(status.st_mode):
        os.chmod(path, modes)


class _removed:
    """A context at whose end the file ``path`` is removed, if it still exists."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._path)


def _link(path: str, content: bytes) -> str:
    """Return the name of a new symbolic link beside ``path`` to ``content``."""
    draft = tempfile.mktemp(prefix=DRAFT, dir=os.path.dirname(path))
    os.symlink(os.fsdecode(content), draft)
    return draft


def _is_like(path: str, draft: str) -> bool:
    """Return whether nothing but its bytes is lost if ``draft`` replaces ``path``."""
    status, other = os.lstat(path), os.lstat(draft)
    owners = (status.st_uid, status.st_gid), (other.st_uid, other.st_gid)
    try:
        # Also the lists of those who may access it.
        attributes = extended_attributes(path)
        return (
            status.st_nlink == 1
            and owners[0] == owners[1]
            and attributes is not None
            and attributes == extended_attributes(draft)
        )
    except OSError:
        return False


def _replace(path: str, status: os.stat_result | None, draft: str) -> None:
    """Give ``draft`` the name ``path`` if that still has ``status``."""
    with _removed(draft):
        if status is not None:
            _check(os.lstat(path), status)
            os.replace(draft, path)
            return
        try:
            # Nothing is overwritten.
            os.link(draft, path, follow_symlinks=False)
        except FileExistsError:
            raise _Problem("exists again") from None
        except (OSError, NotImplementedError):
            if os.path.lexists(path):
                raise _Problem("exists again") from None
            os.rename(draft, path)


def _check(status: os.stat_result, before: os.stat_result) -> None:
    """Raise _Problem if a file with ``status`` is not as it was ``before``."""
    facts = [
        (each.st_mtime_ns, each.st_size, each.st_ino, each.st_mode)
        for each in (status, before)
    ]
    if facts[0] != facts[1]:
        raise _Problem("has changed since")


def _write_in_place(path: str, old: bytes, content: bytes, plan: Plan) -> None:
    """Write ``content`` to ``path``, whose bytes ``old`` are kept meanwhile."""
    with (
        _Backup(path, old, content, plan.backups) as backup,
        open(path, "r+b", buffering=0, opener=_opener(os.O_RDWR)) as file,
    ):
        if file.read(len(old) + 1) != old:
            raise _Problem("has changed since")
        before = os.fstat(file.fileno())
        try:
            _overwrite(file.fileno(), content)
        except OSError as error:
            try:
                _overwrite(file.fileno(), old)
            except OSError:
                backup.is_needed = True
                raise _Problem(
                    f"was truncated ({error.strerror}); its text is in {backup.copy}"
                ) from None
            raise
        _touch(path, before)


class _Backup:
    """The bytes of a file while it is written in place.

    Emacs finds them if this process is killed, as those of an Emacs that was killed.
    """

    def __init__(self, path: str, old: bytes, new: bytes, backups: str) -> None:
        os.makedirs(backups, mode=0o700, exist_ok=True)
        self._directory = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=backups)
        self.copy = os.path.join(self._directory, os.path.basename(path))
        self.is_needed = False
        Path(self.copy).write_bytes(old)
        name = path.replace("\\", "\\\\").replace('"', '\\"')
        hashes = (hashlib.sha256(content).hexdigest() for content in (old, new))
        facts = '("{}" {} "{}" "{}")'.format(name, os.getpid(), *hashes)
        # Once this file exists, the copy is whole.
        self._facts = Path(self._directory + ".eld")
        self._facts.write_bytes(os.fsencode(facts))

    def __enter__(self) -> "_Backup":
        return self

    def __exit__(self, *_: object) -> None:
        if not self.is_needed:
            self._facts.unlink(missing_ok=True)
            shutil.rmtree(self._directory, ignore_errors=True)


def _touch(path: str, before: os.stat_result) -> None:
    """Give ``path`` a time after that of ``before``, by which Emacs sees a change."""
    # The clock of a file system may tick a hundred times a second.
    if os.lstat(path).st_mtime_ns <= before.st_mtime_ns:
        now = time.time_ns()
        os.utime(path, ns=(now, now))


def _overwrite(descriptor: int, content: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.ftruncate(descriptor, len(content))
