"""What a command was seen to do, each thing once, within a number of bytes."""

from __future__ import annotations

import os
from typing import Any, Literal

Kind = Literal["executed", "written", "created", "deleted", "renamed", "metadata", "network", "read"]
#: In the order in which they are shown.
KINDS: tuple[Kind, ...] = ("executed", "written", "created", "deleted", "renamed", "metadata", "network", "read")
#: Characters of events kept of one run, about.
MOST_BYTES = 200_000
#: Different things counted at most; beyond, the counts are lower bounds.
MOST_COUNTED = 200_000

#: What an event says, in words that go to JSON as they are: a path; two paths; a program and its arguments; an address
#: and what came of it.
Row = str | tuple[str, ...]


class Account:
    """Collects events.

    Attributes: truncated: something was dropped, or may have been missed. gaps: why, in words, each once.
    """

    def __init__(self, cwd: str, most_bytes: int = MOST_BYTES, most_counted: int = MOST_COUNTED) -> None:
        self._below = cwd.rstrip("/") + "/"
        self._cwd = cwd
        self._rows: dict[Kind, list[Row]] = {kind: [] for kind in KINDS}
        self._seen: dict[Kind, set[int]] = {kind: set() for kind in KINDS}
        self._left = most_bytes
        self._uncounted = most_counted
        self.truncated = False
        self.gaps: dict[str, None] = {}

    def path(self, name: bytes) -> str:
        """A path as it is told: relative below cwd, else absolute."""
        text = os.fsdecode(name)
        if text.startswith(self._below):
            return text[len(self._below) :]
        return "." if text == self._cwd else text

    def add(self, kind: Kind, *words: str) -> None:
        """One event; a second one that says the same is the same."""
        mark = hash(words)
        seen = self._seen[kind]
        if mark in seen:
            return
        if not self._uncounted:
            self.truncated = True
            return
        self._uncounted -= 1
        seen.add(mark)
        size = sum(map(len, words)) + 4
        if size > self._left:
            self.truncated = True
            return
        self._left -= size
        self._rows[kind].append(words if len(words) > 1 else words[0])

    def gap(self, why: str) -> None:
        """Something happened that no tracer of system calls sees all of."""
        self.gaps[why] = None
        self.truncated = True

    def data(self) -> dict[str, Any]:
        """JSON-ready (see ``docs/trace.md``)."""
        data: dict[str, Any] = {
            "counts": {kind: len(seen) for kind, seen in self._seen.items() if seen},
            "events": {
                kind: [r if isinstance(r, str) else list(r) for r in rows] for kind, rows in self._rows.items() if rows
            },
        }
        if self.truncated:
            data["truncated"] = True
        if self.gaps:
            data["gaps"] = list(self.gaps)
        return data
