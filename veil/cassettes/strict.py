"""The small JSON of headers and steps: written one way only, read without forgiving anything."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from veil.cassettes.archive import UNSEEN, Section
from veil.cassettes.errors import CassetteDamaged

_T = TypeVar("_T")
_UNSEEN = re.compile(f"[{UNSEEN}]")
#: Surrogates that stand for no byte: half a pair.
_NO_TEXT = re.compile("[\ud800-\udc7f\udd00-\udfff]")
#: A value that fits into this many columns stands on one line; a list of objects has a line per object, so that a
#: changed row is a changed line.
WIDTH = 160


def write(value: Mapping[str, Any]) -> bytes:
    """``value`` as sorted, indented JSON; whatever fits stands on one line; nothing in it is invisible.

    Raises ``ValueError`` for NaN and infinities, ``TypeError`` for what JSON has no form for.
    """
    inside = [f"  {_text(key)}: {_shown(value[key], 2, len(_text(key)) + 4)}" for key in sorted(value)]
    return ("{\n" + ",\n".join(inside) + "\n}\n" if inside else "{}\n").encode()


def _text(value: Any) -> str:
    flat = json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)
    return _UNSEEN.sub(lambda m: f"\\u{ord(m[0]):04x}", flat)


def _shown(value: Any, indent: int, used: int) -> str:
    flat = _text(value)
    table = isinstance(value, (list, tuple)) and any(isinstance(item, dict) for item in value)
    fits = indent + used + len(flat) <= WIDTH and not table
    if fits or not isinstance(value, (dict, list, tuple)) or not value:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        rows = [f"{_text(k)}: {_shown(value[k], indent + 2, len(_text(k)) + 2)}" for k in sorted(value)]
        opening, closing = "{", "}"
    else:
        rows = [_shown(item, indent + 2, 0) for item in value]
        opening, closing = "[", "]"
    return opening + "\n" + ",\n".join(pad + row for row in rows) + "\n" + " " * indent + closing


class Reader:
    """The members of one JSON object, taken out one by one; the missing, the mistyped and the left over are errors."""

    def __init__(self, members: dict[str, Any], file: str, line: int, where: str) -> None:
        self._members = dict(members)
        self.file = file
        self.line = line
        self.where = where

    @classmethod
    def of(cls, section: Section, file: str) -> Reader:
        """A reader of the JSON object in a section. Raises ``CassetteDamaged``."""

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            members = dict(pairs)
            if len(members) != len(pairs):
                raise CassetteDamaged(file, section.line, f"{section.name}: a member stands twice")
            return members

        try:
            members = json.loads(
                section.data.decode(), object_pairs_hook=once, parse_constant=_no_constant, parse_float=_finite
            )
            if b"\\ud" in section.data.lower() and _NO_TEXT.search(json.dumps(members, ensure_ascii=False)):
                raise CassetteDamaged(file, section.line, f"{section.name}: half a surrogate pair is no text")
        except json.JSONDecodeError as error:
            where = section.line + error.lineno
            raise CassetteDamaged(file, where, f"{section.name}: not JSON: {error.msg}") from None
        except (ValueError, RecursionError) as error:
            if isinstance(error, CassetteDamaged):
                raise
            raise CassetteDamaged(file, section.line + 1, f"{section.name}: not JSON: {error}") from None
        if not isinstance(members, dict):
            raise CassetteDamaged(file, section.line + 1, f"{section.name}: expected an object")
        return cls(members, file, section.line, section.name)

    def fail(self, problem: str) -> CassetteDamaged:
        """The error to raise about this object."""
        return CassetteDamaged(self.file, self.line, f"{self.where}: {problem}")

    def take(self, name: str, kind: type[_T]) -> _T:
        """The member ``name``, which must be there and of this type (``bool`` is no ``int`` here)."""
        if name not in self._members:
            raise self.fail(f"{name!r} is missing")
        return self._checked(name, self._members.pop(name), kind)

    def maybe(self, name: str, kind: type[_T], default: _T) -> _T:
        """The member ``name`` when it is there, else ``default``."""
        return self.take(name, kind) if name in self._members else default

    def optional(self, name: str, kind: type[_T]) -> _T | None:
        """The member ``name``, or None when it is missing or null."""
        if self._members.get(name) is None:
            self._members.pop(name, None)
            return None
        return self.take(name, kind)

    def any(self, name: str) -> Any:
        """The member ``name``, of any type; None when missing."""
        return self._members.pop(name, None)

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings; empty when missing."""
        return tuple(self._checked(name, item, str) for item in self.maybe(name, list, []))

    def choice(self, name: str, words: tuple[str, ...]) -> str:
        """A string that must be one of ``words``."""
        word = self.take(name, str)
        if word not in words:
            raise self.fail(f"{name!r} is {word!r}; expected one of {', '.join(words)}")
        return word

    def object(self, name: str) -> Reader | None:
        """A reader of the object ``name``; None when missing."""
        members = self.optional(name, dict)
        return None if members is None else Reader(members, self.file, self.line, f"{self.where}.{name}")

    def rows(self, name: str) -> list[Reader]:
        """Readers of a list of objects; empty when missing."""
        return [
            Reader(self._checked(name, row, dict), self.file, self.line, f"{self.where}.{name}[{n}]")
            for n, row in enumerate(self.maybe(name, list, []))
        ]

    def pairs(self, name: str, kind: type[_T]) -> dict[str, _T]:
        """An object whose values are all of one type; empty when missing."""
        return {key: self._checked(f"{name}.{key}", value, kind) for key, value in self.maybe(name, dict, {}).items()}

    def done(self) -> None:
        """Raises when a member was not taken: what we do not know we must not ignore."""
        if self._members:
            raise self.fail(f"unknown member {', '.join(sorted(map(repr, self._members)))}")

    def _checked(self, name: str, value: Any, kind: type[_T]) -> _T:
        right = isinstance(value, kind) and not (isinstance(value, bool) and kind is int)
        if not right:
            raise self.fail(f"{name!r} must be {kind.__name__}, got {type(value).__name__}")
        return value  # type: ignore[no-any-return]


def _finite(word: str) -> float:
    """Python reads what is too large for it as infinity, which could not be written again."""
    number = float(word)
    return number if math.isfinite(number) else _no_constant(word)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number that can be kept")
