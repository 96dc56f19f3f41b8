"""How a judgement words what it saw: one line, short, harmless on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from veil.model.outcome import Outcome, Stream

#: Characters of an excerpt.
EXCERPT = 160
#: Newest bytes of a stream that are looked through for a line like the one that was expected.
NEARBY_BYTES = 200_000

_WORD = re.compile(r"\w+")


def shown(value: object, limit: int = EXCERPT) -> str:
    """``repr`` of a value on one line; a long text is cut before it is escaped, and says so."""
    if isinstance(value, str) and len(value) > limit:
        return f"{value[:limit]!r}... ({len(value)} characters)"
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "..."


def listed(items: Sequence[object] | Iterable[object], limit: int = 5) -> str:
    """The first few items, and how many more there are."""
    every = list(items)
    text = ", ".join(shown(item) for item in every[:limit])
    return text if len(every) <= limit else f"{text} and {len(every) - limit} more"


def clipped(text: str, limit: int = EXCERPT) -> str:
    """A text as JSON-ready excerpt."""
    return text if len(text) <= limit else text[:limit] + "..."


def ending(outcome: Outcome) -> str:
    """How the command ended, in a few words."""
    if outcome.ended == "timed_out":
        return f"{outcome.exit} (timed out)"
    if outcome.ended == "spawn_failed":
        return f"{outcome.exit} (could not start: {clipped(str(outcome.spawn_error or 'no reason given'))})"
    if outcome.ended == "signaled":
        return f"{outcome.exit} (ended by {outcome.signal or 'a signal'})"
    return str(outcome.exit)


def nearest_line(stream: Stream, wanted: str) -> str:
    """The line that shares most words with ``wanted`` (the later one of two that are equal), else the last one with any
    text. Looks only at the newest part of a long stream: it is a pointer for a reader, not evidence."""
    if stream.binary:
        return ""
    text = stream.data[-NEARBY_BYTES:].decode("utf-8", "replace")
    words = set(_WORD.findall(wanted.casefold()))
    best, score = "", 0
    last = ""
    for line in text.splitlines():
        if not line.strip():
            continue
        last = line
        common = len(words.intersection(_WORD.findall(line.casefold())))
        if common and common >= score:
            best, score = line, common
    return (best or last).strip()


def gap(name: str, stream: Stream) -> str:
    """Why a miss on this stream proves nothing."""
    return f"{name} was truncated: {stream.dropped} of {stream.total_bytes} bytes were not kept"
