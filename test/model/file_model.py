# SPDX-License-Identifier: GPL-3.0-or-later
"""The model of gemini-companion-weave.el, with a judge: who wrote which line of a file.

The weave of a file is a list of lines in order: those that the file has, and those that
it had.
A line has marks, the oldest first.  A mark says that a hunk, which is what one write of
an edit
did at one place, has added the line or removed it.  A mark can be off: others, or the
user who
undid the hunk, have taken that back.  The last mark that counts says whether the line
is there:

    all marks that are on               the text as it is known
    those that are on and reviewed      the text without what the user has not reviewed
    those that are on and not of S      the text without the hunks S

Keeping a hunk sets that it was reviewed.  Undoing it turns its marks off.  A look
compares the
text now with the text as it is known, and does in a copy what a write by others would
do.  Only
a write of a CLI, and the user who keeps or undoes something, change the record.

Others turn marks.  If they remove a line, the marks that added it go off; what was
undone is
never removed again that way.  If they bring a line back, the mark that removed it goes
off, or
the one that added it goes on again.  A hunk is on again as a whole if a line that it
had added
is back; it is undone as a whole if all that it had removed is back and none of its
lines is
there.

The judge has an account of each line by identity, whatever its text; the model sees
texts only.
With unique lines all answers must be the same.  With few distinct lines only what is
about texts
must hold, and the lines that are taken for another edit's are counted.

Not in the model: the last newline, line ends, coding and byte order mark as facts of
their own (a conversion is one value here), save hooks, renames, unsaved text beside
another text on the disk, limits of memory, undo across a write of a CLI, and what a row
of a list keeps.

Known as wrong: a hunk that only removed lines is not there again after a stash and its
pop if a CLI has written in between, as the text does not tell that from a user who
removes these lines.

    file_model.py [SEQUENCES]     the judge
    file_model.py mutations       wrong models, each of which the judge must find
    file_model.py cost            20,000 lines
    file_model.py export N [FEW]  N sequences with their answers, a line of JSON each
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple, TypeVar, Union

T = TypeVar("T")

CONTEXT = 3
"""Where others removed so many lines around what a CLI had changed, that is not in the
file now."""

MOST_MOVED = 500
"""So many lines that come back in another order are looked for between two that
stay."""

# ------------------------------------------------------------------ comparison

MOST_CELLS = 40_000


def align(old: Sequence[T], new: Sequence[T]) -> list[tuple[int, int]]:
    """Return the pairs of indices of a longest common subsequence."""
    table = [[0] * (len(new) + 1)]
    for line in reversed(old):
        below, row = table[-1], [0] * (len(new) + 1)
        for j in range(len(new) - 1, -1, -1):
            row[j] = max(
                below[j], row[j + 1], below[j + 1] + 1 if line == new[j] else 0
            )
        table.append(row)
    table.reverse()
    pairs, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        if table[i][j] == table[i + 1][j]:
            i += 1
        elif table[i][j] == table[i][j + 1]:
            j += 1
        else:
            pairs.append((i, j))
            i, j = i + 1, j + 1
    return pairs


def compare(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of indices of lines that two lists have in common, in order."""
    head, most = 0, min(len(old), len(new))
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(a) * len(b) <= MOST_CELLS:
        middle = align(a, b) if a and b else []
    else:  # in Emacs, the program diff
        blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
        middle = [(i + n, j + n) for i, j, size in blocks for n in range(size)]
    return (
        [(i, i) for i in range(head)]
        + [(head + i, head + j) for i, j in middle]
        + [(len(old) - tail + i, len(new) - tail + i) for i in range(tail)]
    )


def regions_between(
    pairs: Sequence[tuple[int, int]], old_length: int, new_length: int
) -> list[tuple[int, int, int, int]]:
    """Return the regions (old start, old end, new start, new end) between PAIRS."""
    regions, i, j = [], 0, 0
    for a, b in [*pairs, (old_length, new_length)]:
        if (i, j) != (a, b):
            regions.append((i, a, j, b))
        i, j = a + 1, b + 1
    return regions


# ------------------------------------------------------------------ lines and their
# marks


class Hunk:
    """What one write of an EDIT did at one place."""

    __slots__ = ("edit", "number", "reviewed")

    def __init__(self, edit: Any, number: Any, reviewed: bool = False) -> None:
        self.edit, self.number, self.reviewed = edit, number, reviewed

    def __repr__(self) -> str:
        return f"{self.edit}.{self.number}" + ("!" if self.reviewed else "")


OTHERS, UNDONE, BOTH = "others", "undone", "both"  # BOTH: first others, then the user


class Mark(NamedTuple):
    hunk: Hunk
    value: Any  # True: it has added the line; False: it has removed it
    off: Any = False  # OTHERS, UNDONE or BOTH: who has taken that back


Marks = tuple[Mark, ...]


class Line(NamedTuple):
    text: str
    marks: Marks
    when: tuple[int, ...] = (0,)  # the steps at which it came, went, came again, ...


Weave = list[Line]
NOBODY = Hunk(None, 0, True)  # has made the text before the first edit
BASE: Marks = (
    Mark(NOBODY, True),
)  # the marks of most lines: one object, so that a test is cheap


def decider(marks: Iterable[Mark]) -> Any:
    """Return the last of MARKS that is on, or None."""
    return next((mark for mark in reversed(list(marks)) if not mark.off), None)


def there(marks: Sequence[Mark]) -> bool:
    """Return whether a line with MARKS is there."""
    mark = decider(marks)
    return mark is not None and bool(mark.value)


def in_r(marks: Marks) -> bool:
    """Return whether a line with MARKS is there if only what was reviewed counts."""
    for hunk, value, off in reversed(marks):
        if not off and hunk.reviewed:
            return bool(value)
    return False


def gone(marks: Marks) -> bool:
    """Return whether others have removed a line with MARKS with the place where it was,
    see `Rewriting.mark_gone'."""
    return not marks[-1].value and marks[-1].hunk.edit is None


def of_edits(marks: Marks) -> bool:
    return marks is not BASE and any(mark.hunk.edit is not None for mark in marks)


def turned(marks: Marks, k: int) -> Marks:
    """Return MARKS with the one at K turned off, or on again."""
    hunk, value, off = marks[k]
    return (*marks[:k], Mark(hunk, value, False if off else OTHERS), *marks[k + 1 :])


def switched(marks: Marks) -> Marks:
    """Return MARKS after others have removed the line, or brought it back.

    Each of both is explained by as few of the last marks as possible: what a CLI has
    added is
    taken back, or what others have taken back from it is there again."""
    want = not there(marks)
    for k in range(len(marks) - 1, -1, -1):
        mark = marks[k]
        if (mark.value == want) == bool(mark.off):
            if mark.off and not mark.value:
                continue  # what was undone stays undone, see `redo_as_a_whole'
            marks = marks[:k] if gone(marks[: k + 1]) else turned(marks, k)
            if there(marks) == want:
                break
    return marks


def removed_by_cli(marks: Marks) -> bool:
    """Return whether a CLI has removed a line with MARKS, which may be gone since."""
    mark = decider(marks[:-1] if gone(marks) else marks)
    return mark is not None and not mark.value and mark.hunk.edit is not None


def changed(line: Line, marks: Marks, step: int) -> Line:
    """Return LINE with MARKS, since STEP."""
    return Line(
        line.text,
        marks,
        line.when if there(marks) == there(line.marks) else (*line.when, step),
    )


def met(one: Line, other: Line) -> bool:
    """Return whether two lines were there at the same time, so that their order
    counts."""
    a, b = [*one.when, LATER], [*other.when, LATER]
    return any(
        a[i] < b[j + 1] and b[j] < a[i + 1]
        for i in range(0, len(a) - 1, 2)
        for j in range(0, len(b) - 1, 2)
    )


# ------------------------------------------------------------------ writing


