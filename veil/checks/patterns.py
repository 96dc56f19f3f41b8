"""Regular expressions of a caller: refused before the run when they are wrong, and unable to hang it.

The syntax is that of the PyPI package ``regex`` (its default version, close to ``re``). A pattern is *searched*, and
``^`` and ``$`` match at every line (``MULTILINE``); ``.`` does not match a newline unless the pattern says ``(?s)``. A
line that ends in ``\\r\\n`` keeps its ``\\r``: write ``\\r?$`` where that matters.

Two limits keep a pattern harmless: a search has a time limit, and counted repetitions (``{1000}`` inside ``{1000}``),
which the engine unrolls when it compiles, may not add up to more than ``MAX_UNROLLED`` elements.
"""

from __future__ import annotations

import re
import time
from typing import Any, Literal

from veil.model.errors import BadInput
from veil.model.outcome import Stream

#: Seconds that all patterns of one check may take together.
SECONDS = 1.0
#: Elements that counted repetitions may unroll to (a million of them take a third of a gigabyte to compile).
MAX_UNROLLED = 50_000
#: Characters next to a gap that no match may use: an anchor, a word border or a cut character there would lie.
MARGIN = 8

Found = Literal["found", "missing", "unknown", "slow"]

# What can look at text beyond the end (or before the start) of its match, or can give up a match because of it. With
# these, a match next to a gap does not prove that the whole text matches. Seen as plain text: a false alarm only costs
# certainty on a truncated stream.
_EITHER = r"\(\*|\(\?\(|\(\?[a-zA-Z-]*[rx]|\(\?(?:R|&|P>|[0-9+-])|\{[^}]*<"  # verbs, conditions, calls, fuzzy
_AHEAD = re.compile(r"\(\?[=!>]|[*+?}]\+|" + _EITHER)
_BEHIND = re.compile(r"\(\?<[=!]|\\G|" + _EITHER)
_COUNTED = re.compile(r"\{(\d*)(?:,(\d*))?\}")


def parsed(argument: str, pattern: str) -> str:
    """The pattern itself when it can be used. Raises ``BadInput`` with ``facts["position"]`` when it cannot."""
    size = _unrolled(pattern)
    if size > MAX_UNROLLED:
        raise BadInput(
            argument,
            pattern,
            f"a pattern whose counted repetitions unroll to at most {MAX_UNROLLED} elements, not {size}",
        )
    import regex

    try:
        _compiled(pattern)
    except regex.error as trouble:
        # the attributes of the error are there at run time; its type stubs do not name them
        where, reason = getattr(trouble, "pos", None) or 0, getattr(trouble, "msg", str(trouble))
        raise BadInput(
            argument, pattern, f"a valid regular expression ({reason} at position {where})", position=where
        ) from None
    except (ValueError, OverflowError, RecursionError, MemoryError, KeyError, IndexError, TypeError) as trouble:
        reason = str(trouble) or type(trouble).__name__
        raise BadInput(argument, pattern, f"a regular expression that can be compiled ({reason})") from None
    return pattern


def find(pattern: str, stream: Stream, until: float) -> Found:
    """Whether the stream that the command wrote matches, as far as the kept bytes can tell.

    ``until``: ``time.monotonic()`` at which to stop. Never raises: trouble of the engine is ``unknown``.
    """
    import regex

    try:
        if not stream.truncated:
            return "found" if _search(pattern, stream.text, 0, until) else "missing"
        head, tail = stream.head.decode("utf-8", "replace"), stream.tail.decode("utf-8", "replace")
        if not _AHEAD.search(pattern):
            match = _search(pattern, head, 0, until)
            if match is not None and match.end() <= len(head) - MARGIN:
                return "found"
        if not _BEHIND.search(pattern) and len(tail) > MARGIN and _search(pattern, tail, MARGIN, until):
            return "found"
    except TimeoutError:
        return "slow"
    except (regex.error, RecursionError, MemoryError):
        return "unknown"
    return "unknown"


def _compiled(pattern: str) -> Any:
    import regex

    return regex.compile(pattern, regex.MULTILINE | regex.VERSION0)


def _search(pattern: str, text: str, start: int, until: float) -> Any:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    # concurrent: other threads go on (they drain pipes) while a search runs
    return _compiled(pattern).search(text, start, timeout=left, concurrent=True)


def _unrolled(pattern: str) -> int:
    """Elements of the pattern after unrolling its counted repetitions. An upper estimate: a quantifier counts by its
    greater bound, and what is really a literal brace may count as one."""
    groups: list[list[int]] = [[0, 0]]  # of each open group: its size so far, the size of its last element
    place = 0
    while place < len(pattern):
        sign = pattern[place]
        counted = _COUNTED.match(pattern, place) if sign == "{" else None
        group = groups[-1]
        if counted is not None:
            low, high = counted.group(1), counted.group(2)
            times = max(_number(low), _number(high or ""), 1)
            group[0] += group[1] * (times - 1)
            group[1] *= times
            place = counted.end()
            continue
        if sign == "(":
            groups.append([0, 0])
        elif sign == ")" and len(groups) > 1:
            size, _ = groups.pop()
            groups[-1] = [groups[-1][0] + max(size, 1), max(size, 1)]
        elif sign == "[":
            place = _end_of_set(pattern, place)
            group[0], group[1] = group[0] + 1, 1
        elif sign not in "*+?|^$":
            place += sign == "\\"
            group[0], group[1] = group[0] + 1, 1
        place += 1
    return sum(size for size, _ in groups)


def _number(digits: str) -> int:
    # more digits than any sensible bound: the engine refuses such a count itself
    return int(digits) if digits and len(digits) < 12 else (10**12 if digits else 0)


def _end_of_set(pattern: str, place: int) -> int:
    """Index of the ``]`` that ends the set opened at ``place`` (the last index when none does)."""
    index = place + 1
    if pattern[index : index + 1] == "^":
        index += 1
    if pattern[index : index + 1] == "]":
        index += 1
    while index < len(pattern) and pattern[index] != "]":
        index += 2 if pattern[index] == "\\" else 1
    return min(index, len(pattern) - 1)
