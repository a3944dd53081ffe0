# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of a work tree, in a git directory of our own beside the user's.

The store has its own index, objects, configuration and attributes, so that its blobs
are the bytes of the files: no filter, hook or program of the user's repository runs,
and nothing is written there.  The user's objects are alternates: a file that is as it
was committed takes no space.

A snapshot knows what it did not look at, and why.  A name has changed between two of
them only if both have looked at it; it is new only if the first one has looked there,
and its content is not older.  Everything else is unknown, and is only named.

All functions here block, and run in threads.
"""

import hashlib
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from . import git
from .git import GitError, GitFailed, GitTooSlow
from .system import birth_time

LARGEST_TEXT = 5 * 1024 * 1024
"""Maximum number of bytes of a file whose text Emacs gets."""
MOST_LARGE_BYTES = 20 * 1024 * 1024
"""Maximum number of bytes of larger files that one snapshot copies."""
MOST_FILES = 2_000
"""Maximum number of files that one snapshot copies, and those of `MOST_BYTES`."""
MOST_BYTES = 64 * 1024 * 1024
MOST_OTHERS = 2_000
"""Maximum number of files of which only the sizes are known."""
LARGEST_STORE = 256 * 1024 * 1024
"""Number of bytes of the copies in a store after which it starts over."""
OLDEST_GIT = (2, 32)
"""The first version that reads an empty file in place of the user's settings."""

# A store is begun with a cold cache.
_LIMIT = 20.0
_CONFIG = """[core]
	repositoryFormatVersion = {version}
	bare = false
	autocrlf = false
	safecrlf = false
	fsmonitor = false
	hooksPath = {devnull}
	untrackedCache = true
	looseCompression = 1
	bigFileThreshold = 5m
	quotePath = false
[gc]
	auto = 0
[maintenance]
	auto = false
"""
# What says how the file system of the user's repository treats names and modes.
_FILE_SYSTEM = r"^core\.(filemode|ignorecase|precomposeunicode|symlinks)$"
_FILES = ("--type=path", "--get-regexp", r"^core\.(excludes|attributes)file$")
_LINE_END_SETTINGS = ("--get-regexp", r"^core\.(autocrlf|eol)$")
_FORMAT = "--show-object-format"
_USER_FILES = ("objects", "logs/HEAD", "info/exclude", "info/attributes", "index")
_OWN_FILES = ("objects", "HEAD", "config", "info/attributes", "info/exclude")
_REMOVE = "--force-remove"
_STATUS = (
    "--porcelain", "-z", "--untracked-files=all", "--no-renames",
    "--ignore-submodules=all",
)  # fmt: skip
_WITH_IGNORED = "--ignored=matching"
_IGNORED = b"\0!! "
# Who has made the commit of the first snapshot.
_NOBODY = {
    f"GIT_{who}_{what}": "-"
    for who in ("AUTHOR", "COMMITTER")
    for what in ("NAME", "EMAIL")
}
_ATTRIBUTES = "* -text -ident -filter !working-tree-encoding !eol !diff !merge\n"
# The attributes by which git converts a file.
_CONVERTING = ("text", "crlf", "eol", "filter", "ident", "working-tree-encoding")
_LINE_ENDS = (b"text=", b"crlf=", b"eol=")
_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"
_LARGEST_REFLOG = 1024 * 1024
# A file system may round the time at which a file is made, in nanoseconds.
_TICK = 10_000_000
# The steps of a reflog by which git itself writes files, and those of them in which the
# user or a command may have written what is committed.
_BY_GIT = re.compile(
    r"(checkout|reset|clone|branch|(initial )?pull|merge|rebase|cherry-pick)\b", re.I
)
_BY_HAND = re.compile(r"^[^:]*\((continue|edit)\)")
_MOST_COMMITS = 20_000
# Of the commits that commands have made, the changes of the last ones are known.
_MOST_OWN = 20
# Of the branches and tags, the last ones are looked at for lines that are taken.
_MOST_TIPS = 50
_LIMIT_OF_TIPS = 2.0
_BLOB = re.compile(rb"^([0-9a-f]+) blob \d+")
_LARGEST_TAKEN = 512 * 1024
_AUTHOR = "%at %ae"
# What git says outside of work trees: of a plain directory, or of a bare repository.
_NO_WORK_TREE = ("not a git repository", "must be run in a work tree")
# Where systems for versions have their data.
_SYSTEMS = {".git", ".hg", ".svn", ".bzr", ".jj", "_darcs", ".sl", ".pijul"}
# Locks and texts of unsaved buffers, drafts of `restore`, and backup files beside one.
_EMACS = re.compile(r"\.#.+|#.+#|\.gemini-companion-.+", re.DOTALL)
_SUBMODULE = b"160000"
_READABLE = 0o044

Reason: TypeAlias = Literal[
    "ignored", "excluded", "unanswered", "repository", "system", "Emacs", "temporary",
    "special", "large", "unreadable", "many", "name",
]  # fmt: skip
"""Why a snapshot does not look at a file.

It is ignored by git; excluded in Emacs, or Emacs had no time to say; in another
repository, or part of one, maybe of another system; a file that Emacs itself makes, or
a temporary one; or it cannot be copied: no regular file, too large, not readable, or
one of many that earlier snapshots have not looked at; or Emacs cannot be asked about
its name, which is not in UTF-8."""


class Unlooked(NamedTuple):
    """A name at which a snapshot did not look; a directory ends with a slash."""

    reason: Reason
    stamp: tuple[int, int] | None = None
    """The time and size of the file, None without a file or if they do not matter."""


class Stamp(NamedTuple):
    """When a file was written, its size, and when it was made."""

    time: int
    size: int
    birth: int | None = None
    """None if that is not known; a file keeps it when it is renamed."""
    is_other: bool = False
    """Whether it is not known to be the file that had the name before."""
    is_linked: bool = False
    """Whether it has several names."""


@dataclass(frozen=True)
class Snapshot:
    """What a work tree has at a time."""

    tree: str
    """The tree of git with the names that it has."""
    time: int
    """When it was complete, as the time of a file, in nanoseconds."""
    unlooked: Mapping[str, Unlooked]
    """The names at which it did not look, but for the `ignored` ones."""
    ignored: frozenset[bytes] = frozenset()
    """Files and whole directories, which end with a slash."""
    is_complete: bool = True
    """Whether they were listed: else new ones are missing, and `others` is empty."""
    others: Mapping[str, int] = field(default_factory=dict)
    """The sizes of files at which it did not look."""
    large: Collection[str] | None = None
    """Those that are too many, and directories with too many; None for all."""
    repositories: frozenset[str] = frozenset()
    """Those inside the work tree that any snapshot has found."""
    stamps: Mapping[str, "Stamp"] = field(default_factory=dict)
    """Those of the files that it has looked at for the first time."""

    def has_sizes_of(self, name: str) -> bool:
        """Return whether the sizes are known of ``name``, at which it did not look."""
        if not name.endswith("/"):
            return name in self.others
        return self.large is not None and name not in self.large

    def is_in_ignored_directory(self, name: str) -> bool:
        """Return whether ``name`` is, or is in, a directory that git ignores whole."""
        is_in_one = name.endswith("/") or os.fsencode(name) not in self.ignored
        return self.why_unlooked(name) == "ignored" and is_in_one

    def why_unlooked(self, name: str) -> Reason | None:
        """Return why it has not looked at ``name``, None if it has."""
        while True:
            if name in self.unlooked:
                return self.unlooked[name].reason
            if self.ignored and os.fsencode(name) in self.ignored:
                return "ignored"
            parent = os.path.dirname(name.removesuffix("/"))
            if not parent:
                return None
            name = f"{parent}/"


class Listing(NamedTuple):
    """What a snapshot is to look at."""

    names: Sequence[str]
    """The names of files that may differ from the last snapshot."""
    unlooked: Mapping[str, Unlooked]
    ignored: frozenset[bytes]
    is_complete: bool


