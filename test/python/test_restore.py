# SPDX-License-Identifier: GPL-3.0-or-later
"""Files get their former contents from a store, whole, and nothing else of them."""

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gemini_companion_epc import restore as restores
from gemini_companion_epc.git import GitError
from gemini_companion_epc.restore import File, Plan, restore
from gemini_companion_epc.snapshots import Change
from test_snapshots import Tree

MODES = 0o755


class Scene:
    """A work tree with two snapshots, between which `change` was called."""

    def __init__(self, root: Path, change: Callable[[Path], None]) -> None:
        self.tree = Tree(root)
        self.root = root
        self.tree.git("init", "-q")
        for name in ("a", "b", "old/gone", "run", "link", "dir/in", "file"):
            self.tree.put(name, f"{name}\n".encode())
        (root / "link").unlink()
        (root / "link").symlink_to("a")
        (root / "image").write_bytes(b"\0\xff")
        self.store = self.tree.begin()
        self.before = self.tree.last
        change(root)
        self.after = self.tree.take()
        self.changes = self.store.difference(self.before, self.after).changes

    def restore(self, undone: bool = True) -> dict[str, str]:
        """Undo the changes, or redo them; return the problems by name.

        What goes is deleted here, as Emacs does it.
        """
        files = [_file(change, undone) for change in self.changes]
        tree = (self.before if undone else self.after).tree
        names = [file.name for file in files if not file.then_mode]
        plan = Plan(MODES, str(self.root) + ".kept", True, names, tree)
        checked = restore(self.store, files, plan)
        problems = dict(zip(files, checked, strict=True))
        goes = [file for file in files if not (file.then_mode or problems[file])]
        for file in goes:
            (self.root / file.name).unlink()
        plan = plan._replace(checks=False, gone=[file.name for file in goes])
        stays = [file for file in files if file.then_mode]
        problems.update(zip(stays, restore(self.store, stays, plan), strict=True))
        return {file.name: why for file, why in problems.items() if why}

    def drafts(self) -> list[Path]:
        return list(self.root.rglob(f"{restores.DRAFT}*"))


def _file(change: Change, undone: bool) -> File:
    before, after = (
        (change.before, change.mode_before),
        (change.after, change.mode_after),
    )
    return File(change.path, *(after + before if undone else before + after))


def write_all(root: Path) -> None:
    """Change files of all kinds."""
    (root / "a").write_bytes(b"A\r\n")
    (root / "b").unlink()
    (root / "old/gone").unlink()
    (root / "old").rmdir()
    (root / "run").chmod(0o755)
    (root / "link").unlink()
    (root / "link").symlink_to("image")
    (root / "image").write_bytes(b"\0" * 100_000)
    (root / "new/deep").mkdir(parents=True)
    (root / "new/deep/n").write_text("n\n")
    # A file in the place of a directory, and a directory in that of a file.
    (root / "dir/in").unlink()
    (root / "dir").rmdir()
    (root / "dir").write_text("dir\n")
    (root / "file").unlink()
    (root / "file").mkdir()
    (root / "file/in").write_text("in\n")


def snapshot(root: Path) -> dict[str, Any]:
    """Return what is in ``root``, with contents and modes."""
    return {
        str(path.relative_to(root)): (
            stat.S_IMODE(path.lstat().st_mode),
            os.readlink(path)
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else None,
        )
        for path in root.rglob("*")
        if ".git" not in path.parts
    }


def test_files_of_all_kinds_get_what_they_had_before_and_after(tmp_path: Path) -> None:
    os.umask(0o022)
    seen = []

    def change(root: Path) -> None:
        seen.append(snapshot(root))
        write_all(root)
        seen.append(snapshot(root))

    scene = Scene(tmp_path / "tree", change)
    os.umask(0o077)
    for _ in range(2):
        assert scene.restore() == {}
        assert snapshot(scene.root) == seen[0]
        assert scene.restore(undone=False) == {}
        assert snapshot(scene.root) == seen[1]
    assert not list(tmp_path.glob("*.kept/*"))


def test_what_few_may_read_comes_back_as_that(tmp_path: Path) -> None:
    def change(root: Path) -> None:
        (root / "image").unlink()
        (root / "file").unlink()
        (root / "file").symlink_to("a")
        (root / "new").write_bytes(b"\0")
        (root / "new").chmod(0o640)
        (root / "run").chmod(0o755)
        (root / "a").write_text("A\n")
        (root / "a").chmod(0o644)

    os.umask(0o077)
    scene = Scene(tmp_path / "tree", change)
    assert scene.restore() == {}
    for name in ("image", "file", "run", "a"):
        assert (scene.root / name).lstat().st_mode & 0o777 == 0o600
    assert scene.restore(undone=False) == {}
    assert (scene.root / "new").stat().st_mode & 0o777 == 0o640
    # A later call has made it executable.
    scene.store.private["image"] = 0o700
    assert scene.restore() == {}
    assert (scene.root / "image").stat().st_mode & 0o777 == 0o600


