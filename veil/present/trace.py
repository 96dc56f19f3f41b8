"""What a tracer saw, for people and JSON: a summary for the result, all of it by detail.

A record keeps it under the note ``trace``: ``counts`` and ``events`` by kind, ``truncated``, ``gaps``, or
``unavailable`` alone (``docs/trace.md``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

#: In the order in which they are shown.
KINDS = ("executed", "written", "created", "deleted", "renamed", "metadata", "network", "read")
#: Shown of each kind in a summary, and characters of each.
SHOWN, SHOWN_CHARACTERS = 5, 160
_NOT_TRACED = "this run was not traced"


def unavailable(notes: Mapping[str, Any]) -> str | None:
    """Why a trace was asked for and there is none; ``None`` when there is one, or when nobody asked."""
    told = notes.get("trace", {}).get("unavailable") or notes.get("skipped", {}).get("trace")
    return None if told is None else str(told)


def summary(notes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """By kind ``{"count": n, "first": [...]}``: those below the working directory before those of the system."""
    found = notes.get("trace", {})
    counts, events = found.get("counts", {}), found.get("events", {})
    return {
        kind: {"count": counts[kind], "first": [_cut(_shown(kind, row)) for row in _first(kind, events.get(kind, ()))]}
        for kind in KINDS
        if kind in counts
    }


def fields(notes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a result that speak of the trace; those that say nothing are left out."""
    data: dict[str, Any] = {}
    reason = unavailable(notes)
    if reason is not None:
        data["trace_unavailable"] = reason
    told = summary(notes)
    if told:
        data["trace_summary"] = told
    found = notes.get("trace", {})
    if found.get("truncated"):
        data["trace_truncated"] = True
    if found.get("gaps"):
        data["trace_gaps"] = found["gaps"]
    return data


def page(notes: Mapping[str, Any], offset: int, limit: int) -> dict[str, Any]:
    """The kept events by kind from number ``offset`` on, as many as fit into about ``limit`` bytes of JSON."""
    data = fields(notes)
    data.pop("trace_summary", None)
    rows = list(_rows(notes))
    if not rows:
        data.setdefault("trace_unavailable", _NOT_TRACED)
        return data
    shown: dict[str, list[Any]] = {}
    used, number = 0, offset
    for number in range(offset, len(rows)):
        kind, row = rows[number]
        used += len(json.dumps(row)) + 2
        if used > limit and shown:
            break
        shown.setdefault(kind, []).append(row)
    else:
        number = len(rows)
    data.update(trace=shown, counts=notes["trace"]["counts"], events=len(rows), offset=offset)
    if number < len(rows):
        data["next_offset"] = number
    return data


def text(notes: Mapping[str, Any]) -> str:
    """All of it, one event a line."""
    lines = [f"{kind:<9} {_shown(kind, row)}" for kind, row in _rows(notes)]
    if not lines:
        return f"({unavailable(notes) or _NOT_TRACED})"
    found = notes["trace"]
    lines += [f"(not seen: {gap})" for gap in found.get("gaps", ())]
    if found.get("truncated"):
        lines.append("(this is not all of it)")
    return "\n".join(lines)


def _rows(notes: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    events = notes.get("trace", {}).get("events", {})
    for kind in KINDS:
        for row in events.get(kind, ()):
            yield kind, row


def _first(kind: str, rows: Sequence[Any]) -> Sequence[Any]:
    if kind in ("executed", "network"):
        return rows[:SHOWN]
    return sorted(rows, key=lambda row: (row if isinstance(row, str) else row[0]).startswith("/"))[:SHOWN]


def _shown(kind: str, row: Any) -> str:
    """An event in one line: what would break a line or drive a terminal is escaped."""
    words = [row] if isinstance(row, str) else row
    if kind == "executed" and len(words) > 1:
        path, name = words[0], words[1]
        # the arguments begin with a name for the program, which may be any text: one that is not its own is not shown
        words = words[1:] if name == path or name == path.rpartition("/")[2] else [path, *words[2:]]
    line = (" -> " if kind == "renamed" else " ").join(words)
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def _cut(line: str) -> str:
    return line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 3] + "..."
