"""How large a regular expression of a caller gets when the engine writes its counted repetitions out."""

from __future__ import annotations

import re

#: Elements that counted repetitions may unroll to (a million of them take a third of a gigabyte to compile).
MAX_UNROLLED = 50_000
_COUNTED = re.compile(r"\{(\d*)(?:,(\d*))?\}")


def too_large(pattern: str) -> str | None:
    """What was expected instead, when the pattern unrolls to more than ``MAX_UNROLLED`` elements; else ``None``."""
    size = _unrolled(pattern)
    if size <= MAX_UNROLLED:
        return None
    return f"a pattern whose counted repetitions unroll to at most {MAX_UNROLLED} elements, not {size}"


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
