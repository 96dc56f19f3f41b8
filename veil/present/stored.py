"""The bounded JSON reply about a stored run: pages of its streams, matching lines, its metadata."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from veil.model.errors import BadInput
from veil.model.outcome import Stream
from veil.model.record import Record, to_data
from veil.present import trace
from veil.present.changes import fitting
from veil.present.paging import DEFAULT_LIMIT, LEAST_LIMIT, page, page_lines, whole_number
from veil.present.pattern import Match, compiled, grep
from veil.present.text import safe_text

SELECTORS = ("stdout", "stderr", "meta", "trace", "full")


def meta_of(record: Record) -> dict[str, Any]:
    """Everything that is kept of a run but its streams, JSON-ready."""
    data, _ = to_data(record)
    if record.status == "running":
        del data["outcome"]  # there is none yet
    return data


def matching(stream: Stream, pattern: str) -> tuple[Match, ...]:
    """Every kept line in which the pattern is found, with the number that it has in what the command wrote.

    Raises ``BadInput`` for an invalid pattern, ``Refused`` (``pattern_timeout``) for one that takes too long.
    """
    found = compiled(pattern)
    everything = 1 << 62
    matches = grep(stream.head, found, limit=everything).matches
    if stream.tail:
        # lines behind the gap are counted from the end
        behind = stream.total_lines - (stream.tail.count(b"\n") + (not stream.tail.endswith(b"\n")))
        later = grep(stream.tail, found, limit=everything).matches
        matches += tuple(Match(match.number + behind, match.text, match.cut) for match in later)
    return matches


def stored_reply(
    record: Record,
    selector: str,
    *,
    match: str | None = None,
    offset: int = 0,
    limit: int = DEFAULT_LIMIT,
    lines: tuple[int, int] | None = None,
) -> dict[str, Any]:
    """One reply of about ``limit`` bytes; says how much there is and how to go on.

    Args:
        match: only lines in which this regular expression is found.
        offset: byte of the stream, or number of the event of a trace, to start at (the ``next_offset`` of an earlier
            reply).
        lines: first and last line instead, from 1, both included.
    """
    if selector not in SELECTORS:
        raise BadInput("selector", selector, " or ".join(SELECTORS))
    if lines is not None and (not isinstance(lines, (tuple, list)) or len(lines) != 2):
        raise BadInput("lines", lines, "the numbers of the first and the last line, such as (1, 20)")
    whole_number("offset", offset, 0)
    whole_number("limit", limit, LEAST_LIMIT)
    data: dict[str, Any] = {"id": record.id, "selector": selector, "status": record.status}
    if selector in ("meta", "full"):
        data["meta"] = _bounded(meta_of(record), record, limit)
    if selector == "trace":
        data.update(trace.page(record.observation.findings.notes, offset, limit))
    names = ("stdout", "stderr") if selector == "full" else (selector,) if selector in ("stdout", "stderr") else ()
    if match is not None and not names:
        raise BadInput("match", match, f"nothing with selector {selector!r} (it searches stdout and stderr)")
    for name in names:
        stream: Stream = getattr(record.observation.outcome, name)
        if selector == "full" and not stream.total_bytes:
            continue
        share = max(1024, limit // len(names)) if selector == "full" else limit
        if match is not None:
            data[name] = _found(stream, match, share, lines)
        elif lines is not None:
            data[name] = _lines(stream, lines, share)
        else:
            data[name] = _page(stream, offset, share)
    return data


def _bounded(meta: dict[str, Any], record: Record, limit: int) -> dict[str, Any]:
    """The metadata in about ``limit`` bytes: many changes are summed up, long texts say how much is not shown."""
    if len(json.dumps(meta)) <= limit:
        return meta
    changes = record.observation.findings.changes
    if changes:
        meta["changes"] = fitting(changes, most=limit // 2)
        meta["changes_total"] = len(changes)
    if "trace" in meta.get("notes", {}):  # it has a selector of its own
        told = {name: value for name, value in meta["notes"]["trace"].items() if name != "events"}
        meta["notes"] = {**meta["notes"], "trace": told}
    most = max(200, limit // 16)
    return {name: _shortened(value, most) for name, value in meta.items()}


def _shortened(value: Any, most: int) -> Any:
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]} [... {len(value) - most} more characters]"
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return [_shortened(item, most) for item in value[:100]]
    return value


def _totals(stream: Stream) -> dict[str, Any]:
    data: dict[str, Any] = {"total_bytes": stream.total_bytes, "total_lines": stream.total_lines}
    if stream.truncated:
        data["dropped_bytes"] = stream.dropped
        data["dropped_at"] = len(stream.head)
    return data


def _page(stream: Stream, offset: int, limit: int) -> dict[str, Any]:
    piece = page(stream.data, offset=offset, limit=limit)
    data = _totals(stream)
    if stream.binary:
        data["base64"] = base64.b64encode(piece.data).decode("ascii")
    else:
        data["text"] = piece.text
    data["offset"] = piece.offset
    if piece.next is not None:
        data["next_offset"] = piece.next
    return data


def _lines(stream: Stream, lines: tuple[int, int], limit: int) -> dict[str, Any]:
    if stream.truncated:
        kept = stream.head.count(b"\n")
        if lines[1] > kept:
            raise BadInput(
                "lines",
                lines,
                f"lines up to {kept}: bytes after that were not kept (use offset or match for the rest)",
            )
    piece = page_lines(stream.head, lines[0], lines[1], limit)
    data = _totals(stream)
    data.update(text=safe_text(piece.data), first_line=piece.first, last_line=piece.last)
    if piece.next is not None:
        data["next_line"] = piece.next
    if piece.cut:
        data["cut_bytes"] = piece.cut
    return data


def _found(stream: Stream, match: str, limit: int, lines: tuple[int, int] | None) -> dict[str, Any]:
    first, last = lines or (1, 1 << 62)
    found = [hit for hit in matching(stream, match) if first <= hit.number <= last]
    rows: list[dict[str, Any]] = []
    used = 0
    for hit in found:
        used += len(hit.text.encode("utf-8", "replace")) + 32
        if used > limit and rows:
            break
        rows.append({"line": hit.number, "text": hit.text, **({"cut": hit.cut} if hit.cut else {})})
    data = _totals(stream)
    data.update(match=match, matches=rows, matched=len(found))
    if len(rows) < len(found):
        data["next_line"] = found[len(rows)].number
    return data


def as_text(record: Record, selector: str) -> str:
    """The selection whole, as text: for programs, which may have it all."""
    outcome = record.observation.outcome
    if selector in ("stdout", "stderr"):
        stream: Stream = getattr(outcome, selector)
        return stream.text
    if selector == "meta":
        return json.dumps(meta_of(record), indent=2)
    if selector == "trace":
        return trace.text(record.observation.findings.notes)
    parts: Mapping[str, str] = {
        "meta": json.dumps(meta_of(record), indent=2),
        "stdout": outcome.stdout.text,
        "stderr": outcome.stderr.text,
    }
    return "\n".join(f"--- {name} ---\n{text}" for name, text in parts.items() if text)
