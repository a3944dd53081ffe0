# SPDX-License-Identifier: GPL-3.0-or-later
"""Random repositories, commands and users: no file of the user goes by a claim.

A sequence begins with a repository that has ignored and excluded files, repositories
inside it, stores of other systems, odd names, links and filters.  Then commands of a
CLI write, move, copy and delete files, change ignore rules, check out, stash, pull and
clean, some in the background and some refused; meanwhile the user saves files in
Emacs, where a save may fail, and writes with another editor while no command runs.

Emacs is a peer that records what the server reports, as the Lisp side does.  At the
end everything is undone by what was recorded, in any order: a new file is deleted, a
changed one gets the bytes before, both only if it has the bytes after; and a file that
was renamed is deleted only once it has its old name again.  Each line is a word that no
other line has, which tells who has written it.  Then

- no line of the user is gone that was there before the undo,
- no file was deleted that no command has made, and
- nothing was recorded as written by a command that the user has written meanwhile.

What a command has written or taken and is not recorded is a miss: it is counted.

GC_SNAPSHOT_SEQUENCES sets the number of sequences, and GC_SNAPSHOT_SEED the first one.
"""

import asyncio
import json
import os
import random
import re
import shutil
import stat
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from gemini_companion_epc import snapshots
from gemini_companion_epc import timeline as timelines
from gemini_companion_epc.config import Config
from gemini_companion_epc.hooks import Called
from gemini_companion_epc.snapshots import blob_name
from gemini_companion_epc.timeline import Timeline
from gemini_companion_epc.types import Facts
from scene import StubEmacs, tick

SEQUENCES = int(os.environ.get("GC_SNAPSHOT_SEQUENCES") or 30)
SEED = int(os.environ.get("GC_SNAPSHOT_SEED") or 0)
# As few as a sequence has files.
MOST_TEXTS = 4
# The number of sequences that run beside each other.
BESIDE = 3

CLI: Facts = {"client": "gemini", "pids": [os.getpid()]}
LINE = re.compile(rb"[uc]\d+")
IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgSign=false")
Files = dict[bytes, bytes]


def git(root: Path | bytes, *arguments: str, environ: Facts | None = None) -> bytes:
    command = ["git", *IDENTITY, "-C", os.fsdecode(root), *arguments]
    process = subprocess.run(
        command, capture_output=True, env=environ or os.environ, check=False
    )
    return process.stdout


def lines_in(content: bytes) -> set[bytes]:
    return set(LINE.findall(content))


def of_user(content: bytes) -> set[bytes]:
    return {line for line in lines_in(content) if line.startswith(b"u")}


def read(path: bytes) -> bytes | None:
    """Return the content of the file or link ``path``, None without one."""
    try:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            return b"-> " + os.readlink(path)
        if stat.S_ISREG(status.st_mode):
            return Path(os.fsdecode(path)).read_bytes()
    except OSError:
        pass
    return None


def put(path: bytes, content: bytes | None) -> None:
    """Give the file or link ``path`` the ``content``, as `read` returns it."""
    if os.path.lexists(path):
        os.unlink(path)
    if content is None:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if content.startswith(b"-> "):
        os.symlink(content[3:], path)
    else:
        Path(os.fsdecode(path)).write_bytes(content)


class Write(NamedTuple):
    """A write of Emacs, or of a CLI that has reported it."""

    number: int
    path: bytes
    before: bytes | None
    after: bytes | None


@dataclass(eq=False)
class Edit:
    """A recorded write: ``before`` and ``after`` are None without a file."""

    path: bytes
    before: bytes | None
    after: bytes | None
    what: str
    is_reported: bool = False


