"""The Python door to what was kept of earlier runs, by id."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from veil import elsewhere, wiring
from veil.model.errors import BadInput, NotFound
from veil.model.record import Record
from veil.present.paging import DEFAULT_LIMIT
from veil.present.pattern import Match
from veil.present.stored import SELECTORS, as_text, matching, meta_of, stored_reply
from veil.result import Result

Selector = Literal["stdout", "stderr", "meta", "trace", "full"]


@dataclass(frozen=True)
class Detail:
    """A stored run, or a part of it.

    Attributes:
        record: everything that was kept.
        selector: which part. match: the regular expression that lines are picked by, if any.
    """

    record: Record = field(repr=False)
    selector: Selector = "full"
    match: str | None = None

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def result(self) -> Result:
        """The run as ``veil.run`` gave it."""
        return Result(self.record)

    @cached_property
    def text(self) -> str:
        """The whole selection as text, unbounded; with ``match`` its lines as ``number:text``."""
        if self.match is not None:
            return "\n".join(f"{hit.number}:{hit.text}" for hit in self.matches)
        return as_text(self.record, self.selector)

    @cached_property
    def bytes(self) -> bytes:
        """All bytes kept of ``stdout`` or ``stderr``; of another selection its text in UTF-8."""
        if self.selector in ("stdout", "stderr"):
            data: bytes = getattr(self.record.observation.outcome, self.selector).data
            return data
        return self.text.encode("utf-8", "surrogateescape")

    @cached_property
    def matches(self) -> tuple[Match, ...]:
        """Every line that matches, stdout first, with true line numbers; empty without ``match``."""
        if self.match is None:
            return ()
        names = (self.selector,) if self.selector in ("stdout", "stderr") else ("stdout", "stderr")
        found: tuple[Match, ...] = ()
        for name in names:
            found += matching(getattr(self.record.observation.outcome, name), self.match)
        return found

    @property
    def meta(self) -> dict[str, Any]:
        """Everything but the streams, JSON-ready."""
        return meta_of(self.record)

    def to_dict(
        self, *, offset: int = 0, limit: int = DEFAULT_LIMIT, lines: tuple[int, int] | None = None
    ) -> dict[str, Any]:
        """The bounded JSON reply: about ``limit`` bytes from ``offset``, or ``lines``; says how much there is."""
        return stored_reply(self.record, self.selector, match=self.match, offset=offset, limit=limit, lines=lines)


def detail(
    id: str | None = None,
    selector: Selector = "full",
    match: str | None = None,
    *,
    project: str | os.PathLike[str] | None = None,
) -> Detail:
    """A stored run by id; ``None`` means the newest.

    Args:
        selector: ``stdout``, ``stderr``, ``meta``, ``trace`` or ``full``.
        match: regular expression; only lines of stdout and stderr in which it is found. Takes 2 s at most.

    Raises:
        NotFound: there is no such record; names those that exist.
        BadInput: text that is no id, no selector or no regular expression.
        Refused: the pattern takes too long, or too much memory (codes ``pattern_timeout``, ``pattern_too_large``).
    """
    _require(selector, match)  # in front of the look for the run
    session = wiring.session(dict(os.environ), project)
    return checked(elsewhere.current(session, session.kit.store.get(id)), selector, match)


def checked(record: Record, selector: Selector, match: str | None) -> Detail:
    """The detail of a record. Raises as ``detail``."""
    _require(selector, match)
    found = Detail(record, selector, match)
    if match is not None:
        _ = found.matches  # an invalid pattern is an error here, not when it is first looked at
    return found


def _require(selector: str, match: str | None) -> None:
    if selector not in SELECTORS:
        raise BadInput("selector", selector, " or ".join(SELECTORS))
    if match is not None and selector in ("meta", "trace"):
        raise BadInput("match", match, f"nothing with selector {selector!r} (it searches stdout and stderr)")


def runs(limit: int = 20, *, project: str | os.PathLike[str] | None = None) -> list[Result]:
    """The newest runs of the project, newest first."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise BadInput("limit", limit, "a whole number, 1 or more")
    session = wiring.session(dict(os.environ), project)
    store = session.kit.store
    found = []
    for name in store.ids(min(limit, sys.maxsize)):  # more than SQLite can count
        try:
            found.append(Result(elsewhere.settled(session, store.get(name))))
        except NotFound:
            continue  # another process cleared it away meanwhile
    return found
