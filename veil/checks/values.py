"""Reading what a caller expects: one value, or a list of which all (for exit codes: any) must hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from veil.model.errors import BadInput

T = TypeVar("T")


def one_or_many(argument: str, value: Any, expected: str, read: Callable[[Any], T | None]) -> T | list[T]:
    """A single value as it is, a list or tuple as a list without doubles.

    ``read`` gives the canonical item, or ``None`` when it cannot mean anything. Raises ``BadInput``.
    """
    if not isinstance(value, (list, tuple)):
        item = read(value)
        if item is None:
            raise BadInput(argument, value, expected)
        return item
    if not value:
        raise BadInput(argument, value, f"{expected}; an empty list expects nothing")
    found: list[T] = []
    for part in value:
        item = read(part)
        if item is None:
            raise BadInput(argument, part, f"a list in which each item is {expected}")
        if item not in found:
            found.append(item)
    return found


def each(expected: Any) -> list[Any]:
    """A parsed value as the list of its items."""
    return expected if isinstance(expected, list) else [expected]


def text_of(value: Any) -> str | None:
    """A text that has something in it and that can stand for bytes (UTF-8, or surrogate escapes for other bytes)."""
    if not isinstance(value, str) or not value:
        return None
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
    return value


def flag(argument: str, value: Any, expected: str) -> bool:
    """True or False and nothing that merely counts as such. Raises ``BadInput``."""
    if not isinstance(value, bool):
        raise BadInput(argument, value, expected)
    return value