class Peer(StubEmacs):
    """An Emacs that records what the server reports."""

    def __init__(self, world: "World") -> None:
        super().__init__()
        self.world = world
        self.is_open = False
        self.number = 0
        self.writes: list[Write] = []
        self.edits: list[Edit] = []
        self.unsaved: set[bytes] = set()
        self.is_slow = False
        self.is_silent = False
        self.is_mute = False
        self.waiting: list[Callable[[], None]] = []

    # Messages of the server

    async def ask(self, kind: str, facts: Facts, parts: Sequence[str | None]) -> Facts:
        given: Any = json.loads(parts[0]) if parts and parts[0] else None
        if kind == "called":
            self.is_open = facts["open"]
        elif kind == "saved":
            if self.is_mute:
                await asyncio.sleep(1)
            since = facts["since"]
            self.writes = [write for write in self.writes if write.number > since]
            return {"number": self.number}
        elif kind == "shared":
            if self.is_silent:
                return {}
            hidden = self.world.hidden()
            names = [os.path.basename(path) for path in given]
            unanswered = self.world.unanswered
            indices = range(len(names))
            seen = [index for index in indices if names[index] not in unanswered]
            return {
                "shared": [index for index in seen if names[index] not in hidden],
                "hidden": [index for index in seen if names[index] in hidden],
            }
        elif kind == "wrote":
            rows = [
                (name, self.content(before), self.content(after), *others)
                for name, before, after, *others in given
            ]
            writes = list(self.writes)
            if self.is_slow:
                self.waiting.append(lambda: self.record(facts, rows, writes))
                await asyncio.sleep(1)
            else:
                # Emacs takes what it gets in its order.
                self.catch_up()
                self.record(facts, rows, writes)
        return {}

    def catch_up(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()

    def content(self, file: Any) -> Any:
        if not isinstance(file, str):
            return file
        content = Path(file).read_bytes()
        os.unlink(file)
        return content

    def record(
        self, facts: Facts, rows: Sequence[Sequence[Any]], writes: Sequence[Write]
    ) -> None:
        root, what = os.fsencode(facts["root"]), facts["command"]
        if facts["problem"]:
            self.world.misses[facts["problem"]] += 1
        for kind in "moved_count", "unknown_count", "gone_count", "unseen":
            self.world.misses[kind] += facts.get(kind, 0)
        is_many = len(rows) > timelines.MOST_FILES
        unmarked = []
        for name, before, after, old_mode, new_mode, old, new in rows:
            path = os.path.join(root, os.fsencode(name))
            contents = before, after
            if False in contents:
                continue
            is_text = not any(b"\0" in each for each in contents if each)
            between = range(facts["saved"][0] + 1, facts["saved"][3] + 1)
            all_writes = [write for write in writes if write.number in between]
            mine = [write for write in all_writes if write.path == path]
            if new and not mine and new in map(blob_of, all_writes):
                self.world.misses["saved elsewhere"] += 1
                continue
            if is_many or before == after or not is_text or 0o120000 in (
                old_mode, new_mode
            ):  # fmt: skip
                if mine:
                    self.world.misses["saved meanwhile"] += 1
                else:
                    unmarked.append((path, old, new, old_mode, new_mode))
                continue
            steps = steps_of(before, after, mine, facts["saved"])
            if steps is None:
                self.world.misses["saved at once"] += 1
            for old_text, new_text in steps or []:
                last = [edit for edit in self.edits if edit.path == path][-1:]
                if last and (last[0].before, last[0].after) == (old_text, new_text):
                    continue
                self.add(Edit(path, old_text, new_text, what))
        if unmarked:
            environ = dict(line.split("=", 1) for line in facts["environ"])

            def blob(name: str, mode: int) -> bytes | None:
                if not name:
                    return None
                content = git(root, "cat-file", "blob", name, environ=environ)
                return b"-> " + content if mode == 0o120000 else content

            for path, old, new, old_mode, new_mode in unmarked:
                self.add(Edit(path, blob(old, old_mode), blob(new, new_mode), what))

    def add(self, edit: Edit) -> None:
        self.world.misses["(recorded)"] += 1
        if edit.before != edit.after:
            self.edits.append(edit)
            self.world.claimed(edit)

    # What the user and the CLI do in Emacs

    def wrote(self, path: bytes, before: bytes | None, after: bytes | None) -> None:
        if self.is_open:
            self.number += 1
            self.writes.append(Write(self.number, path, before, after))

    def save(self, path: bytes, content: bytes, fails: bool) -> None:
        before = read(path)
        if not fails:
            put(path, content)
            self.wrote(path, before, content)

    def edited(self, path: bytes, before: bytes | None, after: bytes) -> None:
        """Record an edit that a CLI has reported."""
        self.wrote(path, before, after)
        self.edits.append(Edit(path, before, after, "edit", is_reported=True))


def blob_of(write: Write) -> str:
    """Return the name of the blob of what ``write`` has made."""
    return "" if write.after is None else blob_name(write.after, "0" * 40)


def steps_of(
    before: Any, after: Any, writes: Sequence[Write], saved: Sequence[int]
) -> list[tuple[Any, Any]] | None:
    """Return what commands have made of a file that had ``before``, then ``after``.

    Emacs has written ``writes`` between the numbers ``saved`` of the two snapshots.
    Return None if it is not known whether the snapshots have them.
    """
    _, first, last, _ = saved
    early = [n for n, write in enumerate(writes, 1) if write.number <= first]
    seen = [n for n in early if writes[n - 1].after == before]
    if seen:
        writes = writes[seen[-1] :]
    elif early and writes[0].before != before:
        return None
    late = [n for n, write in enumerate(writes) if write.number > last]
    unseen = [n for n in late if writes[n].before == after]
    if unseen:
        writes = writes[: unseen[0]]
    elif late and writes[-1].after != after:
        return None
    steps = []
    for write in writes:
        if before != write.before:
            steps.append((before, write.before))
        before = write.after
    if before != after:
        steps.append((before, after))
    return steps


@dataclass(eq=False)
class World:
    """A repository, what happens in it, and who has written what."""

    seed: int
    directory: Path
    log: list[str] = field(default_factory=list)
    makers: dict[bytes, str] = field(default_factory=dict)
    """Who has made each file: the user, or a call."""
    typed: set[tuple[bytes, bytes]] = field(default_factory=set)
    """The files and lines that the user has written there."""
    unanswered: set[str] = field(default_factory=set)
    at_begin: set[bytes] = field(default_factory=set)
    """The files as the last call began."""
    wrong: list[str] = field(default_factory=list)
    misses: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.root = self.directory / "project"
        self.outside = self.directory / "outside"
        self.numbers = count()
        self.peer = Peer(self)
        config = replace(
            Config("", 1), call_limit=60, after_limit=60, edit_limit=0.2, quiet_time=0
        )
        self.timeline = Timeline(config, self.peer, lambda: [str(self.root)])

    # Files

    def chance(self, part: float) -> bool:
        return self.random.random() < part

    def path(self, name: str | bytes) -> bytes:
        return os.path.join(os.fsencode(self.root), os.fsencode(name))

    def line(self, who: str) -> bytes:
        return f"{who}{next(self.numbers)}\n".encode()

    def lines(self, who: str, number: int = 2) -> bytes:
        return b"".join(self.line(who) for _ in range(number))

    def files(self) -> Files:
        """Return all files, without those of git."""
        found: Files = {}
        for top in self.root, self.outside:
            for directory, names, files in os.walk(os.fsencode(top)):
                names[:] = [name for name in names if name != b".git"]
                for name in [*files, *names]:
                    path = os.path.join(directory, name)
                    content = read(path)
                    if content is not None:
                        found[path] = content
        return found

    def hidden(self) -> set[str]:
        """Return the names that Emacs excludes now."""
        try:
            return set((self.root / ".geminiignore").read_text().split())
        except OSError:
            return set()

    def some(self, *kinds: str) -> bytes:
        """Return a file of the project, one of ``kinds`` if there is one."""
        inside = os.fsencode(self.root) + b"/"
        names = [path for path in sorted(self.files()) if path.startswith(inside)]
        names = [path for path in names if not self.is_of_system(path)]
        chosen = [path for path in names if any(k.encode() in path for k in kinds)]
        return self.random.choice(chosen or names or [self.path("a.txt")])

    def is_of_system(self, path: bytes) -> bool:
        return any(part in path for part in (b"/.hg/", b"/bare.git/", b"/.gemini"))

    def act(self, who: str, what: str, action: Callable[[], object]) -> None:
        """Let ``who``, the user or a call, do ``action``."""
        before = self.files()
        with suppress(OSError):
            action()
        after = self.files()
        self.log.append(f"{who}: {what}")
        for path in before.keys() - after.keys():
            self.makers.pop(path, None)
        for path in after.keys() - before.keys():
            # What the user has written meanwhile may be taken for the call's.
            is_moved = any(what == f"mv {old!r} {path!r}" for old in self.at_begin)
            # A text that Emacs saves by itself is in the file as well.
            is_moved = is_moved and "/#" not in what
            self.makers[path] = "move" if is_moved else who
        for path, content in after.items():
            # It is another file, such as by sed -i.
            is_other = path in before and content != before[path]
            if is_other and who != "user" and self.makers.get(path) == "move":
                self.makers[path] = who
            added = lines_in(content) - lines_in(before.get(path, b""))
            for line in added:
                (self.typed.add if who == "user" else self.typed.discard)((path, line))

    # The repository

    def build(self) -> None:
        rule = self.chance
        self.outside.mkdir(parents=True)
        shutil.copytree(template(self.directory.parent), self.root)
        write: dict[str | bytes, bytes] = {
            "a.txt": self.lines("u", 3),
            "b.txt": self.lines("u", 3),
            "d/c.txt": self.lines("u"),
            "conf/k.txt": self.lines("u"),
        }
        later: dict[str | bytes, bytes] = {}
        rules = [each for each in ("out/", "*.o", "/cache", "tmp*") if rule(0.7)]
        write[".gitignore"] = "".join(f"{each}\n" for each in rules).encode()
        if rule(0.3):
            write["d/.gitignore"] = b"secret*\n"
            later["d/secret.txt"] = self.lines("u")
        for name in ("out/x.txt", "out/y/z.txt", "e.o", "d/f.o", "cache", "tmp.txt"):
            if rule(0.5):
                later[name] = self.lines("u")
        excluded = [each for each in (".env", "key.txt") if rule(0.6)]
        if excluded:
            write[".geminiignore"] = "".join(f"{e}\n" for e in excluded).encode()
        for name in (".env", "conf/.env", "key.txt"):
            if rule(0.5):
                (write if rule(0.5) else later)[name] = self.lines("u")
        if rule(0.3):
            write[".gitattributes"] = b"*.txt text eol=lf\n*.md filter=x\n"
            write["m.md"] = self.lines("u")
        if rule(0.3):
            for odd in ("~", "$HOME", ":x", "new\nline", b"l\xe9.txt", "a b"):
                (write if rule(0.5) else later)[odd] = self.lines("u")
        if rule(0.2):
            write["bin.dat"] = b"\0" + self.lines("u")
        if rule(0.3):
            later["new.txt"] = self.lines("u")
        if rule(0.3):
            later["a.txt~"] = self.lines("u")
        if rule(0.3):
            for name in ".hg/store/data.i", ".hg/dirstate":
                later[name] = self.lines("u")
        if rule(0.2):
            for name in "bare.git/HEAD", "bare.git/objects/o", "bare.git/refs/r":
                later[name] = self.lines("u")
        for file, content in write.items():
            put(self.path(file), content)
        (self.root / "run.sh").write_bytes(self.lines("u"))
        (self.root / "run.sh").chmod(0o755)
        (self.root / "link").symlink_to("a.txt")
        if rule(0.2):
            self.nested("sub")
            git(self.root, "add", "sub")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "x")
        if rule(0.3):
            # Another branch, without rules.
            git(self.root, "checkout", "-qb", "other")
            git(self.root, "rm", "-q", ".gitignore")
            put(self.path("b.txt"), self.lines("u"))
            put(self.path("of-other.txt"), self.lines("u"))
            git(self.root, "add", "b.txt", "of-other.txt")
            git(self.root, "commit", "-qm", "y")
            git(self.root, "checkout", "-q", "main")
        for file, content in later.items():
            put(self.path(file), content)
        if rule(0.3):
            self.nested("lib")
        if rule(0.1):
            os.mkfifo(self.path("pipe"))
        if rule(0.5):
            (self.outside / "o.txt").write_bytes(self.lines("u"))
        if rule(0.5):
            put(self.path("a.txt"), self.lines("u") + write["a.txt"])
        for path, content in self.files().items():
            self.makers[path] = "user"
            self.typed.update((path, line) for line in lines_in(content))
            # As if all of that was some time ago.
            then = time.time() - 100
            os.utime(path, (then, then), follow_symlinks=False)

    def nested(self, name: str) -> None:
        shutil.copytree(self.root / ".git", self.root / name / ".git")
        put(self.path(f"{name}/l.txt"), self.lines("u"))
        git(self.root / name, "add", "-A")
        git(self.root / name, "commit", "-qm", "x")
        put(self.path(f"{name}/l2.txt"), self.lines("u"))

    # Commands of the CLI

    def command(self) -> None:
        """Let a command do something."""
        do = self.random.choice(
            [
                self.write, self.write, self.append, self.append, self.remove,
                self.move, self.move, self.copy, self.untar, self.rule, self.rule,
                self.unhide, self.git_command, self.git_command, self.mode,
                self.repository, self.replaced, self.sed,
            ]
        )  # fmt: skip
        do()

    def call(self, what: str, action: Callable[[], object]) -> None:
        self.act("call", what, action)

    def new_name(self) -> bytes:
        name = self.random.choice(("n", "d/n", "fresh/deep/n", "out/n"))
        suffix = self.random.choice((".txt", ".txt", ".o", ""))
        return self.path(f"{name}{next(self.numbers)}{suffix}")

    def write(self) -> None:
        paths = [self.new_name() for _ in range(self.random.choice((1, 1, 1, 6)))]
        for path in paths:
            self.call(f"> {path!r}", partial(put, path, self.lines("c")))

    def append(self) -> None:
        path = self.some()
        content = read(path) or b""
        if not content.startswith(b"-> "):
            self.call(f">> {path!r}", lambda: put(path, content + self.line("c")))

    def sed(self) -> None:
        """Remove a line, as by a new file in its place."""
        path = self.some()
        lines = (read(path) or b"").splitlines(keepends=True)
        if lines and not lines[0].startswith(b"-> "):
            del lines[self.random.randrange(len(lines))]
            text = b"".join([*lines, self.line("c")])
            self.call(f"sed {path!r}", lambda: put(path, text))

    def remove(self) -> None:
        path = self.some("out", ".o", ".env", "a.txt")
        if self.chance(0.3) and os.path.dirname(path) != os.fsencode(self.root):
            path = os.path.dirname(path)
            self.call(f"rm -r {path!r}", lambda: shutil.rmtree(path))
        else:
            self.call(f"rm {path!r}", lambda: os.unlink(path))

    def source(self) -> bytes:
        """Return a file to move or copy: ignored, excluded, outside or any other."""
        outside = os.fsencode(self.outside / "o.txt")
        if self.chance(0.2) and os.path.exists(outside):
            return outside
        return (
            self.some("out", ".o", ".env", "key", "cache", "lib")
            if self.chance(0.7)
            else self.some()
        )

    def move(self) -> None:
        old = self.source()
        # Nothing tells that a file outside is gone, if its time has changed as well.
        is_old = old in self.at_begin and self.path("") in old
        new = self.new_name() if self.chance(0.7) else self.path("moved.txt")

        def do() -> None:
            os.makedirs(os.path.dirname(new), exist_ok=True)
            os.rename(old, new)

        self.call(f"mv {old!r} {new!r}", do)
        if is_old and self.chance(0.2):
            self.call(f"touch {new!r}", lambda: os.utime(new))

    def copy(self) -> None:
        old, new = self.source(), self.new_name()
        keeps = self.chance(0.7)

        def do() -> None:
            os.makedirs(os.path.dirname(new), exist_ok=True)
            (shutil.copy2 if keeps else shutil.copy)(old, new, follow_symlinks=False)

        self.call(f"cp {'-p ' if keeps else ''}{old!r} {new!r}", do)
        if self.chance(0.3) and (keeps or self.path("") in old):
            # Now it is the only one.
            self.call(f"rm {old!r}", lambda: os.unlink(old))

    def untar(self) -> None:
        """Write a file of an archive, which has an old time."""
        new = self.new_name()

        def do() -> None:
            put(new, self.lines("c"))
            os.utime(new, (1e9, 1e9))

        self.call(f"tar x {new!r}", do)

    def rule(self) -> None:
        path = self.path(".gitignore")
        lines = (read(path) or b"").splitlines(keepends=True)
        if lines and self.chance(0.7):
            del lines[self.random.randrange(len(lines))]
        elif self.chance(0.5):
            lines.append(self.random.choice((b"*.txt\n", b"d/\n", b"out/\n")))
        else:
            self.call("rm .gitignore", lambda: os.unlink(path))
            return
        self.call(f"change .gitignore {lines}", lambda: put(path, b"".join(lines)))

    def unhide(self) -> None:
        path = self.path(".geminiignore")
        if self.chance(0.7):
            self.call("rm .geminiignore", lambda: os.unlink(path))
        else:
            self.call("exclude b.txt", lambda: put(path, b".env\nb.txt\n"))

    def git_command(self) -> None:
        commands = [
            ("stash", "-q"), ("stash", "-q", "-u"), ("stash", "pop", "-q"),
            ("checkout", "-q", "other"), ("checkout", "-qf", "other"),
            ("checkout", "-q", "main"), ("checkout", "-q", "--", "a.txt"),
            ("checkout", "-q", "--", "."), ("clean", "-qfd"), ("clean", "-qfdx"),
            ("reset", "-q", "--hard"), ("commit", "-qam", "c"),
            ("merge", "-q", "other"), ("rm", "-q", "--cached", "b.txt"),
        ]  # fmt: skip
        arguments = self.random.choice(commands)
        self.call(f"git {' '.join(arguments)}", lambda: git(self.root, *arguments))

    def mode(self) -> None:
        path = self.some()
        self.call(f"chmod +x {path!r}", lambda: os.chmod(path, 0o755))

    def repository(self) -> None:
        """Let a directory become a repository, or cease to be one."""
        for name in "lib", "sub":
            there = self.root / name / ".git"
            if there.exists() and self.chance(0.7):
                self.call(f"rm -r {name}/.git", lambda: shutil.rmtree(there))  # noqa: B023
                return
        new = self.root / self.random.choice(("d", "conf")) / ".git"
        if not new.exists():
            self.call(f"init {new}", lambda: shutil.copytree(self.root / ".git", new))

    def replaced(self) -> None:
        """Put a file in the place of a directory."""
        path = self.path(self.random.choice(("conf", "d", "out")))

        def do() -> None:
            shutil.rmtree(path)
            put(path, self.lines("c"))

        self.call(f"rm -r {path!r}; > {path!r}", do)

    # The user

    def saves(self) -> None:
        """Let the user save a file in Emacs, maybe in vain."""
        path = self.some()
        before = read(path)
        if before is None or before.startswith(b"-> "):
            return
        fails = self.chance(0.2)
        content = self.line("u") + before
        if self.chance(0.3):
            # Emacs's own files of this buffer.
            lock = os.path.join(os.path.dirname(path), b".#" + os.path.basename(path))
            auto = os.path.join(
                os.path.dirname(path), b"#" + os.path.basename(path) + b"#"
            )
            self.act("user", f"types in {path!r}", lambda: put(lock, b"-> a@b.1"))
            self.act("user", f"autosave {path!r}", lambda: put(auto, content))
        if self.chance(0.2) and not fails:
            self.act("user", f"backup of {path!r}", lambda: put(path + b"~", before))
        self.act(
            "user",
            f"{'fails to save' if fails else 'saves'} {path!r}",
            lambda: self.peer.save(path, content, fails),
        )

    def edits(self) -> None:
        """Let the user write by another editor, or delete a file."""
        if self.chance(0.2):
            path = self.some()
            self.act("user", f"rm {path!r}", lambda: os.unlink(path))
            return
        path = self.some() if self.chance(0.5) else self.path(self.line("w").strip())
        content = read(path) or b""
        if not content.startswith(b"-> "):
            text = content + self.line("u")
            self.act("user", f"writes {path!r}", lambda: put(path, text))

    def commits(self) -> None:
        self.act("user", "git commit", lambda: git(self.root, "commit", "-qam", "u"))

    # Sequences

    async def called(self, has_ended: bool, name: str, background: bool) -> None:
        self.log.append(f"{'end' if has_ended else 'begin'} {name}")
        call = Called(has_ended, name, name, background, True)
        await self.timeline.called(CLI, str(self.root), call)
        tick(self.root)
        if not has_ended:
            self.at_begin = set(self.files())

    async def turn(self, begins: bool) -> None:
        self.log.append("prompt" if begins else "end of turn")
        self.timeline.turn(CLI, str(self.root), begins)
        await self.idle()
        tick(self.root)

    async def idle(self) -> None:
        while tasks := {*self.timeline._tasks, *self.looks()}:
            await asyncio.wait(tasks)

    def looks(self) -> list[asyncio.Task[None]]:
        looks = [tree.looks for tree in self.timeline._trees.values()]
        return [task for task in looks if task and not task.done()]

    async def run(self) -> None:
        self.build()
        tick(self.root)
        await self.turn(begins=True)
        for number in range(self.random.choice((1, 1, 2, 3))):
            for _ in range(self.random.choice((0, 0, 1, 2))):
                self.random.choice((self.edits, self.saves, self.commits))()
            self.peer.is_slow = self.chance(0.15)
            self.peer.is_silent = self.chance(0.05)
            self.peer.is_mute = self.chance(0.02)
            names = ["new.txt", "a.txt", "x.txt", "e.o"]
            self.unanswered = {n for n in names if self.chance(0.05)}
            episode = self.random.choice(
                [self.foreground, self.foreground, self.foreground, self.background,
                 self.refused, self.edit]
            )  # fmt: skip
            await episode(f"make {number}")
            if self.chance(0.3):
                self.peer.catch_up()
            if self.chance(0.4):
                await self.turn(begins=False)
                self.user()
                await self.turn(begins=True)
        await self.turn(begins=False)
        self.peer.catch_up()
        self.undo()

    def user(self) -> None:
        for _ in range(self.random.choice((0, 1, 2))):
            self.random.choice((self.edits, self.saves))()

    async def foreground(self, name: str) -> None:
        await self.called(False, name, False)
        for _ in range(self.random.choice((1, 1, 2, 3))):
            if self.chance(0.3):
                self.saves()
            self.command()
        if self.chance(0.3):
            self.saves()
        await self.called(True, name, False)

    async def background(self, name: str) -> None:
        await self.called(False, name, True)
        await self.called(True, name, True)
        self.command()
        self.saves()
        await self.turn(begins=False)

    async def refused(self, name: str) -> None:
        """Let the user refuse a command; then only others write."""
        await self.called(False, name, False)
        if self.chance(0.5):
            # Emacs sees that the CLI is ready again.
            self.timeline.ready(CLI["pids"])
            await self.idle()
        tick(self.root)
        self.user()
        if self.chance(0.5):
            await self.turn(begins=True)

    async def edit(self, name: str) -> None:
        """Let an edit tool write a file, then a command."""
        path = self.some("a.txt")
        before = read(path)
        if before is None or before.startswith(b"-> "):
            return
        after = before + self.line("c")
        self.call(f"edit {path!r}", lambda: put(path, after))
        self.peer.edited(path, before, after)
        if self.chance(0.5):
            self.act(
                "user", "git commit", lambda: git(self.root, "commit", "-qam", "u")
            )
            self.saves_in(path)
            await self.called(False, name, False)
            saved = read(path)
            self.call("git checkout", lambda: git(self.root, "checkout", "-q", "."))
            now = read(path)
            await self.called(True, name, False)
            if now != saved:
                self.must_be_recorded(path, now)

    def must_be_recorded(self, path: bytes, now: bytes | None) -> None:
        """Check that the last call is known to have given ``path`` its content."""
        self.peer.catch_up()
        is_known = not (self.peer.is_silent or getattr(self.peer, "is_mute", False))
        base = os.path.basename(os.fsdecode(path))
        is_seen = base == "a.txt" and base not in self.unanswered | self.hidden()
        last = [edit for edit in self.peer.edits if edit.path == path][-1]
        is_recorded = last.after == now and not last.is_reported
        if is_known and is_seen and not is_recorded:
            self.wrong.append(f"taken, but not recorded: {path!r}")

    def saves_in(self, path: bytes) -> None:
        content = (read(path) or b"") + self.line("u")
        self.act(
            "user", f"saves {path!r}", lambda: self.peer.save(path, content, False)
        )

    # The judgement

    def claimed(self, edit: Edit) -> None:
        """Check that ``edit`` claims no line that the user has written."""
        old, new = lines_in(edit.before or b""), lines_in(edit.after or b"")
        claimed = {line for line in new - old if (edit.path, line) in self.typed}
        if edit.before is None and self.makers.get(edit.path) == "user":
            self.wrong.append(f"{edit.path!r} is of the user, not of {edit.what}")
        elif claimed:
            text = f"{claimed} in {edit.path!r} is of the user, not of {edit.what}"
            self.wrong.append(text)

    def undo(self) -> None:
        """Undo everything in any order, and check what is gone."""
        before = self.files()
        edits = list(self.peer.edits)
        self.random.shuffle(edits)
        left = len(edits) + 1
        while len(edits) < left:
            left = len(edits)
            edits = [edit for edit in edits if not self.undone(edit)]
        after = self.files()
        there = {line for content in after.values() for line in of_user(content)}
        # What a call has made is in the trash.
        for path in before.keys() - after.keys():
            if self.makers.get(path) not in ("user", "move"):
                there |= of_user(before[path])
        for path in before.keys() - after.keys():
            maker = self.makers.get(path)
            # A file that was moved is in its place again.
            is_there = of_user(before[path]) <= there
            if maker == "user" or (maker == "move" and not is_there):
                self.wrong.append(f"{path!r} was deleted, of {maker}")
        mine = {line for content in before.values() for line in of_user(content)}
        if gone := mine - there:
            objects = git(
                self.root, "cat-file", "--batch", "--batch-all-objects", "--buffer"
            )
            if gone := gone - lines_in(objects):
                self.wrong.append(f"{gone} of the user is gone")

    def is_renamed(self, edit: Edit) -> bool:
        """Return whether ``edit`` has made the only copy of a file that it deleted."""
        return edit.before is None and any(
            other.after is None
            and (other.what, other.before) == (edit.what, edit.after)
            and read(other.path) != other.before
            for other in self.peer.edits
        )

    def undone(self, edit: Edit) -> bool:
        if read(edit.path) != edit.after or self.is_renamed(edit):
            return False
        try:
            put(edit.path, edit.before)
        except OSError:
            # Such as a file in the place of its directory, which is undone later.
            return False
        self.log.append(f"undo {edit.path!r}")
        return True


