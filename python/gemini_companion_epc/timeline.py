# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tools of linked CLIs write while they run, by snapshots around each call.

A work tree has one sequence of snapshots.  What differs between two of them was written
while those calls ran that were open in between.  If none was, others have written it.
Snapshots are taken in threads, and a CLI waits for them for a moment only.

A write has an owner only by proof: both snapshots have looked at the file, and a call
has run in between.  That a call has run is known by its end; some CLIs announce a call
before they ask the user, who may refuse it.  What Emacs writes meanwhile has numbers,
which are asked for at both ends of a snapshot, and are the user's.  If calls of
several CLIs have run, the one whose event ends the interval is named, and the others
beside it; an interval with announced calls only is held until one of them ends.
"""

import asyncio
import json
import logging
import os
import secrets
import shutil
import tempfile
from collections import deque
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import NamedTuple, TypeVar

from . import texts
from .config import Config
from .emacs import Emacs
from .git import GitError, GitTooSlow
from .hooks import Called
from .processes import has_exited
from .snapshots import (
    Change,
    Difference,
    Head,
    Listing,
    Snapshot,
    SnapshotError,
    Store,
    git_problem,
    is_text,
    top_level,
    write_private,
)
from .types import EmacsError, Facts, clean

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

# A directory that does not answer must not take the threads of others.
_threads = ThreadPoolExecutor(16, "snapshots")

MOST_FILES = 20
"""Maximum number of files of one interval whose texts Emacs gets."""
MOST_NAMES = 5_000
"""Maximum number of files of one interval whose names Emacs gets."""
LONGEST_NAME = 500
"""Maximum number of characters of a command, as Emacs shows it."""
_MOST_LATE = 2
_MOST_BEGUN = 1_000
MOST_NESTED = 8
"""Maximum number of repositories inside a work tree that are trees of their own."""
# Seconds in which Emacs says which files are shared, and that after a call.  One that
# begins waits for the snapshot of its prompt as well.
_SECONDS = 1
_SECONDS_AFTER = 3
# How often a turn that has ended is looked at, each time after twice as long.
_MOST_LOOKS = 6


class Problem(NamedTuple):
    """Why it is not known what a command has written."""

    text: str
    """A phrase."""
    remedy: str = ""
    """What the user can do about it, an imperative, or ""."""


_RESTART = "run M-x gemini-companion-restart"
_SLOW = Problem("the snapshot took too long", "list large directories in .gitignore")
_SILENT = Problem("Emacs did not answer")
_LATE = Problem("no snapshot before it")
_NOT_BEGUN = Problem("the server has no snapshot before it")
_REFUSED = Problem("it seemed to be refused")
_RESTORED = Problem("you have undone or restored files meanwhile")
_DELETED = Problem("its snapshots were deleted, as by a cleaner of temporary files")


class Event(Enum):
    """What a snapshot is taken for."""

    BEGIN = auto()
    """A call begins."""
    END = auto()
    """A call has ended."""
    PROMPT = auto()
    """A turn begins."""
    TURN_END = auto()
    READY = auto()
    """The CLI waits for a prompt, as its terminal shows."""
    MOMENT = auto()
    """A turn has ended a moment ago."""
    QUIET = auto()
    """The same, and nothing was written since the last snapshot."""
    UNSEEN = auto()
    """The same, but no snapshot could be taken."""


class State(Enum):
    """What is known about a call."""

    ANNOUNCED = auto()
    """Its CLI may still ask the user, who may refuse it."""
    RUNS = auto()
    BACKGROUND = auto()
    """It has returned, but what it has started goes on."""
    FADES = auto()
    """The same, and its turn has ended: it goes on while it is seen to write."""
    ENDED = auto()
    DROPPED = auto()
    """It has not ended, so it may have been refused: it owns nothing."""


_NEXT = {
    (State.ANNOUNCED, Event.END): State.ENDED,
    (State.RUNS, Event.END): State.ENDED,
    (State.ANNOUNCED, Event.READY): State.DROPPED,
    (State.ANNOUNCED, Event.TURN_END): State.DROPPED,
    (State.RUNS, Event.TURN_END): State.ENDED,
    (State.BACKGROUND, Event.TURN_END): State.FADES,
    (State.FADES, Event.QUIET): State.ENDED,
    (State.FADES, Event.UNSEEN): State.ENDED,
    (State.ANNOUNCED, Event.PROMPT): State.DROPPED,
    (State.RUNS, Event.PROMPT): State.ENDED,
    (State.BACKGROUND, Event.PROMPT): State.ENDED,
    (State.FADES, Event.PROMPT): State.ENDED,
}
"""The states of a call after events: `Event.END` of its own, others of its CLI."""
_CLOSED = {State.ENDED, State.DROPPED}


def _is_same(cli: Facts, other: Facts) -> bool:
    """Return whether both are the same CLI, if its process is known."""
    return bool(
        cli["client"] == other["client"] and cli["pids"][-1:] == other["pids"][-1:]
    )


def _has_exited(cli: Facts) -> bool:
    pids: Sequence[int] = cli["pids"]
    return any(map(has_exited, pids[-1:]))


@dataclass(eq=False)
class _Call:
    """A call of a tool."""

    called: Called
    cli: Facts
    """The `client` and the `pids` of the CLI, as Emacs gets them."""
    state: State

    @property
    def is_open(self) -> bool:
        """Whether it may write."""
        return self.state not in _CLOSED

    def state_after(self, step: "_Step", event: Event) -> State:
        """Return the next state after ``event`` of ``step``."""
        if step.called is not None:
            is_own = event is Event.END and step.called.key == self.called.key
        else:
            is_of_all = event in (Event.QUIET, Event.UNSEEN)
            is_own = is_of_all or _is_same(self.cli, step.cli)
        following = _NEXT.get((self.state, event)) if is_own else None
        if following and event is Event.END and self.called.is_background:
            following = State.BACKGROUND
        return following or self.state


@dataclass(eq=False)
class _Step:
    """An event of ``cli`` at which a snapshot is taken."""

    cli: Facts
    event: Event
    called: Called | None = None
    """The call that begins or ends, None if a turn does."""
    is_late: bool = False
    """Whether the CLI has not waited for the snapshot."""
    nested: dict[asyncio.Task[None], "_Step"] = field(default_factory=dict)
    """The same for each repository inside the work tree."""

    @property
    def begins(self) -> bool:
        """Whether a call begins."""
        return self.event is Event.BEGIN


@dataclass(frozen=True)
class _Taken:
    """A snapshot, with what is known at its time."""

    snapshot: Snapshot
    head: Head
    """Where HEAD was, as in `Store.head`."""
    saved: tuple[int, int]
    """The numbers of the last write of Emacs when it began, and when it had ended."""

    def with_unanswered(self) -> int:
        """Return the number of files about which Emacs had no time to answer."""
        reasons = (each.reason for each in self.snapshot.unlooked.values())
        return sum(reason == "unanswered" for reason in reasons)


@dataclass(frozen=True)
class _Interval:
    """The time between two snapshots in a row."""

    before: _Taken
    after: _Taken
    calls: Sequence[_Call]
    """Those that may have written in it."""
    difference: Difference

    @property
    def is_owned(self) -> bool | None:
        """Whether one of its calls has run, None if that is not known yet."""
        states = {call.state for call in self.calls} - {State.DROPPED}
        if not states:
            return False
        return None if states == {State.ANNOUNCED} else True


class Phase(Enum):
    """What is known about a work tree."""

    LOST = auto()
    """What was written since the last snapshot, if there was one, is not known."""
    FOLLOWED = auto()
    """The last snapshot is known."""
    PAUSED = auto()
    """The next snapshot is taken with the next prompt, as they take too long."""
    OFF = auto()
    """No snapshot is taken any more."""


@dataclass(eq=False)
class _Tree:
    """The snapshots of a work tree."""

    root: str
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    store: Store | None = None
    phase: Phase = Phase.LOST
    problem: Problem | None = None
    """Why it is not followed, or was not before the last snapshot."""
    said: bool = False
    """Whether Emacs was told of a problem that is not over."""
    is_broken: bool = False
    """Whether the store could not be mended."""
    since: int = 0
    """The time of the last snapshot, even if it is not followed any more."""
    meanwhile: Sequence[str] = ()
    """What was written after that, if a problem has ended with the last snapshot."""
    last: _Taken | None = None
    """The last snapshot, None unless it is followed."""
    saved: int = 0
    """The number of a write of Emacs, until which no report needs any."""
    late: int = 0
    """The number of snapshots in a row for which a CLI has not waited."""
    stored: set[str] = field(default_factory=set)
    """The names of the files that were copied to the store."""
    running: list[_Call] = field(default_factory=list)
    """The calls that may write."""
    dropped: list[_Call] = field(default_factory=list)
    """The last ones that were dropped, and may yet end."""
    held: list[_Interval] = field(default_factory=list)
    """Those of which it is not known yet whether a call has run in them."""
    turns: list[Facts] = field(default_factory=list)
    """The CLIs in a turn."""
    nested: list[str] = field(default_factory=list)
    """The repositories inside, which are trees of their own."""
    is_told: bool = False
    """Whether Emacs was told that there are others, too many."""
    is_settled: bool = False
    """Whether nothing was written for a moment since all turns have ended."""
    looks: asyncio.Task[None] | None = None
    """Looks for that moment."""
    commits: asyncio.Task[None] | None = None
    """Looks for commits after that moment."""

    def cancel(self) -> None:
        """Look for nothing any more."""
        for task in filter(None, (self.looks, self.commits)):
            task.cancel()

    def lose(self, problem: Problem | None, phase: Phase = Phase.LOST) -> None:
        """Enter ``phase`` because of ``problem``."""
        self.phase, self.problem, self.last = phase, problem, None
        self.meanwhile = ()

    def follow(self, taken: _Taken) -> None:
        """Follow from the snapshot that was ``taken``."""
        self.phase, self.problem, self.last = Phase.FOLLOWED, None, taken
        self.since = taken.snapshot.time

    def goes_on(self, step: _Step) -> bool:
        """Return whether a call may write after ``step``."""
        states = set(self._states_after(step, step.event))
        return step.begins or not states <= _CLOSED

    def _states_after(self, step: _Step, event: Event) -> list[State]:
        """Return the states of the running calls after ``event`` of ``step``."""
        states = []
        has_ended = False
        for call in self.running:
            if _has_exited(call.cli):
                state = State.DROPPED
            # Two calls at once may have the same key.
            elif has_ended:
                state = call.state
            else:
                state = call.state_after(step, event)
                has_ended = event is Event.END and state is not call.state
            states.append(state)
        return states

    def update(self, step: _Step, event: Event) -> None:
        """Take note of ``event`` of ``step``: which calls and turns go on."""
        states = self._states_after(step, event)
        for call, state in zip(self.running, states, strict=True):
            call.state = state
        dropped = [call for call in self.running if call.state is State.DROPPED]
        self.dropped = (self.dropped + dropped)[-_MOST_LATE * 10 :]
        self.running = [call for call in self.running if call.is_open]
        others = [
            cli
            for cli in self.turns
            if not _is_same(cli, step.cli) and not _has_exited(cli)
        ]
        if event in (Event.TURN_END, Event.READY):
            self.turns = others
        elif event not in (Event.MOMENT, Event.QUIET, Event.UNSEEN):
            self.turns = [*others, step.cli]
        if step.begins and step.called:
            asks = step.called.may_be_refused
            state = State.ANNOUNCED if asks else State.RUNS
            self.running.append(_Call(step.called, step.cli, state))
        is_over = not self.running and not self.turns
        was_settled = self.is_settled
        self.is_settled = is_over and (was_settled or event is Event.QUIET)
        if self.is_settled and not was_settled:
            logger.info("all turns have ended, and nothing is written any more")

    def resolved(self) -> list[_Interval]:
        """Return those of the held intervals that have an owner.

        Forget those that have none.
        """
        self.held = [each for each in self.held if each.is_owned is not False]
        return [each for each in self.held if each.is_owned]


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
        self._secret = ""
        self._number = 0
        self._beginning: set[_Step] = set()
        """The calls that begin, before their snapshots."""
        self._late: dict[str, int] = {}
        """The number of snapshots for which nobody waits any more, by directory."""
        self._gates: dict[str, asyncio.Lock] = {}
        self._is_open: bool | None = None
        """Whether Emacs was told that a call runs, None if it was told nothing."""
        self._found: dict[str, tuple[str, Problem | None]] = {}
        """The root of the work tree of each directory, and why git cannot be used."""
        self._begun: deque[str] = deque(maxlen=_MOST_BEGUN)
        """The keys of the last calls that have begun."""

    def end(self) -> None:
        """Delete all snapshots."""
        for task in self._tasks:
            task.cancel()
        self.forget()

    def forget(self) -> None:
        """Delete all snapshots, as other files are excluded now."""
        for tree in self._trees.values():
            tree.cancel()
        self._trees.clear()
        # The calls that run have no snapshot before them any more.
        self._begun.clear()
        if self._is_own_directory():
            shutil.rmtree(self._directory, ignore_errors=True)
        self._directory = ""

    # Events

    async def called(self, cli: Facts, directory: str, call: Called) -> None:
        """Take a snapshot as a ``call`` of a tool of ``cli`` begins or has ended."""
        step = _Step(cli, Event.END if call.has_ended else Event.BEGIN, call)
        if step.begins:
            self._begun.append(call.key)
            self._beginning.add(step)
            try:
                # From now on, Emacs notes what it writes.
                await self._tell({**cli, "open": True})
            except asyncio.CancelledError:
                self._beginning.discard(step)
                raise
        # Whoever begins behind a late snapshot would wait in vain.
        is_stuck = bool(self._late.get(directory))
        task = self._start(self._advance(directory, step))
        limit = self._config.after_limit if call.has_ended else self._config.call_limit
        ends = asyncio.get_running_loop().time() + (0 if is_stuck else limit)
        step.is_late = not await _until(ends, {task})
        if step.is_late:
            self._late[directory] = self._late.get(directory, 0) + 1
            task.add_done_callback(lambda _: self._in_time(directory))
        elif step.nested and not await _until(ends, step.nested):
            for nested, its_step in step.nested.items():
                its_step.is_late = not nested.done()

    def _in_time(self, directory: str) -> None:
        self._late[directory] -= 1

    def turn(self, cli: Facts, directory: str, begins: bool) -> None:
        """Take a snapshot as a turn of ``cli`` begins or ends; nobody waits for it."""
        event = Event.PROMPT if begins else Event.TURN_END
        self._start(self._advance(directory, _Step(cli, event)))

    def ready(self, pids: Sequence[int]) -> None:
        """Drop the calls of the CLI with one of ``pids`` that have not ended.

        It waits for a prompt, so the user must have refused them.
        """
        for tree in self._trees.values():
            clis = [*tree.turns, *(call.cli for call in tree.running)]
            found = [cli for cli in clis if set(pids) & set(cli["pids"])]
            if found:
                step = _Step(found[0], Event.READY)
                self._start(self._advance_locked(tree, step))

    def _start(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            logger.error("snapshot failed", exc_info=error)

    async def _advance(
        self, directory: str, step: _Step, inside: str | None = None
    ) -> None:
        """Advance the work tree of ``directory``; it may be a repository ``inside``."""
        gate = self._gates.setdefault(directory, asyncio.Lock())
        try:
            # Those that wait for one directory go on in their order.
            async with gate:
                if directory not in self._found or step.event is Event.PROMPT:
                    self._found[directory] = await _in_thread(_root_of, directory)
                root, problem = self._found[directory]
                if inside and not _is_same_file(root, directory):
                    # It is not really one.
                    return
                tree = self._trees.setdefault(root, _Tree(root))
                await tree.lock.acquire()
            try:
                if problem:
                    tree.lose(problem, Phase.PAUSED)
                elif step.event is Event.PROMPT and tree.phase is Phase.PAUSED:
                    tree.lose(tree.problem)
                await self._advance_tree(tree, step)
                if not inside:
                    await self._advance_nested(tree, step)
            finally:
                tree.lock.release()
        finally:
            self._beginning.discard(step)

    async def _advance_nested(self, tree: _Tree, step: _Step) -> None:
        """Begin ``step`` in the repositories inside ``tree``."""
        if not (tree.nested or (tree.last and tree.last.snapshot.repositories)):
            return
        found = await _in_thread(_nested_in, tree.root, tree.nested, tree.last)
        for name in set(tree.nested).difference(found):
            gone = self._trees.pop(os.path.join(tree.root, name), None)
            if gone and gone.store:
                await _in_thread(gone.store.delete)
        tree.nested = found[:MOST_NESTED]
        for name in tree.nested:
            its_step = replace(step, nested={})
            path = os.path.join(tree.root, name)
            task = self._start(self._advance(path, its_step, inside=tree.root))
            step.nested[task] = its_step
        others = len(found) - MOST_NESTED
        if others > 0 and step.called and step.event is Event.END and not tree.is_told:
            tree.is_told = True
            problem = Problem(
                f"{others} of the repositories in it are not looked at, such as "
                f"{_shown(found[MOST_NESTED:])[0]}",
                "start the CLI there",
            )
            call = _Call(step.called, step.cli, State.ENDED)
            await self._report_problem(tree, step, [call], problem)

    async def _advance_locked(self, tree: _Tree, step: _Step) -> None:
        async with tree.lock:
            await self._advance_tree(tree, step)

    async def _advance_tree(self, tree: _Tree, step: _Step) -> None:
        """Take a snapshot of ``tree``, and report what now has an owner."""
        was_settled = tree.is_settled and not self._beginning - {step}
        running, before = [*tree.running], tree.last
        difference = await self._take(tree, step)
        event = step.event
        if event is Event.MOMENT and tree.last is None:
            event = Event.UNSEEN
        elif event is Event.MOMENT and before and tree.last:
            is_quiet = difference.is_quiet and before.head == tree.last.head
            event = Event.QUIET if is_quiet else event
        tree.update(step, event)
        calls = [call for call in running if not _has_exited(call.cli)]
        if before and tree.last and calls:
            interval = _Interval(before, tree.last, calls, difference)
            tree.held.append(interval)
        for each in tree.resolved():
            try:
                await self._report(tree, step, each)
                await self._add_own(tree, each)
            finally:
                # Until now, Emacs keeps what it has written meanwhile.
                tree.held = [other for other in tree.held if other is not each]
        if tree.last:
            tree.saved = tree.last.saved[0]
        ran = [call for call in calls if call.state is not State.DROPPED]
        if step.called and step.event is Event.END:
            if step.called.key not in self._begun:
                ran.append(_Call(step.called, step.cli, State.ENDED))
                tree.problem = tree.problem or _NOT_BEGUN
            # Otherwise, it is the end of a call that was made again.
            if all(call.called.key != step.called.key for call in running):
                await self._report_dropped(tree, step)
        if tree.problem and ran:
            tree.said = True
            await self._report_problem(tree, step, ran, tree.problem)
        elif tree.said and tree.last and not tree.problem:
            tree.said = False
            await self._report_problem(tree, step, [], None)
        if before and was_settled and not step.is_late:
            await self._report_commits(tree, step, before.head)
        self._follow_late(tree, step)
        self._beginning.discard(step)
        is_open = self._beginning or any(t.running for t in self._trees.values())
        if self._is_open is not False and not is_open:
            await self._tell({**step.cli, "open": False})
        if event in (Event.TURN_END, Event.READY) and not tree.turns:
            if tree.looks:
                tree.looks.cancel()
            tree.looks = asyncio.ensure_future(self._look(tree, step))
        if tree.is_settled and (tree.commits is None or tree.commits.done()):
            tree.commits = asyncio.ensure_future(self._look_for_commits(tree, step))

    async def _look(self, tree: _Tree, step: _Step) -> None:
        """Look at ``tree`` after a turn until nothing is written, or one begins."""
        delay = self._config.quiet_time
        for _ in range(_MOST_LOOKS):
            await asyncio.sleep(delay)
            if tree.turns or tree.is_settled:
                return
            look = self._advance_locked(tree, _Step(step.cli, Event.MOMENT))
            await asyncio.wait({self._start(look)})
            delay *= 2

    async def _look_for_commits(self, tree: _Tree, step: _Step) -> None:
        """Report commits soon, as Emacs may be killed, until a turn begins."""
        while tree.is_settled:
            await asyncio.sleep(self._config.commit_check)
            await asyncio.wait({self._start(self._report_commits_now(tree, step))})

    async def _report_commits_now(self, tree: _Tree, step: _Step) -> None:
        async with tree.lock:
            if not (tree.is_settled and tree.store and tree.last):
                return
            head = await _in_thread(tree.store.head)
            # A call that begins now may have committed before its snapshot.
            if head != tree.last.head and not self._beginning:
                before, tree.last = tree.last.head, replace(tree.last, head=head)
                await self._report_commits(tree, step, before)

    @staticmethod
    def _follow_late(tree: _Tree, step: _Step) -> None:
        """Take note of whether the CLI of ``step`` has waited for its snapshot."""
        if not tree.last:
            return
        if not (step.is_late and step.begins):
            tree.late = 0
            return
        # The tool may have written before the snapshot was taken.
        tree.late += 1
        tree.lose(_SLOW, Phase.PAUSED if tree.late >= _MOST_LATE else Phase.LOST)

    async def _take(self, tree: _Tree, step: _Step) -> Difference:
        """Take a snapshot of ``tree``, and return what is known since the last one."""
        nothing = Difference()
        if tree.phase in (Phase.OFF, Phase.PAUSED):
            return nothing
        before, had_problem = tree.last, tree.problem
        tree.lose(None)
        try:
            try:
                return await self._compared(tree, step, before, had_problem)
            except (GitTooSlow, SnapshotError):
                raise
            except GitError as error:
                if tree.store is None:
                    raise
                logger.info("snapshot: %s", error)
                # What was written since the last snapshot is not known.
                if await _in_thread(tree.store.exists):
                    problem = Problem(str(error))
                    await _in_thread(tree.store.mend)
                else:
                    problem = _DELETED
                    await self._renew(tree)
                return await self._compared(tree, step, None, problem)
        except GitTooSlow as error:
            tree.lose(Problem(str(error), _RESTART), Phase.OFF)
        except SnapshotError as error:
            tree.lose(Problem(str(error), error.remedy))
        except GitError as error:
            # With the next prompt, the store starts over.
            tree.is_broken = tree.store is not None
            tree.lose(Problem(str(error), _RESTART), Phase.PAUSED)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            tree.lose(Problem(f"{where}{error.strerror or error}"))
        logger.info("snapshot: %s", tree.problem)
        return nothing

    async def _compared(
        self,
        tree: _Tree,
        step: _Step,
        before: _Taken | None,
        had_problem: Problem | None,
    ) -> Difference:
        """Take a snapshot of ``tree``, and compare it with the one ``before``.

        Without one, the tree has ``had_problem``, if that is known.
        """
        if (
            tree.store is None
            or tree.is_broken
            or (tree.store.is_full and not tree.running)
        ):
            await self._renew(tree)
            before = None
        assert tree.store is not None
        is_turn = step.event in (Event.PROMPT, Event.TURN_END)
        if is_turn and await self._hidden_since(tree):
            await self._renew(tree)
            before = None
        since = tree.since
        taken, difference = await self._taken(tree, tree.store, step, before)
        if taken is None:
            tree.lose(_SILENT)
            return Difference()
        tree.follow(taken)
        if tree.running and not before:
            tree.problem = had_problem or _LATE
            stamps = taken.snapshot.stamps.items()
            tree.meanwhile = [name for name, stamp in stamps if 0 < since < stamp.time]
        return difference

    async def _taken(
        self, tree: _Tree, store: Store, step: _Step, before: _Taken | None
    ) -> tuple[_Taken | None, Difference]:
        """Take a snapshot by ``store``, or return None if Emacs does not answer.

        Also return what is known since the one ``before``.
        """
        nothing = None, Difference()
        began = await self._saved()
        if began is None:
            return nothing
        head, listing = await _in_thread(_listed, store, tree.goes_on(step))
        is_before = step.begins or step.event is Event.PROMPT
        seconds = _SECONDS if is_before else _SECONDS_AFTER
        shared, hidden = await self._answered(tree, listing.names, seconds)
        unanswered = set(listing.names).difference(shared, hidden)
        tree.stored.update(shared)

        def take() -> tuple[Snapshot, Difference]:
            snapshot = store.take(listing, shared, hidden, unanswered)
            if is_before or before is None:
                store.note_files()
            if before is None:
                return snapshot, Difference()
            moved = store.moved(before.head, head, before.snapshot.time)
            return snapshot, store.difference(before.snapshot, snapshot, moved)

        # Each hand-over to a thread takes time: it is one for both.
        snapshot, difference = await _in_thread(take)
        ended = await self._saved()
        if ended is None:
            return nothing
        return _Taken(snapshot, head, (began, ended)), difference

    async def _saved(self) -> int | None:
        """Return the number of the last write of Emacs, None without an answer.

        Emacs forgets those of which no report is to come.
        """
        needed = [
            number
            for tree in self._trees.values()
            for number in (tree.saved, *(each.before.saved[0] for each in tree.held))
        ]
        answer = await self._ask("saved", {"since": min(needed, default=0)}, "")
        number = answer.get("number")
        return number if isinstance(number, int) else None

    async def _renew(self, tree: _Tree) -> None:
        """Begin a new store for ``tree``, or raise GitError."""
        if tree.store is not None:
            await _in_thread(tree.store.delete)
        tree.store = None
        tree.is_broken = False
        tree.stored.clear()
        tree.held.clear()
        directory = self._new_name()
        temporary = tempfile.gettempdir()
        tree.store = await _in_thread(Store, tree.root, directory, temporary)

    def _new_name(self) -> str:
        """Return the name of a new file below the private directory."""
        if not self._is_own_directory():
            prefix = os.path.basename(texts.prefix())
            self._directory = tempfile.mkdtemp(prefix=prefix)
            self._secret = secrets.token_hex(16)
            os.mkdir(os.path.join(self._directory, self._secret))
        self._number += 1
        return os.path.join(self._directory, f"{self._number}-{self._secret}")

    def _is_own_directory(self) -> bool:
        """Return whether the private directory exists, and this server has made it.

        If a cleaner deletes it, others may make another one with its name, but not
        with what only this server could read in there.
        """
        mark = os.path.join(self._directory, self._secret)
        return bool(self._directory) and os.path.isdir(mark)

    async def _hidden_since(self, tree: _Tree) -> bool:
        """Return whether a file in the store of ``tree`` is excluded now."""
        return bool((await self._answered(tree, sorted(tree.stored)))[1])

    async def _answered(
        self, tree: _Tree, names: Sequence[str], seconds: int = _SECONDS
    ) -> tuple[list[str], list[str]]:
        """Return those of ``names`` that Emacs shares, and those that it hides.

        Emacs leaves out those for which it has had no time in ``seconds``.
        """
        outside = [
            name
            for name in names
            if not (is_text(name) and self._is_below_roots(tree, name))
        ]
        asked = [name for name in names if name not in set(outside)]
        if not asked:
            return [], outside
        paths = [os.path.join(tree.root, name) for name in asked]
        answer = await self._ask("shared", {"seconds": seconds}, json.dumps(paths))
        shared, hidden = (
            [asked[index] for index in answer.get(kind) or []]
            for kind in ("shared", "hidden")
        )
        return shared, hidden + outside

    def _is_below_roots(self, tree: _Tree, name: str) -> bool:
        roots = tuple(os.path.join(root, "") for root in self._roots())
        return os.path.join(tree.root, name).startswith(roots)

    async def restore(self, facts: Facts, text: str) -> list[list[object]]:
        """Give the files in ``text`` below a root what another snapshot has of them.

        The text is an array of `File`s.  Return those that are not changed, by their
        indices, each with the reason.  Raise EmacsError if none can be.
        """
        from .restore import File, Plan, restore

        lost = EmacsError("the snapshots were deleted")
        if (tree := self._trees.get(facts["root"])) is None:
            raise lost
        files = [File(*fields) for fields in json.loads(text)]
        plan = Plan(*(facts[name] for name in Plan._fields))
        async with tree.lock:
            if tree.store is None:
                raise lost
            try:
                problems = await _in_thread(restore, tree.store, files, plan)
            except GitError as error:
                logger.info("not restored: %s", error)
                raise lost from None
            finally:
                if tree.running:
                    # It would be taken for what they have written.
                    tree.lose(_RESTORED)
        return [[index, why] for index, why in enumerate(problems) if why]

    # Reports

    async def _report(self, tree: _Tree, step: _Step, interval: _Interval) -> None:
        """Report to Emacs what the calls of ``interval`` have written."""
        difference, store = interval.difference, tree.store
        changes, after = difference.changes, interval.after
        unanswered = after.with_unanswered()
        if difference.is_quiet and not unanswered:
            return
        assert store is not None
        # A tree of its own reports them.
        gone = [
            name
            for name, reason in difference.gone
            if reason != "repository" or not _is_below(name, tree.nested)
        ]
        facts = {
            **self._owner(step, interval.calls),
            "root": tree.root,
            "by_git": difference.by_git,
            "problem": "",
            "count": len(changes),
            "unseen": unanswered,
            "saved": [*interval.before.saved, *after.saved],
            "left_out": _shown([name for name in difference.left_out if is_text(name)]),
            "odd": _shown(
                [
                    name
                    for name in difference.left_out
                    if not is_text(name) and self._is_below_roots(tree, name)
                ]
            ),
            "moved": _shown(difference.moved),
            "moved_count": len(difference.moved),
            "unknown": _shown(difference.unknown),
            "unknown_count": len(difference.unknown),
            "repositories": _shown(difference.repositories),
            "repositories_count": len(difference.repositories),
            "gone": _shown(gone),
            "gone_count": len(gone),
            "snapshots": [interval.before.snapshot.tree, after.snapshot.tree],
            "environ": store.environ,
        }
        rows: list[list[object]] = []
        if len(changes) <= MOST_NAMES:
            contents = await _in_thread(_contents, store, changes)
            rows = await _in_thread(self._rows, changes, contents)
            facts.update(await _in_thread(self._lost, store, interval, contents))
            facts["private"] = [
                [each.path, modes]
                for each in changes
                if not each.after
                # The next call may take note of it at the same time.
                and (modes := store.private.get(each.path)) is not None
            ]
            before = interval.before.snapshot.tree
            facts["made"] = await _in_thread(store.new_directories, before, changes)
        await self._ask("wrote", facts, json.dumps(rows))

    @staticmethod
    async def _add_own(tree: _Tree, interval: _Interval) -> None:
        """Take note of the commits that the calls of ``interval`` have made."""
        before, after = interval.before, interval.after
        if tree.store is None or before.head == after.head:
            return
        since = before.snapshot.time
        try:
            await _in_thread(tree.store.add_own, before.head, after.head, since)
        except GitError as error:
            logger.info("commits not read: %s", error)

    async def _report_problem(
        self,
        tree: _Tree,
        step: _Step,
        calls: Sequence[_Call],
        problem: Problem | None,
    ) -> None:
        """Report to Emacs the ``problem`` why it is not known what ``calls`` wrote.

        Without one, it is over.
        """
        facts = {
            **self._owner(step, calls),
            "root": tree.root,
            "by_git": 0,
            "problem": problem.text if problem else "",
            "over": problem is None,
            "remedy": problem.remedy if problem else "",
            "meanwhile": _shown(tree.meanwhile),
            "meanwhile_count": len(tree.meanwhile),
            "count": 0,
            "unseen": 0,
        }
        await self._ask("wrote", facts, "[]")

    async def _report_dropped(self, tree: _Tree, step: _Step) -> None:
        """Report to Emacs that the call of ``step`` was dropped, but has run."""
        assert step.called is not None
        key = step.called.key
        late = [call for call in tree.dropped if call.called.key == key]
        if late:
            tree.dropped = [call for call in tree.dropped if call not in late]
            await self._report_problem(tree, step, late, _REFUSED)

    @staticmethod
    def _owner(step: _Step, calls: Sequence[_Call]) -> Facts:
        """Return the facts about who has written what ``calls`` have."""
        calls = [call for call in calls if call.state is not State.DROPPED] or calls
        of_step = [call for call in calls if _is_same(call.cli, step.cli)] or calls[:1]
        cli = of_step[0].cli if of_step else step.cli
        commands = dict.fromkeys(call.called.name for call in of_step)
        others = {call.cli["client"] for call in calls} - {cli["client"]}
        return {
            **cli,
            "command": clean(" & ".join(commands))[:LONGEST_NAME],
            "others": sorted(others),
        }

    async def _report_commits(self, tree: _Tree, step: _Step, head: Head) -> None:
        """Report to Emacs what was committed while no CLI was in a turn.

        The work tree was at ``head`` at the last snapshot.
        """
        if tree.store is None or tree.last is None or head == tree.last.head:
            return
        for base, commit in await _in_thread(
            tree.store.committed, head, tree.last.head
        ):
            facts = {**step.cli, "root": tree.root, "base": base, "commit": commit}
            await self._ask("committed", facts, "")

    def _lost(
        self, store: Store, interval: _Interval, contents: Mapping[str, bytes | None]
    ) -> Facts:
        """Return the facts about what the calls of ``interval`` took from the user.

        The lines are in private files, which Emacs deletes.
        """
        changes, before = interval.difference.changes, interval.before
        heads = before.head, interval.after.head
        try:
            if len(changes) > MOST_FILES:
                snapshot = before.snapshot
                count = store.count_uncommitted(snapshot, before.head, changes)
                return {"taken_count": count}
            taken = []
            for index, is_tracked, lines in store.taken(changes, contents, heads):
                write_private(file := self._new_name(), b"\n".join(lines))
                taken.append([index, is_tracked, file])
        except (GitError, OSError) as error:
            logger.info("lines of the user not counted: %s", error)
            return {}
        return {"taken": taken}

    def _rows(
        self, changes: Sequence[Change], contents: Mapping[str, bytes | None]
    ) -> list[list[object]]:
        """Return what Emacs gets of ``changes``, with contents in private files.

        A content is the name of a file, which Emacs deletes, None without one, or False
        if the user's git has deleted it.  If there are too many, all are None, and so
        are those of a large file.
        """
        is_many = len(changes) > MOST_FILES

        def file_with(blob: str) -> object:
            if not blob or is_many:
                return None
            if (content := contents.get(blob)) is None:
                return False
            try:
                write_private(file := self._new_name(), content)
            except OSError:
                return False
            return file

        def row(change: Change) -> list[object]:
            blobs = change.before, change.after
            is_large = any(contents.get(blob, b"") is None for blob in blobs)
            files = [None if is_large else file_with(blob) for blob in blobs]
            modes = change.mode_before, change.mode_after
            return [change.path, *files, *modes, *blobs]

        return [row(change) for change in changes]

    async def _tell(self, facts: Facts) -> None:
        self._is_open = facts["open"]
        with suppress(EmacsError, asyncio.TimeoutError):
            answer = self._emacs.ask("called", facts, ())
            await asyncio.wait_for(answer, self._config.notice_limit)

    async def _ask(self, kind: str, facts: Facts, text: str) -> Facts:
        try:
            answer = self._emacs.ask(kind, facts, [text])
            return await asyncio.wait_for(answer, self._config.edit_limit)
        except (EmacsError, asyncio.TimeoutError):
            return {}


def _in_thread(function: Callable[..., Result], *args: object) -> Awaitable[Result]:
    return asyncio.get_running_loop().run_in_executor(_threads, function, *args)


async def _until(time: float, tasks: Collection[asyncio.Task[None]]) -> bool:
    """Wait for ``tasks`` until ``time`` of the loop; return whether all have ended."""
    timeout = max(0, time - asyncio.get_running_loop().time())
    return not (await asyncio.wait(tasks, timeout=timeout))[1]


def _is_same_file(name: str, other: str) -> bool:
    try:
        return os.path.samefile(name, other)
    except OSError:
        return False


def _nested_in(root: str, known: Sequence[str], last: _Taken | None) -> list[str]:
    """Return the repositories inside ``root``; the most important ones come first.

    Those that are ``known`` remain as long as they exist.  Then the last ones come that
    git has written to.
    """
    stays = [name for name in known if _written(root, name)]
    unlooked = last.snapshot.unlooked.items() if last else ()
    others = [
        name.removesuffix("/")
        for name, (reason, _) in unlooked
        if reason == "repository" and name.endswith("/") and is_text(name)
    ]
    times = {name: _written(root, name) for name in others if name not in stays}
    new = [name for name, time in times.items() if time]
    return stays + sorted(new, key=lambda name: (-times[name], name))


def _is_below(name: str, directories: Sequence[str]) -> bool:
    tops = tuple(f"{directory}/" for directory in directories)
    return name.startswith(tops) and name not in tops


def _written(root: str, name: str) -> int:
    """Return when git has written to the repository ``name``, 0 if it is none."""
    for file in ".git/index", ".git/HEAD", ".git":
        with suppress(OSError):
            return os.lstat(os.path.join(root, name, file)).st_mtime_ns
    return 0


def _contents(store: Store, changes: Sequence[Change]) -> Mapping[str, bytes | None]:
    """Return the contents of ``changes``, as `Store.texts`; none if they are many."""
    if not 0 < len(changes) <= MOST_FILES:
        return {}
    try:
        return store.texts(changes)
    except GitError:
        return {}


def _root_of(directory: str) -> tuple[str, Problem | None]:
    if problem := git_problem():
        return directory, Problem(problem, "install git 2.32 or later")
    try:
        return top_level(directory), None
    except GitError as error:
        return directory, Problem(str(error), error.remedy)


def _listed(store: Store, goes_on: bool) -> tuple[Head, Listing]:
    return store.head(), store.listing(goes_on)


def _shown(names: Sequence[str]) -> list[str]:
    """Return the first ones of ``names``, as texts."""
    shown = names[:MOST_FILES]
    return [os.fsencode(name).decode(errors="replace") for name in shown]