class Difference(NamedTuple):
    """What is known about the time between two snapshots, in names of files."""

    changes: Sequence["Change"] = ()
    """What was changed, made and deleted, by proof."""
    moved: Sequence[str] = ()
    """New names, or new contents, that may be older than the first snapshot."""
    unknown: Sequence[str] = ()
    """Files at which the first snapshot did not look, written or touched since."""
    gone: Sequence[tuple[str, Reason]] = ()
    """Those that it did not look at, and that do not exist any more."""
    left_out: Sequence[str] = ()
    """Files that have changed, but are or were too large, or cannot be read."""
    repositories: Sequence[str] = ()
    """Directories that have become repositories, in which nothing is looked at."""
    by_git: int = 0
    """The number of files that git has moved from commit to commit."""

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is known to have happened."""
        return not any(self)


class Change(NamedTuple):
    """A difference between two snapshots."""

    path: str
    """Relative to the root; bytes that are not UTF-8 are surrogates."""
    before: str
    """The name of the blob, "" without a file."""
    after: str
    mode_before: int
    """As in git: 0o100644, 0o100755, 0o120000 for a symbolic link, or 0."""
    mode_after: int

    @property
    def is_nothing(self) -> bool:
        """Whether the file has what it had."""
        return (self.before, self.mode_before) == (self.after, self.mode_after)


class Moved(NamedTuple):
    """What git has changed in going from one commit to another."""

    changes: Collection[Change] = ()
    is_in_files: bool = False
    """Whether it has changed the files as well, not only what is checked out."""


_NOTHING = Moved()


class Taken(NamedTuple):
    """What a change has removed, and no commit has."""

    change: int
    """The index of the change."""
    is_tracked: bool
    """Whether a commit has the file: else it may be of another program."""
    lines: Sequence[bytes]
    """In order, without their ends."""


class Head(NamedTuple):
    """What is checked out."""

    commit: str = ""
    """The name of the commit, "" if there is none."""
    size: int = -1
    """The size of the reflog, 0 before the first commit, -1 without a reflog."""


class SnapshotError(GitError):
    """A snapshot cannot be taken; the message is a phrase for the user."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.remedy = remedy


class DamagedStore(GitError):
    """A file of a store was deleted or changed, as by a cleaner."""


