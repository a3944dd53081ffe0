# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of odd repositories by the real git: the bytes are those of the files."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemini_companion_epc import git, snapshots, system
from gemini_companion_epc.git import GitError, GitTooSlow
from gemini_companion_epc.snapshots import Difference, Snapshot, SnapshotError, Store
from scene import tick

Found = dict[str, tuple[bytes | None, bytes | None]]


class Tree:
    """A work tree, and the store of its snapshots."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.root.mkdir()
        self.store: Store
        self.last: Snapshot
        self.difference = Difference()

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        identity = "-c", "user.name=a", "-c", "user.email=a@b"
        command = ["git", *identity, "-C", str(cwd or self.root), *arguments]
        return subprocess.run(
            command, check=True, capture_output=True, text=True
        ).stdout

    def write(self, **files: bytes) -> None:
        for name, content in files.items():
            self.put(name, content)

    def put(self, name: str | bytes, content: bytes) -> None:
        path = os.path.join(os.fsencode(self.root), os.fsencode(name))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)

    def commit(self, message: str = "x") -> None:
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def begin(self) -> Store:
        self.store = Store(str(self.root), f"{self.root}.store")
        self.last = self.take()
        self.store.note_files()
        tick(self.root)
        return self.store

    def take(self, hidden: Callable[[str], bool] = lambda name: False) -> Snapshot:
        listing = self.store.listing()
        shared = [name for name in listing.names if not hidden(name)]
        return self.store.take(listing, shared, set(listing.names).difference(shared))

    def found(self, hidden: Callable[[str], bool] = lambda name: False) -> Found:
        """Take a snapshot; return the contents of what has changed since the last."""
        before, self.last = self.last, self.take(hidden)
        self.difference = self.store.difference(before, self.last)
        tick(self.root)
        return {
            each.path: (self.content(each.before), self.content(each.after))
            for each in self.difference.changes
        }

    @property
    def left_out(self) -> set[str]:
        return set(self.difference.left_out)

    def content(self, blob: str) -> bytes | None:
        if not blob:
            return None
        file = self.root.parent / "blob"
        self.store.write_blob(blob, str(file))
        content = file.read_bytes()
        file.unlink()
        return content


@pytest.fixture
def plain(tmp_path: Path) -> Tree:
    """Return a directory without a repository."""
    (tmp_path / "home").mkdir()
    return Tree(tmp_path / "tree")


@pytest.fixture
def tree(plain: Tree) -> Tree:
    """Return a repository with one commit."""
    plain.git("init", "-q", "-b", "main")
    plain.write(a=b"1\n")
    plain.commit()
    return plain


def test_bytes_are_exact_and_no_program_of_the_repository_runs(tree: Tree) -> None:
    ran = tree.root.parent / "ran"
    program = f"sh -c 'touch {ran}; cat'"
    for name in ("filter.evil.clean", "filter.evil.smudge", "core.fsmonitor"):
        tree.git("config", name, program)
    tree.git("config", "filter.evil.required", "true")
    tree.put(
        ".gitattributes",
        b"*.txt text eol=crlf\n*.id ident\n*.lfs filter=evil\n"
        b"*.u16 working-tree-encoding=UTF-16\n",
    )
    files = {
        "a.txt": b"one\r\ntwo\n",
        "b.id": b"$Id: x$\n",
        "c.lfs": b"big\n",
        "d.u16": "h\xe9\n".encode("utf-16"),
    }
    for name, content in files.items():
        tree.put(name, content)
    tree.commit()
    ran.unlink()
    tree.begin()
    for name, content in files.items():
        tree.put(name, content + b"\r\n\0")
    expected = {name: (old, old + b"\r\n\0") for name, old in files.items()}
    assert tree.found() == expected
    assert not ran.exists()


@pytest.mark.parametrize("setting", ["autocrlf=true", "autocrlf=input", "eol=crlf"])
def test_line_ends_are_those_of_the_file(tree: Tree, setting: str) -> None:
    name, _, value = setting.partition("=")
    tree.git("config", f"core.{name}", value)
    tree.put(".gitattributes", b"* text=auto\n")
    tree.put("dos", b"one\r\n")
    tree.commit()
    tree.begin()
    tree.put("dos", b"two\r\n")
    assert tree.found() == {"dos": (b"one\r\n", b"two\r\n")}


def test_a_setting_without_a_value_is_true(tree: Tree) -> None:
    with (tree.root / ".git/config").open("a") as config:
        config.write("[core]\n\tautocrlf\n")
    tree.put("dos", b"one\r\n")
    # Of an older file, git believes the index.
    os.utime(tree.root / "dos", (1e9, 1e9))
    tree.commit()
    tree.begin()
    tree.put("dos", b"two\r\n")
    assert tree.found() == {"dos": (b"one\r\n", b"two\r\n")}


def test_text_auto_with_plain_files_begins_with_the_index(tree: Tree) -> None:
    tree.put(".gitattributes", b"* text=auto\n")
    tree.commit()
    assert tree.begin().listing().names == []
    assert (tree.root.parent / "tree.store" / "objects").is_dir()
    tree.write(a=b"2\n")
    assert tree.found() == {"a": (b"1\n", b"2\n")}


def test_names_may_have_any_bytes(tree: Tree) -> None:
    names = [b"a\nb", b"q\"'", b"l\xe9", b"-x", b":(glob)*", b"sp ace", b" "]
    for name in names:
        tree.put(name, b"1")
    tree.commit()
    tree.begin()
    for name in names:
        tree.put(name, b"2")
    tree.put(b"new\nfile", b"3")
    expected: Found = {os.fsdecode(name): (b"1", b"2") for name in names}
    assert tree.found() == {**expected, "new\nfile": (None, b"3")}


def test_kinds_of_files(tree: Tree) -> None:
    tree.write(x=b"1", f2d=b"1")
    tree.put("d2f/a", b"1")
    tree.commit()
    tree.begin()
    os.mkfifo(tree.root / "fifo")
    (tree.root / "out").symlink_to("/etc/passwd")
    (tree.root / "dead").symlink_to("nowhere")
    tree.put("big", b"x" * (snapshots.MOST_LARGE_BYTES + 1))
    (tree.root / "x").chmod(0o755)
    (tree.root / "f2d").unlink()
    tree.put("f2d/in", b"2")
    shutil.rmtree(tree.root / "d2f")
    tree.put("d2f", b"2")
    assert tree.found() == {
        "out": (None, b"/etc/passwd"),
        "dead": (None, b"nowhere"),
        "x": (b"1", b"1"),
        "f2d": (b"1", None),
        "f2d/in": (None, b"2"),
        "d2f/a": (b"1", None),
        "d2f": (None, b"2"),
    }
    modes = {each.path: each[3:] for each in tree.difference.changes}
    assert modes["x"] == (0o100644, 0o100755)
    assert stat.S_ISLNK(modes["out"][1])
    # git lists no pipe.
    assert tree.left_out == {"big"}
    assert tree.found() == {}
    assert not tree.left_out


def test_large_files_are_stored_up_to_a_limit(tree: Tree) -> None:
    old, new = (letter * (snapshots.LARGEST_TEXT + 1) for letter in (b"o", b"n"))
    assert 3 * len(old) < snapshots.MOST_LARGE_BYTES < 4 * len(old)
    tree.put("b", old)
    store = tree.begin()
    tree.write(b=new, c=b"small")
    assert tree.found() == {"b": (old, new), "c": (None, b"small")}
    contents = store.texts(tree.difference.changes)
    assert sorted(map(str, contents.values())) == ["None", "None", "b'small'"]
    tree.write(d=old, e=old, f=old, g=old)
    assert len(tree.found()) == 3
    (name,) = tree.left_out
    assert tree.found() == {}
    assert not tree.left_out
    # What it had is unknown: it is not new.
    tree.put(name, b"small")
    assert tree.found() == {}
    assert tree.left_out == {name}
    tree.put(name, b"other")
    assert tree.found() == {name: (b"small", b"other")}
    assert not tree.left_out


def test_tracked_file_that_was_left_out_is_not_what_was_committed(tree: Tree) -> None:
    tree.put("a", b"x" * (snapshots.MOST_LARGE_BYTES + 1))
    tree.begin()
    (tree.root / "a").unlink()
    assert tree.found() == {}
    assert tree.difference.gone == [("a", "large")]


def test_nothing_behind_a_symbolic_link_is_read(tree: Tree) -> None:
    tree.put("dir/a", b"1")
    tree.commit()
    outside = tree.root.parent / "outside"
    outside.mkdir()
    (outside / "a").write_bytes(b"SECRET")
    tree.begin()
    shutil.rmtree(tree.root / "dir")
    (tree.root / "dir").symlink_to(outside)
    # As if it had been listed before the link was made.
    after = tree.store.take(tree.store.listing(), ["dir/a"])
    (change,) = tree.store.difference(tree.last, after).changes
    assert (change.path, change.after) == ("dir/a", "")


def test_directory_without_a_repository(plain: Tree) -> None:
    plain.write(a=b"1")
    plain.put(".gitignore", b"*.o\n")
    plain.put("x.o", b"1")
    plain.begin()
    plain.write(a=b"2")
    plain.put("y.o", b"1")
    assert plain.found() == {"a": (b"1", b"2")}
    assert not (plain.root / ".git").exists()
    assert snapshots.top_level(str(plain.root)) == str(plain.root)


def test_repository_without_a_commit(plain: Tree) -> None:
    plain.git("init", "-q")
    plain.write(a=b"1")
    plain.begin()
    plain.write(a=b"2")
    assert plain.found() == {"a": (b"1", b"2")}


def test_work_tree_of_another_repository(tree: Tree) -> None:
    tree.git("worktree", "add", "-q", str(tree.root.parent / "other"))
    tree.root = tree.root.parent / "other"
    tree.begin()
    tree.write(a=b"2\n")
    assert tree.found() == {"a": (b"1\n", b"2\n")}


def test_subdirectory_has_the_work_tree_as_its_root(tree: Tree) -> None:
    tree.put("sub/a", b"1")
    assert snapshots.top_level(str(tree.root / "sub")) == str(tree.root)


def test_other_repositories_in_the_tree_are_left_out(tree: Tree) -> None:
    tree.begin()
    tree.put("nested/x", b"1")
    tree.git("init", "-q", cwd=tree.root / "nested")
    assert tree.found() == {}


def test_sparse_checkout(tree: Tree) -> None:
    tree.put("in/a", b"1")
    tree.put("out/b", b"1")
    tree.commit()
    tree.git("sparse-checkout", "init", "--cone", "--sparse-index")
    tree.git("sparse-checkout", "set", "in")
    tree.begin()
    tree.put("in/a", b"2")
    assert tree.found() == {"in/a": (b"1", b"2")}
    assert not (tree.root / "out").exists()


def test_file_that_git_assumes_to_be_unchanged(tree: Tree) -> None:
    tree.git("update-index", "--assume-unchanged", "a")
    tree.begin()
    tree.write(a=b"2\n")
    assert tree.found() == {"a": (b"1\n", b"2\n")}


@pytest.mark.parametrize(
    "options", [["--split-index"], ["--index-version", "4", "--untracked-cache"]]
)
def test_forms_of_the_index(tree: Tree, options: list[str]) -> None:
    tree.git("update-index", *options)
    tree.begin()
    tree.write(a=b"2\n", b=b"3\n")
    assert tree.found() == {"a": (b"1\n", b"2\n"), "b": (None, b"3\n")}


def test_sha256_repository(plain: Tree) -> None:
    plain.git("init", "-q", "--object-format=sha256")
    plain.write(a=b"1")
    plain.commit()
    plain.begin()
    plain.write(a=b"2")
    assert plain.found() == {"a": (b"1", b"2")}


def test_user_may_commit_and_hold_the_lock_of_the_index(tree: Tree) -> None:
    tree.begin()
    lock = tree.root / ".git" / "index.lock"
    lock.touch()
    tree.write(a=b"2\n")
    assert tree.found() == {"a": (b"1\n", b"2\n")}
    lock.unlink()
    for number in range(5):
        tree.put("c", b"%d" % number)
        tree.commit()
        assert list(tree.found()) == ["c"]
    tree.git("fsck")


def test_excluded_files_are_never_stored(tree: Tree) -> None:
    tree.put(".env", b"OLD")
    tree.commit()

    def is_hidden(name: str) -> bool:
        return name in (".env", "k.pem")

    tree.store = Store(str(tree.root), f"{tree.root}.store")
    tree.last = tree.take(is_hidden)
    tree.put(".env", b"TOPSECRET")
    tree.put("k.pem", b"TOPSECRET")
    tree.put("ok", b"1")
    assert tree.found(is_hidden) == {"ok": (None, b"1")}
    stored = subprocess.run(
        ["git", "cat-file", "--batch-all-objects", "--batch"],
        env={**os.environ, "GIT_DIR": tree.store.directory},
        capture_output=True,
        check=True,
    ).stdout
    assert b"TOPSECRET" not in stored
    assert b"OLD" not in stored


def test_store_is_private(tree: Tree) -> None:
    tree.begin()
    assert stat.S_IMODE(os.stat(tree.store.directory).st_mode) == 0o700


def test_snapshots_survive_a_garbage_collection_of_the_user(tree: Tree) -> None:
    tree.begin()
    tree.write(a=b"2\n")
    second = tree.take()
    tree.git("commit", "-qam", "x", "--amend")
    tree.git("reflog", "expire", "--expire=all", "--all")
    tree.git("gc", "-q", "--prune=now")
    (change,) = tree.store.difference(tree.last, second).changes
    assert tree.content(change.after) == b"2\n"
    # Only the text that git has deleted is lost.
    with pytest.raises(GitError):
        tree.content(change.before)
    assert tree.store.texts([change]) == {change.after: b"2\n"}


def test_many_files_that_are_not_ignored_are_refused_with_their_directory(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_FILES", 10)
    tree.begin()
    for number in range(11):
        tree.put(f"node_modules/p/{number}", b"1")
    with pytest.raises(SnapshotError, match="node_modules has 11 files"):
        tree.found()
    tree.put(".gitignore", b"node_modules\n")
    assert tree.found() == {".gitignore": (None, b"node_modules\n")}


def test_tracked_files_have_no_limit_in_the_first_snapshot(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_FILES", 2)
    tree.git("config", "core.autocrlf", "true")
    tree.write(b=b"1\r\n", c=b"1\r\n", d=b"1\r\n")
    tree.commit()
    tree.begin()
    tree.write(a=b"2\r\n")
    assert tree.found() == {"a": (b"1\n", b"2\r\n")}


def test_what_git_moves_is_known_and_new_commits_are_not(tree: Tree) -> None:
    tree.write(b=b"1\n", c=b"1\n")
    tree.commit()
    tree.git("checkout", "-qb", "other")
    tree.write(a=b"o\n", b=b"o\n")
    tree.commit()
    tree.git("tag", "later")
    tree.git("checkout", "-q", "main")
    store = tree.begin()

    def moved(step: Callable[[], object]) -> tuple[set[str], set[str]]:
        """Return the names that git moved in STEP, and the others that changed."""
        before, head = tree.last, store.head()
        step()
        tree.last = tree.take()
        by_git = store.moved(head, store.head(), before.time)
        difference = store.difference(before, tree.last, by_git)
        tick(tree.root)
        others = {each.path for each in difference.changes}
        assert difference.by_git == len(by_git.changes)
        return {each.path for each in by_git.changes}, others

    assert moved(lambda: tree.git("checkout", "-q", "other")) == ({"a", "b"}, set())
    tree.write(c=b"dirty\n")
    assert moved(lambda: None) == (set(), {"c"})
    # The lost text of the user is no text of git.
    assert moved(lambda: tree.git("reset", "-q", "--hard", "main")) == (
        {"a", "b"},
        {"c"},
    )
    assert moved(lambda: tree.git("merge", "-q", "later")) == ({"a", "b"}, set())

    def edit_and_commit() -> None:
        tree.write(a=b"new\n")
        tree.commit()

    assert moved(edit_and_commit) == (set(), {"a"})


def test_program_that_is_missing_or_old_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert snapshots.git_problem() == ""
    fake = tmp_path / "git"
    fake.write_text("#!/bin/sh\necho git version 2.20.1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert snapshots.git_problem() == "git is older than 2.32"
    fake.unlink()
    assert snapshots.git_problem() == "git is not installed"


def test_files_that_emacs_makes_are_no_part_of_a_project(tree: Tree) -> None:
    tree.put("b#", b"1")
    tree.begin()
    (tree.root / ".#a").symlink_to("user@host.1")
    for name in ("#a#", "a~", "a.~1~", "a.~x~", "b~", "#b", "b##", "sub/#c#"):
        tree.put(name, b"2")
    assert sorted(tree.found()) == ["#b", "a.~x~", "b##", "b~"]
    tree.put("b.~2~", b"2")
    (tree.root / "b#").rename(tree.root / "c")
    tree.put("b#~", b"2")
    assert sorted(tree.found()) == ["b#", "b.~2~", "c"]
    # Their end is no secret of a command.
    (tree.root / "#a#").unlink()
    tree.put("new", b"3")
    assert tree.found() == {"new": (None, b"3")}
    assert not tree.difference.gone


@pytest.mark.parametrize(
    "name", [".hg/store/x", ".svn/x", ".jj/x", "_darcs/x", "sub/.bzr/x", "CVS/x"]
)
def test_stores_of_other_systems_are_no_part_of_a_project(
    tree: Tree, name: str
) -> None:
    tree.put(name, b"1")
    tree.put("CVS/Entries", b"1")
    tree.commit()
    tree.begin()
    tree.put(name, b"2")
    tree.put(f"{name}2", b"2")
    tree.put("a", b"2")
    assert tree.found() == {"a": (b"1\n", b"2")}


def test_bare_repository_is_no_part_of_a_project(tree: Tree) -> None:
    tree.git("clone", "-q", "--bare", ".", "bare.git")
    tree.begin()
    tree.put("bare.git/objects/x", b"2")
    tree.put("bare.git/HEAD", b"2")
    tree.put("CVS/x", b"2")
    assert tree.found() == {"CVS/x": (None, b"2")}
    # Without HEAD it is a directory with files that are not known.
    (tree.root / "bare.git" / "HEAD").unlink()
    assert tree.found() == {}
    assert tree.difference.gone == [("bare.git/HEAD", "repository")]


def test_submodule_is_never_deleted(tree: Tree) -> None:
    tree.put("sub/x", b"1")
    tree.git("init", "-q", cwd=tree.root / "sub")
    tree.git("add", "-A", cwd=tree.root / "sub")
    tree.git("commit", "-qm", "x", cwd=tree.root / "sub")
    tree.commit()
    tree.begin()
    tree.git("commit", "-qm", "y", "--allow-empty", cwd=tree.root / "sub")
    tree.put("sub/x", b"2")
    assert tree.found() == {}
    # Its files were not looked at when it ceases to be one.
    shutil.rmtree(tree.root / "sub" / ".git")
    assert tree.found() == {}
    assert not tree.difference.changes


def test_directory_that_becomes_a_repository_is_not_looked_at(tree: Tree) -> None:
    tree.put("app/x", b"1")
    tree.commit()
    tree.begin()
    tree.git("init", "-q", cwd=tree.root / "app")
    tree.put("app/x", b"2")
    tree.put("app/y", b"2")
    assert tree.found() == {}


def test_temporary_directory_in_the_project_is_left_out(tree: Tree) -> None:
    temporary = tree.root / "tmp"
    temporary.mkdir()
    store = Store(str(tree.root), str(temporary / "store"), str(temporary))
    tree.store = store
    tree.last = tree.take()
    tick(tree.root)
    tree.put("tmp/x", b"2")
    tree.put("tmp2", b"2")
    assert tree.found() == {"tmp2": (None, b"2")}
    # A project in the temporary directory is one.
    above = Store(str(tree.root), f"{tree.root}.above", str(tree.root.parent))
    assert above.listing().names == ["tmp/x", "tmp2"]


def test_text_of_an_excluded_file_is_not_reported_as_its_directory_goes(
    tree: Tree,
) -> None:
    tree.put("conf/.env", b"SECRET")
    tree.put("conf/x", b"1")
    tree.commit()

    def is_hidden(name: str) -> bool:
        return name.endswith(".env")

    tree.store = Store(str(tree.root), f"{tree.root}.store")
    tree.last = tree.take(is_hidden)
    tick(tree.root)
    shutil.rmtree(tree.root / "conf")
    tree.put("conf", b"2")
    assert tree.found(is_hidden) == {"conf/x": (b"1", None)}
    assert tree.difference.gone == [("conf/.env", "excluded")]
    # The excluded file may be there now, so this one is not new.
    assert tree.difference.moved == ["conf"]


def test_new_file_may_be_one_that_is_gone(tree: Tree) -> None:
    tree.put(".gitignore", b"out/\n")
    tree.put("b", b"1")
    for name in ("a", "sub/c", "d"):
        tree.put(f"out/{name}", b"mine " + name.encode())
    tree.begin()
    # Renamed, written and renamed, copied, and written under the same name.
    (tree.root / "out" / "a").rename(tree.root / "a")
    os.utime(tree.root / "a")
    with (tree.root / "out" / "sub" / "c").open("ab") as file:
        file.write(b" more")
    (tree.root / "out" / "sub" / "c").rename(tree.root / "e")
    tree.put("f", (tree.root / "out" / "d").read_bytes())
    tree.put("new/d", b"new d")
    shutil.rmtree(tree.root / "out")
    tree.put("b", b"2")
    assert tree.found() == {"b": (b"1", b"2")}
    assert tree.difference.moved == ["a", "e", "f", "new/d"]
    gone = ["out/", "out/a", "out/d", "out/sub/c"]
    assert tree.difference.gone == [(name, "ignored") for name in gone]


def test_new_file_is_new_though_others_are_gone(tree: Tree) -> None:
    tree.put(".gitignore", b"dist/\nnode_modules/\n")
    for number in range(snapshots.MOST_OTHERS + 1):
        tree.put(f"node_modules/{number}", b"many")
    for number in range(20):
        tree.put(f"dist/{number}.js", b"built %d" % number)
    tree.begin()
    shutil.rmtree(tree.root / "dist")
    # A file system gives new files the numbers of deleted ones.
    for number in range(20):
        tree.put(f"dist/{number}.js", b"built again %d" % number)
    (tree.root / "dist" / "1.js").unlink()
    tree.put("src/new.ts", b"a source")
    assert tree.found() == {"src/new.ts": (None, b"a source")}
    assert tree.difference.gone == [("dist/1.js", "ignored")]
    # The user may have written one that is ignored by itself.
    tree.put(".env", b"mine")
    tree.put(".gitignore", b"dist/\nnode_modules/\n.env\n")
    tree.found()
    (tree.root / ".env").unlink()
    tree.put("conf.txt", b"mine and more")
    assert tree.found() == {}
    assert tree.difference.moved == ["conf.txt"]
    # Of too many files nothing is known.
    shutil.rmtree(tree.root / "node_modules")
    tree.put("src/other.ts", b"another")
    assert tree.found() == {}
    assert tree.difference.moved == ["src/other.ts"]


def test_copy_of_one_of_many_ignored_files_that_is_gone_is_not_new(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_OTHERS", 2)
    tree.put(".gitignore", b"*.o\n.env\n")
    tree.put(".env", b"1")
    for number in range(3):
        tree.put(f"{number}.o", b"mine %d" % number)
    tree.begin()

    def after(goes_on: bool) -> Difference:
        before, listing = tree.last, tree.store.listing(goes_on)
        tree.last = tree.store.take(listing, listing.names)
        tick(tree.root)
        return tree.store.difference(before, tree.last)

    # Without new files, it is not known whether one is gone.
    (tree.root / "0.o").unlink()
    assert after(goes_on=False).is_quiet
    assert not tree.last.is_complete
    after(goes_on=True)
    tree.put("copy", (tree.root / "1.o").read_bytes())
    (tree.root / "1.o").unlink()
    difference = after(goes_on=False)
    assert (difference.changes, difference.moved) == ([], ["copy"])
    assert difference.gone == [("1.o", "ignored")]


def test_file_from_elsewhere_is_not_new_though_its_time_is(tree: Tree) -> None:
    outside = tree.root.parent / "outside"
    outside.write_bytes(b"mine")
    tree.begin()
    outside.rename(tree.root / "b")
    os.utime(tree.root / "b")
    assert tree.found() == {}
    assert tree.difference.moved == ["b"]
    # One that was looked at is known, unless more is written to it.
    (tree.root / "a").rename(tree.root / "c")
    assert tree.found() == {"a": (b"1\n", None), "c": (None, b"1\n")}
    (tree.root / "c").rename(tree.root / "d")
    with (tree.root / "d").open("ab") as file:
        file.write(b"2\n")
    assert tree.found() == {"c": (b"1\n", None)}
    assert tree.difference.moved == ["d"]


def test_file_that_was_linked_or_moved_to_a_name_is_not_a_change_of_it(
    tree: Tree,
) -> None:
    tree.put(".gitignore", b"*.log\n")
    tree.put("mine.log", b"mine\n")
    tree.write(b=b"b\n", c=b"c\n", d=b"d\n", e=b"e\n")
    os.link(tree.root / "d", tree.root / "same")
    tree.begin()
    # To restore "b" would change "a", which has nothing new.
    (tree.root / "b").unlink()
    os.link(tree.root / "a", tree.root / "b")
    # To restore "c" would delete the only copy of what is in it.
    (tree.root / "mine.log").rename(tree.root / "c")
    for name in "cd":
        with (tree.root / name).open("ab") as file:
            file.write(b"more\n")
    # A program writes another file first.
    tree.put("draft", b"new e\n")
    (tree.root / "draft").rename(tree.root / "e")
    changed = {"d": (b"d\n", b"d\nmore\n"), "e": (b"e\n", b"new e\n")}
    assert tree.found() == {**changed, "same": changed["d"]}
    assert tree.difference.moved == ["b", "c"]


def test_only_copy_of_what_a_file_had_is_no_change_if_that_stays(tree: Tree) -> None:
    tree.write(b=b"b\n", c=b"c\n", d=b"d\n")
    tree.put("older", b"older\n")
    os.utime(tree.root / "older", (0, 0))
    tree.begin()
    # "b" stays, so that "c" stays, which has the only copy of "b", and so does "d".
    (tree.root / "c").rename(tree.root / "d")
    (tree.root / "b").rename(tree.root / "c")
    tree.put("b", b"of elsewhere\n")
    os.utime(tree.root / "b", (0, 0))
    # Of this one there is another.
    tree.put("a", b"older\n")
    assert tree.found() == {"a": (b"1\n", b"older\n")}
    assert tree.difference.moved == ["b", "c", "d"]

    # A backup is the only copy as well; an empty file is none.
    tree.write(b=b"mine\n", c=b"", d=b"d\n")
    tree.begin()
    (tree.root / "b").rename(tree.root / "backup")
    for name in "bc":
        tree.put(name, b"of elsewhere, too\n")
        os.utime(tree.root / name, (0, 0))
    tree.put("d", b"")
    assert tree.found() == {"d": (b"d\n", b"")}
    assert tree.difference.moved == ["b", "backup", "c"]


def test_files_that_a_repository_has_replaced_are_deleted(tree: Tree) -> None:
    tree.put("sub/b", b"committed")
    tree.commit()
    tree.put("sub/c", b"mine")
    tree.put("new/d", b"mine")
    tree.begin()
    tree.git("init", "-q", str(tree.root / "other"))
    tree.git("-C", "other", "commit", "-q", "--allow-empty", "-m", "x")
    for name in ("sub", "new"):
        shutil.rmtree(tree.root / name)
        tree.git("clone", "-q", "other", name)
    gone = {"sub/b": (b"committed", None), "sub/c": (b"mine", None)}
    assert tree.found() == {**gone, "new/d": (b"mine", None)}
    assert tree.difference.repositories == ["new/", "other/", "sub/"]
    # They are not deleted again.
    assert tree.found() == {}


def test_time_at_which_a_file_was_made_survives_a_rename(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"")
    birth = system.birth_time(str(file))
    if birth is None:
        pytest.skip("the file system does not record it")
    assert abs(birth - file.stat().st_ctime_ns) < 10**9
    os.utime(file, (0, 0))
    link = tmp_path / "link"
    link.symlink_to(file.rename(tmp_path / "b"))
    assert system.birth_time(str(tmp_path / "b")) == birth
    assert (system.birth_time(str(link)) or 0) >= birth
    assert system.birth_time(str(file)) is None


def test_files_that_were_not_looked_at_count_towards_no_limit(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_FILES", 10)
    tree.put(".gitignore", b"out\n")
    for number in range(11):
        tree.put(f"out/{number}", b"1")
    tree.begin()
    tree.put(".gitignore", b"")
    assert tree.found() == {".gitignore": (b"out\n", b"")}
    tree.put("out/0", b"2")
    assert tree.found() == {}
    # Once they fit, they are known.
    (tree.root / "out" / "1").unlink()
    assert tree.found() == {}
    assert tree.difference.gone == [("out/1", "many")]
    tree.put("out/0", b"3")
    assert tree.found() == {"out/0": (b"2", b"3")}


@pytest.mark.parametrize("name", [".gitattributes", ".git/info/exclude"])
def test_file_of_a_hostile_repository_is_not_read_without_end(
    tree: Tree, name: str
) -> None:
    tree.put(name, b"")
    tree.git("add", "-A")
    (tree.root / name).unlink()
    (tree.root / name).symlink_to("/dev/zero")
    tree.begin()
    tree.put("b", b"2")
    assert tree.found()["b"] == (None, b"2")
    (tree.root / name).unlink()
    os.mkfifo(tree.root / name)
    assert git.read(str(tree.root / name)) == b""


def test_git_is_killed_that_waits_for_a_pipe(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.begin()
    os.mkfifo(tree.root / ".gitignore")
    monkeypatch.setattr(snapshots, "_LIMIT", 0.2)
    with pytest.raises(GitTooSlow, match=r"git status took longer than 0.2 s"):
        tree.found()


def test_variables_of_the_user_choose_no_other_repository(
    tree: Tree, plain_other: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(plain_other.root / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(plain_other.root))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tree.root / "a"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.excludesFile")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(tree.root.parent / "ignored"))
    (tree.root.parent / "ignored").write_text("*.o\n")
    assert snapshots.top_level(str(tree.root)) == str(tree.root)
    tree.begin()
    tree.put("b.o", b"2")
    tree.put("b", b"2")
    assert tree.found() == {"b": (None, b"2")}


@pytest.fixture
def plain_other(tmp_path: Path) -> Tree:
    """Return another repository."""
    other = Tree(tmp_path / "other")
    other.git("init", "-q")
    return other


def test_nothing_is_fetched(tree: Tree) -> None:
    ran = tree.root.parent / "ran"
    tree.git("config", "remote.evil.url", f"ext::sh -c 'touch {ran}'")
    tree.git("config", "remote.evil.promisor", "true")
    tree.git("config", "extensions.partialClone", "evil")
    tree.git("config", "core.repositoryFormatVersion", "1")
    tree.git("config", "protocol.ext.allow", "always")
    head = tree.git("rev-parse", "HEAD^{tree}").strip()
    (tree.root / ".git" / "objects" / head[:2] / head[2:]).unlink()
    tree.begin().head()
    tree.put("b", b"2")
    assert tree.found() == {"b": (None, b"2")}
    assert not ran.exists()


def test_mode_counts_only_if_the_repository_says_so(tree: Tree) -> None:
    tree.git("config", "core.fileMode", "false")
    tree.begin()
    (tree.root / "a").chmod(0o755)
    assert tree.found() == {}


def test_contents_of_deleted_snapshots_are_an_error_if_git_has_ended(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended(subprocess.Popen[bytes]):
        """A process that has ended before anything is written to it."""

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            self.wait()

    tree.begin()
    tree.put("a", b"2")
    tree.found()
    (change,) = tree.difference.changes
    objects = Path(tree.store.directory) / "objects"
    objects.rename(objects.with_name("elsewhere"))
    monkeypatch.setattr("gemini_companion_epc.snapshots.subprocess.Popen", Ended)
    with pytest.raises(SnapshotError, match="the snapshots were deleted"):
        list(tree.store.contents([change.before]))


def test_backup_of_a_backup_file_that_is_gone_is_not_of_the_command(tree: Tree) -> None:
    tree.write(**{"a~": b"0\n"})
    tree.begin()
    tree.write(**{"a~~": b"0\n", "a~": b"1\n", "new": b"1\n"})
    (tree.root / "a~").unlink()
    assert set(tree.found()) == {"new"}
