"""Making a message fit: what costs a reader least goes first, and every cut says how much it took."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pytest_veil.expecting.plain import count

#: Lines that a part keeps while other parts can still be cut.
_KEPT = 6
# The pointer of a condensed stream and the end of the lines surfaced below it.
_POINTER = re.compile(r"\s*\| \[\.\.\. [\d,]+ lines? hidden")
_SURFACED_END = re.compile(r"\s*\| \[\.\.\.\]$")


@dataclass
class Part:
    """Some lines of a message.

    Attributes:
        rank: parts of the lowest rank are cut first; ``None``: cut only when nothing else is left.
        from_end: its end goes first, not its middle.
    """

    title: list[str]
    body: list[str] = field(default_factory=list)
    rank: int | None = None
    from_end: bool = False

    @property
    def lines(self) -> int:
        return len(self.title) + len(self.body)


def fit(parts: Sequence[Part], most: int) -> list[str]:
    """The lines of all parts, at most ``most``. Changes the parts."""
    ranks = sorted({part.rank for part in parts if part.rank is not None})
    for least in (_KEPT, 1):
        for rank in ranks:
            _shorten([part for part in parts if part.rank == rank], sum(part.lines for part in parts) - most, least)
    lines = [line for part in parts for line in (*part.title, *part.body)]
    if len(lines) > most:
        lines = [*lines[: most - 1], f"  [... {count(len(lines) - most + 1, 'more line')} cut ...]"]
    return lines


def _shorten(parts: Sequence[Part], excess: int, least: int) -> None:
    """Take ``excess`` lines from the longest bodies, so that what is left is as even as can be."""
    if excess <= 0 or not parts:
        return
    lengths = sorted(len(part.body) for part in parts)
    room = sum(lengths) - excess
    level = 0
    for at, length in enumerate(lengths):
        level = room // (len(lengths) - at)
        if length > level:
            break
        room -= length
    for part in parts:
        part.body = (front if part.from_end else cut)(part.body, max(level, least))


def cut(lines: list[str], most: int) -> list[str]:
    """At most ``most`` lines (at least 1): the middle goes, but lines that were surfaced from a long stream stay."""
    if len(lines) <= most:
        return lines
    start = next((at for at, line in enumerate(lines) if _POINTER.match(line)), None)
    if start is not None:
        end = next((at + 1 for at in range(start, len(lines)) if _SURFACED_END.match(lines[at])), start + 1)
        free = most - (end - start)
        if free >= 4:
            after = min(len(lines) - end, free - min(start, free // 3))
            return [*front(lines[:start], free - after), *lines[start:end], *_back(lines[end:], after)]
    before = (most - 1) // 3
    after = most - 1 - before
    return [*lines[:before], _notice(lines, len(lines) - before - after), *lines[len(lines) - after :]]


def front(lines: list[str], most: int) -> list[str]:
    """The first lines, at most ``most`` (at least 1) with the notice of the cut."""
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], _notice(lines, len(lines) - most + 1)]


def _back(lines: list[str], most: int) -> list[str]:
    if len(lines) <= most:
        return lines
    return [_notice(lines, len(lines) - most + 1), *lines[len(lines) - most + 1 :]]


def _notice(lines: list[str], taken: int) -> str:
    indent = lines[0][: len(lines[0]) - len(lines[0].lstrip(" "))]
    return f"{indent}[... {count(taken, 'line')} cut ...]"