def is_text(name: str) -> bool:
    """Return whether ``name`` can be passed to Emacs: it is UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def git_problem() -> str:
    """Return why snapshots are impossible on this machine, or ""."""
    try:
        words = git.run(["version"], git.user_environ()).decode().split()
        version = tuple(int(number) for number in words[2].split(".")[:2])
    except (GitError, IndexError, ValueError):
        return "git is not installed"
    return "" if version >= OLDEST_GIT else "git is older than 2.32"


def top_level(directory: str) -> str:
    """Return the root of the work tree of ``directory``, itself without a repository.

    From a subdirectory, git would not read the files named .gitignore above it.  Raise
    SnapshotError if git refuses to read the repository.
    """
    command = "rev-parse", "--show-toplevel"
    environ = git.user_environ() | {"LC_ALL": "C"}
    try:
        output = git.run(command, environ, directory)
    except GitTooSlow:
        raise
    except GitError as error:
        if any(phrase in str(error) for phrase in _NO_WORK_TREE):
            return directory
        problem = f"git refuses the repository: {error.reason}"
        raise SnapshotError(problem, error.remedy) from None
    return os.fsdecode(output).removesuffix("\n") or directory


class Store:
    """The snapshots of the work tree at ``root``, in a new ``directory``.

    The names below ``temporary``, a directory, are never part of them.
    """

    def __init__(self, root: str, directory: str, temporary: str = "") -> None:
        self.root = root
        self.directory = directory
        # The temporary directory may be the root.
        parent = os.path.dirname(directory)
        self._temporary = _below(root, temporary) or _below(root, parent)
        self._size = 0
        self._last: Snapshot | None = None
        self._ignored: tuple[bytes, frozenset[bytes]] = b"", frozenset()
        self._large: set[str] = set()
        self.private: dict[str, int] = {}
        """The permissions of files that not all may read, also of deleted ones.

        Git does not know them.
        """
        self._inodes: dict[str, int] = {}
        self._files: dict[str, str] = {}
        self._format = ""
        self._settings: dict[str, str] = {}
        self._alternates: dict[str, str] = {}
        self._reflog = ""
        self._head = Head()
        self._own: dict[str, str] = {}
        self._may_convert = False
        self._stamps: dict[str, tuple[int, int, int]] = {}
        self._has_index = False
        self._environ = {
            **git.own_environ(),
            **_NOBODY,
            "LC_ALL": "C",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": directory,
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_WORK_TREE": root,
        }
        self._create()

    # Git

    @property
    def environ(self) -> Sequence[str]:
        """The variables with which others read the store by git."""
        environ = self._environ | self._alternates
        return [f"{name}={value}" for name, value in environ.items()]

    def _git(
        self, *arguments: str, given: bytes = b"", sees_user: bool = True
    ) -> bytes:
        """Return the output of git in the store, or raise GitError.

        With ``sees_user``, it reads the objects of the user's repository as well.
        """
        environ = self._environ | (self._alternates if sees_user else {})
        limit = _LIMIT if self._last else git.LIMIT
        return git.run(arguments, environ, self.root, given, limit)

    def _create(self) -> None:
        try:
            self._create_directory()
            self._copy_index()
            self._stamps = {name: self._stamp(name) for name in _OWN_FILES}
        except OSError as error:
            raise no_room(error) from None

    def _stamp(self, name: str) -> tuple[int, int, int]:
        status = os.lstat(os.path.join(self.directory, name))
        return status.st_ino, status.st_mtime_ns, status.st_size

    def exists(self) -> bool:
        """Return whether its objects exist.

        Its name has a secret, so that nobody else can have made them.
        """
        return os.path.isdir(f"{self.directory}/objects")

    def delete(self) -> None:
        """Delete the store, if a cleaner has not."""
        if self.exists():
            shutil.rmtree(self.directory, ignore_errors=True)

    def mend(self) -> None:
        """Make all but the objects again; the next snapshot is the first one.

        Raise GitError if that fails.
        """
        self._last, self._has_index = None, False
        self._ignored = b"", frozenset()
        with suppress(FileNotFoundError):
            os.unlink(f"{self.directory}/index")
        self._create()

    def _check(self) -> None:
        """Check that the store is whole, before it is used."""
        try:
            # Nobody else uses the store: git was killed.
            with suppress(FileNotFoundError):
                os.unlink(f"{self.directory}/index.lock")
            for name, stamp in self._stamps.items():
                found = self._stamp(name)
                if name != "objects" and found != stamp:
                    raise DamagedStore(f"{self.directory}/{name} was changed")
            if self._has_index:
                os.lstat(f"{self.directory}/index")
        except OSError as error:
            reason = error.strerror or str(error)
            raise DamagedStore(f"{error.filename}: {reason}") from None

    def _create_directory(self) -> None:
        store = Path(self.directory)
        store.mkdir(mode=0o700, exist_ok=True)
        for name in ("objects/info", "refs", "info"):
            (store / name).mkdir(parents=True, exist_ok=True)
        (store / "HEAD").write_text("ref: refs/heads/none\n")
        (store / "info/attributes").write_text(_ATTRIBUTES)
        self._files = self._user_files()
        exclude = b""
        is_sha256 = self._format == "sha256"
        config = _CONFIG.format(version=int(is_sha256), devnull=os.devnull)
        if is_sha256:
            config += "[extensions]\n\tobjectFormat = sha256\n"
        if self._files:
            self._settings = self._user_settings()
            config += self._user_config()
            objects = _quoted(self._files["objects"])
            self._alternates = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
            self._reflog = self._files["logs/HEAD"]
            exclude = git.read(self._files["info/exclude"])
        (store / "info/exclude").write_bytes(exclude)
        (store / "config").write_bytes(os.fsencode(config))

    def _user_config(self) -> str:
        """Return the settings of the user that say which files there are."""
        listed = self._ask("config", "--type=bool", "--get-regexp", _FILE_SYSTEM)
        lines = [line.split(" ") for line in listed.splitlines()]
        settings = [f"\t{name.partition('.')[2]} = {value}" for name, value in lines]
        if not (ignored := self._settings.get("core.excludesfile", "")):
            # The default, which git would search with the user's settings.
            base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
            ignored = os.path.join(os.path.expanduser(base), "git", "ignore")
        # git would wait for a pipe.
        if os.path.isfile(ignored):
            settings.append(f"\texcludesFile = {_quoted(ignored)}")
        return "\n".join(["[core]", *settings, ""])

    def _user_settings(self) -> dict[str, str]:
        """Return the settings of the user that name files, or convert line ends."""
        found = {}
        for options in _FILES, _LINE_END_SETTINGS:
            for entry in self._ask("config", "-z", *options).split("\0")[:-1]:
                name, has_value, value = entry.partition("\n")
                found[name] = value if has_value else "true"
        return found

    def _ask(self, *arguments: str) -> str:
        """Return what git says about the user's repository, "" if nothing."""
        return git.ask(self.root, *arguments)

    def _user_files(self) -> dict[str, str]:
        """Return the absolute names of files of the user's repository, {} without."""
        command = "rev-parse", "--path-format=absolute"
        words = [word for name in _USER_FILES for word in ("--git-path", name)]
        *files, self._format = self._ask(*command, *words, _FORMAT).split("\n")
        if len(files) > len(_USER_FILES):
            # A directory may have any name.
            files = [self._ask(*command, "--git-path", name) for name in _USER_FILES]
        return dict(zip(_USER_FILES, files, strict=True)) if files else {}

    def _copy_index(self) -> None:
        """Begin with what the user's index tells about files that are as committed."""
        index, copy = self._files.get("index", ""), f"{self.directory}/index"
        if not os.path.isfile(index):
            return
        try:
            # With its time, by which git knows entries of files that may have changed
            # in the same moment.
            shutil.copy2(index, copy)
            lines = self._git("ls-files", "-v", "-s", "-z").split(b"\0")[:-1]
            # Those that git assumes to be unchanged have a lower-case letter.
            assumed = [_name(line) for line in lines if line[:1].islower()]
            # In a sparse work tree, other files do not exist.
            skipped = [
                name
                for name in (_name(line) for line in lines if line[:1] in b"Ss")
                if os.path.lexists(self._path(os.fsdecode(name)))
            ]
            removed = {_name(line) for line in lines if _is_no_file(line)}
            removed.update(self._converted())
            for option, names in (
                ("--no-assume-unchanged", assumed),
                ("--no-skip-worktree", skipped),
                (_REMOVE, removed),
            ):
                if names:
                    self._update_index(option, names)
        except (OSError, GitTooSlow):
            raise
        except GitError:
            # Such as an index that is split in two files.
            os.unlink(copy)

    def _update_index(self, option: str, names: Iterable[bytes]) -> None:
        given = b"".join(name + b"\0" for name in names)
        command = "update-index", "-z", "--add", "--replace", option, "--stdin"
        self._git(*command, given=given)

    def _converted(self) -> list[bytes]:
        """Return the tracked files whose bytes may not be those that git has."""
        self._may_convert = self._has_conversion()
        if not self._may_convert:
            return []
        names = self._user_git("ls-files", "-z")
        options = "check-attr", "-z", "--stdin", *_CONVERTING
        fields = self._user_git(*options, given=names).split(b"\0")
        found: dict[bytes, set[bytes]] = {}
        triples = zip(fields[::3], fields[1::3], fields[2::3], strict=False)
        for name, attribute, value in triples:
            if value != b"unspecified":
                found.setdefault(name, set()).add(attribute + b"=" + value)
        is_always = self._converts_line_ends()
        return [
            name
            for name in names.split(b"\0")[:-1]
            if self._is_converted(name, found.get(name, set()), is_always)
        ]

    def _is_converted(self, name: bytes, attributes: set[bytes], always: bool) -> bool:
        """Return whether git may convert the file ``name`` with ``attributes``.

        Line ends may be converted ``always``, or only if an attribute says so.
        """
        given = {each for each in attributes if not each.endswith(b"=unset")}
        if any(not each.startswith(_LINE_ENDS) for each in given):
            return True
        if b"text=unset" in attributes or not (always or given):
            return False
        path = self._path(os.fsdecode(name))
        return (
            b"\r\n" in git.read(path, most=LARGEST_TEXT) or _size(path) > LARGEST_TEXT
        )

    def _converts_line_ends(self) -> bool:
        """Return whether git converts line ends of files without attributes."""
        autocrlf = self._settings.get("core.autocrlf", "")
        eol = self._settings.get("core.eol", "")
        return autocrlf not in ("", "false") or eol not in ("", "lf", "native")

    def _has_conversion(self) -> bool:
        """Return whether git may convert files of the user's repository."""
        if self._converts_line_ends():
            return True
        pattern = ":(glob)**/.gitattributes"
        names = self._ask("ls-files", "-z", "--", pattern).split("\0")
        files = [os.path.join(self.root, name) for name in names if name]
        files += self._path(".gitattributes"), self._files["info/attributes"]
        texts = b"".join(map(git.read, files))
        # The user's own files may be links.
        own = self._settings.get("core.attributesfile", "")
        for file in own, os.path.expanduser("~/.config/git/attributes"):
            texts += git.read(os.path.realpath(file)) if file else b""
        return any(word.encode() in texts for word in _CONVERTING)

    def _user_git(self, *arguments: str, given: bytes = b"") -> bytes:
        """Return what git prints about the user's repository, or raise GitError."""
        return git.run(arguments, git.user_environ(), self.root, given)

    # Snapshots

    @property
    def is_full(self) -> bool:
        """Whether the store is to start over."""
        return self._size > LARGEST_STORE

    def listing(self, goes_on: bool = True) -> Listing:
        """Return the files that may differ from the last snapshot.

        If no call ``goes_on`` after the snapshot, nothing that the next one finds has
        an owner, and files are ignored as before.
        """
        self._check()
        last = self._last
        is_complete = goes_on or not last
        listed = self._walk(is_complete)
        if last and not is_complete and len(last.ignored) > MOST_OTHERS:
            # New files may be copies of ignored ones that are gone.
            is_complete = any(os.fsdecode(name) not in last.unlooked for name in listed)
            listed = self._walk(is_complete) if is_complete else listed
        unlooked: dict[str, Unlooked] = {}
        others: dict[str, tuple[str, Unlooked] | None] = {}
        names: list[str] = []
        for name in map(os.fsdecode, listed):
            if name.endswith("/"):
                unlooked[name] = Unlooked("repository")
            elif found := self._never(name):
                unlooked.update([found])
            else:
                found = self._other(os.path.dirname(name), others)
                if found:
                    unlooked.update([found])
                if not found or (last and self._is_deleted(name, last)):
                    names.append(name)
        if last and len(names) > MOST_FILES:
            late = {name for name in names if last.why_unlooked(name)}
            if len(late) > MOST_FILES:
                unlooked.update((name, Unlooked("many")) for name in late)
                names = [name for name in names if name not in late]
        ignored = self._ignored[1]
        if last and not is_complete:
            ignored = self._still_ignored(last.ignored, names)
        return Listing(names, unlooked, ignored, is_complete)

    def _is_deleted(self, name: str, last: Snapshot) -> bool:
        """Return whether ``name`` does not exist, which the ``last`` one has looked at.

        A repository that comes in the place of a directory may delete the user's files.
        """
        return not (self._exists(name) or last.why_unlooked(name))

    def _still_ignored(
        self, ignored: frozenset[bytes], names: Iterable[str]
    ) -> frozenset[bytes]:
        """Return which of ``ignored`` exist, or all if they are many.

        Leave out ``names``, which are seen now, and the directories that these are in.
        """
        seen: set[bytes] = set()
        for name in names:
            while name:
                seen.add(os.fsencode(name))
                parent = os.path.dirname(name.removesuffix("/"))
                name = parent and f"{parent}/"
        if gone := seen & ignored:
            ignored -= gone
        if len(ignored) > MOST_OTHERS:
            return ignored
        there = (name for name in ignored if self._exists(os.fsdecode(name)))
        return frozenset(there)

    def _exists(self, name: str) -> bool:
        return os.path.lexists(self._path(name))

    def _walk(self, with_ignored: bool) -> list[bytes]:
        """Return the names that differ from the index.

        Find the ignored ones as well if ``with_ignored``: git reads all directories
        once for both.
        """
        output = self._git("status", *_STATUS, *[_WITH_IGNORED][: int(with_ignored)])
        # Ignored names come last, and no name has a zero byte.
        begin = (b"\0" + output).find(_IGNORED) if with_ignored else -1
        begin = len(output) if begin < 0 else begin
        if with_ignored and output[begin:] != self._ignored[0]:
            names = (b"\0" + output[begin:-1]).split(_IGNORED)[1:]
            self._ignored = output[begin:], frozenset(names)
        # The letter before a name says how the file differs from the index.
        lines = output[:begin].split(b"\0")
        return [line[3:] for line in lines if line and line[1:2] != b" "]

    def _never(self, name: str) -> tuple[str, Unlooked] | None:
        """Return what says that the file ``name`` is never part of a project."""
        if self._temporary and name.startswith(self._temporary):
            return self._temporary, Unlooked("temporary")
        saved = _backed_up(name)
        is_backup = saved and self._exists(saved)
        if is_backup or _EMACS.fullmatch(os.path.basename(name)):
            return name, Unlooked("Emacs")
        return None

    def _other(
        self, directory: str, known: dict[str, tuple[str, Unlooked] | None]
    ) -> tuple[str, Unlooked] | None:
        """Return what says that ``directory`` is of another system or repository."""
        if not directory:
            return None
        if directory not in known:
            found = self._other(os.path.dirname(directory), known)
            if not found and (reason := self._system(directory)):
                found = f"{directory}/", Unlooked(reason)
            known[directory] = found
        return known[directory]

    def _system(self, directory: str) -> Reason | None:
        base, path = os.path.basename(directory), self._path(directory)
        if base in _SYSTEMS or (base == "CVS" and os.path.isfile(f"{path}/Entries")):
            return "system"
        if os.path.lexists(f"{path}/.git"):
            return "repository"
        is_bare = os.path.isfile(f"{path}/HEAD") and all(
            os.path.isdir(f"{path}/{name}") for name in ("objects", "refs")
        )
        return "repository" if is_bare else None

    def _path(self, *names: str) -> str:
        return os.path.join(self.root, *names)

    def take(
        self,
        listing: Listing,
        shared: Iterable[str],
        hidden: Iterable[str] = (),
        unanswered: Iterable[str] = (),
    ) -> Snapshot:
        """Take a snapshot in which only ``shared`` names may differ.

        The other names of ``listing`` are not looked at.  Raise SnapshotError if there
        are too many that have changed, or they are too large.
        """
        unlooked = dict(listing.unlooked)
        for name in hidden:
            reason: Reason = "excluded" if is_text(name) else "name"
            unlooked[name] = self._unlooked(name, reason)
        unlooked.update(
            (name, self._unlooked(name, "unanswered")) for name in unanswered
        )
        gone, stamps = self._sorted_out(shared, unlooked)
        for option, names in ((_REMOVE, gone), ("--remove", stamps)):
            if names:
                self._update_index(option, map(os.fsencode, names))
        tree = self._last.tree if self._last else ""
        if gone or stamps or not tree:
            # The trees are all in the store, as the user's git may delete its own.
            options = "write-tree", "--missing-ok"
            tree = self._git(*options, sees_user=False).decode().strip()
        self._has_index = os.path.exists(f"{self.directory}/index")
        if not self._last:
            self._begin_with(tree)
        ignored, is_complete = listing.ignored, listing.is_complete
        others, large = self._others(ignored, unlooked) if is_complete else ({}, None)
        repositories = {
            name
            for name, (reason, _) in unlooked.items()
            if reason == "repository" and name.endswith("/")
        }
        if self._last:
            repositories |= self._last.repositories
        self._last = Snapshot(
            tree,
            self._now(),
            unlooked,
            ignored,
            is_complete,
            others,
            large,
            frozenset(repositories),
            stamps,
        )
        return self._last

    def note_files(self) -> None:
        """Take note of who may read the files of the last snapshot, and which they are.

        That is asked for before a call, which may delete or replace them.
        """
        self._inodes.clear()
        for name in map(os.fsdecode, self._git("ls-files", "-z").split(b"\0")[:-1]):
            with suppress(OSError):
                status = os.lstat(self._path(name))
                self._inodes[name] = status.st_ino
                self.private.pop(name, None)
                self._note_permissions(name, status)

    def _note_permissions(self, name: str, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            # A link has none, and may be gone again.
            return
        # What a call has made readable by all was not so before.
        if ~status.st_mode & _READABLE:
            self.private[name] = stat.S_IMODE(status.st_mode) & 0o777

    def _begin_with(self, tree: str) -> None:
        """Make ``tree`` what git compares the index with, which is otherwise nothing.

        What differs from it is listed as well.
        """
        commit = self._git("commit-tree", "-m", "-", tree)
        (Path(self.directory) / "HEAD").write_bytes(commit)
        self._stamps["HEAD"] = self._stamp("HEAD")

    def _unlooked(self, name: str, reason: Reason) -> Unlooked:
        try:
            status = os.lstat(self._path(name))
        except OSError:
            return Unlooked(reason)
        return Unlooked(reason, (status.st_mtime_ns, status.st_size))

    def _now(self) -> int:
        """Return the time of a file that is written now."""
        clock = Path(self.directory) / "clock"
        clock.write_bytes(b"")
        return clock.stat().st_mtime_ns

    def _others(
        self, ignored: Collection[bytes], unlooked: Collection[str]
    ) -> tuple[dict[str, int], Collection[str] | None]:
        """Return the `others` and the `large` ones of a snapshot.

        A directory with too many files is not read again.
        """
        found: dict[str, int] = {}
        if len(ignored) + len(unlooked) > MOST_OTHERS:
            return found, None
        for top in [*unlooked, *map(os.fsdecode, ignored)]:
            if top in self._large:
                continue
            names = self._files_in(top) if top.endswith("/") else [top]
            if len(found) + len(names) > MOST_OTHERS:
                self._large.add(top)
                continue
            for name in names:
                with suppress(OSError):
                    found[name] = os.lstat(self._path(name)).st_size
        return found, frozenset(self._large)

    def _files_in(self, top: str) -> list[str]:
        """Return the files in the directory ``top``, but not all of too many."""
        names: list[str] = []
        for directory, directories, files in os.walk(self._path(top)):
            directories[:] = [name for name in directories if name != ".git"]
            below = directory[len(self.root) + 1 :]
            names.extend(os.path.join(below, name) for name in files)
            if len(names) + len(directories) > MOST_OTHERS:
                break
        return names

    def _sorted_out(
        self, names: Iterable[str], unlooked: dict[str, Unlooked]
    ) -> tuple[list[str], dict[str, Stamp]]:
        """Return which of ``names`` are gone, and which have a content to keep.

        Add the others to ``unlooked``.
        """
        gone: list[str] = []
        stamps: dict[str, Stamp] = {}
        sizes: dict[str, int] = {}
        large: dict[str, int] = {}
        in_tree: dict[str, bool] = {"": True}
        for name in names:
            try:
                # Git refuses names behind a symbolic link.
                is_there = self._is_in_tree(name, in_tree)
                status = os.lstat(self._path(name)) if is_there else None
            except (FileNotFoundError, NotADirectoryError):
                status = None
            except OSError:
                unlooked[name] = Unlooked("unreadable")
                continue
            if status is None or stat.S_ISDIR(status.st_mode):
                gone.append(name)
                continue
            if stat.S_ISREG(status.st_mode):
                self._note_permissions(name, status)
                reason = self._why_not_stored(name, status, sum(large.values()))
                if not reason:
                    is_large = status.st_size > LARGEST_TEXT
                    (large if is_large else sizes)[name] = status.st_size
            else:
                reason = None if stat.S_ISLNK(status.st_mode) else "special"
            if reason:
                stamp = status.st_mtime_ns, status.st_size
                unlooked[name] = Unlooked(reason, stamp)
            else:
                # In the first snapshot, which may be of all files, nothing is new.
                birth = birth_time(self._path(name)) if self._last else None
                stamps[name] = Stamp(
                    status.st_mtime_ns,
                    status.st_size,
                    birth,
                    self._inodes.get(name) != status.st_ino,
                    status.st_nlink > 1,
                )
                self._inodes[name] = status.st_ino
        self._limit({**sizes, **large}, large, stamps, unlooked)
        return gone, stamps

    def _limit(
        self,
        sizes: Mapping[str, int],
        large: Collection[str],
        stamps: dict[str, Stamp],
        unlooked: dict[str, Unlooked],
    ) -> None:
        """Raise SnapshotError if the files of ``sizes`` are too many to be copied.

        Those that the last snapshot has not looked at count for themselves: if they are
        too many, move them from ``stamps`` to ``unlooked``.
        """
        last = self._last
        late = {name for name in sizes if last and last.why_unlooked(name)}

        def is_too_much(names: Collection[str]) -> bool:
            size = sum(sizes[name] for name in names if name not in large)
            return len(names) > MOST_FILES or size > MOST_BYTES

        tracked = self._tracked() & sizes.keys()
        copied = sizes.keys() - tracked
        if is_too_much(copied - late):
            raise _too_many(copied - late)
        if is_too_much(late):
            copied -= late
            for name in late:
                del stamps[name]
                unlooked[name] = Unlooked("many")
        size = sum(sizes[name] for name in copied)
        for name in sorted(tracked, key=lambda name: sizes[name]):
            if size + sizes[name] > MOST_BYTES:
                unlooked[name] = Unlooked("large", stamps.pop(name)[:2])
            else:
                size += sizes[name]
        self._size += size

    def _why_not_stored(
        self, name: str, status: os.stat_result, copied: int
    ) -> Reason | None:
        """Return why the file ``name`` with ``status`` cannot be copied, or None.

        The same snapshot copies large files of ``copied`` bytes before it.
        """
        is_large = status.st_size > LARGEST_TEXT
        last = self._last and self._last.unlooked.get(name)
        if last == ("large", (status.st_mtime_ns, status.st_size)) or (
            is_large and copied + status.st_size > MOST_LARGE_BYTES
        ):
            return "large"
        return None if os.access(self._path(name), os.R_OK) else "unreadable"

    def _tracked(self) -> set[str]:
        """Return the tracked files, any number of which the first snapshot may copy.

        They are those that the user's index does not tell the bytes of.
        """
        if self._last or not self._files:
            return set()
        return set(self._ask("ls-files", "-z").split("\0"))

    def _is_in_tree(self, name: str, known: dict[str, bool]) -> bool:
        """Return whether no directory of ``name`` is a symbolic link."""
        parent = os.path.dirname(name)
        if parent not in known:
            is_link = os.path.islink(self._path(parent))
            known[parent] = not is_link and self._is_in_tree(parent, known)
        return known[parent]

    # Differences

    def difference(
        self, before: Snapshot, after: Snapshot, moved: Moved = _NOTHING
    ) -> Difference:
        """Return what is known about the time between two snapshots in a row.

        The second one is the last one.  Git has ``moved`` some, which are only counted.
        """
        changes: list[Change] = []
        unknown: list[str] = []
        gone = self._gone(before, after)
        same = before.tree == after.tree
        expected = {each.path: each for each in moved.changes}
        by_git: list[Change] = []
        for each in [] if same else self._differences(before.tree, after.tree):
            reason = after.why_unlooked(each.path)
            # A repository may be in the place of what has been deleted.
            if reason and (each.after or reason != "repository"):
                continue
            reason = before.why_unlooked(each.path)
            if not (each.before or before.is_complete):
                reason = reason or "ignored"
            if reason:
                if not each.after:
                    gone[each.path] = reason
                elif self._is_touched(each.path, before.time):
                    unknown.append(each.path)
                continue
            is_by_git = each == expected.get(each.path)
            (by_git if is_by_git else changes).append(each)
        if self._may_convert:
            pairs = [(each, expected.get(each.path)) for each in changes]
            converted = self._converted_ones(
                [(each, other) for each, other in pairs if other]
            )
            by_git += converted
            changes = [each for each in changes if each not in converted]
        if moved.is_in_files:
            left = [self._after_git(each, expected.get(each.path)) for each in changes]
            by_git += [each for each in left if each.is_nothing]
            changes = [each for each in left if not each.is_nothing]
        # Emacs has made a backup file, maybe of another one, and then its file went.
        deleted = {each.path for each in changes if not each.after} | gone.keys()
        deleted |= before.unlooked.keys()
        changes = [
            each
            for each in changes
            if each.before or _backed_up(each.path) not in deleted
        ]
        older = self._moved_here(changes, before, after, gone)
        left_out = {
            name
            for name, (reason, stamp) in after.unlooked.items()
            if (
                reason in ("large", "unreadable", "special")
                or (reason == "name" and stamp)
            )
            and before.unlooked.get(name, (reason, ()))[1] != stamp
        }
        large = {name for name in unknown if before.why_unlooked(name) == "large"}
        return Difference(
            [each for each in changes if each.path not in older],
            sorted(older),
            [name for name in unknown if name not in large],
            sorted(gone.items()),
            sorted(left_out | large),
            sorted(after.repositories - before.repositories),
            len(by_git),
        )

    def _converted_ones(self, pairs: Sequence[tuple[Change, Change]]) -> list[Change]:
        """Return the first ones of ``pairs`` that are the second ones, converted."""
        contents = self.texts([each for each, _ in pairs]) if pairs else {}

        def is_same(blob: str, other: str) -> bool:
            content = contents.get(blob)
            return blob == other or bool(
                blob
                and other
                and content is not None
                and other in _kept(content, other)
            )

        return [
            each
            for each, other in pairs
            if is_same(each.before, other.before)
            and is_same(each.after, other.after)
            and each[3:] == other[3:]
        ]

    def _after_git(self, change: Change, moved: Change | None) -> Change:
        """Return ``change`` without what git has ``moved`` in the same file.

        That is as if the file had got it before, merged with what it had that was not
        committed.  If that is a conflict, it stays part of the change.
        """
        # Git may have written a new file in another form than it keeps it.
        if moved is None or (self._may_convert and not change.before):
            return change
        if (change.before, change.mode_before) == (moved.before, moved.mode_before):
            return change._replace(before=moved.after, mode_before=moved.mode_after)
        merged = self._merged(change.before, moved.before, moved.after)
        return change._replace(before=merged or change.before)

    def _merged(self, *blobs: str) -> str:
        """Return the blob that merges the first and the last of ``blobs``, or "".

        The one between is what both were made of.
        """
        contents = self._contents({*blobs} - {""})
        files = []
        for number, blob in enumerate(blobs):
            if (content := contents.get(blob)) is None:
                return ""
            file = Path(self.directory) / f"merged{number}"
            file.write_bytes(content)
            files.append(str(file))
        try:
            content = self._git("merge-file", "-p", "-q", *files)
        except GitFailed:
            return ""
        options = "-w", "--no-filters", "--stdin"
        return self._git("hash-object", *options, given=content).decode().strip()

    def _gone(self, before: Snapshot, after: Snapshot) -> dict[str, Reason]:
        """Return what is gone of what ``before`` has not looked at."""
        ignored = before.ignored
        ignored = frozenset() if ignored is after.ignored else ignored - after.ignored
        names: dict[str, Reason] = dict.fromkeys(map(os.fsdecode, ignored), "ignored")
        for name in before.others.keys() - after.others.keys():
            reason = before.why_unlooked(name)
            if reason and reason not in ("Emacs", "temporary"):
                names[name] = reason
        for name, (reason, stamp) in before.unlooked.items():
            is_file = stamp or reason == "many"
            if reason not in ("Emacs", "temporary") and (
                (is_file and stamp != after.unlooked.get(name, ("", ()))[1])
                or (name.endswith("/") and name not in after.unlooked)
            ):
                names[name] = reason
        for name, (reason, stamp) in after.unlooked.items():
            # Emacs was asked only as it was deleted.
            is_asked = reason in ("excluded", "unanswered", "name")
            if is_asked and not stamp and name not in before.unlooked:
                names[name] = reason
        return {
            name: reason for name, reason in names.items() if not self._exists(name)
        }

    def _is_touched(self, name: str, since: int) -> bool:
        try:
            return os.lstat(self._path(name)).st_ctime_ns >= since
        except OSError:
            return True

    def _moved_here(
        self,
        changes: Collection[Change],
        before: Snapshot,
        after: Snapshot,
        gone: Mapping[str, Reason],
    ) -> set[str]:
        """Return the files of ``changes`` whose contents may be older than ``before``.

        That is if they were written before it.  A new one may be older if it was made
        before it: it was renamed.  If files are ``gone`` at which it has not looked,
        each new one may have the text of one of them.  Where all of these were in
        directories that are ignored as a whole, and are probably made by programs, it
        has the size or the name of one; and so has a changed one the size.  A changed
        one may be older if another file, made before ``before``, has its name now.  A
        content that ``before`` has, maybe under another name, is known; but another
        file with several names is not to be written, as that would change all of them.
        """
        others = before.others
        sizes = {others[name] for name in gone if name in others} - {0}
        bases = {os.path.basename(name) for name in gone}
        are_made = all(
            before.has_sizes_of(name) and before.is_in_ignored_directory(name)
            for name in gone
        )

        def is_suspect(change: Change) -> bool:
            time, size, birth, is_other, _ = after.stamps.get(change.path, Stamp(0, 0))
            if not before.time < time <= after.time or size in sizes:
                return True
            is_older = birth is not None and birth < before.time - _TICK
            if change.before:
                return is_older and is_other
            if is_older:
                return True
            is_like = birth is None or os.path.basename(change.path) in bases
            return bool(gone) and (is_like or not are_made)

        suspects = {
            each.path: each.after
            for each in changes
            if each.after and each.after != each.before and is_suspect(each)
        }
        linked = {
            each.path
            for each in changes
            if each.before and _is_linked_here(after.stamps.get(each.path))
        }
        if not (suspects or linked):
            return set()
        wanted = {*suspects.values(), *(each.before for each in changes)}
        there: dict[str, str] = {}
        for entry in self._git("ls-tree", "-r", "-z", before.tree).split(b"\0")[:-1]:
            facts, _, name = entry.partition(b"\t")
            blob = facts.decode().rpartition(" ")[2]
            # Of an excluded file git has a content, but it is not recorded.
            if blob in wanted and not after.why_unlooked(os.fsdecode(name)):
                there[os.fsdecode(name)] = blob
        known = set(there.values())
        nothing = {"", blob_name(b"", before.tree)}
        older = linked | {name for name, blob in suspects.items() if blob not in known}
        while True:
            # What such a file had is not restored, so its copy stays as well.
            kept = {blob for name, blob in there.items() if name not in older} | nothing
            lost = {each.before for each in changes if each.path in older} - kept
            copies = {each.path for each in changes if each.after in lost}
            if copies <= older:
                return older
            older |= copies

    def _differences(self, before: str, after: str) -> list[Change]:
        options = "-r", "-z", "--no-renames", "--no-ext-diff"
        fields = self._git("diff-tree", *options, before, after).split(b"\0")
        changes = []
        for facts, name in zip(fields[::2], fields[1::2], strict=False):
            old_mode, new_mode, old, new, _ = facts.decode()[1:].split(" ")
            modes = int(old_mode, 8), int(new_mode, 8)
            blobs = (_blob(old), _blob(new))
            changes.append(Change(os.fsdecode(name), *blobs, *modes))
        return changes

    def new_directories(self, before: str, changes: Iterable[Change]) -> list[str]:
        """Return the directories of new files of ``changes`` that ``before`` lacks."""
        names: set[str] = set()
        for change in changes:
            parent = "" if change.before else os.path.dirname(change.path)
            while parent:
                names.add(parent)
                parent = os.path.dirname(parent)
        if not names:
            return []
        options = "--name-only", "-z", "-r", "-d", "--full-tree", "--"
        tops = sorted(name for name in names if "/" not in name)
        listed = self._git("ls-tree", *options, before, *tops).split(b"\0")
        return sorted(names.difference(map(os.fsdecode, listed)))

    def texts(self, changes: Iterable[Change]) -> dict[str, bytes | None]:
        """Return the contents of ``changes`` by the names of their blobs.

        Those of a large file are None; those that the user's git has deleted are
        missing.
        """
        return self._contents(
            {blob for each in changes for blob in (each.before, each.after) if blob}
        )

    def _contents(self, blobs: Collection[str]) -> dict[str, bytes | None]:
        """Return the contents of ``blobs`` by name, None for a large one.

        Those that do not exist are missing.
        """
        listed = self._git("cat-file", "--batch-check", given=_lines(blobs))
        sizes: dict[str, int] = {}
        for line in listed.decode().splitlines():
            name, *_, size = line.split(" ")
            if size.isdigit():
                sizes[name] = int(size)
        found: dict[str, bytes | None] = dict.fromkeys(sizes)
        small = [name for name, size in sizes.items() if size <= LARGEST_TEXT]
        output = self._git("cat-file", "--batch", given=_lines(small)) if small else b""
        at = 0
        for name in small:
            begin = output.index(b"\n", at) + 1
            at = begin + sizes[name] + 1
            found[name] = output[begin : at - 1]
        return found

    def taken(
        self,
        changes: Sequence[Change],
        contents: Mapping[str, bytes | None],
        heads: Collection[Head],
    ) -> list[Taken]:
        """Return the lines in no commit that ``changes`` have removed.

        Their texts are ``contents``.  The commits are those that a branch or tag names,
        and ``heads``.  A line that is elsewhere now is not removed, nor is one of which
        only white space has changed.
        """
        texts: dict[int, tuple[list[bytes], list[bytes]]] = {}
        there: set[bytes] = set()
        for index, each in enumerate(changes):
            before, after = (contents.get(b) for b in (each.before, each.after))
            there.update(_lines_of(after or b""))
            size = max(len(before or b""), len(after or b""))
            is_text = before and b"\0" not in before + (after or b"")
            if before and is_text and size <= _LARGEST_TAKEN:
                texts[index] = _lines_of(before), _lines_of(after or b"")
        if not texts or not self._files:
            return []
        names = [changes[index].path for index in texts]
        committed = self._committed(names, heads)
        found = []
        for index, (old, new) in texts.items():
            blobs, lines = committed[changes[index].path]
            if changes[index].before in blobs:
                continue
            formatted = {b"".join(line.split()) for line in new if line not in lines}
            taken = [
                line
                for line in old
                if line.strip()
                and line not in lines
                and line not in there
                and b"".join(line.split()) not in formatted
            ]
            if taken:
                found.append(Taken(index, bool(blobs), taken))
        return found

    def _committed(
        self, names: Iterable[str], heads: Collection[Head]
    ) -> dict[str, tuple[set[str], set[bytes]]]:
        """Return the blobs that the files ``names`` have in commits, and their lines.

        For the commits, see `taken`.
        """
        options = "--format=%(objectname)", "--sort=-committerdate"
        places = "refs/heads", "refs/remotes", "refs/tags"
        count = f"--count={_MOST_TIPS}"
        command = "for-each-ref", *options, count, *places
        try:
            environ = git.user_environ()
            listed = git.run(command, environ, self.root, limit=_LIMIT_OF_TIPS)
            tips = listed.decode().split()
        except GitTooSlow:
            # To sort very many of them takes long.
            tips = []
        commits = list(dict.fromkeys([head.commit for head in heads if head.commit]))
        found: dict[str, tuple[set[str], set[bytes]]] = {}
        for name in names:
            blobs: set[str] = set()
            if "\n" not in name:
                asked = [f"{commit}:{name}\n" for commit in {*commits, *tips}]
                given = os.fsencode("".join(asked))
                listed = self._user_git("cat-file", "--batch-check", given=given)
                matches = map(_BLOB.fullmatch, listed.splitlines())
                blobs = {match[1].decode() for match in matches if match}
            contents = self._contents(blobs) if blobs else {}
            texts = map(_lines_of, filter(None, contents.values()))
            found[name] = blobs, {line for text in texts for line in text}
        return found

    def count_uncommitted(
        self, before: Snapshot, head: Head, changes: Iterable[Change]
    ) -> int:
        """Return how many files of ``changes`` had a content that ``head`` has not.

        They had it in the snapshot ``before``.  Of files that git converts it is not
        known: they do not count.
        """
        if not head.commit or self._may_convert:
            return 0
        others = {each.path for each in self._differences(head.commit, before.tree)}
        return sum(bool(each.before) and each.path in others for each in changes)

    def write_blob(self, name: str, file: str) -> None:
        """Write the content of the blob ``name`` to the new ``file``."""
        write_private(file, self._git("cat-file", "blob", name))

    def contents(self, names: Sequence[str]) -> Generator[bytes, None, None]:
        """Yield the contents of the blobs ``names``, in order.

        Raise SnapshotError if one is missing, or is not what its name says.
        """
        problem = SnapshotError("the snapshots were deleted")
        if not os.path.isdir(self.directory):
            raise problem
        process = subprocess.Popen(
            ["git", "cat-file", "--batch"],
            env=self._environ | self._alternates,
            cwd=self.root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        limit = threading.Timer(git.LIMIT, process.kill)
        limit.start()
        try:
            # If git has ended, closing its input is an error as well.
            with process:
                assert process.stdin
                assert process.stdout
                try:
                    for name in names:
                        process.stdin.write(f"{name}\n".encode())
                        process.stdin.flush()
                        words = process.stdout.readline().split()
                        if len(words) != 3 or not words[2].isdigit():
                            raise problem
                        content = process.stdout.read(int(words[2]) + 1)[:-1]
                        if blob_name(content, name) != name:
                            raise problem
                        yield content
                finally:
                    limit.cancel()
                    process.kill()
        except OSError:
            raise problem from None

    # What git itself has moved

    def head(self) -> Head:
        """Return what is checked out now."""
        if not self._files:
            return Head()
        try:
            size = os.stat(self._reflog).st_size
        except OSError:
            size = -1
        # Each step makes the reflog longer.
        if size < 0 or size != self._head.size:
            name = "HEAD^{commit}"
            commit = self._ask("rev-parse", "--verify", "--quiet", name)
            # The first commit begins the reflog.
            if not commit and size < 0 and os.path.isdir(self._files["objects"]):
                size = 0
            self._head = Head(commit, size)
        return self._head

    def moved(self, before: Head, after: Head, since: int) -> Moved:
        """Return what git has changed in going from one of `head` to another.

        That is the contents of commits that existed before.  What those have changed is
        left out that were made in between, ``since`` a time in nanoseconds, or that
        commands have made earlier, see `add_own`, or copies of both.
        """
        old, new = before.commit, after.commit
        if old == new or not new:
            return _NOTHING
        steps = self._steps(before.size, after.size)
        # Without a reflog, the first commit may be of anybody.
        if not (old or steps):
            return _NOTHING
        amended = _amended(steps)
        try:
            made = self._made(steps, before, after, since)
            if self._own or made:
                authors = self._authors(made - amended.keys())
                made |= self._copied(old, new, self._own | authors)
                # A merge may have the time of a commit before it.
                made -= {_new_in(step) for step in steps if _merges(step)}
            new = self._without(new, made, amended)
            own = self._changes_of(made, old, new, amended) if made else {}
            empty = _object_name("tree", b"", like=new)
            found = self._differences(old or empty, new)
            if _has_renamed(own, found):
                found = [each for each in found if each.before]
            changes = [
                each
                for moved in found
                if (each := self._without_own(moved, own.get(moved.path, [])))
            ]
        except GitTooSlow:
            raise
        except GitError as error:
            raise SnapshotError(f"what git has changed is unknown: {error}") from None
        return Moved(changes, bool(steps) and not any(map(_resets, steps)))

    def _changes_of(
        self, made: Collection[str], old: str, new: str, amended: Mapping[str, str]
    ) -> dict[str, list[Change | None]]:
        """Return what the commits ``made`` between two others have changed, by name.

        The last change comes first; None is one of a merge, of the first commit of all,
        or of one of too many.  An ``amended`` commit has changed what it was before.
        """
        listed = self._listed("%h", "--topo-order", *_range(old, new)).keys()
        replaced = set(made) - listed
        found: dict[str, list[Change | None]] = {}
        commits = [commit for commit in listed if commit in made]
        unknown = commits[_MOST_OWN:]
        for commit in commits[:_MOST_OWN]:
            base = self._without(commit, replaced | {commit}, amended)
            if base == commit:
                unknown.append(commit)
            else:
                for each in self._differences(base, commit):
                    found.setdefault(each.path, []).append(each)
        for name in self._names_in(unknown):
            found.setdefault(name, []).append(None)
        return found

    def _without_own(
        self, moved: Change, own: Iterable[Change | None]
    ) -> Change | None:
        """Return what git has ``moved`` without the changes ``own`` of the same file.

        The last one comes first.  Return None if that is a conflict, or not known.
        """
        for each in own:
            if not each or each.mode_before != each.mode_after:
                return None
            if moved.after == each.after:
                after = each.before
            else:
                after = self._merged(moved.after, each.after, each.before)
            moved = moved._replace(after=after)
            if not after:
                return None
        return moved

    def _without(
        self, commit: str, made: Collection[str], amended: Mapping[str, str]
    ) -> str:
        """Return the commit on which those ``made`` last are that lead to ``commit``.

        Of an ``amended`` one, that is the one that it was before.
        """
        parents = self._listed("%P", "--no-walk", *made) if made else {}
        while commit in parents:
            # In one second, what is amended and amended back has the same name again.
            parent = parents.pop(commit)
            below = amended.get(commit) or parent
            if not below or " " in below:
                break
            commit = below
        return commit

    def add_own(self, before: Head, after: Head, since: int) -> None:
        """Take note that commands have made the commits ``since`` a time."""
        if not after.commit:
            return
        steps = self._steps(before.size, after.size)
        made = self._made(steps, before, after, since)
        # The author of an amended one is that of what it was before.
        authors = self._authors(made - _amended(steps).keys())
        self._own |= dict.fromkeys(made, "") | authors

    def _made(
        self, steps: Sequence[str], before: Head, after: Head, since: int
    ) -> set[str]:
        """Return the commits that were made between two of `head`, not by git alone.

        The ``steps`` are those of the reflog.
        """
        if steps:
            return {_new_in(step) for step in steps if not _is_by_git(step)}
        # Without a reflog, those are the new ones.
        seconds = since // 10**9
        listed = self._listed("%ct", *_range(before.commit, after.commit))
        return {commit for commit, time in listed.items() if int(time) >= seconds}

    def _authors(self, commits: Collection[str]) -> dict[str, str]:
        """Return ``commits`` with their authors, and the times of writing."""
        return self._listed(_AUTHOR, "--no-walk", *commits) if commits else {}

    def _copied(self, old: str, new: str, own: Mapping[str, str]) -> set[str]:
        """Return the commits that ``new`` has, ``old`` has not, and which are ``own``.

        A copy, as of a rebase, has the same author, and the time of writing.  One of a
        commit that only ``old`` has brings nothing that was not there.
        """
        listed = self._listed(_AUTHOR, *_range(old, new))
        there = self._listed(_AUTHOR, *_range(new, old)).values() if old else ()
        authors = set(own.values()).difference(there)
        return {
            commit
            for commit, author in listed.items()
            if commit in own or author in authors
        }

    def _listed(self, what: str, *arguments: str) -> dict[str, str]:
        """Return the commits that git lists, with ``what`` of each."""
        options = "--ignore-missing", f"--max-count={_MOST_COMMITS}"
        command = "rev-list", *options, f"--format={what}", *arguments, "--"
        lines = self._user_git(*command).decode(errors="replace").splitlines()
        pairs = zip(lines[::2], lines[1::2], strict=False)
        return {line.removeprefix("commit "): text for line, text in pairs}

    def _names_in(self, commits: Collection[str]) -> set[str]:
        """Return the names of the files that ``commits`` have changed.

        A merge has changed those that no parent has.
        """
        if not commits:
            return set()
        options = "-r", "-c", "-z", "--root", "--name-only", "--no-commit-id"
        command = "diff-tree", "--stdin", *options, "--no-renames", "--no-ext-diff"
        names = self._user_git(*command, given=_lines(commits)).split(b"\0")[:-1]
        return set(map(os.fsdecode, names))

    def committed(self, before: Head, after: Head) -> list[tuple[str, str]]:
        """Return the commits before and after those made between two of `head`.

        Before the first commit of all is the empty tree.  What git has done besides,
        such as amend, merge or check out, is left out.
        """
        commits: list[tuple[str, str]] = []
        for line in filter(_commits, self._steps(before.size, after.size)):
            base, commit = line.split(" ", 2)[:2]
            base = _blob(base) or _object_name("tree", b"", like=base)
            if commits and commits[-1][1] == base:
                base = commits.pop()[0]
            commits.append((base, commit))
        return commits

    def _steps(self, start: int, end: int) -> Sequence[str]:
        """Return the lines that have made the reflog of HEAD longer."""
        if not 0 <= start < end or end - start > _LARGEST_REFLOG:
            return []
        steps = git.read(self._reflog, start, end - start)
        return steps.decode(errors="replace").splitlines()


def no_room(error: OSError) -> SnapshotError:
    """Return the error that a file of a store cannot be written."""
    reason = error.strerror or str(error)
    where = tempfile.gettempdir()
    return SnapshotError(
        f"no snapshot can be stored: {reason}", f"check the space in {where}"
    )


def write_private(file: str, content: bytes) -> None:
    """Write ``content`` to the new ``file``, which nobody else can read."""
    with open(file, "xb", opener=_private) as output:
        output.write(content)


def _lines(names: Iterable[str]) -> bytes:
    return "".join(f"{name}\n" for name in names).encode()


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def blob_name(content: bytes, like: str) -> str:
    """Return the name of the blob with ``content``, by the algorithm of ``like``."""
    return _object_name("blob", content, like)


def _object_name(kind: str, content: bytes, like: str) -> str:
    algorithm = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return algorithm(b"%b %d\0%b" % (kind.encode(), len(content), content)).hexdigest()


def _kept(content: bytes, like: str) -> set[str]:
    """Return the names of blobs that git may keep of a file with ``content``.

    That is the one without CRLF, or what Git LFS keeps.
    """
    digest = hashlib.sha256(content).hexdigest()
    pointer = _POINTER.format(digest, len(content)).encode()
    texts = content.replace(b"\r\n", b"\n"), pointer
    return {blob_name(text, like) for text in texts}


def _blob(name: str) -> str:
    return name if name.strip("0") else ""


def _backed_up(name: str) -> str:
    """Return the name of the file whose backup file would have ``name``, or ""."""
    stem = name.removesuffix("~")
    if stem == name:
        return ""
    plain, numbered, digits = stem.rpartition(".~")
    return plain if numbered and digits.isdecimal() else stem


def _range(old: str, new: str) -> list[str]:
    """Return how git names the commits that ``new`` has, and ``old``, if any, not."""
    return [new, f"^{old}"] if old else [new]


def _name(line: bytes) -> bytes:
    """Return the name in a ``line`` of an index."""
    return line.partition(b"\t")[2]


def _is_no_file(line: bytes) -> bool:
    """Return whether ``line`` of an index is of a submodule, or of a conflict.

    The former is a commit; of the latter, no tree can be written.
    """
    return line[2:8] == _SUBMODULE or line.partition(b"\t")[0][-1:] != b"0"


def _lines_of(content: bytes) -> list[bytes]:
    return content.replace(b"\r\n", b"\n").split(b"\n")


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def _quoted(name: str) -> str:
    """Return ``name`` as in git's settings."""
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _below(root: str, directory: str) -> str:
    """Return the name of ``directory`` relative to ``root``, "" if it is not below."""
    top = os.path.join(os.path.realpath(root), "")
    name = os.path.join(os.path.realpath(directory), "") if directory else ""
    return name[len(top) :] if name.startswith(top) and name != top else ""


def _is_linked_here(stamp: Stamp | None) -> bool:
    """Return whether a file with ``stamp`` may be another one that was linked here."""
    return stamp is not None and stamp.is_linked and stamp.is_other


def _commits(line: str) -> bool:
    """Return whether ``line`` of a reflog says that a commit was made, and no more."""
    return line.partition("\t")[2].startswith(("commit: ", "commit (initial): "))


def _new_in(line: str) -> str:
    """Return the commit to which ``line`` of a reflog has gone."""
    return line.split(" ", 2)[1]


def _merges(line: str) -> bool:
    """Return whether git has made a merge by itself, by ``line`` of a reflog."""
    return _is_by_git(line) and ": Merge made by " in line


def _has_renamed(
    own: Mapping[str, Sequence[Change | None]], moved: Iterable[Change]
) -> bool:
    """Return whether git may have renamed a file that a command had changed.

    The changes are ``own``, the last one first, and git has ``moved`` the rest.  Then
    each new file may have what the command has written.
    """
    is_there = {each.path: bool(each.after) for each in moved}
    for name, changes in own.items():
        last, first = changes[0], changes[-1]
        was_there = bool(first and first.before)
        if not (last and not last.after) and not is_there.get(name, was_there):
            return True
    return False


def _amended(steps: Iterable[str]) -> dict[str, str]:
    """Return the commits that ``steps`` of a reflog amended, by what they are now."""
    words = (step.split(" ", 2) for step in steps if "\tcommit (amend)" in step)
    return {new: old for old, new, _ in words if old != new}


def _resets(line: str) -> bool:
    """Return whether ``line`` of a reflog may have changed no file, only HEAD."""
    old, new, _ = line.split(" ", 2)
    return old != new and line.partition("\t")[2].startswith("reset:")


def _is_by_git(line: str) -> bool:
    """Return whether ``line`` of a reflog is a step by which git writes old contents.

    A commit, a revert, and what goes on after a conflict are none.
    """
    step = line.partition("\t")[2]
    return bool(_BY_GIT.match(step)) and not _BY_HAND.match(step)


def _too_many(names: Collection[str]) -> SnapshotError:
    """Return the error that ``names`` are too many, with a directory to ignore."""
    counts: dict[str, int] = {}
    for name in names:
        first, separator, _ = name.partition("/")
        if separator:
            counts[first] = counts.get(first, 0) + 1
    most = max(counts, key=lambda name: counts[name], default="")
    if most and counts[most] > len(names) // 2:
        problem = f"{most} has {counts[most]} files that git does not ignore"
        return SnapshotError(problem, f"list {most}/ in .gitignore, or commit it")
    problem = f"{len(names)} files are new or changed"
    return SnapshotError(problem, "commit them, or list some in .gitignore")
