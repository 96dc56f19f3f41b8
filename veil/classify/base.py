"""The words of the pre-check: categories in order of severity, effects, segments, the whole assessment. Pure data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

READ, MUTATING, UNKNOWN, COMPLEX = "read-only", "mutating", "unknown", "complex"
NETWORK, DESTRUCTIVE = "network", "destructive"

#: From harmless to worst; the worst part decides.
CATEGORIES = (READ, MUTATING, UNKNOWN, COMPLEX, NETWORK, DESTRUCTIVE)
RANK = {category: rank for rank, category in enumerate(CATEGORIES)}


class Effect(NamedTuple):
    """One predicted change of a file, where its path stands literally in the command.

    Attributes:
        path: as written, relative to the directory that the command runs in.
        what: ``write``, ``append``, ``create``, ``delete``, ``mode`` or ``move``.
    """

    path: str
    what: str


@dataclass(frozen=True)
class Segment:
    """One simple command (or redirection) inside the command, judged by itself.

    Attributes:
        text: as written; inside ``sh -c '...'`` the inner command.
        span: first character and the one after the last, in the whole command. For an inner command that stands in
            quotes, the span of the quoted word.
        category: one of ``CATEGORIES``.
        reason: why, in a few words.
        effects: files that it is sure to be about, where they are named literally.
    """

    text: str
    span: tuple[int, int]
    category: str
    reason: str
    effects: tuple[Effect, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; effects only when there are any."""
        shown: dict[str, Any] = {"text": self.text, "span": list(self.span), "category": self.category}
        shown["reason"] = self.reason
        if self.effects:
            shown["effects"] = [effect._asdict() for effect in self.effects]
        return shown


@dataclass(frozen=True)
class Assessment:
    """What a command may do, told without running anything.

    Attributes:
        category: that of the worst segment.
        reversible: True when nothing that it does is beyond undoing, False when something is lost, None when that
            depends on what is there (is the file overwritten or new?) or cannot be known.
        effects: those of all segments, each once, in order.
        segments: in the order in which they stand.
        warning: what would be lost; the empty string unless the category is destructive.
    """

    category: str
    reversible: bool | None
    effects: tuple[Effect, ...]
    segments: tuple[Segment, ...]
    warning: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The JSON view: ``category`` always; ``reversible`` when known; ``effects``, ``segments``, ``warning`` when
        they say something. A single read-only segment says nothing that the category does not."""
        shown: dict[str, Any] = {"category": self.category}
        if self.reversible is not None:
            shown["reversible"] = self.reversible
        if self.effects:
            shown["effects"] = [effect._asdict() for effect in self.effects]
        if len(self.segments) > 1 or self.category != READ:
            shown["segments"] = [segment.to_dict() for segment in self.segments]
        if self.warning:
            shown["warning"] = self.warning
        return shown


class Verdict(NamedTuple):
    """What one program with its arguments is judged to be.

    ``reversible`` stays None where the category does not decide it; ``warning`` is said when it is destructive.
    """

    category: str
    reason: str
    effects: tuple[Effect, ...] = ()
    reversible: bool | None = None
    warning: str = ""

    def at_least(self, category: str, reason: str) -> Verdict:
        """This verdict, or a worse one with that category and reason; effects stay."""
        if RANK[category] > RANK[self.category]:
            return Verdict(category, reason, self.effects, False if self.reversible is False else None, self.warning)
        return self


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of at least one verdict, with the effects of all and the reason of the first that is that bad."""
    every = list(verdicts)
    found = max(every, key=lambda verdict: RANK[verdict.category])
    effects = tuple(dict.fromkeys(effect for verdict in every for effect in verdict.effects))
    return found._replace(effects=effects, reversible=undoable(every))


def undoable(verdicts: Iterable[Verdict]) -> bool | None:
    """False if anything is lost, else None if anything is open, else True."""
    answer: bool | None = True
    for verdict in verdicts:
        mine = verdict.reversible
        if mine is None and verdict.category in (READ, DESTRUCTIVE):
            mine = verdict.category == READ
        if mine is False:
            return False
        if mine is None:
            answer = None
    return answer
