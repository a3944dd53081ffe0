# SPDX-License-Identifier: GPL-3.0-or-later
"""What git itself writes, odd settings of repositories, and stores that fail."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemini_companion_epc import git, snapshots
from gemini_companion_epc.git import GitError
from gemini_companion_epc.snapshots import SnapshotError, Store
from scene import tick
from test_snapshots import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Return a repository with one commit."""
    (tmp_path / "home").mkdir()
    found = Tree(tmp_path / "tree")
    found.git("init", "-q", "-b", "main")
    found.write(a=b"1\n")
    found.commit()
    return found


@pytest.fixture
def plain(tmp_path: Path) -> Tree:
    """Return an empty directory."""
    return Tree(tmp_path / "plain")


@pytest.fixture
def other(tree: Tree) -> Tree:
    """Return a clone in which a colleague works."""
    tree.write(b=b"1\n2\n3\n4\n5\n6\n7\n8\n9\n", c=b"1\n")
    tree.commit()
    tree.git("clone", "-q", ".", f"{tree.root}.other")
    found = Tree.__new__(Tree)
    found.root = Path(f"{tree.root}.other")
    tree.git("remote", "add", "origin", str(found.root))
    return found


def by_colleague(other: Tree) -> None:
    """Commit a change of a file, and a new one, in another second than others."""
    time.sleep(1.1)
    other.write(b=b"1\n2\n3\n4\n5\n6\n7\n8\nnine\n", theirs=b"1\n")
    other.commit("theirs")
    time.sleep(1.1)


def steps(tree: Tree, step: Callable[[], object], is_own: bool = True) -> set[str]:
    """Return the names that have changed in ``step``, without those by git."""
    before, head = tree.last, tree.store.head()
    step()
    tree.last = tree.take()
    after = tree.store.head()
    moved = tree.store.moved(head, after, before.time)
    tree.difference = tree.store.difference(before, tree.last, moved)
    if is_own:
        tree.store.add_own(head, after, before.time)
    tick(tree.root)
    return {each.path for each in tree.difference.changes}


PULLS = {
    "fast-forward": ("pull", "-q", "origin", "main"),
    "merge": ("pull", "-q", "--no-rebase", "--no-edit", "origin", "main"),
    "rebase": ("pull", "-q", "--rebase", "origin", "main"),
}


@pytest.mark.parametrize("way", PULLS)
@pytest.mark.parametrize("has_reflog", [True, False])
def test_what_a_pull_brings_is_by_git(
    tree: Tree, other: Tree, way: str, has_reflog: bool
) -> None:
    if way != "fast-forward":
        tree.write(b=b"one\n2\n3\n4\n5\n6\n7\n8\n9\n", mine=b"1\n")
        tree.commit("mine")
    if not has_reflog:
        tree.git("config", "core.logAllRefUpdates", "false")
        shutil.rmtree(tree.root / ".git" / "logs")
    by_colleague(other)
    tree.begin()
    changed = steps(tree, lambda: tree.git(*PULLS[way]))
    assert (tree.root / "theirs").exists()
    # Without a reflog, a commit that git makes cannot be told from one of the command.
    is_made = way != "fast-forward" and not has_reflog
    assert changed == ({"b"} if is_made else set())
    assert tree.difference.by_git == (1 if is_made else 2)


@pytest.mark.parametrize("way", ["merge", "rebase", "cherry-pick"])
def test_what_git_brings_of_another_branch_is_by_git(tree: Tree, way: str) -> None:
    tree.git("checkout", "-qb", "other")
    tree.write(theirs=b"1\n")
    tree.commit("theirs")
    tree.git("checkout", "-q", "main")
    tree.write(mine=b"1\n")
    tree.commit("mine")
    time.sleep(1.1)
    tree.begin()
    options = ["--no-edit"] if way == "merge" else []
    assert steps(tree, lambda: tree.git(way, *options, "other")) == set()
    assert tree.difference.by_git == 1