class Rewriting:
    """From a weave to the next: somebody has made TEXT of it: EDIT, or others if that
    is None."""

    def __init__(
        self,
        weave: Weave,
        text: list[str],
        step: int,
        edit: int | None = None,
        first: int = 0,
    ) -> None:
        self.weave, self.text, self.step, self.edit = weave, text, step, edit
        self.others = Hunk(None, step, True)
        old = [
            i for i, line in enumerate(weave) if line.marks is BASE or there(line.marks)
        ]
        pairs = compare([weave[i].text for i in old], text)
        self.at = {j: old[i] for i, j in pairs}  # lines of the text -> of the weave
        self.stays = set(self.at.values())
        self.removed: dict[int, int] = {}
        self.fresh: dict[int, tuple[int, int | None]] = {}
        self.hunks: list[Hunk] = []
        for number, (a, b, c, d) in enumerate(
            regions_between(pairs, len(old), len(text))
        ):
            self.hunks.append(
                self.others if edit is None else Hunk(edit, first + number)
            )
            self.removed.update((old[i], number) for i in range(a, b))
            self.fresh.update(
                (j, (number, old[b - 1] if a < b else None)) for j in range(c, d)
            )

    def weave_after(self) -> Weave:
        if not self.removed and not self.fresh:
            return self.weave
        # HOW a line has come into the result: it is "new", "back", "removed", or as
        # before.
        self.result: Weave = []
        self.how: list[str] = []
        self.before: dict[int, Line] = {}
        i0 = j0 = -1
        for j1, i1 in [*self.at.items(), (len(self.text), len(self.weave))]:
            # What no CLI has touched was there with all others: the order of those is
            # free between two.
            if i1 < len(self.weave) and self.weave[i1].marks is not BASE:
                continue
            self.put_gap(range(i0 + 1, i1), range(j0 + 1, j1))
            if i1 < len(self.weave):
                self.put(self.weave[i1])
            i0, j0 = i1, j1
        if self.edit is None:
            self.redo_as_a_whole()
            self.mark_gone()
            self.undo_as_a_whole()
        return self.result

    def put(self, line: Line, how: str = "", before: Line | None = None) -> None:
        if before is not None:
            self.before[len(self.result)] = before
        self.result.append(line)
        self.how.append(how)

    def put_gap(self, here: range, lines: range) -> None:
        """Put the lines of the weave HERE, and LINES of the text, both between two that
        stay."""
        new = [j for j in lines if j in self.fresh]
        if not new and not any(i in self.removed for i in here):
            for i in here:
                self.put(self.weave[i])
            return
        order = list(here)
        back = self.returning(order, new)  # lines of the text -> of the weave
        place = {i: p for p, i in enumerate(order)}
        again = {i: j for j, i in back.items()}
        limit, limits = len(order), {}
        for j in reversed(lines):
            if j in self.at or j in back:
                limit = place[self.at[j] if j in self.at else back[j]]
            limits[j] = limit
        done = 0

        def put_until(end: int) -> None:
            nonlocal done
            for i in order[done:end]:
                self.put_old(i, again.get(i))
            done = max(done, end)

        for j in lines:
            if j in self.at or j in back:
                put_until(limits[j] + 1)
            else:
                number, last = self.fresh[j]
                if last is not None:  # after those in whose place it is
                    put_until(min(limits[j], place[last] + 1))
                self.put(
                    Line(self.text[j], (Mark(self.hunks[number], True),), (self.step,)),
                    "new",
                )
        put_until(len(order))

    def put_old(self, i: int, j: int | None) -> None:
        """Put the line I of the weave, which is back as the line J of the text if that
        is no None."""
        line = self.weave[i]
        number = self.removed.get(i) if j is None else self.fresh[j][0]
        if number is None:
            self.put(line)
        elif self.edit is not None:
            marks = (*line.marks, Mark(self.hunks[number], j is not None))
            self.put(
                changed(line, marks, self.step), "back" if j is not None else "removed"
            )
        else:
            marks = switched(line.marks)
            # What no CLI has touched is forgotten, unless it tells the place of what
            # one has.
            if j is not None or of_edits(marks) or self.near(i):
                self.put(
                    changed(line, marks, self.step),
                    "back" if j is not None else "removed",
                    line,
                )

    def near(self, i: int) -> bool:
        return any(
            of_edits(line.marks)
            for line in self.weave[max(0, i - CONTEXT) : i + CONTEXT + 1]
        )

    def returning(self, order: list[int], new: list[int]) -> dict[int, int]:
        """Return which lines of the weave are back as lines NEW of the text; ORDER is
        made that of these."""
        dead = [i for i in order if i not in self.stays and i not in self.removed]
        here, back = set(order), {}
        # The most come back in order: these are put in one pass.
        stays = [(j, i) for j, i in self.at.items() if i in here] if dead else []
        place = {i: p for p, i in enumerate(order)}
        at = 0
        for a, b in compare(
            [self.weave[i].text for i in dead], [self.text[j] for j in new]
        ):
            while at < len(stays) and stays[at][0] < new[b]:
                at += 1
            if (at == 0 or place[stays[at - 1][1]] < place[dead[a]]) and (
                at == len(stays) or place[dead[a]] < place[stays[at][1]]
            ):
                back[new[b]] = dead[a]
        where, more = {i: j for j, i in [*stays, *back.items()]}, True
        while more:  # lines of other times may be in another order
            dead = [i for i in dead if i not in where][:MOST_MOVED]
            new = [j for j in new if j not in back][:MOST_MOVED]
            more = False
            for a, b in compare(
                [self.weave[i].text for i in dead], [self.text[j] for j in new]
            ):
                if self.move(order, dead[a], new[b], where):
                    back[new[b]], where[dead[a]], more = dead[a], new[b], True
        return back

    def move(self, order: list[int], i: int, j: int, where: dict[int, int]) -> bool:
        """Put the line I of the weave in ORDER where the line J of the text is, if that
        is possible.

        It may pass lines that were never there with it, and takes along those that
        were, and are not now."""
        p = order.index(i)
        low = max((q for q, k in enumerate(order) if where.get(k, j) < j), default=-1)
        high = min(
            (q for q, k in enumerate(order) if where.get(k, j) > j), default=len(order)
        )
        if low < p < high:
            return True
        moved, stay = [i], []
        for q in range(p + 1, low + 1) if p < low else range(p - 1, high - 1, -1):
            if not any(met(self.weave[order[q]], self.weave[k]) for k in moved):
                stay.append(order[q])
            elif order[q] in where or len(moved) == MOST_MOVED:
                return False
            else:
                moved.append(order[q])
        if p < low:
            order[p : low + 1] = stay + moved
        else:
            order[high : p + 1] = (stay + moved)[::-1]
        return True

    def mark_gone(self) -> None:
        """Mark what a CLI has removed if others remove its place, as of another branch;
        unmark it if that is back."""
        if "removed" not in self.how and "back" not in self.how:
            return
        self.known: dict[Any, set[str]] = {}
        self.candidates = [
            [
                q
                for q, other in enumerate(self.result)
                if self.how[q] != "new"
                and (was_gone or self.how[q] or there(other.marks))
                and not removed_by_cli(other.marks)
            ]
            for was_gone in (False, True)
        ]
        for p, line in enumerate(self.result):
            if (
                line.marks is BASE
                or there(line.marks)
                or not (p in self.before or removed_by_cli(line.marks))
            ):
                continue
            was_gone = gone(line.marks)
            around = self.around(p, -1, was_gone) | self.around(p, 1, was_gone)
            if was_gone:
                if "back" in (around or self.how):
                    self.result[p] = line._replace(marks=line.marks[:-1])
            elif around == {"removed"} if around else not self.stays:
                # What removes the place removes the line, too, and not what did so
                # before.
                line = self.before.pop(p, line)
                self.result[p] = changed(
                    line, (*line.marks, Mark(self.others, False)), self.step
                )

    def around(self, p: int, step: int, was_gone: bool) -> set[str]:
        """Return how the next lines from P on are that were there with it, or came
        instead of it."""
        line = self.result[p]
        by = decider(line.marks[:-1] if was_gone else line.marks)
        candidates = self.candidates[was_gone]
        k = bisect_left(candidates, p) if step > 0 else bisect_left(candidates, p) - 1
        if step > 0 and k < len(candidates) and candidates[k] == p:
            k += 1
        found: set[str] = set()
        if not 0 <= k < len(candidates):
            return found
        key = candidates[k], step, was_gone, by and by.hunk, line.when
        if key in self.known:  # lines beside one another have the same around them
            return self.known[key]
        count = 0
        while 0 <= k < len(candidates) and count < CONTEXT:
            q = candidates[k]
            other = self.result[q]
            if met(other, line):
                found.add(self.how[q])
                count += 1
            elif (by and other.marks[0].hunk is by.hunk) or (
                not self.how[q] and other.marks[0].hunk.edit is not None
            ):
                found.add(
                    self.how[q]
                )  # by the same hunk; or of a CLI, and there before and after
            k += step
        self.known[key] = found
        return found

    def redo_as_a_whole(self) -> None:
        """Turn a hunk on again as a whole if others have brought back a line that it
        had added."""
        back = {
            mark.hunk
            for p, line in self.before.items()
            for mark, now in zip(line.marks, self.result[p].marks, strict=False)
            if mark.hunk.edit is not None and mark.value and mark.off and not now.off
        }
        for p, line in self.before.items() if back else ():
            if self.how[p] == "removed":
                for k in range(len(line.marks) - 1, -1, -1):
                    mark, marks = line.marks[k], turned(line.marks, k)
                    if (
                        mark.hunk in back
                        and not mark.value
                        and mark.off
                        and not there(marks)
                    ):
                        self.result[p] = changed(line, marks, self.step)
                        break

    def undo_as_a_whole(self) -> None:
        """Turn off a hunk if others have brought back what it had removed, and nothing
        of it is there."""
        undone = {
            mark.hunk
            for p, line in self.before.items()
            for mark, now in zip(line.marks, self.result[p].marks, strict=False)
            if mark.hunk.edit is not None
            and not mark.value
            and now.off
            and not mark.off
        }
        if undone:
            undone -= {
                mark.hunk for line in self.result if (mark := decider(line.marks))
            }
        if undone:
            self.result = without(self.result, undone, self.step)


LATER = 1 << 60


def without(weave: Weave, hunks: set[Hunk], step: int = LATER) -> Weave:
    """Return WEAVE with the marks of HUNKS off."""
    return [
        line
        if line.marks is BASE or not any(mark.hunk in hunks for mark in line.marks)
        else changed(
            line,
            tuple(
                Mark(h, v, UNDONE if h in hunks else off) for h, v, off in line.marks
            ),
            step,
        )
        for line in weave
    ]


def texts(weave: Weave, r: bool = False) -> list[str]:
    """Return the lines that are there, or if R is true, those of the text without what
    nobody has reviewed."""
    return [
        line.text
        for line in weave
        if line.marks is BASE or (in_r if r else there)(line.marks)
    ]


# ------------------------------------------------------------------ changes


class Change(NamedTuple):
    """What nobody has reviewed at one place of the text now."""

    start: int  # the index of its first line now
    end: int
    lines: tuple[str, ...]  # what would be there without it
    hunks: frozenset[Hunk]  # what is kept or undone with it
    edits: frozenset[int]  # those whose lines it has, or has not any more
    mixed: bool = False  # others have changed a CLI's own lines: undoing it asks
    conversion: tuple[Any, Any] | None = (
        None  # of the file as a whole: the formats without it and now
    )


def present_and_reviewed(marks: Marks) -> bool:
    """Return whether a line with MARKS is there, and nobody has to review that."""
    return marks is BASE or (
        there(marks)
        and in_r(marks)
        and all(mark.off or mark.hunk.reviewed for mark in marks)
    )


def spans(weave: Weave) -> list[tuple[int, int, set[Hunk]]]:
    """Return where something is to be reviewed: a list of (start, end, hunks), indices
    of WEAVE.

    What is between two lines of a hunk belongs to it, such as a line that others have
    inserted."""
    found: list[tuple[int, int, set[Hunk]]] = []
    p = 0
    while p < len(weave):
        if present_and_reviewed(weave[p].marks):
            p += 1
            continue
        start = p
        while p < len(weave) and not present_and_reviewed(weave[p].marks):
            p += 1
        hunks = {
            mark.hunk
            for line in weave[start:p]
            if not gone(line.marks)
            for mark in line.marks
            if not mark.off and not mark.hunk.reviewed
        }
        if hunks:
            while any(more & hunks for _, _, more in found):
                start, _, more = found.pop()
                hunks |= more
            found.append((start, p, hunks))
    return found


def changes_in(weave: Weave) -> list[Change]:
    """Return the changes of WEAVE, in order."""
    result, end, n, places = [], 0, 0, spans(weave)
    lost = {
        mark.hunk
        for line in weave
        if line.marks is not BASE and not there(line.marks)
        for mark in line.marks
        if mark.value
    }
    for k, (p, q, hunks) in enumerate(places):
        differ = [line for line in weave[p:q] if there(line.marks) != in_r(line.marks)]
        mixed = bool(lost & hunks) and bool(conflicts(weave, hunks))
        if mixed:  # the user is to see the lines of both
            p, q = wider(
                weave,
                p,
                q,
                end,
                places[k + 1][0] if k + 1 < len(places) else len(weave),
            )
        n += len(texts(weave[end:p]))
        now, lines = texts(weave[p:q]), texts(weave[p:q], r=True)
        first, last = n, n + len(now)
        end, n = q, last
        if now == lines:
            continue
        while not mixed and now and lines and now[0] == lines[0]:
            del now[0], lines[0]
            first += 1
        while not mixed and now and lines and now[-1] == lines[-1]:
            del now[-1], lines[-1]
            last -= 1
        result.append(
            Change(
                first,
                last,
                tuple(lines),
                frozenset(hunks),
                frozenset(decider(line.marks).hunk.edit for line in differ),
                mixed,
            )
        )
    return result


def wider(weave: Weave, p: int, q: int, low: int, high: int) -> tuple[int, int]:
    """Return the span from P to Q with what is beside it and is not of before the
    edits."""

    def beside(marks: Marks) -> bool:
        typed = (
            len(marks) == 1
            and not marks[0].off
            and marks[0].hunk.edit is None
            and marks[0].hunk is not NOBODY
        )
        return marks is not BASE and (typed or (not there(marks) and not in_r(marks)))

    while p > low and beside(weave[p - 1].marks):
        p -= 1
    while q < high and beside(weave[q].marks):
        q += 1
    return p, q