def test_what_others_have_written_stays(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "tree", write_all)
    (scene.root / "a").write_text("mine\n")
    (scene.root / "b").write_text("mine\n")
    (scene.root / "image").chmod(0o755)
    (scene.root / "new/deep/n").write_text("mine\n")
    (scene.root / "link").unlink()
    (scene.root / "old").symlink_to(tmp_path)
    changed = "has changed since"
    assert scene.restore() == {
        "a": changed,
        "b": changed,
        "image": changed,
        "new/deep/n": changed,
        "link": changed,
        "old/gone": "is behind a symbolic link now",
    }
    assert (scene.root / "a").read_text() == "mine\n"
    assert (scene.root / "b").read_text() == "mine\n"
    assert not (tmp_path / "gone").exists()


def test_file_is_known_to_stay_missing_if_its_directory_is_a_file(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path / "tree", write_all)
    (scene.root / "old").write_text("mine\n")
    files = [_file(change, True) for change in scene.changes]
    names = [file.name for file in files if not file.then_mode]
    plan = Plan(MODES, str(scene.root) + ".kept", True, names, scene.before.tree)
    problems = dict(zip(files, restore(scene.store, files, plan), strict=True))
    # One that goes makes place.
    assert {file.name: why for file, why in problems.items() if why} == {
        "old/gone": "is below a file now"
    }


def test_files_come_back_where_a_link_has_replaced_their_directory(
    tmp_path: Path,
) -> None:
    def change(root: Path) -> None:
        (root / "old/gone").unlink()
        (root / "old").rmdir()
        (root / "other").mkdir()
        (root / "other/gone").write_text("other\n")
        (root / "old").symlink_to("other")

    scene = Scene(tmp_path / "tree", change)
    files = [_file(each, True) for each in scene.changes]
    names = [file.name for file in files if not file.then_mode]
    plan = Plan(MODES, str(scene.root) + ".kept", True, names, scene.before.tree)
    assert not any(restore(scene.store, files, plan))
    assert scene.restore() == {}
    assert (scene.root / "old/gone").read_bytes() == b"old/gone\n"


@pytest.mark.parametrize("lost", ["store", "object", "new", "tree", "damaged"])
def test_nothing_is_changed_if_a_content_is_lost(tmp_path: Path, lost: str) -> None:
    scene = Scene(tmp_path / "tree", write_all)
    after = snapshot(scene.root)
    store = Path(scene.store.directory)
    blob = next(change.before for change in scene.changes if change.path == "image")
    path = store / "objects" / blob[:2] / blob[2:]
    if lost == "store":
        store.rename(tmp_path / "elsewhere")
    elif lost == "object":
        path.unlink()
    elif lost == "new":
        # It could not be taken back that this one is deleted.
        blob = next(change.after for change in scene.changes if change.mode_before == 0)
        (store / "objects" / blob[:2] / blob[2:]).unlink()
    elif lost == "tree":
        (store / "objects" / scene.before.tree[:2] / scene.before.tree[2:]).unlink()
    else:
        other = next(
            change.after for change in scene.changes if change.path == "new/deep/n"
        )
        path.chmod(0o600)
        path.write_bytes((store / "objects" / other[:2] / other[2:]).read_bytes())
    with pytest.raises(GitError):
        scene.restore()
    assert snapshot(scene.root) == after


def change_a(root: Path) -> None:
    (root / "a").write_text("A\n" * 50_000)


def test_a_file_keeps_its_links_owner_and_modes(tmp_path: Path) -> None:
    os.umask(0o022)
    scene = Scene(tmp_path / "tree", change_a)
    (scene.root / "a").chmod(0o640)
    other = tmp_path / "other"
    other.hardlink_to(scene.root / "a")
    assert scene.restore() == {}
    assert other.read_text() == "a\n"
    assert other.stat().st_mode & 0o777 == 0o640
    assert not list(tmp_path.glob("*.kept/*"))
    other.unlink()
    inode = (scene.root / "a").stat().st_ino
    assert scene.restore(undone=False) == {}
    assert (scene.root / "a").stat().st_mode & 0o777 == 0o640
    # Nothing is lost by another file.
    assert (scene.root / "a").stat().st_ino != inode


