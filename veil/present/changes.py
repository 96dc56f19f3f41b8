"""Changed files as rows for people and JSON: all of them, or summed up by folder when there are many."""

from __future__ import annotations

import heapq
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from veil.model.errors import BadInput
from veil.model.outcome import Change

#: Rows shown unless told otherwise.
DEFAULT_ROWS = 200
#: Fewest rows that still tell every kind of change apart.
LEAST_ROWS = 5


@dataclass
class _Folder:
    """All changes of one word below one folder: its own files and the folders below it."""

    path: str
    files: list[Change] = field(default_factory=list)
    below: dict[str, _Folder] = field(default_factory=dict)
    count: int = 0


def shown(changes: Sequence[Change], limit: int = DEFAULT_ROWS) -> list[dict[str, Any]]:
    """JSON-ready rows ``{"path", "change", "kind"}``, with ``old`` for a rename, in the order given.

    More than ``limit`` changes are summed up: ``{"path": "folder/", "change", "kind": "dir", "count": n}`` stands for
    ``n`` changes of that word below the folder (``./``: the working directory). Folders are opened as far as the rows
    allow, those that cost the fewest rows first; the counts and the single rows always add up to all changes.

    A name that is not UTF-8 keeps one lone surrogate (U+DC80 to U+DCFF) for each byte that could not be read, which
    ``json.dumps`` writes as ``\\udc80`` and ``os.fsencode`` turns back into the byte.

    Raises ``BadInput`` for a limit below 5: every word for a change needs a row.
    """
    if limit < LEAST_ROWS:
        raise BadInput("limit", limit, f"at least {LEAST_ROWS} rows")
    if len(changes) <= limit:
        return [_row(change) for change in changes]
    closed = [(_cost(folder), word, folder.path, folder) for word, folder in _by_word(changes).items()]
    heapq.heapify(closed)
    rows: list[dict[str, Any]] = []
    open_rows = len(closed)
    while closed:
        cost, word, path, folder = heapq.heappop(closed)
        if open_rows + cost > limit:
            rows.append({"path": path, "change": word, "kind": "dir", "count": folder.count})
            continue
        open_rows += cost
        rows += [_row(change) for change in folder.files]
        for inner in folder.below.values():
            heapq.heappush(closed, (_cost(inner), word, inner.path, inner))
    return sorted(rows, key=lambda row: (row["path"], row["change"]))


def fitting(changes: Sequence[Change], limit: int = DEFAULT_ROWS, most: int = 16_384) -> list[dict[str, Any]]:
    """``shown`` with as many rows as fit into ``most`` bytes of JSON (at least ``LEAST_ROWS``, however long)."""
    rows = shown(changes, limit)
    while limit > LEAST_ROWS and len(rows) > 1 and len(json.dumps(rows)) > most:
        limit = max(LEAST_ROWS, min(limit, len(rows)) * 2 // 3)
        rows = shown(changes, limit)
    return rows


def _row(change: Change) -> dict[str, Any]:
    row: dict[str, Any] = {"path": change.path, "change": change.change, "kind": change.kind}
    if change.old is not None:
        row["old"] = change.old
    return row


def _cost(folder: _Folder) -> int:
    """Rows that opening the folder adds."""
    return len(folder.files) + len(folder.below) - 1


def _by_word(changes: Sequence[Change]) -> dict[str, _Folder]:
    roots: dict[str, _Folder] = {}
    for change in changes:
        at = roots.setdefault(change.change, _Folder("./"))
        at.count += 1
        *folders, _ = change.path.split("/")
        path = ""
        for name in folders:
            path += name + "/"
            at = at.below.setdefault(name, _Folder(path))
            at.count += 1
        at.files.append(change)
    return roots
