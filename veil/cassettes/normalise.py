"""Normalisers: named, versioned replacements of what differs between two runs of the same behaviour.

A value that says *which one* (a uuid, a hash, an address) becomes a numbered token, ``<uuid:1>``; the same value gets
the same number wherever it stands, so that a wrong value in the second place is still a difference. A value that says
only *how much* or *when* (a duration, a time of day) is erased, ``<duration>``; whoever compares must then say that
something was masked. Text that already looks like a token gets a ``=`` (``<=uuid:1>``), so that output cannot pass
itself off as one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from veil.model.errors import BadInput, nearest

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Context:
    """What the streams of one step share: the numbers given to values, and what is known about the run.

    Args:
        roots: token name to absolute path, for the normaliser ``paths``.
        known: kind to values that the run is known to have had, such as ``{"pid": ["4711"]}``.
    """

    def __init__(
        self, roots: Mapping[str, str] | None = None, known: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        self.roots = dict(roots or {})
        self.known = {kind: tuple(values) for kind, values in (known or {}).items()}
        self._numbers: dict[str, dict[bytes, int]] = {}

    def token(self, kind: str, value: bytes) -> bytes:
        """``<kind:n>``: n counts the distinct values of the kind, in the order in which they were first seen."""
        numbers = self._numbers.setdefault(kind, {})
        return b"<%s:%d>" % (kind.encode(), numbers.setdefault(value, len(numbers) + 1))

    def values(self, kind: str) -> Mapping[bytes, int]:
        """The values of a kind seen so far, with their numbers."""
        return self._numbers.get(kind, {})


@dataclass(frozen=True)
class Normaliser:
    """One named replacement.

    Attributes:
        name, version: stand in reports; the version changes whenever its output can.
        about: one line for people.
        erases: values are thrown away, not numbered: what it touched counts as masked.
        words: the token words that it writes.
        replace: bytes and context to bytes. Pure but for the numbers it takes from the context.
    """

    name: str
    version: int
    about: str
    erases: bool
    words: tuple[str, ...]
    replace: Callable[[bytes, Context], bytes]


@dataclass(frozen=True)
class Normalised:
    """Attributes: data: the text afterwards. fired: names that changed something. erased: those of them that mask."""

    data: bytes
    fired: tuple[str, ...] = ()
    erased: tuple[str, ...] = ()


@dataclass(frozen=True)
class Registry:
    """The normalisers there are, in the order in which they are applied. Immutable: ``adding`` gives another one."""

    entries: Mapping[str, Normaliser] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.entries)

    def adding(self, *normalisers: Normaliser, first: bool = False) -> Registry:
        """A registry that has these too, behind the others or ``first``.

        Raises ``BadInput`` for a name that is taken or no name.
        """
        found = dict(self.entries)
        for normaliser in normalisers:
            if not _NAME.fullmatch(normaliser.name):
                raise BadInput("normaliser", normaliser.name, "a lower-case name")
            if normaliser.name in found:
                raise BadInput("normaliser", normaliser.name, "a name that is not taken yet")
            found[normaliser.name] = normaliser
        if first:
            found = {normaliser.name: normaliser for normaliser in normalisers} | found
        return Registry(found)

    def chosen(self, names: Iterable[str] | None) -> tuple[Normaliser, ...]:
        """The normalisers of these names in the registry's order; all for None. Unknown names raise ``BadInput``."""
        if names is None:
            return tuple(self.entries.values())
        wanted = set(names)
        for name in sorted(wanted - self.entries.keys()):
            raise BadInput("normalisers", name, "one of " + ", ".join(self.entries) + nearest(name, self.names))
        return tuple(entry for name, entry in self.entries.items() if name in wanted)

    def normalise(self, text: bytes, names: Iterable[str] | None, context: Context) -> Normalised:
        """``text`` after the chosen normalisers; ``context`` carries the numbers from stream to stream."""
        chosen = self.chosen(names)
        words = sorted({word for entry in chosen for word in entry.words}, key=len, reverse=True)
        if words and b"<" in text:
            literal = rb"<(=*(?:" + b"|".join(map(str.encode, words)) + rb")(?::[0-9]+)?>)"
            text = re.sub(literal, rb"<=\1", text)
        fired = []
        for entry in chosen:
            changed = entry.replace(text, context)
            if changed != text:
                fired.append(entry)
                text = changed
        return Normalised(text, tuple(e.name for e in fired), tuple(e.name for e in fired if e.erases))


def numbered(name: str, version: int, about: str, word: str, pattern: bytes) -> Normaliser:
    """A normaliser that numbers what the group ``value`` of ``pattern`` (multi-line) matches."""
    compiled = re.compile(pattern, re.MULTILINE)

    def replace(text: bytes, context: Context) -> bytes:
        return compiled.sub(lambda found: _around(found, context.token(word, found["value"])), text)

    return Normaliser(name, version, about, False, (word,), replace)


def erased(name: str, version: int, about: str, word: str, *patterns: bytes) -> Normaliser:
    """A normaliser that puts ``<word>`` for what the group ``value`` of each pattern matches.

    A pattern without such a group is replaced whole.
    """
    compiled = [re.compile(pattern, re.MULTILINE) for pattern in patterns]
    token = b"<" + word.encode() + b">"

    def replace(text: bytes, context: Context) -> bytes:
        for pattern in compiled:
            has_group = "value" in pattern.groupindex
            text = pattern.sub(lambda found, has=has_group: _around(found, token) if has else token, text)  # type: ignore[misc]
        return text

    return Normaliser(name, version, about, True, (word,), replace)


def _around(found: re.Match[bytes], token: bytes) -> bytes:
    start, end = found.span("value")
    whole, offset = found[0], found.start()
    return whole[: start - offset] + token + whole[end - offset :]
