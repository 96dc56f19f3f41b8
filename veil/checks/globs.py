"""Globs over POSIX paths, matched in time that grows with pattern times path and never worse.

``*`` and ``?`` match within one part of a path (also a leading dot), ``[a-z]`` and ``[!a-z]`` one character, ``\\``
takes the next sign literally. ``**`` as a whole part matches any number of parts: ``**/x`` is ``x`` at any depth,
``a/**`` is everything below ``a`` (``a/`` means the same), ``a/**/b`` includes ``a/b``. A glob is always anchored where
paths start: ``*.log`` does not look into folders. Only a literal ``..`` leaves them. A path that is spelled exactly
like the glob matches too, so that ``pages/[id].tsx`` finds the file of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
U = TypeVar("U")

_MANY = "**"
_STAR: tuple[str, ...] = ("star",)
_ANY: tuple[str, ...] = ("any",)


class Glob:
    """One glob, ready to be matched.

    Attributes:
        text: as the caller wrote it.
        concrete: the one path it can match when it has no wildcard, else ``None``.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        parts = [part for part in text.split("/") if part not in ("", ".")]
        if text.endswith("/") and parts and parts[-1] != _MANY:
            parts.append(_MANY)
        self._literal = "/".join(parts)
        self._parts: list[str | list[Any]] = [part if part == _MANY else _tokens(part) for part in parts]
        if parts and parts[-1] == _MANY:
            self._parts.append([_STAR])  # what is below a folder is not the folder itself
        literal = [_spelled(part) for part in self._parts]
        spelled = [part for part in literal if part is not None]
        self.concrete = "/".join(spelled) if len(spelled) == len(literal) else None

    def matches(self, path: str) -> bool:
        """``path``: relative, POSIX separators."""
        if path in (self._literal, self.concrete):
            return True
        if self.concrete is not None:
            return False
        return _wild(self._parts, path.split("/"), lambda part: part == _MANY, _part_fits, lambda part: part != "..")


def _wild(
    pattern: Sequence[T],
    text: Sequence[U],
    star: Callable[[T], bool],
    fits: Callable[[T, U], bool],
    skip: Callable[[U], bool],
) -> bool:
    """Wildcard matching that goes back to the newest star only: each star takes as little as it can."""
    place = index = mark = 0
    back = -1
    while index < len(text):
        if place < len(pattern) and star(pattern[place]):
            back, mark = place, index
            place += 1
        elif place < len(pattern) and fits(pattern[place], text[index]):
            place += 1
            index += 1
        elif back >= 0 and skip(text[mark]):
            mark += 1
            index, place = mark, back + 1
        else:
            return False
    return all(star(rest) for rest in pattern[place:])


def _part_fits(part: str | list[Any], name: str) -> bool:
    if isinstance(part, str):
        return False
    if name == "..":
        return part == [".", "."]
    return _wild(part, name, lambda token: token is _STAR, _sign_fits, lambda sign: True)


def _sign_fits(token: Any, sign: str) -> bool:
    if isinstance(token, str):
        return token == sign
    if token is _ANY:
        return True
    negated, ranges = token
    return any(low <= sign <= high for low, high in ranges) is not negated


def _spelled(part: str | list[Any]) -> str | None:
    """The part as plain text when it has no wildcard."""
    if isinstance(part, str) or not all(isinstance(token, str) for token in part):
        return None
    return "".join(part)


def _tokens(part: str) -> list[Any]:
    found: list[Any] = []
    place = 0
    while place < len(part):
        sign = part[place]
        if sign == "*":
            if not found or found[-1] is not _STAR:
                found.append(_STAR)
        elif sign == "?":
            found.append(_ANY)
        elif sign == "\\" and place + 1 < len(part):
            place += 1
            found.append(part[place])
        elif sign == "[" and (set_ := _set(part, place)) is not None:
            found.append(set_[0])
            place = set_[1]
        else:
            found.append(sign)
        place += 1
    return found


def _set(part: str, place: int) -> tuple[tuple[bool, list[tuple[str, str]]], int] | None:
    """The set opened at ``place`` and the index of its ``]``; ``None`` when it is not closed (then ``[`` is a sign)."""
    index = place + 1
    negated = part[index : index + 1] in ("!", "^")
    index += negated
    ranges: list[tuple[str, str]] = []
    first = True
    while index < len(part) and (first or part[index] != "]"):
        first = False
        if part[index] == "\\" and index + 1 < len(part):
            index += 1
        low = high = part[index]
        if part[index + 1 : index + 2] == "-" and part[index + 2 : index + 3] not in ("", "]"):
            index += 2
            if part[index] == "\\" and index + 1 < len(part):
                index += 1
            high = part[index]
        ranges.append((low, high))
        index += 1
    return ((negated, ranges), index) if index < len(part) else None