def test_what_a_command_has_committed_is_its_own_also_after_a_rebase(
    tree: Tree, other: Tree
) -> None:
    by_colleague(other)
    tree.begin()

    def commit_and_pull() -> None:
        tree.write(own=b"1\n", c=b"2\n")
        tree.commit("own")
        tree.git(*PULLS["rebase"])

    assert steps(tree, commit_and_pull) == {"own", "c"}
    assert tree.difference.by_git == 2

    def commit_elsewhere() -> None:
        tree.git("checkout", "-qb", "feature")
        tree.write(feature=b"1\n")
        tree.commit("feature")
        tree.git("checkout", "-q", "main")

    # It brings in later what it has committed before, as it is or as a copy.
    assert steps(tree, commit_elsewhere) == set()
    assert steps(tree, lambda: tree.git("merge", "-q", "feature")) == {"feature"}
    tree.git("reset", "-q", "--hard", "HEAD~1")
    tree.last = tree.take()
    tree.write(between=b"1\n")
    tree.commit("between")
    tree.last = tree.take()
    assert steps(tree, lambda: tree.git("cherry-pick", "feature")) == {"feature"}


def test_lines_of_a_colleague_beside_those_of_an_earlier_command_are_by_git(
    tree: Tree, other: Tree
) -> None:
    by_colleague(other)
    tree.begin()

    def commit() -> None:
        tree.write(b=b"one\n2\n3\n4\n5\n6\n7\n8\n9\n")
        tree.commit("own")

    assert steps(tree, commit) == {"b"}
    assert steps(tree, lambda: tree.git(*PULLS["rebase"])) == set()
    assert tree.difference.by_git == 2


ONE = b"one\n2\n3\n4\n5\n6\n7\n8\n9\n"
NINE = b"1\n2\n3\n4\n5\n6\n7\n8\nnine\n"
BOTH = b"one\n2\n3\n4\n5\n6\n7\n8\nnine\n"


@pytest.mark.parametrize("way", PULLS)
@pytest.mark.parametrize("attributes", ["", "* text=auto\n"])
def test_lines_of_a_colleague_beside_those_of_the_user_are_by_git(
    tree: Tree, other: Tree, way: str, attributes: str
) -> None:
    (tree.root / ".git" / "info" / "attributes").write_text(attributes)
    by_colleague(other)
    if way == "merge":
        tree.write(mine=b"1\n")
        tree.commit("mine")
    tree.write(b=ONE)
    tree.begin()
    pull, *options = PULLS[way]
    assert steps(tree, lambda: tree.git(pull, "--autostash", *options)) == set()
    assert (tree.root / "b").read_bytes() == BOTH
    assert tree.difference.by_git == 2


@pytest.mark.parametrize("way", ["after", "amended", "committed", "autostash"])
def test_lines_of_a_colleague_are_not_of_a_command_that_pulls_them(
    tree: Tree, other: Tree, way: str
) -> None:
    by_colleague(other)
    tree.begin()

    def do() -> None:
        if way in ("after", "amended"):
            tree.git(*PULLS["fast-forward"])
            tree.write(b=BOTH)
            if way == "amended":
                tree.git("commit", "-aq", "--amend", "--no-edit")
            return
        tree.write(b=ONE)
        if way == "committed":
            tree.commit("own")
        pull, *options = PULLS["rebase"]
        tree.git(pull, "--autostash", *options)

    assert steps(tree, do) == {"b"}
    (change,) = tree.difference.changes
    assert tree.content(change.before) == NINE
    assert tree.content(change.after) == BOTH
    assert tree.difference.by_git == 1
    # Nor are they if it gets that commit again.
    tree.git("reset", "-q", "--hard", "HEAD~1")
    tree.last = tree.take()
    tick(tree.root)
    if way != "committed":
        assert steps(tree, lambda: tree.git(*PULLS["rebase"])) == set()
        assert tree.difference.by_git


