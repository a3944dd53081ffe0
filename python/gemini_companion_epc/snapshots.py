# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of a work tree, in a git directory of our own beside the user's.

The store has its own index, objects, configuration and attributes, so that its blobs
are the bytes of the files: no filter, hook or program of the user's repository runs,
and nothing is written there.  The user's objects are alternates: a file that is as it
was committed takes no space.

All functions here block, and run in threads.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

LARGEST_TEXT = 5 * 1024 * 1024
"""Maximum number of bytes of a file whose text Emacs gets."""
MOST_LARGE_BYTES = 20 * 1024 * 1024
"""Maximum number of bytes of larger files that one snapshot copies."""
MOST_FILES = 2_000
"""Maximum number of files that one snapshot copies, and those of `MOST_BYTES`."""
MOST_BYTES = 64 * 1024 * 1024
LARGEST_STORE = 256 * 1024 * 1024
"""Number of bytes of the copies in a store after which it begins anew."""
OLDEST_GIT = (2, 32)
"""The first version that reads an empty file in place of the user's settings."""

_SECONDS = 60
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
_ATTRIBUTES = "* -text -ident -filter !working-tree-encoding !eol !diff !merge\n"
# The attributes by which git converts a file.
_CONVERTING = (b"eol", b"crlf", b"filter", b"ident", b"working-tree-encoding")
# The steps of a reflog by which a work tree gets a commit that existed before.
_MOVES = ("checkout", "reset", "clone", "branch")
_FAST_FORWARD = "Fast-forward"


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


class SnapshotError(Exception):
    """A snapshot cannot be taken; the message is a phrase for the user."""


def git_problem() -> str:
    """Return why snapshots are impossible on this machine, or ""."""
    try:
        words = _run(["git", "version"], os.environ).decode().split()
        version = tuple(int(number) for number in words[2].split(".")[:2])
    except (OSError, IndexError, ValueError, subprocess.SubprocessError):
        return "git is not installed"
    return "" if version >= OLDEST_GIT else "git is older than 2.32"


def top_level(directory: str) -> str:
    """Return the root of the work tree of ``directory``, itself without a repository.

    From a subdirectory, git would not read the files named .gitignore above it.
    """
    return _ask(directory, "rev-parse", "--show-toplevel") or directory


def _run(
    command: Sequence[str],
    environ: Mapping[str, str],
    given: bytes = b"",
    cwd: str | None = None,
) -> bytes:
    process = subprocess.run(
        command,
        env=environ,
        cwd=cwd,
        input=given,
        capture_output=True,
        timeout=_SECONDS,
        check=True,
    )
    return process.stdout


def _ask(root: str, *arguments: str) -> str:
    """Return what git says about the user's repository in ``root``, "" if nothing."""
    # No program of the user's settings may run.
    command = ["git", "-c", "core.fsmonitor=false", "-C", root, *arguments]
    try:
        output = _run(command, {**os.environ, "GIT_OPTIONAL_LOCKS": "0"})
    except (OSError, subprocess.SubprocessError):
        return ""
    return os.fsdecode(output).removesuffix("\n")


