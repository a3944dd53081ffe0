# SPDX-License-Identifier: GPL-3.0-or-later
"""Which call of a tool has written what, by snapshots of a real repository."""

import asyncio
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conftest import dead_pid
from gemini_companion_epc import snapshots
from gemini_companion_epc import timeline as timelines
from gemini_companion_epc.clients import client_named
from gemini_companion_epc.config import Config
from gemini_companion_epc.hooks import Called
from gemini_companion_epc.snapshots import (
    DamagedStore,
    Listing,
    SnapshotError,
    Store,
)
from gemini_companion_epc.timeline import Timeline
from gemini_companion_epc.types import Facts
from scene import StubEmacs, tick

pytestmark = pytest.mark.anyio

CLI = {"client": "gemini", "pids": [os.getpid()]}
OTHER = {"client": "qwen", "pids": [os.getppid()]}


class Emacs(StubEmacs):
    """An Emacs that excludes the files in `hidden`, and reads what was written.

    It has no time to answer about those in `unseen`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hidden: set[str] = set()
        self.unseen: set[str] = set()
        self.wrote: list[Facts] = []
        self.open: list[bool] = []
        self.number = 0
        self.is_silent = False
        self.since: list[int] = []
        self.seconds: list[int] = []
        self.committed: list[tuple[str, str]] = []
        self.has_committed = asyncio.Event()

    async def ask(self, kind: str, facts: Facts, parts: Sequence[str | None]) -> Facts:
        if kind == "called":
            self.open.append(facts["open"])
            return {}
        if kind == "saved":
            self.since.append(facts["since"])
            return {} if self.is_silent else {"number": self.number}
        given = json.loads(parts[0] or "null")
        if kind == "shared":
            self.seconds.append(facts["seconds"])
            names = [os.path.basename(path) for path in given]
            seen = [i for i, name in enumerate(names) if name not in self.unseen]
            return {
                "shared": [i for i in seen if names[i] not in self.hidden],
                "hidden": [i for i in seen if names[i] in self.hidden],
            }
        if kind == "committed":
            self.committed.append((facts["base"], facts["commit"]))
            self.has_committed.set()
            return {}
        assert kind == "wrote"
        rows = [
            (path, self.take(before), self.take(after), *others)
            for path, before, after, *others in given
        ]
        self.wrote.append({**facts, "rows": rows})
        return {}

    def take(self, file: Any) -> Any:
        if not isinstance(file, str):
            return file
        content = Path(file).read_bytes()
        os.unlink(file)
        return content

    @property
    def last(self) -> tuple[str, dict[str, tuple[Any, Any]]]:
        """The command that has written last, and the contents before and after."""
        report = self.wrote[-1]
        return report["command"], {row[0]: row[1:3] for row in report["rows"]}


class Scene:
    """A repository, and the calls of CLIs in it."""

    def __init__(self, root: Path, *, commits: bool = True, **config: Any) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "-q")
        self.write(a="1", b="1")
        self.git("add", "-A")
        if commits:
            self.git("commit", "-qm", "x")
        self.emacs = Emacs()
        config = {"call_limit": 60, "after_limit": 60, "quiet_time": 0, **config}
        self.config = replace(Config("", 1), **config)
        self.timeline = Timeline(self.config, self.emacs, lambda: [str(root)])

    def git(self, *arguments: str) -> str:
        identity = "-c", "user.name=a", "-c", "user.email=a@b"
        command = ["git", *identity, "-C", str(self.root), *arguments]
        return subprocess.check_output(command, text=True)

    def write(self, **files: str) -> None:
        # At another time than a snapshot.
        tick(self.root)
        for name, text in files.items():
            (self.root / name).write_text(text)

    async def begin(
        self,
        name: str,
        cli: Facts = CLI,
        is_background: bool = False,
        may_be_refused: bool = False,
    ) -> None:
        call = Called(False, name, name, is_background, may_be_refused)
        await self.called(call, cli)

    async def end(
        self, name: str, cli: Facts = CLI, is_background: bool = False
    ) -> None:
        await self.called(Called(True, name, name, is_background), cli)

    async def called(self, call: Called, cli: Facts) -> None:
        await self.timeline.called(cli, str(self.root), call)

    async def prompt(self, cli: Facts = CLI) -> None:
        self.timeline.turn(cli, str(self.root), begins=True)
        await self.idle()

    async def turn_end(self, cli: Facts = CLI) -> None:
        self.timeline.turn(cli, str(self.root), begins=False)
        await self.idle()

    async def ready(self, cli: Facts = CLI) -> None:
        self.timeline.ready(cli["pids"])
        await self.idle()

    async def idle(self) -> None:
        """Wait for all snapshots, and for those after a turn."""
        while True:
            looks = [tree.looks for tree in self.timeline._trees.values()]
            going = {task for task in looks if task and not task.done()}
            if not (tasks := going | self.timeline._tasks):
                return
            await asyncio.wait(tasks)


def stores(scene: Scene) -> list[Path]:
    return [*scene.root.parent.glob("gemini-companion-*")]


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scene = Scene(tmp_path / "project")
    yield scene
    scene.timeline.end()
    assert not stores(scene)


async def test_new_changed_and_deleted_files_are_of_the_call(scene: Scene) -> None:
    await scene.begin("make")
    scene.write(a="2", new="3")
    (scene.root / "b").unlink()
    await scene.end("make")
    written = {"a": (b"1", b"2"), "new": (None, b"3"), "b": (b"1", None)}
    assert scene.emacs.last == ("make", written)
    assert scene.emacs.wrote[-1]["client"] == "gemini"
    assert scene.emacs.open == [True, False]


async def test_emacs_notes_saves_of_a_call_that_begins_behind_a_turn(
    scene: Scene,
) -> None:
    scene.timeline.turn(CLI, str(scene.root), begins=True)
    # The snapshot of the call waits for that of the turn.
    await scene.begin("make")
    assert scene.emacs.open == [True]
    await scene.end("make")
    assert scene.emacs.open == [True, False]


async def test_what_is_written_while_no_call_runs_is_of_others(scene: Scene) -> None:
    await scene.begin("ls")
    await scene.end("ls")
    scene.write(a="mine")
    await scene.begin("make")
    scene.write(b="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"b": (b"1", b"2")})
    assert len(scene.emacs.wrote) == 1


async def test_interval_is_of_the_calls_that_run_in_it(scene: Scene) -> None:
    await scene.begin("one")
    await scene.begin("two")
    scene.write(a="2")
    await scene.end("one")
    assert scene.emacs.last == ("one & two", {"a": (b"1", b"2")})
    scene.write(b="2")
    await scene.end("two")
    assert scene.emacs.last == ("two", {"b": (b"1", b"2")})


async def test_other_cli_whose_call_runs_is_named(scene: Scene) -> None:
    await scene.begin("one")
    await scene.begin("two", OTHER)
    scene.write(a="2")
    await scene.end("one")
    assert scene.emacs.last == ("one", {"a": (b"1", b"2")})
    assert scene.emacs.wrote[-1]["others"] == ["qwen"]


async def test_call_in_the_background_runs_until_nothing_is_written(
    scene: Scene,
) -> None:
    await scene.begin("serve", is_background=True)
    await scene.end("serve", is_background=True)
    scene.write(a="2")
    await scene.turn_end()
    assert scene.emacs.last == ("serve", {"a": (b"1", b"2")})
    scene.write(a="mine")
    await scene.prompt()
    assert len(scene.emacs.wrote) == 1


async def test_call_in_the_background_goes_on_behind_its_turn(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = iter("23")
    snapshot = Timeline._taken

    async def writes(self: Timeline, tree: Any, *others: Any) -> Any:
        if scene.timeline._trees[str(scene.root)].turns == []:
            scene.write(**{f"a{text}": text for text in [next(texts, "")] if text})
        return await snapshot(self, tree, *others)

    await scene.prompt()
    await scene.begin("serve", is_background=True)
    await scene.end("serve", is_background=True)
    monkeypatch.setattr(Timeline, "_taken", writes)
    await scene.turn_end()
    assert [report["command"] for report in scene.emacs.wrote] == ["serve"] * 2
    # Then it was quiet.
    scene.write(a="mine")
    await scene.prompt()
    assert len(scene.emacs.wrote) == 2


async def test_call_in_the_background_ends_behind_its_turn_if_nothing_is_seen(
    scene: Scene,
) -> None:
    await scene.prompt()
    await scene.begin("serve", is_background=True)
    await scene.end("serve", is_background=True)
    scene.emacs.is_silent = True
    await scene.turn_end()
    scene.emacs.is_silent = False
    # Such as one of an agent, without a prompt.
    await scene.begin("ls")
    await scene.end("ls")
    scene.write(a="mine")
    await scene.begin("make")
    await scene.end("make")
    assert not any(report["rows"] for report in scene.emacs.wrote)


async def test_call_without_an_end_ends_with_the_turn(scene: Scene) -> None:
    await scene.begin("killed")
    await scene.turn_end()
    scene.write(a="mine")
    await scene.begin("make")
    await scene.end("make")
    assert not scene.emacs.wrote


async def test_call_that_was_refused_owns_nothing(scene: Scene) -> None:
    await scene.prompt()
    await scene.begin("rm -r src", may_be_refused=True)
    scene.write(a="mine")
    # Another call is no proof that it runs.
    await scene.begin("ls", OTHER)
    await scene.end("ls", OTHER)
    await scene.ready()
    scene.write(b="mine")
    await scene.prompt()
    assert not scene.emacs.wrote


async def test_call_that_was_announced_owns_what_was_written_before_its_end(
    scene: Scene,
) -> None:
    await scene.begin("make", may_be_refused=True)
    scene.write(a="2")
    await scene.begin("ls", OTHER)
    assert not scene.emacs.wrote
    await scene.end("make")
    await scene.end("ls", OTHER)
    assert scene.emacs.last == ("make", {"a": (b"1", b"2")})


async def test_call_that_ends_though_it_seemed_to_be_refused_is_said(
    scene: Scene,
) -> None:
    await scene.begin("make", may_be_refused=True)
    scene.write(a="2")
    await scene.ready()
    await scene.end("make")
    assert scene.emacs.last == ("make", {})
    assert scene.emacs.wrote[-1]["problem"] == "it seemed to be refused"


async def test_call_that_is_made_again_after_it_was_refused_is_no_problem(
    scene: Scene,
) -> None:
    await scene.begin("make", may_be_refused=True)
    await scene.ready()
    await scene.begin("make", may_be_refused=True)
    scene.write(a="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"1", b"2")})
    assert not any(each.get("problem") for each in scene.emacs.wrote)


async def test_writes_of_emacs_are_numbered_at_both_snapshots(scene: Scene) -> None:
    scene.emacs.number = 3
    await scene.begin("make")
    scene.emacs.number = 7
    scene.write(a="2")
    await scene.end("make")
    assert scene.emacs.wrote[-1]["saved"] == [3, 3, 7, 7]
    # Emacs keeps those of which a report is to come.
    assert scene.emacs.since == [0, 0, 3, 3]
    await scene.prompt()
    assert scene.emacs.since[-1] == 7


async def test_writes_of_emacs_are_kept_until_they_are_reported(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed: list[tuple[int, int]] = []
    timeline, differs, report = scene.timeline, Store.difference, Timeline._report

    def begun(*others: Any) -> Any:
        # Another work tree has a snapshot at the same time.
        asks = asyncio.run_coroutine_threadsafe(timeline._saved(), loop)
        asks.result()
        needed.append((scene.emacs.since[-1], scene.emacs.number))
        return differs(*others)

    async def reports(self: Timeline, tree: Any, step: Any, interval: Any) -> None:
        await timeline._saved()
        needed.append((scene.emacs.since[-1], interval.before.saved[0]))
        await report(self, tree, step, interval)

    loop = asyncio.get_running_loop()
    scene.emacs.number = 3
    await scene.begin("make", may_be_refused=True)
    monkeypatch.setattr(Store, "difference", begun)
    monkeypatch.setattr(Timeline, "_report", reports)
    scene.emacs.number = 7
    scene.write(a="2")
    await scene.begin("other", may_be_refused=True)
    scene.emacs.number = 8
    await scene.end("make")
    assert needed == [(3, 7), (3, 8), (3, 3), (7, 7)]
    await scene.prompt()
    assert scene.emacs.since[-1] == 8


async def test_nothing_is_recorded_without_an_answer_of_emacs(scene: Scene) -> None:
    await scene.begin("make")
    scene.write(a="2")
    scene.emacs.is_silent = True
    await scene.end("make")
    assert scene.emacs.last == ("make", {})
    assert scene.emacs.wrote[-1]["problem"] == "Emacs did not answer"
    scene.emacs.is_silent = False
    await scene.begin("make")
    scene.write(a="3")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"2", b"3")})


async def test_ignored_files_are_not_new_when_the_rule_goes(scene: Scene) -> None:
    (scene.root / "out").mkdir()
    scene.write(**{".gitignore": "out/\n*.o\n", "out/x": "mine", "b.o": "mine"})
    await scene.begin("make")
    scene.write(**{".gitignore": "", "c.o": "2"})
    await scene.end("make")
    changes = {".gitignore": (b"out/\n*.o\n", b""), "c.o": (None, b"2")}
    assert scene.emacs.last == ("make", changes)
    # Those that are written meanwhile are named.
    (scene.root / "out2").mkdir()
    scene.write(**{".gitignore": "*2/\n", "out2/x": "mine", "out2/y": "mine"})
    await scene.begin("make")
    scene.write(**{".gitignore": "", "out2/x": "2"})
    await scene.end("make")
    report = scene.emacs.wrote[-1]
    assert list(scene.emacs.last[1]) == [".gitignore"]
    assert (report["unknown"], report["unknown_count"]) == (["out2/x"], 1)


async def test_ignored_files_are_listed_while_a_call_may_write(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[bool] = []
    listing = Store.listing

    def listens(store: Store, goes_on: bool) -> Listing:
        listed.append(goes_on)
        return listing(store, goes_on)

    monkeypatch.setattr(Store, "listing", listens)
    scene.write(**{".gitignore": "out*\n", "out1": "1", "out2": "2", "out3": "3"})
    await scene.prompt()
    await scene.begin("first")
    await scene.begin("second")
    (scene.root / "out1").unlink()
    await scene.end("first")
    assert scene.emacs.wrote[-1]["gone"] == ["out1"]
    (scene.root / "out2").unlink()
    await scene.end("second")
    assert scene.emacs.wrote[-1]["gone"] == ["out2"]
    assert listed == [False, True, True, True, False]
    # What the user has made meanwhile is not new when no rule hides it.
    scene.write(out4="4")
    await scene.begin("third")
    scene.write(**{".gitignore": "", "out4": "5"})
    await scene.end("third")
    assert scene.emacs.last == ("third", {".gitignore": (b"out*\n", b"")})
    assert scene.emacs.wrote[-1]["unknown"] == ["out4"]
    # What is gone was said, so the turn ends quietly.
    (scene.root / "out4").unlink()
    await scene.turn_end()
    assert scene.timeline._trees[str(scene.root)].is_settled


async def test_files_that_were_moved_here_are_not_new(scene: Scene) -> None:
    scene.write(**{".gitignore": "*.o\n", "b.o": "mine", "c.o": "mine"})
    (scene.root.parent / "outside").write_text("mine")
    await scene.begin("mv")
    for old, new in ("b.o", "b.txt"), ("../outside", "d.txt"), ("a", "e.txt"):
        (scene.root / old).rename(scene.root / new)
    (scene.root / "c.o").unlink()
    await scene.end("mv")
    report = scene.emacs.wrote[-1]
    # The content of the last one is known.
    assert scene.emacs.last == ("mv", {"a": (b"1", None), "e.txt": (None, b"1")})
    assert report["moved"] == ["b.txt", "d.txt"]
    assert report["gone"] == ["b.o", "c.o"]


async def test_call_of_a_cli_that_has_exited_has_ended(scene: Scene) -> None:
    await scene.begin("killed", {"client": "qwen", "pids": [dead_pid()]})
    scene.write(a="mine")
    await scene.begin("make")
    await scene.end("make")
    assert not scene.emacs.wrote


async def test_excluded_files_are_neither_stored_nor_reported(scene: Scene) -> None:
    scene.emacs.hidden = {".env"}
    await scene.begin("make")
    (scene.root / ".env").write_text("SECRET")
    scene.write(a="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"1", b"2")})


async def test_what_git_moves_is_a_number(scene: Scene) -> None:
    scene.write(a="2")
    scene.git("commit", "-qam", "y")
    await scene.begin("git reset")
    scene.git("reset", "-q", "--hard", "HEAD~1")
    await scene.end("git reset")
    assert scene.emacs.last == ("git reset", {})
    assert scene.emacs.wrote[-1]["by_git"] == 1


async def test_of_many_files_are_only_the_names_and_what_reads_them(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "MOST_FILES", 1)
    await scene.begin("black .")
    scene.write(a="2", b="2")
    await scene.end("black .")
    nothing = None, None
    assert scene.emacs.last == ("black .", {"a": nothing, "b": nothing})
    report = scene.emacs.wrote[-1]
    assert report["count"] == 2
    environ = dict(line.split("=", 1) for line in report["environ"])

    def git(*arguments: str) -> bytes:
        process = subprocess.run(
            ["git", *arguments], check=True, capture_output=True, env=environ
        )
        return process.stdout

    *_, before, after = report["rows"][0]
    assert git("cat-file", "blob", before) == b"1"
    assert git("cat-file", "blob", after) == b"2"
    assert b"-1" in git("diff-tree", "-p", *report["snapshots"])
    # There are limits even for these.
    monkeypatch.setattr(timelines, "MOST_NAMES", 1)
    await scene.begin("black .")
    scene.write(a="3", b="3")
    await scene.end("black .")
    assert scene.emacs.last == ("black .", {})
    assert scene.emacs.wrote[-1]["count"] == 2


async def test_of_a_large_file_is_only_the_name(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "LARGEST_TEXT", 1)
    await scene.begin("make")
    scene.write(a="22", b="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (None, None), "b": (b"1", b"2")})
    # One that cannot be stored is named even if nothing else was written.
    monkeypatch.setattr(snapshots, "MOST_LARGE_BYTES", 1)
    await scene.begin("make")
    scene.write(a="33")
    await scene.end("make")
    assert scene.emacs.last == ("make", {})
    assert scene.emacs.wrote[-1]["left_out"] == ["a"]


async def test_permissions_of_deleted_files_are_known(scene: Scene) -> None:
    a, b, new = (scene.root / name for name in ("a", "b", "new"))
    # Nothing else of the file has changed.
    a.chmod(0o600)
    b.chmod(0o644)
    await scene.begin("make")
    scene.write(new="1")
    new.chmod(0o640)
    await scene.end("make")
    assert scene.emacs.wrote[-1]["private"] == []
    await scene.begin("rm")
    a.unlink()
    new.unlink()
    b.unlink()
    await scene.end("rm")
    assert scene.emacs.wrote[-1]["private"] == [["a", 0o600], ["new", 0o640]]


async def test_file_whose_name_is_not_in_utf_8_is_named(scene: Scene) -> None:
    odd = scene.root / os.fsdecode(b"caf\xe9")
    for text in ("1", "22"):
        await scene.begin("make")
        odd.write_text(text)
        await scene.end("make")
        report = scene.emacs.wrote[-1]
        assert (report["odd"], report["left_out"], report["count"]) == (
            ["caf\ufffd"],
            [],
            0,
        )
    count = len(scene.emacs.wrote)
    await scene.begin("true")
    await scene.end("true")
    assert len(scene.emacs.wrote) == count
    await scene.begin("rm")
    odd.unlink()
    await scene.end("rm")
    assert scene.emacs.wrote[-1]["gone"] == ["caf\ufffd"]


async def test_directories_that_the_call_has_made_are_named(scene: Scene) -> None:
    (scene.root / "old").mkdir()
    scene.write(**{"old/a": "1"})
    await scene.begin("make")
    for name in ("new/deep", "old/new"):
        (scene.root / name).mkdir(parents=True)
        scene.write(**{f"{name}/b": "2", f"{name}/c": "3"})
    scene.write(**{"old/a": "2"})
    await scene.end("make")
    assert scene.emacs.wrote[-1]["made"] == ["new", "new/deep", "old/new"]


async def test_cli_does_not_wait_for_a_slow_snapshot(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.timeline._config = replace(scene.config, call_limit=0, after_limit=0)
    released = asyncio.Event()
    loop = asyncio.get_running_loop()
    listing = Store.listing

    def slow(store: Store, goes_on: bool) -> Listing:
        asyncio.run_coroutine_threadsafe(released.wait(), loop).result()
        return listing(store, goes_on)

    monkeypatch.setattr(Store, "listing", slow)
    await scene.begin("make")
    scene.write(a="2")
    await scene.end("make")
    assert not scene.emacs.wrote
    released.set()
    await scene.idle()
    # The first snapshot was late, so nobody knows what was there before.
    assert scene.emacs.wrote[-1]["problem"] == "the snapshot took too long"


async def test_emacs_has_more_time_for_files_once_a_call_has_ended(
    scene: Scene,
) -> None:
    scene.write(a="2")
    await scene.prompt()
    await scene.begin("make")
    scene.write(b="2")
    # The CLI waits at most for 1.5 seconds, also for the snapshot of the prompt.
    assert set(scene.emacs.seconds) == {1}
    await scene.end("make")
    # Then for 4.
    assert scene.emacs.seconds[-1] == 3


async def test_files_that_a_busy_emacs_has_not_checked_are_counted(
    scene: Scene,
) -> None:
    await scene.begin("make")
    scene.emacs.unseen = {"b"}
    scene.write(a="2", b="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"1", b"2")})
    assert scene.emacs.wrote[-1]["unseen"] == 1
    # They are not taken for what the next command writes.
    scene.emacs.unseen = set()
    await scene.begin("make")
    scene.write(a="3")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"2", b"3")})
    assert scene.emacs.wrote[-1]["unseen"] == 0


async def test_snapshots_are_deleted_when_other_files_are_excluded(
    scene: Scene,
) -> None:
    await scene.begin("make")
    await scene.end("make")
    assert stores(scene)
    scene.timeline.forget()
    assert not stores(scene)
    await scene.begin("make")
    scene.write(a="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"1", b"2")})


async def test_files_that_are_restored_while_a_call_runs_are_not_of_the_call(
    scene: Scene,
) -> None:
    await scene.begin("make")
    scene.write(a="2")
    await scene.end("make")
    *_, before, after = scene.emacs.wrote[-1]["rows"][0]
    await scene.begin("ls")
    facts = {"root": str(scene.root), "modes": 0o755, "checks": False}
    file = ["a", after, 0o100644, before, 0o100644]
    facts.update(gone=[], backups="", tree=scene.emacs.wrote[-1]["snapshots"][0])
    assert await scene.timeline.restore(facts, json.dumps([file])) == []
    assert (scene.root / "a").read_text() == "1"
    await scene.end("ls")
    assert scene.emacs.last == ("ls", {})
    problem = "you have undone or restored files meanwhile"
    assert scene.emacs.wrote[-1]["problem"] == problem


async def test_missing_git_is_reported(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(scene.root))
    await scene.begin("make")
    scene.write(a="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {})
    assert scene.emacs.wrote[-1]["problem"] == "git is not installed"


@pytest.mark.parametrize(
    ("client", "begin", "end", "name"),
    [
        (
            "gemini",
            {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command"},
            {"hook_event_name": "AfterTool", "tool_name": "run_shell_command"},
            "make",
        ),
        (
            "qwen",
            {"hook_event_name": "PreToolUse", "tool_name": "run_shell_command"},
            {
                "hook_event_name": "PostToolUseFailure",
                "tool_name": "run_shell_command",
            },
            "make",
        ),
        (
            "copilot",
            {"toolName": "bash", "toolArgs": {"command": "make"}},
            {
                "toolName": "bash",
                "toolArgs": {"command": "make"},
                "toolResult": {"resultType": "failure"},
            },
            "make",
        ),
        (
            "pi",
            {"event": "called", "id": "1", "name": "make"},
            {"event": "returned", "id": "1", "name": "make"},
            "make",
        ),
    ],
)
def test_events_of_each_cli(
    client: str, begin: dict[str, Any], end: dict[str, Any], name: str
) -> None:
    hooks = client_named(client).hooks
    assert hooks is not None
    arguments = {"tool_input": {"command": "make"}, "session_id": "s"}
    first, second = (hooks.called({**arguments, **event}) for event in (begin, end))
    assert first is not None
    assert second is not None
    assert (first.has_ended, second.has_ended) == (False, True)
    assert first.key == second.key
    assert first.name == second.name == name


async def test_a_commit_is_reported_if_no_cli_was_in_a_turn(scene: Scene) -> None:
    def head() -> str:
        return scene.git("rev-parse", "HEAD").strip()

    def commit(text: str, *options: str) -> tuple[str, str]:
        base = head()
        scene.write(a=text)
        scene.git("commit", "-qam", text, *options)
        return base, head()

    # What was before the first snapshot is not known.
    commit("2")
    await scene.prompt()
    await scene.turn_end()
    assert scene.emacs.committed == []
    base, _ = commit("3")
    _, last = commit("4")
    await scene.prompt()
    assert scene.emacs.committed == [(base, last)]
    # By the CLI, with and without an end of its tool, by a child, and beside another.
    await scene.begin("commit")
    commit("5")
    await scene.end("commit")
    commit("6")
    await scene.begin("background", is_background=True)
    await scene.end("background", is_background=True)
    commit("7")
    await scene.prompt(OTHER)
    await scene.turn_end()
    commit("8")
    await scene.prompt()
    await scene.turn_end()
    commit("9")
    await scene.turn_end(OTHER)
    assert scene.emacs.committed == [(base, last)]
    # A commit of the user counts even if HEAD has moved since.
    commit("10", "--amend")
    plain = commit("11")
    scene.git("checkout", "-qb", "branch")
    scene.git("checkout", "-q", "-")
    await scene.prompt()
    assert scene.emacs.committed == [(base, last), plain]
    await scene.turn_end()
    between = commit("12")
    await scene.begin("later")
    assert scene.emacs.committed == [(base, last), plain, between]


async def test_the_first_commit_of_a_project_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    scene = Scene(tmp_path / "new", commits=False)
    await scene.prompt()
    await scene.turn_end()
    scene.git("commit", "-qm", "first")
    await scene.prompt()
    ((base, commit),) = scene.emacs.committed
    assert scene.git("diff", "--name-only", base, commit).split() == ["a", "b"]
    scene.timeline.end()


async def test_lock_that_stays_in_the_store_is_no_problem(scene: Scene) -> None:
    await scene.begin("make")
    await scene.end("make")
    (store_of(scene) / "index.lock").touch()
    await scene.begin("make")
    scene.write(a="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"1", b"2")})


def store_of(scene: Scene) -> Path:
    store = scene.timeline._trees[str(scene.root)].store
    assert store is not None
    return Path(store.directory)


@pytest.mark.parametrize("name", ["index", "config", "info", "objects", ""])
async def test_store_that_a_cleaner_has_damaged_heals(scene: Scene, name: str) -> None:
    await scene.prompt()
    await scene.begin("make")
    scene.write(a="2")
    await scene.end("make")
    await scene.begin("make")
    path = store_of(scene) / name if name else store_of(scene).parent
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.write_bytes(b"garbage")
    scene.write(a="3")
    await scene.end("make")
    # What this call has written is not known, but its name is.
    report = scene.emacs.wrote[-1]
    assert (report["command"], report["rows"]) == ("make", [])
    assert report["problem"]
    assert report["meanwhile"] == ["a"]
    await scene.begin("make")
    # It is over.
    assert scene.emacs.wrote[-1]["problem"] == ""
    scene.write(a="4")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"3", b"4")})


async def test_store_that_cannot_be_mended_begins_anew_with_the_next_prompt(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.begin("make")
    await scene.end("make")

    def fails(self: Store, goes_on: bool) -> Listing:
        raise DamagedStore("git failed: /store/x")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "listing", fails)
        await scene.begin("make")
        scene.write(a="2")
        await scene.end("make")
        report = scene.emacs.wrote[-1]
        assert report["problem"] == "git failed: /store/x"
        assert report["remedy"] == "run M-x gemini-companion-restart"
    directory = store_of(scene)
    await scene.prompt()
    assert store_of(scene) != directory
    assert not directory.exists()
    await scene.begin("make")
    scene.write(a="3")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"2", b"3")})


async def test_directory_that_another_user_has_made_anew_is_not_used(
    scene: Scene,
) -> None:
    await scene.begin("make")
    await scene.end("make")
    private = store_of(scene).parent
    shutil.rmtree(private)
    private.mkdir()
    await scene.begin("make")
    assert store_of(scene).parent != private
    scene.write(a="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"1", b"2")})
    shutil.rmtree(private)


async def test_call_that_began_before_the_server_is_said(scene: Scene) -> None:
    scene.write(a="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {})
    problem = "the server has no snapshot before it"
    assert scene.emacs.wrote[-1]["problem"] == problem
    await scene.begin("make")
    scene.write(a="3")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"2", b"3")})


async def test_call_is_said_if_other_files_are_excluded_meanwhile(
    scene: Scene,
) -> None:
    await scene.begin("make")
    scene.timeline.forget()
    scene.write(a="2")
    await scene.end("make")
    problem = "the server has no snapshot before it"
    assert scene.emacs.wrote[-1]["problem"] == problem


async def test_directory_in_the_place_of_snapshots_is_not_touched(scene: Scene) -> None:
    await scene.begin("make")
    await scene.end("make")
    private = store_of(scene).parent
    shutil.rmtree(private)
    # Somebody else makes the name one of a directory of the user.
    mine = scene.root.parent / "mine"
    for number in "123":
        (mine / number / "objects").mkdir(parents=True)
    private.symlink_to(mine)
    names = sorted(mine.rglob("*"))
    await scene.begin("make")
    scene.write(a="2")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"1", b"2")})
    scene.timeline.end()
    assert sorted(mine.rglob("*")) == names
    private.unlink()


async def test_two_calls_with_the_same_key_end_one_by_one(scene: Scene) -> None:
    await scene.begin("make")
    await scene.begin("make")
    scene.write(a="2")
    await scene.end("make")
    scene.write(a="3")
    await scene.end("make")
    assert scene.emacs.last == ("make", {"a": (b"2", b"3")})


async def test_repository_that_git_refuses_is_said_with_the_remedy(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(directory: str) -> str:
        raise SnapshotError("git refuses the repository", "run `git config`")

    monkeypatch.setattr(timelines, "top_level", refuses)
    await scene.prompt()
    await scene.begin("make")
    scene.write(a="2")
    await scene.end("make")
    report = scene.emacs.wrote[-1]
    expected = "git refuses the repository", "run `git config`"
    assert (report["problem"], report["remedy"]) == expected
    monkeypatch.undo()
    await scene.prompt()
    assert scene.emacs.wrote[-1]["problem"] == ""


async def test_what_a_pull_brings_is_a_number(scene: Scene) -> None:
    other = scene.root.parent / "other"
    scene.git("clone", "-q", ".", str(other))
    for root, name in (other, "theirs"), (scene.root, "mine"):
        (root / name).write_text("1")
        scene.git("-C", str(root), "add", "-A")
        scene.git("-C", str(root), "commit", "-qm", "x")
    await scene.begin("git pull")
    scene.git("pull", "-q", "--no-rebase", "--no-edit", str(other))
    await scene.end("git pull")
    assert scene.emacs.last == ("git pull", {})
    assert scene.emacs.wrote[-1]["by_git"] == 1
    # What is committed and brought by two calls of a turn is theirs.
    await scene.begin("commit")
    scene.git("checkout", "-qb", "feature")
    scene.write(own="1")
    scene.git("add", "-A")
    scene.git("commit", "-qm", "own")
    scene.git("checkout", "-q", "-")
    await scene.end("commit")
    await scene.begin("merge")
    scene.git("merge", "-q", "feature")
    await scene.end("merge")
    assert scene.emacs.last == ("merge", {"own": (None, b"1")})


def nested(scene: Scene, *names: str) -> None:
    for name in names:
        (scene.root / name).mkdir(exist_ok=True)
        (scene.root / name / "x").write_text("1")
        scene.git("-C", name, "init", "-q")
        scene.git("-C", name, "add", "-A")
        scene.git("-C", name, "commit", "-qm", "x")


async def test_repositories_inside_are_trees_of_their_own(scene: Scene) -> None:
    nested(scene, "app", "lib")
    await scene.prompt()
    await scene.begin("make")
    scene.write(**{"app/x": "2", "a": "2", "lib/new": "2"})
    await scene.end("make")
    await scene.idle()
    found = {
        os.path.basename(report["root"]): {row[0]: row[1:3] for row in report["rows"]}
        for report in scene.emacs.wrote
    }
    assert found == {
        "project": {"a": (b"1", b"2")},
        "app": {"x": (b"1", b"2")},
        "lib": {"new": (None, b"2")},
    }
    assert scene.emacs.open == [False, True, False]
    # One that is deleted is gone, and the others go on.
    count = len(scene.emacs.wrote)
    await scene.begin("rm")
    shutil.rmtree(scene.root / "app")
    scene.write(**{"lib/new": "3"})
    await scene.end("rm")
    await scene.idle()
    reports = scene.emacs.wrote[count:]
    assert next(report["gone"] for report in reports if "gone" in report) == ["app/"]
    assert reports[-1]["rows"][0][1:3] == (b"2", b"3")
    assert scene.emacs.open[-1] is False


async def test_clones_in_a_plain_directory_are_trees(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timelines, "MOST_NESTED", 1)
    shutil.rmtree(scene.root / ".git")
    nested(scene, "one", "two")
    os.utime(scene.root / "one/.git/index", (1e9, 1e9))
    await scene.prompt()
    for number in "23":
        await scene.begin("make")
        scene.write(**{"one/x": number, "two/x": number})
        await scene.end("make")
        await scene.idle()
    found = [
        (os.path.basename(each["root"]), each.get("problem"))
        for each in scene.emacs.wrote
    ]
    problem = "1 of the repositories in it are not looked at, such as one"
    # The last one counts in which git has written.
    assert found == [("project", problem), ("two", ""), ("two", "")]


async def test_directory_that_a_call_makes_a_repository_is_named(scene: Scene) -> None:
    await scene.begin("git init app")
    nested(scene, "app")
    await scene.end("git init app")
    await scene.idle()
    assert scene.emacs.wrote[0]["repositories"] == ["app/"]
    await scene.begin("make")
    scene.write(**{"app/x": "2"})
    await scene.end("make")
    await scene.idle()
    assert scene.emacs.last == ("make", {"x": (b"1", b"2")})


async def test_nested_directory_that_is_no_repository_is_left_out(scene: Scene) -> None:
    (scene.root / "broken" / ".git").mkdir(parents=True)
    scene.write(**{"broken/x": "1"})
    await scene.prompt()
    await scene.begin("make")
    scene.write(**{"broken/x": "2", "a": "2"})
    await scene.end("make")
    await scene.idle()
    assert [report["root"] for report in scene.emacs.wrote] == [str(scene.root)]
    assert scene.emacs.last == ("make", {"a": (b"1", b"2")})


async def test_lines_that_a_call_takes_from_the_user_are_reported(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.write(a="1\nmine\n", b="mine\n")
    await scene.begin("git checkout .")
    # At another time than the snapshot.
    await asyncio.sleep(0.01)
    scene.git("checkout", "-q", ".")
    await scene.end("git checkout .")
    report = scene.emacs.wrote[-1]
    names = [report["rows"][index][0] for index, *_ in report["taken"]]
    assert names == ["a", "b"]
    assert all(is_tracked for _, is_tracked, _ in report["taken"])
    assert [scene.emacs.take(file) for *_, file in report["taken"]] == [b"mine"] * 2
    monkeypatch.setattr(timelines, "MOST_FILES", 1)
    scene.write(a="1\nmine\n", b="mine\n")
    await scene.begin("git checkout .")
    # At another time than the snapshot.
    await asyncio.sleep(0.01)
    scene.git("checkout", "-q", ".")
    await scene.end("git checkout .")
    assert scene.emacs.wrote[-1]["taken_count"] == 2


async def test_a_commit_is_reported_soon_after_a_turn_and_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "root", commit_check=0.01)

    async def commit(text: str) -> None:
        scene.write(a=text)
        scene.git("commit", "-qam", text)

    async def reports(number: int) -> None:
        while len(scene.emacs.committed) < number:
            await scene.emacs.has_committed.wait()
            scene.emacs.has_committed.clear()

    await scene.prompt()
    await scene.turn_end()
    await commit("2")
    await asyncio.wait_for(reports(1), 60)
    await commit("3")
    await asyncio.wait_for(reports(2), 60)
    await scene.prompt()
    # In a turn, it may be the CLI's.
    await commit("4")
    await scene.turn_end()
    await commit("5")
    await asyncio.wait_for(reports(3), 60)
    await scene.prompt()
    assert len(scene.emacs.committed) == 3
    assert scene.emacs.committed[0][1] == scene.emacs.committed[1][0]
    scene.timeline.end()