def conflicts(weave: Weave, hunks: Iterable[Hunk]) -> set[Hunk]:
    """Return those of HUNKS of whose own lines others, or other hunks, have removed
    some.

    It is none if nothing is in the place of these, and nothing comes there by undoing
    HUNKS."""
    found, p = set(), 0
    while p < len(weave):
        if not any(mark.hunk in hunks for mark in weave[p].marks):
            p += 1
            continue
        q = p
        while q < len(weave) and (
            any(mark.hunk in hunks for mark in weave[q].marks)
            or not there(weave[q].marks)
        ):
            q += 1
        a, b = wider(weave, p, q, 0, len(weave))
        lost, works, both = set(), set(), False
        for line in weave[a:b]:
            now, after = (
                there(line.marks),
                there([m for m in line.marks if m.hunk not in hunks]),
            )
            last = decider(line.marks)
            if not now and (last is None or last.hunk not in hunks):
                lost |= {
                    mark.hunk
                    for mark in line.marks
                    if mark.value and mark.hunk in hunks
                }
            if now != after and last is not None:
                works.add(last.hunk)
            both |= after
        if both:
            found |= lost & works
        p = q
    return found


# ------------------------------------------------------------------ a file


class Edit(NamedTuple):
    id: int
    session: int = 1
    turn: int = 1
    time: float = 0


What = Union[Hunk, Change, Edit, "Iterable[Any]"]
Format = Any


class Conflict(Exception):
    """Others have changed own lines of the hunks that are to be undone."""


class File:
    """A file that CLIs write.  FORMAT is that of the text (line ends, mark, coding),
    None if there is no file."""

    def __init__(self, text: list[str], format: Format = "lf") -> None:
        self.weave = [Line(line, BASE) for line in text]
        self.format: Marks = (
            Mark(NOBODY, format),
        )  # the file as a whole has marks, too
        self.step = 1
        self.edits: dict[int, Edit] = {}
        self.answers: dict[int, list[str] | None] = {}
        self.reports: dict[int, tuple[list[str], Any, Weave, Marks, Weave, Marks]] = {}
        self.undone: list[tuple[float, Hunk]] = []

    # ---------------------------------------------- CLIs
    def propose(self, edit: Edit) -> None:
        self.answers[edit.id] = None

    def accept(self, edit: Edit, text: list[str]) -> None:
        """TEXT is the proposal with the user's own changes, which are of the edit."""
        self.answers[edit.id] = text

    def reject(self, edit: Edit) -> None:
        del self.answers[edit.id]

    def write(
        self,
        edit: Edit,
        before: list[str],
        after: list[str],
        format_before: Format = None,
        format_after: Format = None,
    ) -> None:
        """A CLI has written AFTER where BEFORE was.

        What was accepted counts as reviewed at once, but where it touches what nobody
        has reviewed."""
        if (
            edit.id in self.reports
        ):  # a second report: of the same text, or the right one
            first, first_format, weave, format, then, format_then = self.reports[
                edit.id
            ]
            if (
                (first, first_format) == (after, format_after)
                or self.weave is not then
                or self.format is not format_then
            ):
                return
            self.weave, self.format = weave, format
        weave, format = self.weave, self.format
        self.edits[edit.id] = edit
        self.weave, self.format = self.look(before), self.format_now(format_before)
        accepted = self.answers.get(edit.id)
        if accepted is not None:
            left = {hunk for change in changes_in(self.weave) for hunk in change.hunks}
            made = self.rewrite(edit, accepted)
            touching = set().union(
                *(hunks for _, _, hunks in spans(self.weave) if hunks & left)
            )
            for hunk in made:
                hunk.reviewed = hunk not in touching
        self.rewrite(edit, after)
        if format_after is not None and format_after != value_of(self.format):
            self.format += (Mark(Hunk(edit.id, "format"), format_after),)
        self.reports[edit.id] = (
            list(after),
            format_after,
            weave,
            format,
            self.weave,
            self.format,
        )

    def rewrite(self, edit: Edit, text: list[str]) -> list[Hunk]:
        self.step += 1
        rewriting = Rewriting(
            self.weave, text, self.step, edit.id, len(self.hunks_of(edit))
        )
        self.weave = rewriting.weave_after()
        self.step += 1
        return rewriting.hunks

    # ---------------------------------------------- looking
    def look(self, now: list[str]) -> Weave:
        """Return the weave as it is with the text NOW; the record stays."""
        return Rewriting(self.weave, now, self.step).weave_after()

    def format_now(self, format: Format) -> Marks:
        marks = self.format
        if format is None or format == value_of(marks):
            return marks
        for k in range(
            len(marks) - 1, 0, -1
        ):  # others have converted it back, or again
            marks = turned(marks, k)
            if value_of(marks) == format:
                return marks
        return (*self.format, Mark(Hunk(None, self.step, True), format))

    def changes(self, now: list[str], format: Format = None) -> list[Change]:
        marks = self.format_now(format)
        without_, with_ = value_of(marks, lambda hunk: hunk.reviewed), value_of(marks)
        hunk = decider(marks).hunk
        return [
            Change(
                0,
                0,
                (),
                frozenset([hunk]),
                frozenset([hunk.edit]),
                False,
                (without_, with_),
            )
            for _ in range(without_ != with_)
        ] + changes_in(self.look(now))

    def hunks_of(self, what: What) -> set[Hunk]:
        """Return the hunks of WHAT: a hunk, a change, an edit, or several of them, as
        of a turn."""
        if isinstance(what, Hunk):
            return {what}
        if isinstance(what, Change):
            return set(what.hunks)
        if isinstance(what, Edit):
            return {
                mark.hunk
                for marks in [self.format, *(line.marks for line in self.weave)]
                for mark in marks
                if mark.hunk.edit == what.id
            }
        several: Iterable[Any] = what
        return {hunk for one in several for hunk in self.hunks_of(one)}

    def hunk_states(self, edit: Edit, now: list[str]) -> dict[Hunk, str]:
        """Return what is left of each hunk of EDIT: "there", "partly", "undone",
        "gone", or "superseded"."""
        return states_in(self.look(now), self.hunks_of(edit))

    def state_of(self, edit: Edit, now: list[str]) -> str:
        """Return what is left of EDIT, see `hunk_states'; of none left, some may be
        undone, and some superseded."""
        states = set(self.hunk_states(edit, now).values())
        if states <= {"there"}:
            return "there"
        return next(
            state
            for state in ("partly", "undone", "gone", "superseded")
            if state in states or (state == "partly" and "there" in states)
        )

    def told(self, since: float, now: list[str]) -> list[Hunk]:
        """Return the hunks that the user has undone since then, and that are not there
        again."""
        states: dict[Hunk, str] = {}
        for edit in self.edits.values():
            states |= self.hunk_states(edit, now)
        return [
            hunk
            for at, hunk in self.undone
            if at > since and states.get(hunk, "") in ("undone", "gone", "superseded")
        ]

    def since(self, at: float, now: list[str]) -> list[Change]:
        """Return the changes with lines that were written since then, as after the
        user's comments."""
        return [
            change
            for change in self.changes(now)
            if any(self.edits[edit].time > at for edit in change.edits)
        ]

    def at(self, edit: Edit, now: list[str]) -> list[str]:
        """Return the text as it was before EDIT, with all that others have done
        since."""
        ids = list(self.edits)
        return texts(
            without(
                self.look(now),
                self.hunks_of([self.edits[n] for n in ids[ids.index(edit.id) :]]),
            )
        )

    # ---------------------------------------------- the user
    def keep(self, what: What, now: list[str]) -> set[Hunk]:
        """Keep WHAT, and return the hunks that stay as they are on top of what nobody
        has reviewed."""
        wanted = {hunk for hunk in self.hunks_of(what) if not hunk.reviewed}
        left: set[Hunk] = set()
        more = wanted
        weave = [line.marks for line in self.look(now) if not gone(line.marks)]
        while more:
            more = {
                mark.hunk
                for marks in weave
                for k, mark in enumerate(marks)
                if not mark.off
                and mark.hunk in wanted - left
                and any(
                    not under.off
                    and not under.hunk.reviewed
                    and under.hunk not in wanted - left
                    for under in marks[:k]
                )
            }
            left |= more
        for hunk in wanted - left:
            hunk.reviewed = True
        return left

    def unkeep(self, what: What) -> None:
        for hunk in self.hunks_of(what):
            hunk.reviewed = False

    def undo(
        self, what: What, now: list[str], force: bool = False, time: float = 0
    ) -> list[str]:
        """Return the text NOW without WHAT, and record that; raise Conflict if others
        have changed it."""
        weave, hunks = self.look(now), self.hunks_of(what)
        if not force and (found := conflicts(weave, hunks)):
            raise Conflict(found)
        self.undone += [
            (time, hunk)
            for hunk in {
                decider(line.marks).hunk for line in weave if decider(line.marks)
            }
            & hunks
        ]
        self.step += 1
        after = without(weave, hunks, self.step)
        self.weave = [
            line._replace(
                marks=tuple(
                    mark._replace(off=BOTH)
                    if mark.hunk in hunks and old.off in (OTHERS, BOTH)
                    else mark
                    for mark, old in zip(line.marks, was.marks, strict=False)
                )
            )
            if line is not was
            else line
            for line, was in zip(after, weave, strict=True)
        ]
        self.step += 1
        self.format = tuple(
            Mark(h, v, UNDONE if h in hunks else off) for h, v, off in self.format
        )
        return texts(self.weave)

    def restore(self, hunks: set[Hunk], now: list[str]) -> None:
        """Record that HUNKS are not undone any more, of those that are there in the
        text NOW."""

        def on(which: set[Hunk]) -> Weave:
            return [
                line
                if not any(mark.hunk in which for mark in line.marks)
                else changed(
                    line,
                    tuple(
                        Mark(
                            h,
                            v,
                            {UNDONE: False, BOTH: OTHERS}.get(off, off)
                            if h in which
                            else off,
                        )
                        for h, v, off in line.marks
                    ),
                    self.step,
                )
                for line in self.weave
            ]

        self.step += 1
        look = Rewriting(on(hunks), now, self.step).weave_after()
        confirmed = {
            hunk
            for hunk, state in states_in(look, hunks).items()
            if state in ("there", "partly", "superseded")
        }
        self.weave = Rewriting(on(confirmed), now, self.step).weave_after()
        self.step += 1

    def forget(self, edit: Edit) -> None:
        """Drop what is recorded of EDIT, all of which was reviewed: its lines are those
        of before."""
        hunks, weave = {hunk for hunk in self.hunks_of(edit) if hunk.reviewed}, []
        for line in self.weave:
            marks = tuple(
                mark for mark in line.marks if not (mark.off and mark.hunk in hunks)
            )
            last = max(
                (k for k, mark in enumerate(marks) if mark.hunk in hunks), default=None
            )
            if last is not None:
                marks = ((Mark(NOBODY, True),) if marks[last].value else ()) + marks[
                    last + 1 :
                ]
            if marks:
                weave.append(line._replace(marks=BASE if marks == BASE else marks))
        self.weave = weave