@pytest.mark.parametrize("way", ["merge", "amended"])
def test_lines_of_a_colleague_are_not_of_a_command_that_merges_them(
    tree: Tree, other: Tree, way: str
) -> None:
    by_colleague(other)
    tree.begin()

    def do() -> None:
        if way == "amended":
            tree.git(*PULLS["fast-forward"])
            tree.write(b=BOTH, own=b"1\n")
            tree.git("add", "-A")
            tree.git("commit", "-aq", "--amend", "--no-edit")
            other.write(c=b"2\n")
            other.commit("more")
        else:
            tree.write(b=ONE, own=b"1\n")
            tree.commit("own")
        tree.git(*PULLS["merge"])

    assert steps(tree, do) == {"b", "own"}
    change = tree.difference.changes[0]
    assert tree.content(change.before) == NINE
    assert tree.content(change.after) == BOTH
    assert tree.difference.by_git == (2 if way == "amended" else 1)


def test_commit_of_many_files_beside_a_merge_needs_no_git_for_each(
    tree: Tree, other: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.write(**{f"f{number}": b"1\n" for number in range(50)})
    tree.commit()
    other.git("pull", "-q", str(tree.root), "main")
    by_colleague(other)
    tree.begin()
    runs: list[object] = []
    run: Callable[..., bytes] = git.run

    def counted(*arguments: Any, **options: Any) -> bytes:
        runs.append(arguments)
        return run(*arguments, **options)

    monkeypatch.setattr(git, "run", counted)

    def do() -> None:
        tree.write(**{f"f{number}": b"2\n" for number in range(50)})
        tree.commit("own")
        tree.git(*PULLS["merge"])

    assert len(steps(tree, do)) == 50
    assert tree.difference.by_git == 2
    assert len(runs) < 40


@pytest.mark.parametrize("mode", [0o644, 0o755])
def test_lines_of_a_colleague_in_those_of_a_command_are_of_both(
    tree: Tree, other: Tree, mode: int
) -> None:
    tree.begin()

    def do() -> None:
        tree.write(b=ONE)
        (tree.root / "b").chmod(mode)
        tree.commit("own")
        other.git("pull", "-q", str(tree.root), "main")
        line = b"nine" if mode == 0o755 else b"one by a colleague"
        other.write(b=ONE.replace(b"9" if mode == 0o755 else b"one", line))
        other.commit("theirs")
        tree.git(*PULLS["fast-forward"])

    # What was whose cannot be told, so nothing is hidden.
    assert steps(tree, do) == {"b"}
    (change,) = tree.difference.changes
    assert tree.content(change.before) == b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"
    assert tree.content(change.after) == (tree.root / "b").read_bytes()
    assert (change.mode_before, change.mode_after & 0o777) == (0o100644, mode)


@pytest.mark.parametrize("way", ["merge", "rebase"])
def test_own_lines_in_a_file_that_a_colleague_renames_are_of_the_command(
    tree: Tree, other: Tree, way: str
) -> None:
    time.sleep(1.1)
    other.git("mv", "b", "renamed")
    other.commit("theirs")
    time.sleep(1.1)
    tree.begin()

    def do() -> None:
        tree.write(b=ONE)
        tree.commit("own")
        tree.git(*PULLS[way])

    assert "renamed" in steps(tree, do)
    assert (tree.root / "renamed").read_bytes() == ONE


def test_own_file_that_git_puts_in_a_renamed_directory_is_of_the_command(
    tree: Tree, other: Tree
) -> None:
    tree.put("d/a", b"a\n")
    tree.put("d/b", b"b\n")
    tree.commit()
    other.git("pull", "-q", str(tree.root), "main")
    other.git("mv", "d", "e")
    by_colleague(other)
    tree.begin()

    def do() -> None:
        tree.put("d/own", b"1\n")
        tree.commit("own")
        tree.git("config", "merge.directoryRenames", "true")
        tree.git(*PULLS["merge"])

    assert "e/own" in steps(tree, do)


def test_new_file_of_a_colleague_is_by_git_beside_one_that_a_command_deletes(
    tree: Tree, other: Tree
) -> None:
    by_colleague(other)
    tree.begin()

    def do() -> None:
        (tree.root / "c").unlink()
        tree.write(own=b"1\n")
        tree.commit("own")
        tree.git(*PULLS["merge"])

    assert steps(tree, do) == {"c", "own"}
    assert tree.difference.by_git == 2


@pytest.mark.parametrize("has_own", [False, True])
def test_what_a_pull_brings_to_a_repository_without_commits_is_by_git(
    tree: Tree, plain: Tree, has_own: bool
) -> None:
    plain.git("init", "-q", "-b", "main")
    time.sleep(1.1)
    plain.begin()

    def do() -> None:
        plain.git("pull", "-q", str(tree.root), "main")
        if has_own:
            plain.write(own=b"1\n")
            plain.commit("own")

    assert steps(plain, do) == ({"own"} if has_own else set())
    assert plain.difference.by_git == 1


def test_first_commit_is_of_the_command(plain: Tree) -> None:
    plain.git("init", "-q", "-b", "main")
    plain.begin()

    def do() -> None:
        plain.write(own=b"1\n")
        plain.commit("own")

    assert steps(plain, do) == {"own"}
    assert plain.difference.by_git == 0


def test_commits_that_are_amended_to_what_they_were_are_of_the_command(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree.begin()
    # Git names a commit by its text and the second in which it was made.
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-11-01T00:00:00Z")
    monkeypatch.setenv("GIT_AUTHOR_DATE", "2026-11-01T00:00:00Z")

    def do() -> None:
        tree.write(own=b"1\n")
        tree.commit("own")
        for message in "own", "other", "own":
            tree.git("commit", "-q", "--amend", "-m", message)

    assert steps(tree, do) == {"own"}
    assert tree.difference.by_git == 0


def test_head_that_moves_without_the_files_is_no_change_of_them(tree: Tree) -> None:
    tree.write(a=b"2\n")
    tree.commit("second")
    tree.begin()

    def do() -> None:
        tree.git("reset", "-q", "--soft", "HEAD~1")
        tree.write(a=b"3\n")

    assert steps(tree, do) == {"a"}
    (change,) = tree.difference.changes
    assert tree.content(change.before) == b"2\n"


def test_commit_of_the_user_is_not_of_a_command_that_copies_it(tree: Tree) -> None:
    tree.git("checkout", "-qb", "other")
    tree.write(theirs=b"1\n")
    tree.commit("theirs")
    tree.git("checkout", "-q", "main")
    tree.begin()

    def commit() -> None:
        tree.write(mine=b"1\n")
        tree.commit("mine")

    steps(tree, commit, is_own=False)
    assert steps(tree, lambda: tree.git("rebase", "-q", "other")) == set()
    assert tree.difference.by_git == 1


def test_files_of_a_conflict_are_of_the_command(tree: Tree, other: Tree) -> None:
    tree.write(b=b"1\n2\n3\n4\n5\n6\n7\n8\nNINE\n")
    tree.commit("mine")
    by_colleague(other)
    tree.begin()

    def merge() -> None:
        with pytest.raises(Exception, match="git"):
            tree.git(*PULLS["merge"])
        tree.write(b=b"resolved\n")
        tree.git("add", "b")
        tree.git("commit", "-qm", "merged")

    assert steps(tree, merge) == {"b"}
    assert tree.difference.by_git == 1


@pytest.mark.parametrize("way", ["revert", "squash", "checkout", "restore", "apply"])
def test_what_a_command_takes_of_a_commit_is_its_own(tree: Tree, way: str) -> None:
    tree.write(a=b"2\n")
    tree.commit("second")
    tree.git("checkout", "-qb", "other")
    tree.write(a=b"3\n")
    tree.commit("third")
    patch = tree.git("diff", "HEAD~1")
    tree.git("checkout", "-q", "main")
    tree.begin()
    (tree.root.parent / "patch").write_text(patch)
    command = {
        "revert": ("revert", "--no-edit", "HEAD"),
        "squash": ("merge", "--squash", "other"),
        "checkout": ("checkout", "other", "--", "a"),
        "restore": ("restore", "--source=other", "a"),
        "apply": ("apply", str(tree.root.parent / "patch")),
    }[way]
    assert steps(tree, lambda: tree.git(*command)) == {"a"}


# As Git LFS does.
LFS_CLEAN = """
cat >{0}/x
name=$(sha256sum <{0}/x | cut -d' ' -f1)
echo version https://git-lfs.github.com/spec/v1
echo oid sha256:$name
echo size $(wc -c <{0}/x)
mv {0}/x {0}/$name
"""
LFS_SMUDGE = "cat {0}/$(grep oid | cut -d: -f2)"


@pytest.mark.parametrize("setting", ["core.autocrlf", "core.eol", "lfs"])
def test_what_git_converts_is_by_git_as_well(tree: Tree, setting: str) -> None:
    if setting == "lfs":
        tree.put(".gitattributes", b"*.bin filter=lfs\n")
        name, old, new = "x.bin", b"old\0", b"new\0"
        kept = tree.root.parent / "kept"
        kept.mkdir()
        clean, smudge = kept / "clean", kept / "smudge"
        clean.write_text(LFS_CLEAN.format(kept))
        smudge.write_text(LFS_SMUDGE.format(kept))
        tree.git("config", "filter.lfs.clean", f"sh {clean}")
        tree.git("config", "filter.lfs.smudge", f"sh {smudge}")
    else:
        tree.git("config", setting, "true" if setting == "core.autocrlf" else "crlf")
        tree.put(".gitattributes", b"* text=auto\n")
        name, old, new = "x.txt", b"old\r\n", b"new\r\n"

    tree.put(name, old)
    tree.commit()
    tree.git("checkout", "-qb", "other")
    tree.put(name, new)
    tree.commit()
    tree.git("checkout", "-q", "main")
    assert (tree.root / name).read_bytes() == old
    tree.begin()
    assert steps(tree, lambda: tree.git("checkout", "-q", "other")) == set()
    assert (tree.root / name).read_bytes() == new
    assert tree.difference.by_git == 1


# Settings


def test_files_that_git_converts_are_copied_up_to_a_limit(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_BYTES", 10_000)
    tree.put(".gitattributes", b"*.bin filter=lfs -text\n")
    for number in range(10):
        tree.put(f"{number}.bin", os.urandom(3000 + number))
    tree.put("small.bin", b"1")
    tree.put("plain", b"x" * 20_000)
    tree.commit()
    store = tree.begin()
    assert store._size < 10_000
    tree.put("small.bin", b"2")
    tree.put("plain", b"2")
    tree.put("0.bin", b"2")
    # The last one was not copied.
    tree.put("9.bin", b"2")
    changed = tree.found()
    assert {*changed} == {"small.bin", "plain", "0.bin"}
    assert changed["small.bin"] == (b"1", b"2")
    assert changed["plain"] == (b"x" * 20_000, b"2")
    assert tree.left_out == {"9.bin"}
    tree.put("a", b"2\n")
    assert tree.found() == {"a": (b"1\n", b"2\n")}
    assert not tree.left_out


def test_many_files_with_other_modes_than_git_knows(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MOST_FILES", 10)
    for number in range(20):
        tree.put(f"src/{number}", b"1")
    tree.commit()
    tree.git("config", "core.fileMode", "false")
    for number in range(20):
        (tree.root / f"src/{number}").chmod(0o755)
    tree.begin()
    tree.put("src/1", b"2")
    assert tree.found() == {"src/1": (b"1", b"2")}


def test_files_that_git_skips_are_looked_at_if_they_exist(tree: Tree) -> None:
    tree.put("local", b"1")
    tree.put("gone", b"1")
    tree.commit()
    tree.git("update-index", "--skip-worktree", "local", "gone")
    (tree.root / "gone").unlink()
    tree.put("local", b"mine")
    tree.begin()
    tree.put("local", b"2")
    assert tree.found() == {"local": (b"mine", b"2")}
    assert not tree.difference.gone


def test_submodule_that_moves_is_no_change(tree: Tree) -> None:
    sub = tree.root.parent / "sub"
    sub.mkdir()
    tree.git("init", "-q", cwd=sub)
    for text in "12":
        (sub / "x").write_text(text)
        tree.git("add", "-A", cwd=sub)
        tree.git("commit", "-qm", text, cwd=sub)
    allow = "-c", "protocol.file.allow=always"
    tree.git(*allow, "submodule", "add", "-q", str(sub), "sub")
    tree.commit()
    tree.begin()
    tree.git("checkout", "-q", "HEAD~1", cwd=tree.root / "sub")
    assert tree.found() == {}
    tree.git("commit", "-qam", "sub")
    tree.git("submodule", "-q", "deinit", "-f", "sub")
    assert tree.found() == {}
    assert not tree.difference.changes


@pytest.mark.parametrize("is_resolved", [True, False])
def test_conflict_in_a_file_that_is_not_looked_at(
    tree: Tree, is_resolved: bool
) -> None:
    def is_hidden(name: str) -> bool:
        return name == ".env"

    tree.put(".env", b"1")
    tree.commit()
    for branch in "other", "main":
        tree.git("checkout", "-q", *(["-b"] if branch == "other" else []), branch)
        tree.write(**{".env": branch.encode(), "a": branch.encode()})
        tree.commit(branch)
    with pytest.raises(Exception, match="git"):
        tree.git("merge", "-q", "other")
    tree.store = Store(str(tree.root), f"{tree.root}.store")
    tree.last = tree.take(is_hidden)
    if is_resolved:
        tree.git("merge", "--abort")
    tree.put("b", b"2")
    assert tree.found(is_hidden)["b"] == (None, b"2")
    assert ".env" not in tree.found(is_hidden)


def test_repository_that_git_refuses(tree: Tree) -> None:
    tree.git("config", "core.repositoryFormatVersion", "1")
    tree.git("config", "extensions.future", "true")
    with pytest.raises(SnapshotError, match=r"git refuses the repository: .*future"):
        snapshots.top_level(str(tree.root))


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give away"
)
def test_repository_of_another_user(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    for path in tree.root, tree.root / ".git":
        os.chown(path, 1234, 1234)
    with pytest.raises(SnapshotError, match="dubious ownership") as caught:
        snapshots.top_level(str(tree.root))
    command = f"git config --global --add safe.directory {tree.root}"
    assert caught.value.remedy == f"run `{command}`"


def test_bare_repository_is_a_directory(tree: Tree) -> None:
    tree.git("clone", "-q", "--bare", ".", f"{tree.root}.git")
    assert snapshots.top_level(f"{tree.root}.git") == f"{tree.root}.git"


def test_temporary_directory_may_be_the_root(tree: Tree) -> None:
    private = tree.root / "private"
    private.mkdir()
    tree.store = Store(str(tree.root), str(private / "1"), str(tree.root))
    tree.last = tree.take()
    tree.store.note_files()
    tick(tree.root)
    tree.write(a=b"2\n")
    (private / "2").write_bytes(b"")
    assert tree.found() == {"a": (b"1\n", b"2\n")}
    assert tree.found() == {}


# Stores that fail


def test_lock_that_git_has_left_is_removed(tree: Tree) -> None:
    store = tree.begin()
    (Path(store.directory) / "index.lock").touch()
    tree.write(a=b"2\n")
    assert tree.found() == {"a": (b"1\n", b"2\n")}


@pytest.mark.parametrize("name", ["index", "config", "info/attributes", "HEAD", "info"])
@pytest.mark.parametrize("is_deleted", [True, False])
def test_damaged_store_is_mended_and_keeps_its_objects(
    tree: Tree, name: str, is_deleted: bool
) -> None:
    store = tree.begin()
    tree.write(a=b"2\n")
    tree.found()
    (change,) = tree.difference.changes
    file = Path(store.directory) / name
    if file.is_dir():
        shutil.rmtree(file)
    elif is_deleted:
        file.unlink()
    else:
        file.write_bytes(b"garbage")
    tree.write(a=b"3\n")
    with pytest.raises(GitError):
        tree.found()
    store.mend()
    tree.last = tree.take()
    tick(tree.root)
    tree.write(a=b"4\n")
    assert tree.found() == {"a": (b"3\n", b"4\n")}
    assert tree.content(change.after) == b"2\n"


# Lines of the user


def taken(tree: Tree, step: Callable[[], object]) -> dict[str, tuple[bool, list[str]]]:
    """Return the lines in no commit that ``step`` has taken, by file."""
    before, heads = tree.last, [tree.store.head()]
    step()
    tree.last = tree.take()
    heads.append(tree.store.head())
    changes = tree.store.difference(before, tree.last).changes
    contents = tree.store.texts(changes)
    tick(tree.root)
    return {
        changes[number].path: (is_tracked, [line.decode() for line in lines])
        for number, is_tracked, lines in tree.store.taken(changes, contents, heads)
    }


TAKING = {
    "stash": ("stash", "-qu"),
    "checkout": ("checkout", "-q", "--", "."),
    "restore": ("restore", "."),
    "reset": ("reset", "-q", "--hard"),
    "clean": ("clean", "-qfd"),
}


@pytest.mark.parametrize("way", TAKING)
def test_lines_that_are_in_no_commit_are_taken(tree: Tree, way: str) -> None:
    tree.write(a=b"1\n2\n3\n", b=b"b\n")
    tree.commit()
    tree.write(a=b"1\nmine\nthree\n", n=b"x\ny\n")
    tree.begin()
    found = taken(tree, lambda: tree.git(*TAKING[way]))
    tracked = {"a": (True, ["mine", "three"])}
    new = {"n": (False, ["x", "y"])}
    expected = {"stash": {**tracked, **new}, "clean": new}
    assert found == expected.get(way, tracked)


def test_lines_of_any_branch_and_moved_ones_are_not_taken(tree: Tree) -> None:
    tree.git("checkout", "-qb", "other")
    tree.write(a=b"of other\n")
    tree.commit()
    tree.git("checkout", "-q", "main")
    tree.write(a=b"of other\nmine\n\tformatted\n", c=b"moved\n", d=b"1\n")
    tree.begin()

    def command() -> None:
        tree.write(a=b"1\n  formatted\n")
        (tree.root / "c").rename(tree.root / "e")
        # What a command has committed is not lost.
        tree.git("add", "d")
        tree.git("commit", "-qm", "d")
        tree.git("rm", "-q", "d")

    assert taken(tree, command) == {"a": (True, ["mine"])}


def test_lines_with_crlf_are_those_of_the_commit(tree: Tree) -> None:
    tree.git("config", "core.autocrlf", "true")
    tree.write(a=b"1\r\n2\r\n")
    tree.commit()
    tree.write(a=b"1\r\n2\r\nmine\r\n")
    tree.begin()
    found = taken(tree, lambda: tree.write(a=b"1\r\n"))
    assert found == {"a": (True, ["mine"])}


def test_files_of_which_text_was_taken_are_counted(tree: Tree) -> None:
    tree.write(b=b"1\n", c=b"1\n")
    tree.commit()
    tree.write(b=b"mine\n", n=b"mine\n")
    store = tree.begin()
    before, head = tree.last, store.head()
    tree.write(a=b"2\n", b=b"2\n", c=b"2\n", new=b"2\n")
    (tree.root / "n").unlink()
    tree.last = tree.take()
    changes = store.difference(before, tree.last).changes
    assert store.count_uncommitted(before, head, changes) == 2


def test_nothing_is_taken_without_a_repository(tmp_path: Path) -> None:
    plain = Tree(tmp_path / "tree")
    plain.write(a=b"1\n")
    plain.begin()
    assert taken(plain, lambda: plain.write(a=b"2\n")) == {}
