"""Searching stored output for a pattern that someone else wrote: it cannot hang, and its errors say what is wrong."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from veil.model.errors import BadInput, Refused
from veil.present.paging import DEFAULT_LIMIT, boundary
from veil.present.text import safe_text

#: Seconds that a whole search may take.
TIME_LIMIT = 2.0
_PIECE = 200_000  # characters searched at a time


@dataclass(frozen=True)
class Match:
    """One line that matches. ``text`` is made harmless and holds at most 1,000 characters; ``cut`` counts the rest."""

    number: int
    text: str
    cut: int = 0


@dataclass(frozen=True)
class Matches:
    """The matching lines, in order.

    Attributes:
        matches: as many as fit into the limit.
        total: how many lines match in all.
        lines: lines searched.
        next: number of the line from which to go on; ``None`` when all matches are here.
    """

    matches: tuple[Match, ...]
    total: int
    lines: int
    next: int | None = None


def compiled(pattern: str) -> Any:
    """The pattern compiled by the PyPI module ``regex``, whose searches take a time limit.

    Raises:
        BadInput: it is no valid pattern; the reason and its place are in the message.
    """
    import regex

    if not isinstance(pattern, str):
        raise BadInput("match", pattern, "a regular expression as text")
    try:
        return regex.compile(pattern)
    except regex.error as wrong:
        raise BadInput("match", pattern, f"a valid regular expression ({wrong})") from None
    except (OverflowError, RecursionError) as wrong:
        raise BadInput("match", pattern[:200], f"a regular expression of reasonable size ({wrong})") from None


def grep(
    data: bytes,
    pattern: Any,
    *,
    first: int = 1,
    limit: int = DEFAULT_LIMIT,
    seconds: float = TIME_LIMIT,
    line_characters: int = 1_000,
) -> Matches:
    """The lines of ``data`` in which the pattern is found.

    Args:
        data: stored bytes; read as UTF-8. A carriage return before a newline is not part of the line.
        pattern: what ``compiled`` gave: anything whose ``search(text, timeout=seconds)`` raises ``TimeoutError``.
        first: number of the line to start at, from 1 (the ``next`` of an earlier reply).
        limit: bytes of matching text in the reply. One match is always given.
        seconds: for the whole search.
        line_characters: a longer line is cut in the reply (never for the search).

    Raises:
        Refused: with code ``pattern_timeout``.
    """
    deadline = time.monotonic() + seconds
    lines = data.decode("utf-8", "replace").split("\n")
    if lines and not lines[-1]:
        lines.pop()
    kept: list[Match] = []
    total = used = 0
    going_on: int | None = None
    for number in range(first, len(lines) + 1):
        line = lines[number - 1].removesuffix("\r")
        if not _found(pattern, line, deadline, seconds):
            continue
        total += 1
        if going_on is not None:
            continue
        shown = safe_text(line)
        match = Match(number, shown[:line_characters], max(0, len(shown) - line_characters))
        used += len(match.text.encode("utf-8", "replace"))
        if used > limit and kept:
            going_on = number
        else:
            kept.append(match)
    return Matches(tuple(kept), total, len(lines), going_on)


def _found(pattern: Any, line: str, deadline: float, seconds: float) -> bool:
    left = deadline - time.monotonic()
    if left > 0:
        try:
            return pattern.search(line, timeout=left) is not None
        except TimeoutError:
            pass
    raise Refused(
        f"the pattern took longer than {seconds:g} s; make it simpler (nested repeats are the usual reason)",
        code="pattern_timeout",
        seconds=seconds,
    )
