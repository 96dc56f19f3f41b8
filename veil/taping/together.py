"""What runs that were under way at once leave in the end, and what a replay of their steps would.

Runs end in another order than they were asked for, and a replay does all of a step when it is asked for. Of a file that
several wrote to, each step has what it saw at its own end; so each gets what the one before it leaves as what it found,
and the latest gets the true end. Renames are left as they are. What the test itself writes to such a file while they
are under way cannot be told from what they write.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from veil.cassettes.roots import Roots
from veil.cassettes.steps import ABSENT, TreeChange
from veil.host.contents import Contents
from veil.taping.delta import amended, below_root, complete


class Together:
    """From the first of them that begins until all are over.

    Attributes: runs: how many. ordered: none is in the background; what such a one did when, no replay can tell.
    """

    def __init__(self) -> None:
        self.runs = 0
        self.ordered = True
        self._ended = 0
        #: By place: how many had ended when it began, and after how many it ended.
        self._began: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        #: By path below the root, and by the place of the step.
        self._rows: dict[str, dict[int, TreeChange]] = {}

    def begin(self, place: int, *, background: bool) -> None:
        self.runs += 1
        self._began[place] = self._ended
        self.ordered = self.ordered and not background

    def end(self, place: int, cwd: str, rows: Sequence[TreeChange], given: Sequence[tuple[int, str]]) -> None:
        """One is over. ``rows``: of its step. ``given``: rows of others that are no longer theirs."""
        if self.runs < 2 or not self.ordered:  # nearly always: there is nobody to wait for
            return
        self._ends[place] = self._ended
        self._ended += 1
        for other, shown in given:
            for had in self._rows.values():
                if other in had and had[other].path == shown:
                    del had[other]
        for row in rows:
            if row.old is not None:
                self._rows.setdefault(below_root(row.old, cwd), {})[place] = row
            self._rows.setdefault(below_root(row.path, cwd), {})[place] = row

    def amended(self, now: Mapping[str, str], contents: Contents, roots: Roots) -> tuple[tuple[int, TreeChange], ...]:
        """All are over: rows that have to be otherwise, with the places of their steps.

        Args:
            now: picture of the workspace.
        """
        if not self.ordered:
            return ()
        found = []
        for path, had in self._rows.items():
            for place, row in self._chained(had):
                if place == max(had) and row.old is None and row.after != now.get(path, ABSENT):
                    row = amended(row, now.get(path, ABSENT), path, contents, roots)
                if row != had[place]:
                    found.append((place, row))
        return tuple(found)

    def _chained(self, had: Mapping[int, TreeChange]) -> Iterator[tuple[int, TreeChange]]:
        """The rows of one path in the order of a replay, each beginning where the one before it ends."""
        before: tuple[int, TreeChange] | None = None
        for place in sorted(had):
            row = had[place]
            if before is not None and row.old is before[1].old is None and self._began[place] <= self._ends[before[0]]:
                left = before[1].after
                chained = replace(row, before=left, after=left if row.before == row.after else row.after)
                row = chained if complete(chained) else row
            before = place, row
            yield before