def states_in(weave: Weave, hunks: set[Hunk]) -> dict[Hunk, str]:
    """Return what is left of each of HUNKS in WEAVE, see `File.hunk_states`."""
    seen: dict[Hunk, set[str]] = {
        hunk: set() for hunk in hunks if hunk.number != "format"
    }
    for line in weave:
        for k, mark in enumerate(line.marks if line.marks is not BASE else ()):
            if mark.hunk in seen:
                last = decider(line.marks)
                if mark.off or (mark.value and gone(line.marks)):
                    seen[mark.hunk].add(
                        "undone" if mark.off in (UNDONE, BOTH) else "gone"
                    )
                elif last.hunk is not mark.hunk:
                    seen[mark.hunk] |= set() if gone(line.marks) else {"over"}
                elif there(turned(line.marks, k)) != mark.value:
                    seen[mark.hunk].add("there")
    return {hunk: state_of(how) for hunk, how in seen.items()}


def value_of(marks: Marks, counts: Callable[[Hunk], bool] = lambda hunk: True) -> Any:
    return next(
        (mark.value for mark in reversed(marks) if not mark.off and counts(mark.hunk)),
        None,
    )


def state_of(how: set[str]) -> str:
    if "there" in how:
        return "partly" if how & {"undone", "gone"} else "there"
    return "superseded" if how == {"over"} else "undone" if "undone" in how else "gone"


# ------------------------------------------------------------------ the judge
#
# A world in which each line has an identity, whatever its text; so it is known who has
# added and
# removed it, and what of that others took back.  The model sees texts only; the world
# compares
# none, and has hunks of its own: the places that differ by identity.  With unique lines
# all must
# be exact.  With few distinct lines nobody can know whose each line is: that is
# counted, and all
# that is about the texts must hold.
#
# Items are VAGUE if no text tells what happened to them, such as which of two edits
# that have
# written a line has undone it; of these, any answer is right.


Name = tuple[int, Any]


class Item:
    """A line by its identity.  Its events are [hunk or None, added or removed, on]."""

    def __init__(self, text: str, who: Name | None = None) -> None:
        self.text = text
        self.events: list[list[Any]] = [[who, True, True]]

    def last(self) -> Any:
        return next((event for event in reversed(self.events) if event[2]), None)

    def alive(self, counts: Callable[[Name], bool] = lambda who: True) -> bool:
        return any(
            event[1]
            for event in [
                next(
                    (
                        event
                        for event in reversed(self.events)
                        if event[2] and (event[0] is None or counts(event[0]))
                    ),
                    None,
                )
            ]
            if event
        )

    def flags(self) -> list[Any]:
        return [event[2] for event in self.events]

    def set_flags(self, flags: list[Any]) -> None:
        for event, on in zip(
            self.events, [*flags, *[False] * len(self.events)], strict=False
        ):
            event[2] = on


class Wrong(Exception):
    pass


class Stop(Exception):
    """What the world wanted to do is no more than a guess."""


State = tuple[list["Item"], dict["Item", list[Any]]]
Merge = Callable[[list[str], list[str], list[str]], list[str] | None]


