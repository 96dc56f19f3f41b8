"""Replies that any JSON parser takes, whatever a command wrote or was called."""

from __future__ import annotations

import math
from typing import Any, TypeVar

T = TypeVar("T")

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def plain(value: T) -> T:
    """The same data with lone surrogates (bytes that are no text, in names of files) replaced, and every number finite:
    strict parsers refuse the whole document otherwise."""
    made: Any = _plain(value)
    found: T = made
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value if _encodable(value) else _replaced(value)
    if isinstance(value, dict):
        return {_plain(str(name)): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _replaced(text: str) -> str:
    return "".join(_REPLACEMENT if "\ud800" <= sign <= "\udfff" else sign for sign in text)
