# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tools of linked CLIs write while they run, by snapshots around each call.

A work tree has one sequence of snapshots.  What differs between two of them was written
while those calls ran that were open in between.  If none was, others have written it.
Snapshots are taken in threads, and a CLI waits for them for a moment only.
"""

import asyncio
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeVar

from . import texts
from .config import Config
from .emacs import Emacs
from .hooks import Called
from .processes import has_exited
from .snapshots import Change, SnapshotError, Store, git_problem, top_level
from .types import EmacsError, Facts, clean

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

# A directory that does not answer must not take the threads of others.
_threads = ThreadPoolExecutor(8, "snapshots")

MOST_FILES = 20
"""Maximum number of files of one interval whose texts Emacs gets."""
MOST_NAMES = 5_000
"""Maximum number of files of one interval whose names Emacs gets."""
LONGEST_NAME = 500
"""Maximum number of characters of a command, as Emacs shows it."""
_MOST_LATE = 2
_SLOW = "the snapshot took too long"


@dataclass(eq=False)
class _Call:
    """A call of a tool that runs."""

    called: Called
    cli: Facts
    """The `client` and the `pids` of the CLI, as Emacs gets them."""

    def is_of(self, cli: Facts) -> bool:
        """Return whether the call is of ``cli``, if its process is known."""
        return bool(
            self.cli["client"] == cli["client"]
            and self.cli["pids"][-1:] == cli["pids"][-1:]
        )

    def has_exited(self) -> bool:
        """Return whether its CLI has exited."""
        pids: Sequence[int] = self.cli["pids"]
        return any(map(has_exited, pids[-1:]))


@dataclass(eq=False)
class _Tree:
    """The snapshots of a work tree."""

    root: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    store: Store | None = None
    last: str = ""
    """The last snapshot, "" if what was written since cannot be known."""
    head: tuple[str, int] = "", -1
    stored: set[str] = field(default_factory=set)
    """The names of the files that were copied to the store."""
    unseen: set[str] = field(default_factory=set)
    """The names about which Emacs had no time to answer at the last snapshot."""
    running: list[_Call] = field(default_factory=list)
    """The calls that have begun, and those in the background until a turn ends."""
    late: int = 0
    """The number of snapshots in a row for which a CLI has not waited."""
    git_problem: str = ""
    """Why git cannot be used, "" if it can."""
    problem: str = ""
    """Why the last snapshot could not be taken."""


class Timeline:
    """The snapshots of all work trees."""

    def __init__(
        self, config: Config, emacs: Emacs, roots: Callable[[], Sequence[str]]
    ) -> None:
        self._config = config
        self._emacs = emacs
        self._roots = roots
        self._trees: dict[str, _Tree] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._directory = ""
        self._number = 0
        self._beginning: set[_Step] = set()
        """The calls that begin, before their snapshots."""
        self._found: dict[str, asyncio.Future[tuple[str, str]]] = {}
        """The root of the work tree of each directory, and why git cannot be used."""

    def end(self) -> None:
        """Delete all snapshots."""
        for task in self._tasks:
            task.cancel()
        self.forget()

    def forget(self) -> None:
        """Delete all snapshots, as other files are excluded now."""
        self._trees.clear()
        if self._directory:
            shutil.rmtree(self._directory, ignore_errors=True)
        self._directory = ""

    # Events

    async def called(self, cli: Facts, directory: str, call: Called) -> None:
        """Take a snapshot as a ``call`` of a tool of ``cli`` begins or has ended."""
        step = _Step(cli, call)
        if step.begins:
            self._beginning.add(step)
            try:
                # From now on, Emacs notes what the user saves.
                await self._tell({**cli, "open": True})
            except asyncio.CancelledError:
                self._beginning.discard(step)
                raise
        task = self._start(self._advance(directory, step))
        limit = self._config.after_limit if call.has_ended else self._config.call_limit
        await asyncio.wait({task}, timeout=limit)
        step.is_late = not task.done()

    def turn(self, cli: Facts, directory: str) -> None:
        """Take a snapshot as a turn of ``cli`` begins or ends; nobody waits for it."""
        self._start(self._advance(directory, _Step(cli, None)))

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("snapshot failed", exc_info=error)

    async def _advance(self, directory: str, step: "_Step") -> None:
        try:
            await self._advance_tree(directory, step)
        finally:
            self._beginning.discard(step)

    async def _advance_tree(self, directory: str, step: "_Step") -> None:
        if directory not in self._found or step.called is None:
            finding = _in_thread(_root_of, directory)
            self._found[directory] = asyncio.ensure_future(finding)
        # Those that wait for one task go on in their order.
        root, problem = await asyncio.shield(self._found[directory])
        tree = self._trees.setdefault(root, _Tree(root))
        tree.git_problem = problem
        async with tree.lock:
            calls = [call for call in tree.running if not call.has_exited()]
            before, head = tree.last, tree.head
            is_free = not tree.running and not self._beginning - {step}
            changes, by_git = await self._changes(tree, step)
            if before and tree.last and is_free and not step.is_late:
                await self._report_commit(tree, step, head)
            is_quiet = not changes
            step.update(tree, is_quiet)
            if step.is_late and step.begins:
                # The tool may have written before the snapshot was taken.
                tree.last, tree.late = "", tree.late + 1
            elif tree.last:
                tree.late = 0
            left_out = tree.last and tree.store and tree.store.left_out
            is_incomplete = tree.problem or left_out or tree.unseen
            if calls and (changes or by_git or is_incomplete):
                await self._report(tree, calls, step, before, changes, by_git)
            self._beginning.discard(step)
            is_open = any(each.running for each in self._trees.values())
            if not is_open and not self._beginning:
                await self._tell({**step.cli, "open": False})

    async def _changes(self, tree: _Tree, step: "_Step") -> tuple[list[Change], int]:
        """Take a snapshot of ``tree``.

        Return what has changed since the last one, but for what git has moved, and the
        number of files that git has moved.
        """
        is_off = tree.late >= _MOST_LATE and step.called is not None
        if tree.git_problem or is_off:
            tree.problem = tree.git_problem or _SLOW
            return [], 0
        before, head, unseen = tree.last, tree.head, tree.unseen
        tree.last, tree.problem = "", ""
        try:
            if tree.store is None or (tree.store.is_full and not tree.running):
                await self._renew(tree)
                before = ""
            assert tree.store is not None
            tree.head = await _in_thread(tree.store.head)
            names = await _in_thread(tree.store.changed_names)
            if step.called is None and await self._hidden_since(tree):
                await self._renew(tree)
                return [], 0
            shared = await self._shared(tree, names)
            tree.last = await _in_thread(tree.store.take, shared)
            if not before:
                if tree.running:
                    tree.problem = _SLOW if tree.late else "no snapshot before it"
                return [], 0
            changes = await _in_thread(tree.store.changes, before, tree.last)
            moved = await _in_thread(tree.store.moved, head, tree.head)
        except SnapshotError as error:
            logger.info("snapshot: %s", error)
            tree.problem = str(error)
            return [], 0
        written = [
            change
            for change in changes
            if change not in moved and change.path not in unseen
        ]
        return written, len(moved.intersection(changes))

    async def _renew(self, tree: _Tree) -> None:
        """Begin a new store for ``tree``, or raise SnapshotError."""
        if tree.store is not None:
            await _in_thread(shutil.rmtree, tree.store.directory, True)
        tree.store, tree.last = None, ""
        tree.stored.clear()
        tree.store = await _in_thread(Store, tree.root, self._new_name())

    def _new_name(self) -> str:
        """Return the name of a new file below the private directory."""
        if not self._directory:
            prefix = os.path.basename(texts.prefix())
            self._directory = tempfile.mkdtemp(prefix=prefix)
        self._number += 1
        return os.path.join(self._directory, str(self._number))

    async def _shared(self, tree: _Tree, names: Sequence[str]) -> list[str]:
        """Return those of ``names`` that Emacs shares; the others are never stored."""
        shared, hidden = await self._answered(tree, names)
        tree.unseen = set(names).difference(shared, hidden)
        tree.stored.update(shared)
        return shared

    async def _hidden_since(self, tree: _Tree) -> bool:
        """Return whether a file in the store of ``tree`` is excluded by now."""
        return bool((await self._answered(tree, sorted(tree.stored)))[1])

    async def _answered(
        self, tree: _Tree, names: Sequence[str]
    ) -> tuple[list[str], list[str]]:
        """Return those of ``names`` that Emacs shares, and those that it hides.

        Emacs leaves out those for which it has had no time.
        """
        outside = [name for name in names if not self._is_below_roots(tree, name)]
        asked = [name for name in names if name not in set(outside)]
        if not asked:
            return [], outside
        paths = [os.path.join(tree.root, name) for name in asked]
        answer = await self._ask("shared", {}, json.dumps(paths))
        shared, hidden = (
            [asked[index] for index in answer.get(kind) or []]
            for kind in ("shared", "hidden")
        )
        return shared, hidden + outside

    def _is_below_roots(self, tree: _Tree, name: str) -> bool:
        roots = tuple(os.path.join(root, "") for root in self._roots())
        return _is_text(name) and os.path.join(tree.root, name).startswith(roots)

    async def restore(self, facts: Facts, text: str) -> list[list[object]]:
        """Give the files in ``text`` below a root what another snapshot has of them.

        The text is an array of `File`s.  Return those that are not changed, by their
        indices, each with the reason.  Raise EmacsError if none can be.
        """
        from .restore import File, Plan, restore

        tree = self._trees.get(facts["root"])
        if tree is None or tree.store is None:
            raise EmacsError("its snapshots were deleted")
        files = [File(*fields) for fields in json.loads(text)]
        plan = Plan(*(facts[name] for name in Plan._fields))
        async with tree.lock:
            try:
                problems = await _in_thread(restore, tree.store, files, plan)
            except SnapshotError as error:
                raise EmacsError(str(error)) from None
        return [[index, why] for index, why in enumerate(problems) if why]

    # Reports

    async def _report(
        self,
        tree: _Tree,
        calls: Sequence[_Call],
        step: "_Step",
        before: str,
        changes: Sequence[Change],
        by_git: int,
    ) -> None:
        """Report to Emacs what was written while ``calls`` ran."""
        of_step = [call for call in calls if call.is_of(step.cli)] or calls[:1]
        cli = of_step[0].cli
        commands = dict.fromkeys(call.called.name for call in of_step)
        others = {call.cli["client"] for call in calls} - {cli["client"]}
        facts = {
            **cli,
            "root": tree.root,
            "command": clean(" & ".join(commands))[:LONGEST_NAME],
            "others": sorted(others),
            "by_git": by_git,
            "problem": tree.problem,
            "count": len(changes),
            "unseen": len(tree.unseen),
        }
        rows: list[list[object]] = []
        if tree.store is not None:
            facts["left_out"] = sorted(tree.store.left_out)[:MOST_FILES]
            facts["snapshots"] = [before, tree.last]
            facts["environ"] = tree.store.environ
            if len(changes) <= MOST_NAMES:
                rows = await _in_thread(self._rows, tree.store, changes)
                new_directories = tree.store.new_directories
                facts["made"] = await _in_thread(new_directories, before, changes)
        await self._ask("wrote", facts, json.dumps(rows))

    async def _report_commit(
        self, tree: _Tree, step: "_Step", head: tuple[str, int]
    ) -> None:
        """Report to Emacs what was committed while no tool was running.

        The work tree was at ``head`` at the last snapshot.
        """
        if tree.store is None or head == tree.head:
            return
        commits = await _in_thread(tree.store.committed, head, tree.head)
        if commits:
            base, commit = commits
            facts = {**step.cli, "root": tree.root, "base": base, "commit": commit}
            await self._ask("committed", facts, "")

    def _rows(self, store: Store, changes: Sequence[Change]) -> list[list[object]]:
        """Return what Emacs gets of ``changes``, with contents in private files.

        A content is the name of a file, which Emacs deletes, None without one, or False
        if the user's git has deleted it.  If there are too many, all are None, and so
        are those of a large file.
        """
        is_many = len(changes) > MOST_FILES
        large = set() if is_many else store.large_files(changes)

        def content(change: Change, blob: str) -> object:
            if not blob or is_many or change.path in large:
                return None
            try:
                store.write_blob(blob, file := self._new_name())
            except (OSError, SnapshotError):
                return False
            return file

        return [
            [
                change.path,
                content(change, change.before),
                content(change, change.after),
                change.mode_before,
                change.mode_after,
                change.before,
                change.after,
            ]
            for change in changes
        ]

    async def _tell(self, facts: Facts) -> None:
        with suppress(EmacsError, asyncio.TimeoutError):
            answer = self._emacs.ask("called", facts, ())
            await asyncio.wait_for(answer, self._config.notice_limit)

    async def _ask(self, kind: str, facts: Facts, text: str) -> Facts:
        try:
            answer = self._emacs.ask(kind, facts, [text])
            return await asyncio.wait_for(answer, self._config.edit_limit)
        except (EmacsError, asyncio.TimeoutError):
            return {}


@dataclass(eq=False)
class _Step:
    """An event of ``cli`` at which a snapshot is taken."""

    cli: Facts
    called: Called | None
    """The call that begins or ends, None if a turn does."""
    is_late: bool = False
    """Whether the CLI has not waited for the snapshot."""

    @property
    def begins(self) -> bool:
        """Whether a call begins."""
        return self.called is not None and not self.called.has_ended

    def update(self, tree: _Tree, is_quiet: bool) -> None:
        """Update which calls run in ``tree`` after the snapshot.

        A call in the background runs until its turn ends, or the next one begins, and
        nothing was written since the last snapshot, as ``is_quiet`` says.
        """
        running = [call for call in tree.running if not call.has_exited()]
        tree.running = running
        if self.called is None:
            tree.running = [
                call
                for call in running
                if not call.is_of(self.cli)
                or (
                    call.called.is_background and call.called.has_ended and not is_quiet
                )
            ]
        elif not self.called.has_ended:
            running.append(_Call(self.called, self.cli))
        else:
            for call in running:
                if call.called.key == self.called.key and not call.called.has_ended:
                    call.called = call.called._replace(has_ended=True)
                    if not call.called.is_background:
                        running.remove(call)
                    break


def _in_thread(function: Callable[..., Result], *args: object) -> Awaitable[Result]:
    return asyncio.get_running_loop().run_in_executor(_threads, function, *args)


def _root_of(directory: str) -> tuple[str, str]:
    problem = git_problem()
    return directory if problem else top_level(directory), problem


def _is_text(name: str) -> bool:
    """Return whether ``name`` can be passed to Emacs: it is UTF-8."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