class World:
    """What happens to a file, by chance.  If FEW is not empty, a part RATE of the lines
    have its texts."""

    away_writes = False  # a CLI writes while another branch is checked out
    file: Callable[[list[str]], File] = File
    checks_out = False  # the text of an earlier version comes back
    git: Merge | None = None  # a function that merges three texts
    actions: Sequence[str] | None = None  # names of methods, else a mixture

    def __init__(
        self, rng: random.Random, few: Sequence[str] = (), rate: float = 1.0
    ) -> None:
        self.rng, self.few, self.rate, self.number, self.followed = (
            rng,
            few,
            rate,
            0,
            True,
        )
        self.stats: Counter[str] = Counter()
        self.log: list[Any] = []
        self.seq = [Item(self.text("b")) for _ in range(rng.randint(8, 25))]
        self.items = list(self.seq)
        self.model = self.file(self.lines())
        self.edits: list[Edit] = []
        self.kept: set[Name] = set()
        self.clock = 0
        self.before_edit: dict[
            int, tuple[list[str], list[str], int]
        ] = {}  # edit -> text before, text after, how much others did by then
        self.others = 0  # how much others did
        self.history: list[
            Any
        ] = []  # for C-/: state, and the weaves after and before an undo
        self.told: list[tuple[float, Name]] = []  # (time, hunk) of what was undone
        self.versions: list[dict[Item, int]] = []
        self.edges: tuple[dict[Item, set[Item]], dict[Item, set[Item]]] = ({}, {})
        self.recorded = [list(self.seq)]  # the versions that the model has recorded
        self.shots: list[State] = []
        self.vague: set[Item] = set()  # items about which no text tells everything
        self.record()
        self.note()

    # ---------------------------------------------- texts, places
    def text(self, whose: str) -> str:
        self.number += 1
        if self.few and self.rng.random() < self.rate:
            return self.rng.choice(self.few)
        return f"{whose}{self.number}"

    def new(self, whose: str, who: Name | None = None) -> Item:
        item = Item(self.text(whose), who)
        self.items.append(item)
        return item

    def lines(self) -> list[str]:
        return [item.text for item in self.seq]

    def note(self, seq: list[Item] | None = None) -> None:
        """Remember the order of SEQ, a version of the text."""
        seq = self.seq if seq is None else seq
        self.versions.append({item: i for i, item in enumerate(seq)})
        for one, other in itertools.pairwise(seq):
            self.edges[0].setdefault(other, set()).add(one)
            self.edges[1].setdefault(one, set()).add(other)

    def related(self, item: Item, side: int) -> set[Item]:
        """Return the items that are before ITEM by some versions, or after it if SIDE
        is 1."""
        found: set[Item] = set()
        todo = [item]
        while todo:
            more = self.edges[side].get(todo.pop(), set()) - found
            found |= more
            todo += more
        return found

    def place(self, item: Item, seq: list[Item]) -> int | None:
        """Return where in SEQ ITEM comes back: beside what has replaced it, or after
        what was before it."""
        before, after = self.related(item, 0), self.related(item, 1)
        low = max((p + 1 for p, other in enumerate(seq) if other in before), default=0)
        high = min(
            (p for p, other in enumerate(seq) if other in after), default=len(seq)
        )
        if low > high or any(other.alive(self.is_kept) for other in seq[low:high]):
            return None
        who = (item.last() or [None])[0]
        here = [p for p in range(low, high) if seq[p].events[0][0] == who is not None]
        return self.rng.randint(here[0], here[-1] + 1) if here else low

    def is_kept(self, who: Name) -> bool:
        return who in self.kept

    def state(self) -> State:
        return list(self.seq), {item: item.flags() for item in self.items}

    def restore(self, state: State) -> None:
        """Make the text that of STATE."""
        self.seq = list(state[0])
        self.explain()

    # ---------------------------------------------- others
    def remove(self, item: Item) -> None:
        self.seq.remove(item)
        self.explain()

    def record(self) -> None:
        """Remember the flags of all items: the model has recorded what is true now."""
        self.known = {item: item.flags() for item in self.items}

    def explain(self) -> None:
        """Set the flags of all items: what others did since the last record, as rules 2
        and 3 have it."""
        here, removed = set(self.seq), []
        again: set[Any] = set()
        undone: set[Any] = set()
        for item in self.items:
            known = self.known.get(item)
            if known is None:  # typed since
                item.events[0][2] = item in here
                continue
            item.set_flags(known)
            if item.alive() == (item in here):
                continue
            if item not in here:
                removed.append(item)
                while item.alive():
                    item.last()[2] = False
                continue
            for event in reversed(item.events):
                if item.alive():
                    break
                if event[2] and not event[1]:
                    undone.add(event[0])
                    event[2] = False
                elif event[1] and not event[2]:
                    again.add(event[0])
                    event[2] = True
        for item in removed:  # back as a whole
            for k in range(len(item.events) - 1, -1, -1):
                who, value, _ = item.events[k]
                flags = self.known[item]
                if who is not None and who in again and not value and not flags[k]:
                    now = item.flags()
                    item.set_flags([*flags[:k], True, *flags[k + 1 :]])
                    if not item.alive():
                        break
                    item.set_flags(now)
        undone -= {item.last()[0] for item in self.items if item.last()}
        for item in self.items:
            for event in item.events:
                if event[0] is not None and event[0] in undone:
                    event[2] = None

    def near(self) -> int:
        """Return the place of a line, often one beside a line of a CLI."""
        own = [p for p, item in enumerate(self.seq) if item.last()[0]]
        if own and self.rng.random() < 0.6:
            return min(
                len(self.seq) - 1,
                max(0, self.rng.choice(own) + self.rng.randint(-1, 1)),
            )
        return self.rng.randrange(len(self.seq)) if self.seq else 0

    def types(self) -> None:
        self.history.append((self.state(), None, None))
        self.others += 1
        for _ in range(self.rng.randint(1, 3)):
            p, kind = self.near(), self.rng.random()
            if kind < 0.35 or not self.seq:
                self.seq.insert(p, self.new("u"))
            elif kind < 0.7 or len(self.seq) > 3:
                self.remove(self.seq[p])
                if kind < 0.7:
                    self.seq.insert(p, self.new("u"))
        self.log.append(("types", self.lines()))
        self.note()

    def brings_back(self) -> None:
        """Others bring back lines that a CLI has touched and that are not there."""
        dead = [
            item
            for item in self.items
            if not item.alive() and any(event[0] for event in item.events)
        ]
        self.rng.shuffle(dead)
        self.history.append((self.state(), None, None))
        self.others += 1
        for item in dead[: self.rng.randint(1, 2)]:
            p = self.place(item, self.seq)
            if p is not None:
                self.seq.insert(p, item)
                self.explain()
                self.note()
        self.log.append(("brings back", self.lines()))

    def takes_back(self) -> None:
        """C-/ of what the user has done last.  The undo list has the record of before
        an undo."""
        if self.history:
            state, after, before = self.history.pop()
            if after is not None and self.model.weave is after:
                self.model.restore(before, [item.text for item in state[0]])
                del self.recorded[-2:]
                self.known = state[1]
                self.restore(state)
                self.record()
            self.others += 1
            self.restore(state)
            self.log.append(("C-/", self.lines()))
            self.note()

    def checks_an_old_text_out(self) -> None:
        if len(self.shots) > 1:
            self.history.append((self.state(), None, None))
            self.others += 1
            self.restore(self.rng.choice(self.shots[:-1]))
            self.log.append(("checks out", self.lines()))
            self.note()

    # ---------------------------------------------- CLIs
    def fresh(self, whose: str = "c") -> Item:
        item = self.new(whose)
        item.events = []
        return item

    def written(self, seq: list[Item], edit: int, number: int) -> int:
        """Record that the CLI of EDIT has made SEQ of the text; return the number of
        the next hunk."""
        old, both, i, j = self.seq, set(self.seq) & set(seq), 0, 0
        for stop in [*(item for item in old if item in both), None]:
            a = old.index(stop) if stop else len(old)
            b = seq.index(stop) if stop else len(seq)
            if a > i or b > j:
                for item in old[i:a]:
                    item.events.append([(edit, number), False, True])
                for item in seq[j:b]:
                    item.events.append([(edit, number), True, True])
                number += 1
            i, j = a + 1, b + 1
        self.seq = list(seq)
        self.note()
        return number

    def proposal(self, simple: bool) -> list[Item]:
        """Return what a CLI makes of the text."""
        rng, seq, kind = self.rng, list(self.seq), 1 if simple else self.rng.random()
        if kind < 0.14 and self.edits:
            if kind < 0.07:  # the text as it was
                wanted = list(rng.choice(self.versions))
                seq = [item for item in seq if item in wanted]
            else:  # lines that were there
                wanted = [
                    item for item in self.items if not item.alive() and item.events
                ]
                rng.shuffle(wanted)
                del wanted[rng.randint(1, 3) :]
            for item in wanted:
                if item not in seq and (p := self.place(item, seq)) is not None:
                    seq.insert(p, item)
                    self.note(seq)
            if kind < 0.07:
                return seq
        for _ in range(rng.randint(1, 4)):
            p, kind, count = (
                min(self.near(), len(seq)),
                rng.random(),
                rng.choice((1, 1, 2, 3)),
            )
            if kind < 0.35:
                seq[p:p] = [self.fresh() for _ in range(count)]
            elif kind < 0.75:
                seq[p : p + count] = [
                    self.fresh() for _ in range(rng.choice((1, count)))
                ]
            elif len(seq) > 6:
                del seq[p : p + count]
        return seq

    def writes_unreviewed(self) -> None:
        self.writes(False)

    def writes(self, accepted: bool | None = None, simple: bool = False) -> None:
        rng, before, seq = self.rng, self.lines(), self.proposal(simple)
        if [item.text for item in seq] == before:
            self.items = [item for item in self.items if item.events]
            return
        self.clock += 1
        edit = Edit(
            len(self.edits) + 1,
            rng.choice((1, 1, 2)),
            rng.choice((1, 2, 3)),
            self.clock,
        )
        left = self.model.changes(before)
        differ = {
            item
            for item in self.items
            if item.events and item.alive() != item.alive(self.is_kept)
        }
        accepted = rng.random() < 0.25 if accepted is None else accepted
        self.recorded.append(list(self.seq))
        if accepted:
            self.model.propose(edit)
            if rng.random() < 0.4:  # the user changes the proposal
                seq.insert(rng.randrange(len(seq) + 1), self.fresh("p"))
            self.model.accept(edit, [item.text for item in seq])
        number = self.written(seq, edit.id, 0)
        if accepted and rng.random() < 0.3:  # a formatter, before the file is seen
            seq, p = list(seq), rng.randrange(len(seq) + 1)
            seq[p : p + rng.randint(0, 1)] = [self.fresh("f")]
            self.written(seq, edit.id, number)
        self.recorded.append(list(self.seq))
        self.edits.append(edit)
        self.before_edit[edit.id] = before, self.lines(), self.others
        self.log.append(
            ("writes", edit.id, "accepted" if accepted else "", before, self.lines())
        )
        self.model.write(edit, before, self.lines())
        self.history = []
        self.shots.append(self.state())
        self.record()
        self.items = [item for item in self.items if item.events]
        for hunk in self.model.hunks_of(edit):
            if hunk.reviewed:
                self.kept.add((hunk.edit, hunk.number))
                if not self.few and hunk.number >= number:
                    raise Wrong("what a formatter has changed counts as accepted")
                name = hunk.edit, hunk.number
                if not self.few and any(
                    event[0] == name for item in differ for event in item.events
                ):
                    raise Wrong("accepted on top of what nobody has reviewed")
            elif not self.few and accepted and hunk.number < number and not left:
                raise Wrong("accepted, and not reviewed")

    # ---------------------------------------------- the user decides
    def keeps(self) -> None:
        now, rng = self.lines(), self.rng
        found = self.model.changes(now)
        if not found:
            return
        what: Any
        if rng.random() < 0.6:
            what = rng.choice(found)
            rest = [
                change for change in found if change is not what and not change.mixed
            ]
            self.model.keep(what, now)
            self.kept |= {(hunk.edit, hunk.number) for hunk in what.hunks}
            # A change that is mixed has lines of others beside it.
            if [
                change for change in self.model.changes(now) if not change.mixed
            ] != rest:
                raise Wrong("keeping a change changes others", what)
            self.log.append(("keeps", now, what))
            return
        edit = rng.choice(self.edits)
        what = (
            [edit]
            if rng.random() < 0.5
            else [other for other in self.edits if other.turn == edit.turn]
        )
        hunks = [hunk for hunk in self.model.hunks_of(what) if not hunk.reviewed]
        wanted = {(hunk.edit, hunk.number) for hunk in hunks}
        left = {(hunk.edit, hunk.number) for hunk in self.model.keep(what, now)}
        if not self.few and left != self.on_top(wanted):
            if self.vague:
                raise Stop
            raise Wrong(
                "an edit is kept on top of what nobody has reviewed, or is not kept",
                left,
            )
        self.kept |= wanted - left
        self.log.append(("keeps edits", now, what))
        if rng.random() < 0.3:
            self.model.unkeep([hunk for hunk in hunks if hunk.reviewed])
            self.kept -= wanted
            if self.model.changes(now) != found:
                raise Wrong("not as before it was kept")
            self.log.append(("does not keep", now, what))

    def on_top(self, wanted: set[Name]) -> set[Name]:
        """Return those hunks of WANTED that have changed what a hunk did that nobody
        has reviewed, nor will."""
        left: set[Name] = set()
        more = wanted
        while more:
            more = {
                who
                for item in self.items
                for k, (who, _, on) in enumerate(item.events)
                if on
                and who in wanted - left
                and any(
                    o
                    and w is not None
                    and w not in self.kept
                    and w not in wanted - left
                    for w, _, o in item.events[:k]
                )
            }
            left |= more
        return left

    def undoes(self) -> None:
        rng, now = self.rng, self.lines()
        found, edit, kind = (
            self.model.changes(now),
            rng.choice(self.edits or [None]),
            rng.random(),
        )
        if edit is None or (kind < 0.45 and not found):
            return
        what: Any = rng.choice(found) if kind < 0.45 else edit
        if kind > 0.85:
            what = [other for other in self.edits if other.turn == edit.turn]
        elif kind > 0.75:
            what = sorted(self.model.hunks_of(edit), key=lambda hunk: hunk.number)[:1]
        names = {(hunk.edit, hunk.number) for hunk in self.model.hunks_of(what)}
        merged = None
        if what is edit and self.git:
            before, after, _ = self.before_edit[edit.id]
            merged = self.git(now, after, before)
        self.clock += 1
        expected = {
            item for item in self.items if item.alive(lambda who: who not in names)
        }
        try:
            result = self.model.undo(what, now, time=self.clock)
            if not self.few and self.must_ask(names, expected):
                raise Wrong(
                    "others have changed its lines, and nobody asks", names, now, result
                )
            if what is edit and self.git:
                self.stats[
                    "git: "
                    + (
                        "a conflict, we none"
                        if merged is None
                        else "the same"
                        if merged == result
                        else "another text"
                    )
                ] += 1
        except Conflict:
            self.stats["undo asks"] += 1
            self.stats["git: no conflict, we ask"] += merged is not None
            if not self.few and not self.may_ask(names):
                raise Wrong("asks without a reason", names) from None
            if isinstance(what, Change) and not what.mixed:
                raise Wrong("asks about a change that is not mixed", what) from None
            if rng.random() < 0.5:
                return
            result = self.model.undo(what, now, force=True, time=self.clock)
        self.log.append(("undoes", now, what, result))
        if isinstance(what, Change):
            left = [
                (change.hunks, change.edits) for change in found if change is not what
            ]
            if [
                (change.hunks, change.edits) for change in self.model.changes(result)
            ] != left:
                raise Wrong("undoing a change changes others", what, result)
        self.others += 1
        if self.few:  # whose each line is, is not followed any more
            self.followed = False
            self.seq = [Item(line) for line in result]
            self.items, self.history, self.shots = list(self.seq), [], []
            self.versions, self.edges = [], ({}, {})
            self.note()
            return
        self.history.append((self.state(), self.model.weave, self.model.hunks_of(what)))
        seq = self.found(result)
        if (set(seq) ^ expected) & self.vague:
            raise Stop
        if set(seq) != expected:
            raise Wrong("undone otherwise", names, now, result)
        self.check_order(seq)
        works = {item.last()[0] for item in self.items if item.last()} & names
        self.told += [(self.clock, name) for name in works]
        self.recorded += [list(self.seq), seq]
        for item in self.items:
            item.set_flags([None if who in names else on for who, _, on in item.events])
        self.seq = seq
        self.record()
        self.note()

    def may_ask(self, names: set[Name]) -> bool:
        """Return whether an own line of the hunks NAMES is gone, and not by one of
        these."""
        return any(
            who in names
            and value
            and not item.alive()
            and (item.last() or [None])[0] not in names
            for item in self.items
            for who, value, _ in item.events
        )

    def must_ask(self, names: set[Name], expected: set[Item]) -> bool:
        """Return whether others have replaced a line of a hunk that had replaced one
        itself, which would come back."""
        for name in names:
            mine = [
                item
                for item in self.items
                if any(event[0] == name for event in item.events)
            ]
            lost = any(
                item.events[0][0] == name
                and not item.alive()
                and (item.last() or [None])[0] not in names
                for item in mine
            )
            back = any(
                not item.alive() and item in expected and item.last()[0] == name
                for item in mine
            )
            # In one place: nothing that stays is between them.
            if lost and back and len(mine) == 2 and not self.vague & set(mine):
                return True
        return False

    def found(self, lines: list[str]) -> list[Item]:
        """Return the items with the texts LINES, all of which differ."""
        by = {item.text: item for item in self.items}
        seq = [by[line] for line in lines]
        if len(seq) != len(set(seq)):
            raise Wrong("a line twice", lines)
        return seq

    def check_order(self, seq: list[Item]) -> None:
        """Raise Wrong if items of SEQ are in another order than in a version that the
        model has seen."""
        at = {item: i for i, item in enumerate(seq)}
        for version in [*self.recorded, self.seq]:
            order = [at[item] for item in version if item in at]
            if order != sorted(order):
                raise Wrong(
                    "in another order",
                    [item.text for item in seq],
                    [item.text for item in version],
                )

    # ---------------------------------------------- away and back
    def goes_away(self) -> None:
        """Another branch, or a stash; maybe a CLI writes there; and back."""
        rng, state, stash = self.rng, self.state(), self.rng.random() < 0.5
        found = self.model.changes(self.lines())
        act = rng.random() < 0.5 and self.away_writes
        if stash:
            names = (
                {event[0] for item in self.items for event in item.events}
                - self.kept
                - {None}
            )
            seq = [
                item for item in self.seq if item.alive(lambda who: who not in names)
            ]
            for item in self.items:
                if item.alive(lambda who: who not in names) and item not in seq:
                    p = self.place(item, seq)
                    if p is None:
                        return
                    seq.insert(p, item)
            self.seq = seq
        else:
            self.seq = [self.new("o") for _ in range(rng.randint(5, 15))]
        self.explain()
        self.others += 1
        self.note()
        self.log.append(("away", self.lines()))
        if not self.few:
            by = {item.text: item for item in self.items}
            for change in self.model.changes(self.lines()):
                if not self.vague & {
                    *self.seq[change.start : change.end],
                    *(by[line] for line in change.lines),
                }:
                    raise Wrong(
                        "changes in another branch, or in what was there before", change
                    )
            r = {by[line] for line in texts(self.model.look(self.lines()), r=True)}
            if (r ^ set(self.seq)) - self.vague:
                raise Wrong("in another branch, R is not its text")
        if act:
            start, marks = (
                list(self.seq),
                {item: len(item.events) for item in self.items},
            )
            self.writes(False, simple=True)
            touched = {
                item for item in self.items if len(item.events) != marks.get(item, 0)
            }
            mine = [
                item
                for item in touched
                if item in state[1]
                and item.flags()[: len(state[1][item])] != state[1][item]
            ]
            if stash and (mine or not self.merges(start, state[0])):
                return  # a conflict: it stays
            if stash:
                for item in self.items:
                    if item in state[1] and item not in touched:
                        item.set_flags(state[1][item])
                seq = [item for item in self.seq if item.alive()]
                for item in state[0]:
                    if item.alive() and item not in seq:
                        p = self.place(item, seq)
                        if p is None:
                            raise Stop
                        seq.insert(p, item)
                self.seq = seq
        if not (act and stash):
            self.seq = list(state[0])
        self.explain()
        self.others += 1
        self.note()
        self.log.append(("back", self.lines()))
        if not act and self.model.changes(self.lines()) != found:
            raise Wrong("not back with the branch", found)
        self.stats["away and back" + (", a CLI has written there" if act else "")] += 1

    def merges(self, base: list[Item], theirs: list[Item]) -> bool:
        """Return whether THEIRS and the text now have changed other places of BASE,
        which do not touch."""
        mine, other = (
            regions_between(align(base, side), len(base), len(side))
            for side in (self.seq, theirs)
        )
        return not any(a <= d and c <= b for a, b, _, _ in mine for c, d, _, _ in other)

    # ---------------------------------------------- what must hold
    def check(self) -> None:
        now = self.lines()
        weave = self.model.look(now)
        found, r = changes_in(weave), texts(weave, r=True)
        if texts(weave) != now:
            raise Wrong("the weave has another text than the file")
        result = list(now)
        for change in reversed(found):
            result[change.start : change.end] = change.lines
        if result != r:
            raise Wrong("R is not the text without the changes", now, r, found)
        undone = without(weave, set().union(*(change.hunks for change in found)))
        if texts(undone) != r or changes_in(undone):
            raise Wrong("undoing all changes does not give R")
        for edit in self.edits[-3:]:
            before, _, others = self.before_edit[edit.id]
            if others == self.others and self.model.at(edit, now) != before:
                raise Wrong(
                    "not as it was before an edit",
                    edit,
                    before,
                    self.model.at(edit, now),
                )
        if self.followed:
            self.count(weave, found)
        if not self.few:
            self.check_identities(now, weave, found, r)

    def count(self, weave: Weave, found: list[Change]) -> None:
        """Count the lines of which the model does not know whose they are."""
        mine = [line.marks for line in weave if there(line.marks)]
        for marks, item in zip(mine, self.seq, strict=False):
            true = (
                item.last()[0][0]
                if item.last()[0] and not item.alive(self.is_kept)
                else None
            )
            model = decider(marks).hunk.edit if not in_r(marks) else None
            self.stats["lines"] += 1
            self.stats["lines, others' taken for a CLI's"] += (
                true is None and model is not None
            )
            self.stats["lines, a CLI's taken for others'"] += (
                true is not None and model is None
            )
            self.stats["lines, taken for another edit's"] += (
                true != model and None not in (true, model)
            )
        self.stats["changes"] += len(found)

    def gone(self, item: Item) -> bool:
        """Return whether all lines around ITEM were removed since the last write: it
        need not be known any more."""
        before = {
            x
            for version in self.versions
            if item in version
            for x in version
            if version[x] < version[item]
        }
        after = {
            x
            for version in self.versions
            if item in version
            for x in version
            if version[x] > version[item]
        }
        last = self.recorded[-1]
        around = [x for x in last if x in before][-CONTEXT:] + [
            x for x in last if x in after
        ][:CONTEXT]
        return not any(x.alive() for x in around)

    def check_identities(
        self, now: list[str], weave: Weave, found: list[Change], r: list[str]
    ) -> None:
        self.vague |= {
            item
            for item in self.items
            if not item.alive() and item.last() and item.last()[0] and self.gone(item)
        }
        by, vague = {item.text: item for item in self.items}, self.vague
        expected = {item for item in self.items if item.alive(self.is_kept)}
        seq = self.found(r)
        if (set(seq) ^ expected) - vague:
            raise Wrong(
                "R is another text: without",
                sorted(x.text for x in expected - set(seq) - vague),
                "with",
                sorted(x.text for x in set(seq) - expected - vague),
                now,
                r,
            )
        self.check_order(seq)
        differ = {
            item for item in self.items if item.alive() != item.alive(self.is_kept)
        } - vague
        covered: set[Item] = set()
        for change in found:
            all_here = {
                *self.seq[change.start : change.end],
                *(by[line] for line in change.lines),
            }
            here = all_here & differ
            if (
                not all_here & vague
                and {item.last()[0][0] for item in here} != change.edits
            ):
                raise Wrong("a change of other edits", change)
            if covered & here:
                raise Wrong("a line is in two changes", change)
            covered |= here
        if covered != differ:
            raise Wrong(
                "something that nobody has reviewed is forgotten",
                sorted(x.text for x in differ - covered),
            )
        vague_hunks = {event[0] for item in vague for event in item.events}
        states: dict[Name, str] = {}
        for edit in self.edits:
            states |= {
                (hunk.edit, hunk.number): how
                for hunk, how in self.model.hunk_states(edit, now).items()
            }
        account: dict[Any, set[str]] = {}
        for item in self.items:
            for event in item.events:
                how = account.setdefault(event[0], set())
                if not event[2]:
                    how.add("undone" if event[2] is None else "gone")
                elif item.last() is not event:
                    how.add("over")
                else:
                    event[2] = False
                    if item.alive() != event[1]:
                        how.add("there")
                    event[2] = True
        truth = {
            name: state_of(how)
            for name, how in account.items()
            if name and name not in vague_hunks
        }
        self.stats["hunks"] += len(truth)
        if wrong := [
            (name, states[name], how)
            for name, how in truth.items()
            if states[name] != how
        ]:
            raise Wrong("another state of a hunk", wrong)
        told = {(hunk.edit, hunk.number) for hunk in self.model.told(0, now)}
        if (
            {
                name
                for _, name in self.told
                if truth.get(name) in ("undone", "gone", "superseded")
            }
            - told
            - vague_hunks
        ):
            raise Wrong("what is undone is not told", told)
        if {
            name
            for name in told
            if truth.get(name, "undone") not in ("undone", "gone", "superseded")
        }:
            raise Wrong("what is there again is told", told)
        for at in (0, self.clock // 2):
            new = {frozenset(change.hunks) for change in self.model.since(at, now)}
            if new != {
                change.hunks
                for change in found
                if any(self.edits[e - 1].time > at for e in change.edits)
            }:
                raise Wrong("new since comments")
        seq = self.found(texts(without(weave, self.model.hunks_of(self.edits))))
        if (
            set(seq) ^ {item for item in self.items if item.alive(lambda who: False)}
        ) - vague:
            raise Wrong(
                "without all edits, another text", now, [item.text for item in seq]
            )
        self.check_order(seq)
        if len(self.edits) > 1:
            one, other = (
                self.model.hunks_of(edit) for edit in self.rng.sample(self.edits, 2)
            )
            if [line[:2] for line in without(without(weave, one), other)] != [
                line[:2] for line in without(without(weave, other), one)
            ]:
                raise Wrong("the order of two undos matters")

    def run(self) -> None:
        steps = self.rng.randint(4, 14)
        (self.writes if self.actions is None else self.writes_unreviewed)()
        for _ in range(steps):
            self.check()
            if self.actions:
                getattr(self, self.rng.choice(self.actions))()
                continue
            kind = self.rng.random()
            for limit, action in (
                (0.3, self.writes),
                (0.55, self.types),
                (0.63, self.brings_back),
                (0.73, self.keeps),
                (0.87, self.undoes),
                (0.91, self.takes_back),
                (
                    0.94,
                    self.checks_an_old_text_out if self.checks_out else lambda: None,
                ),
                (1, self.goes_away),
            ):
                if kind < limit:
                    action()
                    break
        self.check()


def git_merge(directory: str) -> Merge:
    """Return a function that merges MINE and THEIRS, made of BASE, as git does, or
    returns None."""

    def merge(mine: list[str], base: list[str], theirs: list[str]) -> list[str] | None:
        for name, lines in zip("mbt", (mine, base, theirs), strict=False):
            with open(os.path.join(directory, name), "w") as file:
                file.write("".join(line + "\n" for line in lines))
        done = subprocess.run(
            ["git", "merge-file", "-p", "-q", "m", "b", "t"],
            cwd=directory,
            capture_output=True,
            text=True,
        )
        return done.stdout.splitlines() if done.returncode == 0 else None

    return merge


def judge(
    count: int,
    few: Sequence[str] = (),
    rate: float = 1.0,
    first: int = 0,
    show: int = 3,
    **settings: Any,
) -> tuple[Counter[str], Counter[str]]:
    """Run COUNT sequences, and return how they ended, and what was counted."""
    results: Counter[str] = Counter()
    stats: Counter[str] = Counter()
    for seed in range(first, first + count):
        world = World(random.Random(seed), few, rate)
        for name, value in settings.items():
            setattr(world, name, value)
        try:
            world.run()
            results["right"] += 1
        except Stop:
            results["right, as far as it went"] += 1
        except Wrong as wrong:
            results[wrong.args[0]] += 1
            if show > 0:
                show -= 1
                print("  seed", seed, *wrong.args, sep="\n    ")
        stats += world.stats
    return results, stats


def report(name: str, results: Counter[str], stats: Counter[str]) -> int:
    wrong = sum(n for what, n in results.items() if not what.startswith("right"))
    print(f"{name}: {sum(results.values())} sequences, {wrong} wrong", dict(results))
    print("   ", {what: n for what, n in sorted(stats.items()) if n})
    return wrong


# ------------------------------------------------------------------ by example


def examples() -> None:
    """What no random sequence has."""
    one, two = Edit(1), Edit(2, time=1)
    # A conversion of the file is a mark of the file as a whole.
    file = File(["a\n", "b\n"], "lf")
    file.write(one, ["a\n", "b\n"], ["A\n", "b\n"], "lf", "crlf")
    first, second = file.changes(["A\n", "b\n"], "crlf")
    assert first.conversion == ("lf", "crlf")
    assert second.lines == ("a\n",)
    assert len(file.changes(["A\n", "b\n"], "lf")) == 1  # others have converted it back
    assert len(file.changes(["A\n", "b\n"], "crlf")) == 2  # and again
    file.keep(second, ["A\n", "b\n"])
    file.write(two, ["A\n", "b\n"], ["A\n", "b\n"], "crlf", "bom")
    assert file.changes(["A\n", "b\n"], "bom")[0].conversion == ("lf", "bom")
    file.undo(one, ["A\n", "b\n"])
    assert value_of(file.format) == "bom"
    assert texts(file.weave) == ["a\n", "b\n"]
    # A new file: undoing gives no file.
    file = File([], None)
    file.write(one, [], ["a\n"], None, "lf")
    file.undo(one, ["a\n"])
    assert value_of(file.format) is None
    assert texts(file.weave) == []
    # The last line has no newline; a line behind it gives it one (when the text is
    # joined).
    file = File(["a\n", "b"])
    file.write(one, ["a\n", "b"], ["a\n", "b\n"])
    assert [change.lines for change in file.changes(["a\n", "b\n", "c\n"])] == [("b",)]
    # A formatter and a CLI change one line: both are shown, and undoing asks.
    file = File(list("abc"))
    file.write(one, list("abc"), list("aBc"))
    (change,) = file.changes(["a", "(B)", "c"])
    assert change.mixed
    assert change.lines == ("b", "(B)")
    assert (change.start, change.end) == (1, 2)
    # A CLI undoes its own change; it writes what the user has undone again.
    file = File(list("abc"))
    file.write(one, list("abc"), list("aBc"))
    file.write(two, list("aBc"), list("abc"))
    assert not file.changes(list("abc"))
    assert file.state_of(one, list("abc")) == "superseded"
    assert file.undo(two, list("abc")) == list("aBc")
    assert file.undo(one, list("aBc")) == list("abc")
    assert {hunk.edit for hunk in file.told(-1, list("abc"))} == {1, 2}
    three = Edit(3, time=3)
    file.write(three, list("abc"), list("aBc"))
    assert [change.edits for change in file.changes(list("aBc"))] == [{3}]
    assert not file.since(3, list("aBc"))
    # Two CLIs in turns, the lines of one inside those of the other; the file as it was
    # between them.
    file = File(list("az"))
    file.write(one, list("az"), list("a12z"))
    file.write(two, list("a12z"), list("a1x2z"))
    now = list("a1x2mz")  # m is the user's
    assert file.at(two, now) == list("a12mz")
    assert file.at(one, now) == list("amz")
    assert file.undo(one, now) == list("axmz")
    assert file.undo(two, list("axmz")) == list("amz")
    # What was kept can be undone, and is forgotten with its edit.
    file = File(list("abc"))
    file.write(one, list("abc"), list("aBc"))
    file.keep(one, list("aBc"))
    assert not file.changes(list("aBc"))
    assert file.state_of(one, list("aBc")) == "there"
    assert File.undo(file, one, list("aBc")) == list("abc")
    file.unkeep(one)
    assert not file.changes(list("abc"))
    assert file.changes(list("aBc"))
    file.keep(one, list("aBc"))
    file.write(two, list("aBc"), list("aBC"))
    file.forget(one)
    assert [line.marks is BASE for line in file.weave] == [True, True, False, False]


def undone_stays_undone() -> None:
    """Run the cases of rule 3: what the user has undone is not there again by what
    others do."""
    one, two, before, after = (
        Edit(1),
        Edit(2, time=1),
        ["one", "two", "three"],
        ["one", "zwei", "three"],
    )

    def undone() -> File:
        file = File(before)
        file.write(one, before, after)
        assert file.undo(one, after) == before
        return file

    # The user types behind the line, trims it, deletes it, or types below it.
    for now in (
        ["one", "two ", "three"],
        ["one", "three"],
        ["one", "two", "mine", "three"],
        ["one", "TWO", "three"],
        ["two"],
        [],
    ):
        assert not undone().changes(now), now
        assert undone().state_of(one, now) == "undone", now
    # Redo of Emacs: a line that it added is back, so it is back as a whole; and so by
    # its entry.
    file = undone()
    (change,) = file.changes(after)
    assert change.lines == ("two",)
    assert file.state_of(one, after) == "there"
    assert not file.told(-1, after)
    assert file.undo(one, after) == before
    file.restore(file.hunks_of(one), after)
    assert file.state_of(one, after) == "there"
    assert [c.lines for c in file.changes(after)] == [("two",)]
    # The entry does not count if the text is another one.
    file = undone()
    file.restore(file.hunks_of(one), before)
    assert file.state_of(one, before) == "undone"
    assert not file.changes(["one", "three"])
    # A CLI writes there again: only that is to be reviewed.
    file = undone()
    file.write(two, ["one", "three"], ["one", "drei", "three"])
    assert [(*c.lines, *c.edits) for c in file.changes(["one", "drei", "three"])] == [
        (2,)
    ]
    # A hunk that only removed is back by its entry alone.
    file = File(before)
    file.write(one, before, ["one", "three"])
    file.undo(one, ["one", "three"])
    assert not file.changes(["one", "three"])
    assert file.state_of(one, ["one", "three"]) == "undone"
    file.restore(file.hunks_of(one), ["one", "three"])
    assert [c.lines for c in file.changes(["one", "three"])] == [("two",)]
    # `git checkout -- FILE` has undone it, also if a CLI writes elsewhere then.
    file = File(before)
    file.write(one, before, after)
    assert not file.changes(before)
    assert file.state_of(one, before) == "undone"
    assert len(file.changes(after)) == 1  # nothing has been recorded
    file.write(two, before, [*before, "four"])
    assert [c.edits for c in file.changes(["one", "three", "four"])] == [{2}]
    # Others who take away a line, or move it, have not undone it: it is gone.
    file = File(before)
    file.write(one, before, [*before, "x", "y"])
    assert file.state_of(one, before) == "gone"
    assert file.state_of(one, [*before, "x"]) == "partly"
    # Undoing the later of two edits leaves the earlier one to be reviewed.
    file = File(before)
    file.write(one, before, after)
    file.write(two, after, ["one", "b1", "three"])
    assert file.undo(two, ["one", "b1", "three"]) == after
    assert [(*c.lines, *c.edits) for c in file.changes(after)] == [("two", 1)]
    assert file.undo(one, after) == before
    assert not file.changes(before)


def reported_twice() -> None:
    """Run the cases of an edit that is reported twice."""
    one, before, first, second = Edit(1), list("abc"), list("aBc"), list("aBBc")
    file = File(before)
    file.write(one, before, first)
    weave = file.weave
    file.write(one, before, first)
    assert file.weave is weave
    file.write(one, before, second)  # the right text
    assert [(c.lines, c.hunks == file.hunks_of(one)) for c in file.changes(second)] == [
        (("b",), True)
    ]
    assert file.undo(one, second) == before
    file.write(one, before, first)  # too late
    assert not file.changes(before)
    assert file.state_of(one, before) == "undone"


def back_in_order() -> None:
    """Run the case of a file whose lines are all changed, and back."""
    text, count = [f"line {i}" for i in range(3000)], 0
    file = File(text)
    file.write(Edit(1), text, ["  " + line for line in text])
    assert not file.changes(text)
    file.write(Edit(2, time=1), text, ["new", *text])
    assert [c.edits for c in file.changes(["new", *text])] == [{2}]
    # At most some hundred lines in another order are looked for.
    for line in file.changes([*text[1500:], *text[:1500]]):
        count += len(line.lines)
    assert count == 0


# ------------------------------------------------------------------ mutations


def mutations() -> list[tuple[str, Any, Any, dict[str, Any]]]:
    """Return wrong models: a list of (name, what to replace, the wrong one,
    settings)."""
    here = globals()

    def off_is_on(marks: Any) -> Any:
        mark = marks[-1] if marks else None
        return mark is not None and mark.value

    def r_with_unreviewed(marks: Any) -> Any:
        return any(not off and value for _, value, off in marks[-1:])

    def last_forgotten(weave: Any) -> Any:
        return here["_spans"](weave)[:-1]

    def switched_wrong(marks: Any) -> Any:
        return (
            (Mark(NOBODY, not there(marks)),)
            if len(marks) == 1
            else marks[:-1] or marks
        )

    def without_visible_only(weave: Any, hunks: Any, step: Any = LATER) -> Any:
        return [
            line
            if (mark := decider(line.marks)) is None or mark.hunk not in hunks
            else changed(
                line,
                tuple(Mark(h, v, off or h is mark.hunk) for h, v, off in line.marks),
                step,
            )
            for line in weave
        ]

    def keep_all(self: Any, what: Any, now: Any) -> Any:
        for hunk in self.hunks_of(what):
            hunk.reviewed = True
        return set()

    def keep_first(self: Any, what: Any, now: Any) -> Any:
        for hunk in sorted(
            self.hunks_of(what), key=lambda hunk: (hunk.edit, str(hunk.number))
        )[:1]:
            hunk.reviewed = True
        return set()

    def write_reviewed(
        self: Any, edit: Any, before: Any, after: Any, *formats: Any
    ) -> Any:
        here["_write"](self, edit, before, after, *formats)
        if edit.id in self.answers:
            for hunk in self.hunks_of(edit):
                hunk.reviewed = True

    def write_without_fold(
        self: Any, edit: Any, before: Any, after: Any, *formats: Any
    ) -> Any:
        self.edits[edit.id] = edit
        self.rewrite(edit, after)

    def oldest_author(marks: Any) -> Any:
        return next(
            (mark for mark in marks if not mark.off and mark.hunk.edit is not None),
            here["_decider"](marks),
        )

    def removed_again(marks: Any) -> Any:
        want = not there(marks)
        for k in range(len(marks) - 1, -1, -1):
            if (marks[k].value == want) == bool(marks[k].off):
                marks = marks[:k] if gone(marks[: k + 1]) else turned(marks, k)
                if there(marks) == want:
                    break
        return marks

    def none_return(self: Any, order: Any, new: Any) -> Any:
        return {}

    def all_gone(self: Any) -> Any:
        self.result = [
            line._replace(marks=(*line.marks, Mark(self.others, False)))
            if removed_by_cli(line.marks) and not gone(line.marks)
            else line
            for line in self.result
        ]

    def told_all(self: Any, since: Any, now: Any) -> Any:
        return [hunk for at, hunk in self.undone if at > since]

    def at_without_one(self: Any, edit: Any, now: Any) -> Any:
        return texts(without(self.look(now), self.hunks_of(edit)))

    def others_are_a_cli(
        self: Any, weave: Any, text: Any, step: Any, edit: Any = None, first: Any = 0
    ) -> Any:
        here["_init"](self, weave, text, step, edit, first)
        if edit is None:
            self.hunks = [Hunk(1, 99) for _ in self.hunks]

    return [
        ("marks that are off count", "there", off_is_on, {}),
        ("R has what nobody has reviewed", "in_r", r_with_unreviewed, {}),
        ("the last change is forgotten", "spans", last_forgotten, {}),
        ("what others remove is not taken back", "switched", switched_wrong, {}),
        (
            "what others remove can be removed by what was undone",
            "switched",
            removed_again,
            {},
        ),
        (
            "a hunk is never back as a whole",
            (Rewriting, "redo_as_a_whole"),
            lambda self: None,
            {},
        ),
        (
            "others undo no hunk as a whole",
            (Rewriting, "undo_as_a_whole"),
            lambda self: None,
            {},
        ),
        (
            "an undo entry restores nothing",
            (File, "restore"),
            lambda self, hunks, now: None,
            {},
        ),
        ("undoing turns off only what shows", "without", without_visible_only, {}),
        ("an edit is kept on top of others", (File, "keep"), keep_all, {}),
        ("of a change only a hunk is kept", (File, "keep"), keep_first, {}),
        (
            "what is accepted is reviewed, also on top of others",
            (File, "write"),
            write_reviewed,
            {},
        ),
        (
            "what others did before a write is the CLI's",
            (File, "write"),
            write_without_fold,
            {},
        ),
        ("the first edit is the author", "decider", oldest_author, {}),
        (
            "lines that come back are new ones",
            (Rewriting, "returning"),
            none_return,
            {},
        ),
        (
            "lines that come back stay where they were",
            (Rewriting, "move"),
            lambda self, order, i, j, where: here["_move"](
                self, list(order), i, j, where
            ),
            {},
        ),
        ("nothing is gone", (Rewriting, "mark_gone"), lambda self: None, {}),
        ("all that a CLI has removed is gone", (Rewriting, "mark_gone"), all_gone, {}),
        (
            "no place is remembered",
            (Rewriting, "near"),
            lambda self, i: False,
            {"away_writes": True},
        ),
        ("all undone hunks are told", (File, "told"), told_all, {}),
        ("before an edit is without it only", (File, "at"), at_without_one, {}),
        ("others' lines are a CLI's", (Rewriting, "__init__"), others_are_a_cli, {}),
        ("nothing is in conflict", "conflicts", lambda weave, hunks: set(), {}),
        ("all is in conflict", "conflicts", lambda weave, hunks: set(hunks), {}),
    ]


def run_mutations(count: int, wrong_models: Sequence[Any] = ()) -> int:
    """Return how many wrong models the judge does not find."""
    here, missed = globals(), 0
    here.update(
        _spans=spans,
        _write=File.write,
        _decider=decider,
        _move=Rewriting.move,
        _init=Rewriting.__init__,
    )
    for name, what, wrong, settings in wrong_models or mutations():
        owner, attribute = what if isinstance(what, tuple) else (None, what)
        right = getattr(owner, attribute) if owner else here[attribute]
        found, tries = None, 0
        try:
            setattr(owner, attribute, wrong) if owner else here.__setitem__(
                attribute, wrong
            )
            try:
                undone_stays_undone()
                reported_twice()
            except Exception as error:
                found = f"an example: {type(error).__name__}"
            while found is None and tries < count:
                world = World(random.Random(tries))
                for setting, value in settings.items():
                    setattr(world, setting, value)
                tries += 1
                try:
                    world.run()
                except Stop:
                    pass
                except Wrong as error:
                    found = error.args[0]
                except Exception as error:
                    found = f"{type(error).__name__}: {error}"
        finally:
            setattr(owner, attribute, right) if owner else here.__setitem__(
                attribute, right
            )
        missed += found is None
        print(
            f"{name:55}", "NOT FOUND" if found is None else f"sequence {tries}: {found}"
        )
    return missed


# ------------------------------------------------------------------ cost


def cost(size: int = 20_000, changes_: int = 500, writes: int = 60) -> None:
    """Print what a look costs at SIZE lines, and if all of them are reindented and
    checked out."""

    def measured(what: str, function: Callable[..., T], *arguments: Any) -> T:
        start = time.process_time()
        result = function(*arguments)
        print(f"{what}: {1000 * (time.process_time() - start):.0f} ms")
        return result

    rng, text = random.Random(1), [f"line {i} of the text" for i in range(size)]
    file, now, times = File(text), list(text), []
    for number in range(1, writes + 1):
        before = list(now)
        for _ in range(changes_ // writes + 1):
            i = rng.randrange(len(now))
            now[i : i + rng.choice((0, 1, 1, 2))] = [
                f"written {number} {rng.random()}"
                for _ in range(rng.choice((0, 1, 2, 3)))
            ]
        start = time.process_time()
        file.write(Edit(number), before, now)
        times.append(time.process_time() - start)
    print(
        f"write: {1000 * sum(times) / len(times):.0f} ms on average,"
        f" {1000 * max(times):.0f} ms at most"
    )
    found = measured("look, the text as written", file.changes, now)
    mine = list(now)
    mine.insert(size // 2, "mine")
    measured("look, a line typed", file.changes, mine)
    for i in range(0, size, 400):
        mine[i] = f"mine {i}"
    measured("look, 51 places typed", file.changes, mine)
    measured("look, the text of before", file.changes, text)
    measured("look, another branch", file.changes, [f"other {i}" for i in range(size)])
    measured("state of an edit", file.state_of, Edit(30), mine)
    measured(
        "undo an edit", lambda: texts(without(file.look(now), file.hunks_of(Edit(30))))
    )
    measured("before an edit", file.at, Edit(30), now)
    measured("keep a change", file.keep, found[0], now)
    touched = sum(line.marks is not BASE for line in file.weave)
    print(
        f"{len(found)} changes; {len(file.weave)} lines in the weave,"
        f" {touched} of them touched"
    )
    file, indented = File(text), ["  " + line for line in text]
    measured("all lines reindented by a CLI", file.write, Edit(1), text, indented)
    measured("look, checked out", file.changes, text)
    measured("look, a line typed", file.changes, [*indented[:9], "mine", *indented[9:]])
    measured("all undone", file.undo, Edit(1), indented)
    measured("look, C-/", file.changes, indented)
    file.write(
        Edit(2),
        [f"other {i}" for i in range(size)],
        [f"other {i}" for i in range(1, size)],
    )
    measured("look, back from another branch with a write", file.changes, indented)


class Recorder(File):
    """A file that notes what it was asked, and what it has answered."""

    def __init__(self, text: list[str]) -> None:
        super().__init__(text)
        self.calls: list[Any] = [["base", text]]

    def names(self, hunks: Iterable[Hunk]) -> list[list[Any]]:
        return sorted([hunk.edit, hunk.number] for hunk in hunks)

    def write(
        self,
        edit: Edit,
        before: list[str],
        after: list[str],
        format_before: Format = None,
        format_after: Format = None,
    ) -> None:
        super().write(edit, before, after, format_before, format_after)
        self.calls.append(
            [
                "write",
                edit.id,
                before,
                self.answers.get(edit.id),
                after,
                self.names(hunk for hunk in self.hunks_of(edit) if hunk.reviewed),
            ]
        )

    def keep(self, what: What, now: list[str]) -> set[Hunk]:
        hunks = self.hunks_of(what)
        left = super().keep(what, now)
        self.calls.append(["keep", self.names(hunks), now, self.names(left)])
        return left

    def unkeep(self, what: What) -> None:
        self.calls.append(["unkeep", self.names(self.hunks_of(what))])
        super().unkeep(what)

    def undo(
        self, what: What, now: list[str], force: bool = False, time: float = 0
    ) -> list[str]:
        hunks, found = (
            self.hunks_of(what),
            conflicts(self.look(now), self.hunks_of(what)),
        )
        self.calls.append(["conflicts", self.names(hunks), now, self.names(found)])
        result = super().undo(what, now, force, time)
        self.calls.append(["undo", self.names(hunks), now, result])
        return result

    def restore(self, hunks: set[Hunk], now: list[str]) -> None:
        super().restore(hunks, now)
        self.calls.append(["restore", self.names(hunks), now])

    def note(self, now: list[str]) -> None:
        weave = self.look(now)
        states: dict[Hunk, str] = {}
        for edit in self.edits.values():
            states |= self.hunk_states(edit, now)
        self.calls.append(
            [
                "check",
                now,
                texts(weave, r=True),
                [
                    [
                        c.start,
                        c.end,
                        list(c.lines),
                        self.names(c.hunks),
                        sorted(c.edits),
                        c.mixed,
                    ]
                    for c in changes_in(weave)
                ],
                sorted(
                    [hunk.edit, hunk.number, state] for hunk, state in states.items()
                ),
                [
                    [edit.id, self.at(edit, now), self.state_of(edit, now)]
                    for edit in self.edits.values()
                ],
            ]
        )


class RecordedWorld(World):
    """A world whose file is a `Recorder`."""

    file = Recorder

    def check(self) -> None:
        if isinstance(self.model, Recorder):
            self.model.note(self.lines())


def exported(seed: int, few: Sequence[str] = (), **settings: Any) -> list[Any]:
    """Return the calls and answers of the sequence SEED, as far as it is right."""
    world = RecordedWorld(random.Random(seed), few, 1.0 if len(few) != 3 else 0.35)
    for name, value in settings.items():
        setattr(world, name, value)
    with contextlib.suppress(Stop, Wrong):
        world.run()
    calls: list[Any] = world.model.calls if isinstance(world.model, Recorder) else []
    return calls


def export(count: int, few: Sequence[str] = ()) -> None:
    """Print COUNT sequences, a line of JSON each; all kinds are in it unless FEW is
    given."""
    kinds: list[tuple[Sequence[str], dict[str, Any]]] = [
        ((), {}),
        ((), {}),
        ((), {"away_writes": True}),
        ((), {"checks_out": True}),
        ("{}e", {}),
        ("abcde", {}),
    ]
    for seed in range(count):
        distinct, settings = (few, {}) if few else kinds[seed % len(kinds)]
        print(json.dumps(exported(seed, distinct, **settings), separators=(",", ":")))


def main(arguments: list[str]) -> int:
    kind = arguments[0] if arguments else "10000"
    if kind == "mutations":
        return run_mutations(400)
    if kind == "cost":
        cost()
        return 0
    if kind == "export":
        export(int(arguments[1]), arguments[2] if len(arguments) > 2 else "")
        return 0
    count, wrong = int(kind), 0
    for example in (examples, undone_stays_undone, reported_twice, back_in_order):
        example()
    # In the two modes that are not counted, no text tells all: which hunk, written over
    # by a later
    # one, went with a branch; and which of several edits that have written a line wrote
    # it again.
    # The last one counts then, so that what nobody may have reviewed is a change.
    with tempfile.TemporaryDirectory() as directory:
        merge = git_merge(directory)
        git = None if merge(["a"], ["a"], ["b"]) is None else merge
        wrong += report("unique lines", *judge(count))
        wrong += report(
            "unique lines, each undo of an edit also by git",
            *judge(count // 5, first=count, git=git),
        )
        report(
            "unique lines, a CLI writes in another branch",
            *judge(count // 2, show=0, away_writes=True),
        )
        report(
            "unique lines, old texts are checked out",
            *judge(count // 2, show=0, checks_out=True),
        )
        for few, rate in (("ab", 1.0), ("abcde", 1.0), ("{}e", 0.35)):
            wrong += report(
                f"lines of {few}, {rate:.0%}",
                *judge(count // 2, few, rate, git=git if rate < 1 else None),
            )
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(sys.argv[1:])))