def template(directory: Path) -> Path:
    """Return a work tree with an empty repository."""
    made = directory / "template"
    if not made.exists():
        made.mkdir()
        git(made, "init", "-q", "-b", "main")
        shutil.rmtree(made / ".git" / "hooks", ignore_errors=True)
    return made


def test_no_file_of_the_user_goes_by_a_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "MOST_FILES", MOST_TEXTS)
    monkeypatch.setattr(snapshots, "MOST_LARGE_BYTES", 2000)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    wrong: dict[int, World] = {}
    misses: Counter[str] = Counter()
    seeds = iter(range(SEED, SEED + SEQUENCES))

    async def some() -> None:
        for seed in seeds:
            directory = tmp_path / str(seed)
            world = World(seed, directory)
            await world.run()
            world.timeline.end()
            misses.update(world.misses)
            if world.wrong:
                wrong[seed] = world
            shutil.rmtree(directory)

    async def run() -> None:
        await asyncio.gather(*(some() for _ in range(BESIDE)))

    template(tmp_path)
    asyncio.run(run())
    print(f"misses: {dict(+misses)}")
    for seed, world in list(wrong.items())[:10]:
        text = "\n  ".join([f"GC_SNAPSHOT_SEED={seed}", *world.log, *world.wrong])
        print(text.replace(f"{tmp_path}/{seed}/", ""))
    assert not wrong, f"{len(wrong)} of {SEQUENCES}: {[*wrong]}"