class Store:
    """The snapshots of the work tree at ``root``, in a new ``directory``."""

    def __init__(self, root: str, directory: str) -> None:
        self.root = root
        self.directory = directory
        self.left_out: set[str] = set()
        """Names of files that have changed since the last snapshot, and are or were too
        large, or cannot be read."""
        self._skipped: dict[str, tuple[int, int]] = {}
        self._size = 0
        self._tree = ""
        self._alternates: dict[str, str] = {}
        self._reflog = ""
        self._head = "", -1
        self._environ = {
            name: os.environ[name]
            for name in ("PATH", "HOME", "SYSTEMROOT", "TMPDIR", "TMP", "TEMP")
            if name in os.environ
        } | {
            "LC_ALL": "C",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_DIR": directory,
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
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
        """Return the output of git in the store, or raise SnapshotError.

        With ``sees_user``, it reads the objects of the user's repository as well.
        """
        environ = self._environ | (self._alternates if sees_user else {})
        try:
            return _run(["git", *arguments], environ, given, self.root)
        except OSError as error:
            reason = error.strerror or str(error)
        except subprocess.TimeoutExpired:
            reason = "it took too long"
        except subprocess.CalledProcessError as error:
            lines = error.stderr.decode(errors="replace").strip().splitlines()
            reason = (lines or [f"status {error.returncode}"])[-1][:200]
        raise SnapshotError(f"git {arguments[0]} failed: {reason}") from None

    def _create(self) -> None:
        try:
            self._create_directory()
        except OSError as error:
            reason = error.strerror or str(error)
            raise SnapshotError(f"no snapshot can be stored: {reason}") from None
        self._has_index = self._copy_index()

    def _create_directory(self) -> None:
        store = Path(self.directory)
        store.mkdir(mode=0o700)
        for name in ("objects/info", "refs", "info"):
            (store / name).mkdir(parents=True)
        (store / "HEAD").write_text("ref: refs/heads/none\n")
        is_sha256 = _ask(self.root, "rev-parse", "--show-object-format") == "sha256"
        config = _CONFIG.format(version=int(is_sha256), devnull=os.devnull)
        if is_sha256:
            config += "[extensions]\n\tobjectFormat = sha256\n"
        (store / "config").write_text(config)
        (store / "info/attributes").write_text(_ATTRIBUTES)
        if not (objects := self._user_file("objects")):
            return
        quoted = objects.replace("\\", "\\\\").replace('"', '\\"')
        self._alternates = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"'}
        self._reflog = self._user_file("logs/HEAD")
        if os.path.isfile(exclude := self._user_file("info/exclude")):
            shutil.copyfile(exclude, store / "info/exclude")
        if ignored := _ask(self.root, "config", "--path", "core.excludesFile"):
            self._git("config", "core.excludesFile", ignored)
        else:
            # The default, which git would search with the user's settings.
            base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
            default = os.path.join(os.path.expanduser(base), "git", "ignore")
            self._git("config", "core.excludesFile", default)

    def _user_file(self, name: str) -> str:
        """Return the absolute name of the file ``name`` of the user's repository."""
        absolute = "--path-format=absolute"
        return _ask(self.root, "rev-parse", absolute, "--git-path", name)

    def _copy_index(self) -> bool:
        """Begin with the user's index, if it tells which files are as committed.

        Return whether it does.
        """
        index, copy = self._user_file("index"), os.path.join(self.directory, "index")
        if not os.path.isfile(index) or self._converts():
            return False
        try:
            # With its time, by which git knows entries of files that may have changed
            # in the same moment.
            shutil.copy2(index, copy)
            lines = self._git("ls-files", "-v", "-z").split(b"\0")
            # Those that git assumes to be unchanged have a lower-case letter.
            assumed = b"".join(line[2:] + b"\0" for line in lines if line[:1].islower())
            if assumed:
                option = "--no-assume-unchanged"
                self._git("update-index", "-z", option, "--stdin", given=assumed)
        except (OSError, SnapshotError):
            # Such as an index that is split in two files.
            with suppress(OSError):
                os.unlink(copy)
            return False
        return True

    def _converts(self) -> bool:
        """Return whether git may convert files of the user's repository."""
        if _ask(self.root, "config", "core.autocrlf") not in ("", "false"):
            return True
        if _ask(self.root, "config", "core.eol") not in ("", "lf", "native"):
            return True
        pattern = ":(glob)**/.gitattributes"
        names = _ask(self.root, "ls-files", "-z", "--", pattern).split("\0")
        files = [os.path.join(self.root, name) for name in names if name]
        files.append(self._user_file("info/attributes"))
        files.append(_ask(self.root, "config", "--path", "core.attributesFile"))
        files.append(os.path.expanduser("~/.config/git/attributes"))
        texts = b"".join(map(_content, files))
        if any(word in texts for word in _CONVERTING):
            return True
        # With "text=auto" alone, which is common, files with LF are not converted.
        return b"text" in texts and not self._all_lf()

    def _all_lf(self) -> bool:
        """Return whether all files of the user's index have LF, or are no texts."""
        lines = _ask(self.root, "ls-files", "--eol", "-z").split("\0")
        return not any("w/crlf" in line or "w/mixed" in line for line in lines)

    # Snapshots

    @property
    def is_full(self) -> bool:
        """Whether the store is to begin anew."""
        return self._size > LARGEST_STORE

    def changed_names(self) -> list[str]:
        """Return the names of files that may differ from the last snapshot."""
        options = "-z", "-m", "-d", "-o", "--exclude-standard"
        listed = self._git("ls-files", *options).split(b"\0")
        # Those of directories are other repositories.
        return [
            os.fsdecode(name)
            for name in dict.fromkeys(listed)
            if name and not name.endswith(b"/")
        ]

    def take(self, names: Iterable[str]) -> str:
        """Take a snapshot in which only ``names`` may differ; return its tree.

        Raise SnapshotError if these are too many, or too large.
        """
        gone, kept = self._sorted_out(names)
        for option, group in (("--force-remove", gone), ("--remove", kept)):
            given = b"".join(os.fsencode(name) + b"\0" for name in group)
            if given:
                self._git(
                    "update-index", "-z", "--add", "--replace", option, "--stdin",
                    given=given,
                )  # fmt: skip
        if gone or kept or not self._tree:
            # The trees are all in the store, as the user's git may delete its own.
            options = "write-tree", "--missing-ok"
            self._tree = self._git(*options, sees_user=False).decode().strip()
        return self._tree

    def _sorted_out(self, names: Iterable[str]) -> tuple[list[str], list[str]]:
        """Return which of ``names`` are gone, and which have a content to keep."""
        gone: list[str] = []
        kept: list[str] = []
        sizes: dict[str, int] = {}
        large: dict[str, int] = {}
        in_tree: dict[str, bool] = {"": True}
        skipped: dict[str, tuple[int, int]] = {}
        for name in names:
            path = os.path.join(self.root, name)
            try:
                # Git refuses names behind a symbolic link.
                status = os.lstat(path) if self._is_in_tree(name, in_tree) else None
            except (FileNotFoundError, NotADirectoryError):
                status = None
            except OSError:
                skipped[name] = 0, 0
                continue
            if status is None or stat.S_ISDIR(status.st_mode):
                gone.append(name)
            elif stat.S_ISLNK(status.st_mode):
                kept.append(name)
            elif stat.S_ISREG(status.st_mode) and self._is_storable(
                name, status, sum(large.values())
            ):
                is_large = status.st_size > LARGEST_TEXT
                (large if is_large else sizes)[name] = status.st_size
                kept.append(name)
            else:
                skipped[name] = status.st_mtime_ns, status.st_size
        # What was so before the first snapshot is of nobody's call.
        before = self._skipped if self._tree else skipped
        self.left_out = {name for name, _ in skipped.items() - before.items()}
        self.left_out.update(before.keys() & {*gone, *kept})
        self._skipped = skipped
        copied = sizes.keys() - self._tracked()
        size = sum(sizes[name] for name in copied)
        if len(copied) > MOST_FILES or size > MOST_BYTES:
            raise SnapshotError(_too_many(copied))
        self._size += size + sum(large.values())
        return gone, kept

    def _is_storable(self, name: str, status: os.stat_result, copied: int) -> bool:
        """Return whether the file ``name`` with ``status`` can be copied.

        The same snapshot copies large files of ``copied`` bytes before it.
        """
        if status.st_size > LARGEST_TEXT:
            is_skipped = self._skipped.get(name) == (status.st_mtime_ns, status.st_size)
            if is_skipped or copied + status.st_size > MOST_LARGE_BYTES:
                return False
        return os.access(os.path.join(self.root, name), os.R_OK)

    def _tracked(self) -> set[str]:
        """Return the names that the first snapshot may copy without a limit.

        Where the user's index is no beginning, all files that it has are read once.
        """
        if self._tree or self._has_index:
            return set()
        return set(_ask(self.root, "ls-files", "-z").split("\0"))

    def _is_in_tree(self, name: str, known: dict[str, bool]) -> bool:
        """Return whether no directory of ``name`` is a symbolic link."""
        parent = os.path.dirname(name)
        if parent not in known:
            is_link = os.path.islink(os.path.join(self.root, parent))
            known[parent] = not is_link and self._is_in_tree(parent, known)
        return known[parent]

    def changes(self, before: str, after: str) -> list[Change]:
        """Return what differs between two snapshots, the last of which is ``after``.

        A file that was left out of one of them is left out here.
        """
        differences = [] if before == after else self._differences(before, after)
        return [each for each in differences if each.path not in self.left_out]

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

    def large_files(self, changes: Iterable[Change]) -> set[str]:
        """Return the files of ``changes`` whose texts Emacs does not get, by name."""
        blobs = [blob for each in changes for blob in (each.before, each.after) if blob]
        given = "".join(f"{blob}\n" for blob in blobs).encode()
        lines = self._git("cat-file", "--batch-check", given=given).splitlines()
        # One that is missing has no size.
        large = {
            blob
            for blob, line in zip(blobs, lines, strict=True)
            if line.split()[-1].isdigit() and int(line.split()[-1]) > LARGEST_TEXT
        }
        return {each.path for each in changes if large & {each.before, each.after}}

    def write_blob(self, name: str, file: str) -> None:
        """Write the content of the blob ``name`` to the new ``file``."""
        content = self._git("cat-file", "blob", name)
        with open(file, "xb", opener=_private) as output:
            output.write(content)

    def contents(self, names: Sequence[str]) -> Generator[bytes, None, None]:
        """Yield the contents of the blobs ``names``, in order.

        Raise SnapshotError if one is missing, or is not what its name says.
        """
        problem = SnapshotError("its snapshots were deleted")
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
        limit = threading.Timer(_SECONDS, process.kill)
        limit.start()
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
            except OSError:
                raise problem from None
            finally:
                limit.cancel()
                process.kill()

    # What git itself has moved

    def head(self) -> tuple[str, int]:
        """Return the commit that is checked out, and the size of its reflog.

        This is "" and -1 if git records no steps.
        """
        try:
            size = os.stat(self._reflog).st_size
        except OSError:
            return "", -1
        # Each step makes the reflog longer.
        if size != self._head[1]:
            name = "HEAD^{tree}"
            self._head = _ask(self.root, "rev-parse", "--verify", "--quiet", name), size
        return self._head

    def moved(self, before: tuple[str, int], after: tuple[str, int]) -> set[Change]:
        """Return what git has changed in going from one of `head` to another.

        This is empty if the commit was made in between: then its texts are new.
        """
        (old, start), (new, end) = before, after
        if old == new or not old or not new:
            return set()
        lines = self._steps(start, end)
        if not lines or not all(map(_moves, lines)):
            return set()
        return set(self._differences(old, new))

    def committed(
        self, before: tuple[str, int], after: tuple[str, int]
    ) -> tuple[str, str] | None:
        """Return the commits before and after those made between two of `head`.

        This is None if git has done anything but commit, such as amend or merge.
        """
        lines = self._steps(before[1], after[1])
        if not lines or not all(map(_commits, lines)):
            return None
        return lines[0].split()[0], lines[-1].split()[1]

    def _steps(self, start: int, end: int) -> Sequence[str]:
        """Return the lines that have made the reflog of HEAD longer."""
        if not 0 <= start < end:
            return []
        try:
            with open(self._reflog, "rb") as file:
                file.seek(start)
                return file.read(end - start).decode(errors="replace").splitlines()
        except OSError:
            return []


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def blob_name(content: bytes, like: str) -> str:
    """Return the name of the blob with ``content``, by the algorithm of ``like``."""
    algorithm = hashlib.sha256 if len(like) == 64 else hashlib.sha1
    return algorithm(b"blob %d\0%b" % (len(content), content)).hexdigest()


def _blob(name: str) -> str:
    return name if name.strip("0") else ""


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes() if file else b""
    except OSError:
        return b""


def _commits(line: str) -> bool:
    """Return whether ``line`` of a reflog says that a commit was made, and no more."""
    return line.partition("\t")[2].startswith("commit: ")


def _moves(line: str) -> bool:
    """Return whether ``line`` of a reflog says that an older commit was taken."""
    step = line.partition("\t")[2]
    return step.partition(":")[0] in _MOVES or step.endswith(_FAST_FORWARD)


def _too_many(names: Collection[str]) -> str:
    """Return why a snapshot of ``names`` is refused, with a directory to ignore."""
    counts: dict[str, int] = {}
    for name in names:
        first, separator, _ = name.partition("/")
        if separator:
            counts[first] = counts.get(first, 0) + 1
    most = max(counts, key=lambda name: counts[name], default="")
    if most and counts[most] > len(names) // 2:
        return f"{most} has {counts[most]} files that git does not ignore"
    return f"{len(names)} files are new or changed"