def test_a_file_keeps_its_attributes(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "tree", change_a)
    try:
        os.setxattr(scene.root / "a", "user.mine", b"1")
    except (OSError, AttributeError):
        pytest.skip("the file system has no attributes")
    assert scene.restore() == {}
    assert (scene.root / "a").read_text() == "a\n"
    assert os.getxattr(scene.root / "a", "user.mine") == b"1"


def killed(function: Callable[[], object]) -> None:
    """Call ``function`` in a process that is killed by it."""
    if (pid := os.fork()) == 0:
        try:
            function()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9


@pytest.mark.parametrize("has_links", [False, True])
def test_a_kill_leaves_old_or_new_bytes_whole(tmp_path: Path, has_links: bool) -> None:
    scene = Scene(tmp_path / "tree", change_a)
    new = (scene.root / "a").read_bytes()
    if has_links:
        (tmp_path / "other").hardlink_to(scene.root / "a")

    def write_half(descriptor: int, content: memoryview) -> int:
        os.truncate(descriptor, 0)
        os._exit(9)

    def die(*_: object) -> None:
        os._exit(9)

    def run() -> None:
        os.write = write_half  # type: ignore[assignment]
        os.replace = die  # type: ignore[assignment]
        scene.restore()

    killed(run)
    kept = list(tmp_path.glob("*.kept/*/*"))
    if has_links:
        assert (scene.root / "a").read_bytes() == b""
        assert [file.read_bytes() for file in kept] == [new]
        assert kept[0].name == "a"
        assert kept[0].stat().st_mode & 0o777 == 0o600
        # As Emacs reads it.
        (facts,) = tmp_path.glob("*.kept/*.eld")
        hashes = [hashlib.sha256(text).hexdigest() for text in (new, b"a\n")]
        assert facts.read_text() == '("{}" {} "{}" "{}")'.format(
            scene.root / "a", facts.name.partition("-")[0], *hashes
        )
    else:
        assert (scene.root / "a").read_bytes() == new
        assert not kept


def test_a_full_disk_leaves_the_old_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path / "tree", change_a)
    new = (scene.root / "a").read_bytes()
    (tmp_path / "other").hardlink_to(scene.root / "a")
    write = os.write
    failed: list[int] = []

    def fill(descriptor: int, content: memoryview) -> int:
        if not failed:
            failed.append(descriptor)
            os.truncate(descriptor, 1)
            raise OSError(28, "No space left on device")
        return write(descriptor, content)

    monkeypatch.setattr(os, "write", fill)
    assert scene.restore() == {"a": "cannot be written (No space left on device)"}
    assert (scene.root / "a").read_bytes() == new
    assert not list(tmp_path.glob("*.kept/*"))
    assert not scene.drafts()


def test_a_write_at_the_last_moment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path / "tree", change_a)
    chmod = os.chmod

    def write(path: str, modes: int) -> None:
        (scene.root / "a").write_text("mine\n")
        chmod(path, modes)

    monkeypatch.setattr(os, "chmod", write)
    assert scene.restore() == {"a": "has changed since"}
    assert (scene.root / "a").read_text() == "mine\n"
    assert not scene.drafts()


def test_a_directory_that_emacs_makes_at_the_same_moment_has_its_files_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = Scene(tmp_path / "tree", write_all)
    mkdir = os.mkdir
    made = []

    def make(path: str) -> None:
        mkdir(path)
        made.append(path)
        mkdir(path)

    monkeypatch.setattr(os, "mkdir", make)
    assert scene.restore() == {}
    assert made
    assert (scene.root / "old/gone").read_text() == "old/gone\n"


def test_a_directory_that_cannot_be_written_has_its_files_written(
    tmp_path: Path,
) -> None:
    scene = Scene(tmp_path / "tree", change_a)
    if os.geteuid() == 0:
        # Root can write everywhere.
        pytest.skip("no directory is read-only")
    scene.root.chmod(0o555)
    try:
        assert scene.restore() == {}
    finally:
        scene.root.chmod(0o755)
    assert (scene.root / "a").read_text() == "a\n"


def test_names_outside_the_root_are_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "tree", change_a)
    plan = Plan(MODES, str(tmp_path), False, [], scene.before.tree)
    for name in ("../a", "/etc/passwd", "x/../../a"):
        with pytest.raises(Exception, match="not below the root"):
            restore(scene.store, [File(name, "", 0, "", 0)], plan)
