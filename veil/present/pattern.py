"""Searching stored output for a pattern that someone else wrote: it cannot hang, and its errors say what is wrong."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from veil.model.errors import BadInput, Refused
from veil.model.unrolling import too_large
from veil.present.paging import DEFAULT_LIMIT
from veil.present.text import safe_text

#: Seconds that a whole search may take.
TIME_LIMIT = 2.0
_AT_A_TIME = 200  # lines between two looks at the clock
_LINE_SECONDS = 10e-6  # allowed on top for each line: what a search with a limit costs when it does nothing
_ORDINARY = 1_000  # characters of a line
_repeat = re.compile(r"[*+?{]")


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
    expected = too_large(pattern)
    if expected is not None:
        raise BadInput("match", pattern, expected)
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
        seconds: for the whole search (and 10 microseconds for each line on top).
        line_characters: a longer line is cut in the reply (never for the search).

    Raises:
        Refused: with code ``pattern_timeout``, or ``pattern_too_large`` when the search takes too much memory.
    """
    lines = data.decode("utf-8", "replace").split("\n")
    if not lines[-1]:
        lines.pop()
    kept: list[Match] = []
    total = used = 0
    going_on: int | None = None
    for number in _found(pattern, lines, first, seconds):
        total += 1
        if going_on is not None:
            continue
        shown = safe_text(lines[number - 1].removesuffix("\r"))
        match = Match(number, shown[:line_characters], max(0, len(shown) - line_characters))
        used += len(match.text.encode("utf-8", "replace"))
        if used > limit and kept:
            going_on = number
        else:
            kept.append(match)
    return Matches(tuple(kept), total, len(lines), going_on)


def _found(pattern: Any, lines: Sequence[str], first: int, seconds: float) -> Iterator[int]:
    """Numbers of the lines that match.

    A search with a time limit costs ten times one without. So it is left out where it cannot be needed: on lines of
    ordinary length, for a pattern without groups that repeats at most one thing (quadratic at worst).
    """
    deadline = time.monotonic() + seconds + len(lines) * _LINE_SECONDS
    search = pattern.search
    source = pattern.pattern.removeprefix("(?i)")
    free = _ORDINARY if "(" not in source and len(_repeat.findall(source)) <= 1 else -1
    for start in range(first - 1, len(lines), _AT_A_TIME):
        try:
            _left(deadline)
            for number, line in enumerate(lines[start : start + _AT_A_TIME], start + 1):
                line = line.removesuffix("\r")
                if len(line) <= free:
                    hit = search(line)
                else:  # asked again for each: every one of them may take nearly all that is left
                    hit = search(line, timeout=_left(deadline))
                if hit is not None:
                    yield number
        except TimeoutError:
            raise Refused(
                f"the pattern took longer than {seconds:g} s; make it simpler (nested repeats are the usual reason)",
                code="pattern_timeout",
                seconds=seconds,
            ) from None
        except (MemoryError, RecursionError):
            raise Refused("the pattern takes too much memory; make it simpler", code="pattern_too_large") from None


def _left(deadline: float) -> float:
    """Seconds until then. Raises ``TimeoutError`` when there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
