"""How two texts differ, line by line, in a way that shows what cannot be seen."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable

from pytest_veil.expecting.plain import clipped, count, plain

#: Lines of either text that are compared from the first difference on. Comparing costs up to the square of it.
MOST_LINES = 400
#: Characters of one line.
LINE = 300
_AROUND = 3


def diff(expected: str, got: str, name: str) -> list[str]:
    """A unified diff from what was expected to what came (``name``); empty for equal texts."""
    if expected == got:
        return []
    old, new = _lines(expected), _lines(got)
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    start = max(0, start - _AROUND)
    left, right = old[start : start + MOST_LINES], new[start : start + MOST_LINES]
    lines = _unified(left, right, start, _shower(left, right))
    if lines:
        lines = ["--- expected", f"+++ {name}", *lines]
    unseen = max(len(old), len(new)) - start - MOST_LINES
    if unseen > 0:
        lines.append(f"[... {count(unseen, 'line')} further down not compared ...]")
    if old and new and expected.endswith("\n") is not got.endswith("\n"):
        whose = name if expected.endswith("\n") else "what was expected"
        lines.append(f"\\ {whose} has no newline at its end")
    return lines


def alike(one: str, other: str) -> bool:
    """Whether two texts can look the same to a reader: there are two ways to write an accent."""
    return unicodedata.normalize("NFKC", one) == unicodedata.normalize("NFKC", other)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def _unified(left: list[str], right: list[str], start: int, show: Callable[[str], str]) -> list[str]:
    found: list[str] = []
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for group in matcher.get_grouped_opcodes(_AROUND):
        before = _range(start + group[0][1], group[-1][2] - group[0][1])
        after = _range(start + group[0][3], group[-1][4] - group[0][3])
        found.append(f"@@ -{before} +{after} @@")
        for word, low, high, first, last in group:
            if word == "equal":
                found += [" " + _cut(show(line)) for line in left[low:high]]
                continue
            found += ["-" + _cut(show(line)) for line in left[low:high]]
            found += ["+" + _cut(show(line)) for line in right[first:last]]
    return found


def _shower(left: list[str], right: list[str]) -> Callable[[str], str]:
    """How to show a line: where two that differ look alike, by its codes."""
    looks: dict[str, str] = {}
    alike: set[str] = set()
    for line in (*left, *right):
        if looks.setdefault(unicodedata.normalize("NFKC", line), line) != line:
            alike.add(unicodedata.normalize("NFKC", line))
    return lambda line: ascii(line) if unicodedata.normalize("NFKC", line) in alike else _visible(line)


def _range(first: int, length: int) -> str:
    return f"{first + 1 if length else first},{length}"


def _cut(text: str) -> str:
    return clipped(text, LINE)


def _visible(line: str) -> str:
    bare = line.rstrip(" ")
    return plain(bare) + "\\x20" * (len(line) - len(bare))
