"""Whose a change on disk is when several runs of one recording were under way at once.

A replay does all of a step's changes when the step is asked for. So each change is booked to one step only, and in such
a way that every step finds what the steps asked before it left.

A run that ends takes what it finds changed. What it did not tell of, and another run that was under way then tells of
when it ends, is given to that one: so the same runs give the same recording, whichever ended first.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import NamedTuple

from veil.cassettes.roots import Roots
from veil.cassettes.steps import ABSENT, TreeChange
from veil.host.contents import Contents
from veil.host.tree import TreeUnknown
from veil.model.errors import Refused
from veil.model.outcome import Change
from veil.taping.delta import below_root, changes_of
from veil.taping.together import Together

#: Id by path below the root; a path that is not there is missing.
Picture = dict[str, str]


class Booked(NamedTuple):
    """Attributes: changes, quiet: of the run that ended. given: what another step (its place) had as quiet until now,
    by the path that it has there. amended: rows of steps (their places) that are to end otherwise, all being over."""

    changes: tuple[TreeChange, ...] | None
    quiet: tuple[TreeChange, ...]
    given: tuple[tuple[int, str], ...] = ()
    amended: tuple[tuple[int, TreeChange], ...] = ()


class _Untold(NamedTuple):
    """What a run took and did not tell of. Attributes: order: of the run. until: how many had begun when it ended.
    found: what was there when it began. under_way: the runs that it may be of."""

    place: int
    order: int
    until: int
    found: str
    row: TreeChange
    under_way: frozenset[int]


@dataclass
class _Run:
    """A run under way.

    Attributes:
        order: which one it was to begin. found: what was there then. before: the same, with what others have booked
            since. taken: what later steps changed, as they left it: theirs, not this one's.
        early: what this run had changed before another one changed it again.
    """

    order: int
    found: Picture
    before: Picture
    contents: Contents
    roots: Roots
    cwd: str
    background: bool
    taken: Picture = field(default_factory=dict)
    early: dict[str, TreeChange] = field(default_factory=dict)


class Ledger:
    """The changes of one recording. Safe to use from several threads."""

    def __init__(self) -> None:
        self._runs: dict[int, _Run] = {}
        self._untold: dict[str, list[_Untold]] = {}
        self._begun = 0
        self._together = Together()
        self._lock = threading.Lock()

    def begin(self, place: int, contents: Contents, roots: Roots, cwd: str, *, background: bool) -> None:
        """A run begins. ``place`` grows from run to run; ``cwd`` is below the root."""
        with self._lock:
            before = _picture(contents)
            self._begun += 1
            if not self._runs:
                self._together = Together()
            self._together.begin(place, background=background)
            for run in self._runs.values():
                if run.background:
                    self._divide(run, before)
            self._runs[place] = _Run(self._begun, before, dict(before), contents, roots, cwd, background)

    @staticmethod
    def _divide(run: _Run, now: Picture) -> None:
        """What a background run did so far is its own; but where another step was last, it is of the one that begins
        now: it did not happen when the background run was asked for."""
        for path, left in run.taken.items():
            _put(now, path, left)
        before = {path: entry for path, entry in run.before.items() if path not in run.taken}
        after = {path: entry for path, entry in now.items() if path not in run.taken}
        _, changed = changes_of(None, before, after, run.contents, run.roots, run.cwd)
        run.early = {path: change for path, change in run.early.items() if path in run.taken}
        run.early.update((below_root(change.path, run.cwd), change) for change in changed)

    @property
    def idle(self) -> bool:
        """Whether no run is under way."""
        return not self._runs

    def drop(self, place: int) -> tuple[tuple[int, TreeChange], ...]:
        """The run did not come about. Returns ``Booked.amended``."""
        with self._lock:
            run = self._runs.pop(place, None)
            if run is None or self._runs:
                return ()
            self._untold.clear()
            if self._together.runs < 2:
                return ()
            try:
                now = run.contents.picture()
            except TreeUnknown:  # the error for which the run is dropped is told, not this one
                return ()
            return self._together.amended(now, run.contents, run.roots)

    def end(self, place: int, told: Sequence[Change] | None) -> Booked:
        """The run is over: what it told to have changed, and what changed besides."""
        with self._lock:
            run = self._runs.pop(place)
            after = _picture(run.contents)
            left = dict(after) if self._together.runs > 1 else after
            given = (*self._given(place, run, told), *self._gone(place, run, after))
            for path in run.taken:
                _put(after, path, run.before.get(path, ABSENT))
            changes, quiet = changes_of(told, run.before, after, run.contents, run.roots, run.cwd)
            for row in (*(changes or ()), *quiet):
                _put(after, below_root(row.path, run.cwd), row.after)  # it may have changed since the picture
            for path in run.before.keys() | after.keys():
                now = after.get(path, ABSENT)
                if run.before.get(path, ABSENT) == now:
                    continue
                for other, another in self._runs.items():
                    if other < place:
                        another.taken[path] = now
                    else:
                        _put(another.before, path, now)
            self._remember(place, run, changes, quiet)
            self._together.end(place, run.cwd, (*(changes or ()), *quiet), given)
            amended = () if self._runs else self._together.amended(left, run.contents, run.roots)
        return Booked(*self._with_early(run, changes, quiet), given, amended)

    def _given(self, place: int, run: _Run, told: Sequence[Change] | None) -> list[tuple[int, str]]:
        """What the run tells of and others took: it is put back to where it was for this run. Folders around it that a
        later step took as well: a replay needs them when this one is asked for."""
        names = {below_root(name, run.cwd) for change in told or () for name in (change.path, change.old) if name}
        around = {folder for name in names for folder in _around(name)} - names
        given = []
        for path in names | around:
            rows = [row for row in self._untold.get(path, ()) if place in row.under_way]
            if not rows or (path in around and rows[0].place < place):
                continue
            given += [(row.place, row.row.path) for row in rows]
            _put(run.before, path, rows[0].row.before)
            run.taken.pop(path, None)
            self._withdraw(path, rows)
        return given

    def _gone(self, place: int, run: _Run, after: Picture) -> list[tuple[int, str]]:
        """What is now as this run found it: a passing state, seen by others while it lasted. Nobody changed it, unless
        one took it and another, which began only then, took it back."""
        given = []
        for path, untold in self._untold.items():
            found = run.found.get(path, ABSENT)
            rows = [row for row in untold if place in row.under_way]
            # whoever began later may have found the passing state itself, and then saw it go
            late = bool(rows) and run.order < rows[0].order and rows[0].found != found
            apart = any(later.order > earlier.until for earlier, later in itertools.pairwise(rows))
            if rows and not apart and after.get(path, ABSENT) == found and (rows[0].row.before == found or late):
                given += [(row.place, row.row.path) for row in rows]
                _put(run.before, path, found)
                run.taken.pop(path, None)
                self._withdraw(path, rows)
        for other in () if run.background else self._runs.values():
            for path in list(other.before) if run.order < other.order else ():
                found = run.found.get(path, ABSENT)
                if path in run.taken or run.before.get(path, ABSENT) != found:
                    continue  # a step has it: it has come, and is gone again by another's doing
                if other.before[path] != found and after.get(path, ABSENT) == found:
                    _put(other.before, path, found)
        return given

    def _withdraw(self, path: str, rows: Sequence[_Untold]) -> None:
        """Those who took it do not have it any more; nor do the others that are under way find that they had."""
        self._untold[path] = [row for row in self._untold[path] if row not in rows]
        for row in reversed(rows):
            for other, another in self._runs.items():
                if other < row.place:
                    if another.taken.get(path) == row.row.after:
                        del another.taken[path]
                elif another.before.get(path, ABSENT) == row.row.after:
                    _put(another.before, path, row.row.before)

    def _remember(
        self, place: int, run: _Run, changes: Sequence[TreeChange] | None, quiet: Sequence[TreeChange]
    ) -> None:
        for row in changes or ():
            self._untold.pop(below_root(row.path, run.cwd), None)  # where it stands now is known
        if not self._runs:
            self._untold.clear()
        elif not run.background:
            for row in quiet:
                path = below_root(row.path, run.cwd)
                untold = _Untold(place, run.order, self._begun, run.found.get(path, ABSENT), row, frozenset(self._runs))
                self._untold.setdefault(path, []).append(untold)

    @staticmethod
    def _with_early(
        run: _Run, changes: tuple[TreeChange, ...] | None, quiet: tuple[TreeChange, ...]
    ) -> tuple[tuple[TreeChange, ...] | None, tuple[TreeChange, ...]]:
        open_ = {path: change for path, change in run.early.items() if path in run.taken}
        if changes is not None:
            rows = []
            for row in changes:
                early = open_.pop(below_root(row.path, run.cwd), None)
                rows.append(row if early is None else replace(early, change=row.change, old=row.old))
            changes = tuple(rows)
        return changes, (*quiet, *open_.values())


def _picture(contents: Contents) -> Picture:
    try:
        return contents.picture()
    except TreeUnknown as error:
        raise Refused(
            f"what this command changes cannot be recorded, for the workspace cannot be looked at: {error}; "
            "have fewer files in it, or run this test live",
            code="not_recorded",
        ) from error


def _put(picture: Picture, path: str, entry: str) -> None:
    if entry == ABSENT:
        picture.pop(path, None)
    else:
        picture[path] = entry


def _around(path: str) -> list[str]:
    """The folders that a path below the root lies in."""
    return [str(folder) for folder in PurePosixPath(path).parents][:-1]
