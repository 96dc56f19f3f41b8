"""Whose a change on disk is when several runs of one recording were under way at once.

A replay does all of a step's changes when the step is asked for. So each change is booked to one step only, and in such
a way that every step finds what the steps asked before it left.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from veil.cassettes.roots import Roots
from veil.cassettes.steps import ABSENT, TreeChange
from veil.host.contents import Contents
from veil.model.outcome import Change
from veil.taping.delta import below_root, changes_of

#: Id by path below the root; a path that is not there is missing.
Picture = dict[str, str]
Booked = tuple[tuple[TreeChange, ...] | None, tuple[TreeChange, ...]]


@dataclass
class _Run:
    """A run under way.

    Attributes:
        before: what was there when it began. taken: what later steps changed, as they left it: theirs, not this one's.
        early: what this run had changed before another one changed it again.
    """

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
        self._lock = threading.Lock()

    def begin(self, place: int, contents: Contents, roots: Roots, cwd: str, *, background: bool) -> None:
        """A run begins. ``place`` grows from run to run; ``cwd`` is below the root."""
        with self._lock:
            before = contents.picture()
            for run in self._runs.values():
                if run.background:
                    self._divide(run, before)
            self._runs[place] = _Run(before, contents, roots, cwd, background)

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

    def drop(self, place: int) -> None:
        """The run did not come about."""
        with self._lock:
            self._runs.pop(place, None)

    def end(self, place: int, told: Sequence[Change] | None) -> Booked:
        """The run is over: what it told to have changed, and what changed besides."""
        with self._lock:
            run = self._runs.pop(place)
            after = run.contents.picture()
            for path in run.taken:
                _put(after, path, run.before.get(path, ABSENT))
            changes, quiet = changes_of(told, run.before, after, run.contents, run.roots, run.cwd)
            for path in run.before.keys() | after.keys():
                now = after.get(path, ABSENT)
                if run.before.get(path, ABSENT) == now:
                    continue
                for other, another in self._runs.items():
                    if other < place:
                        another.taken[path] = now
                    else:
                        _put(another.before, path, now)
        return self._with_early(run, changes, quiet)

    @staticmethod
    def _with_early(run: _Run, changes: tuple[TreeChange, ...] | None, quiet: tuple[TreeChange, ...]) -> Booked:
        open_ = {path: change for path, change in run.early.items() if path in run.taken}
        if changes is not None:
            rows = []
            for row in changes:
                early = open_.pop(below_root(row.path, run.cwd), None)
                rows.append(row if early is None else replace(early, change=row.change, old=row.old))
            changes = tuple(rows)
        return changes, (*quiet, *open_.values())


def _put(picture: Picture, path: str, entry: str) -> None:
    if entry == ABSENT:
        picture.pop(path, None)
    else:
        picture[path] = entry
