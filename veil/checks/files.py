"""What checks on the existence of paths share."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from veil.checks.values import each, one_or_many, text_of
from veil.checks.wording import listed, shown
from veil.model.outcome import Observation
from veil.model.verdict import Judgement


class FileCheck:
    """Whether something is at a path when the run has ended; a list means all of them.

    Relative paths start at the run's working directory, whatever ``cd`` the command did. The path itself counts, not
    what a symlink points to: a dangling symlink exists. A folder exists as a file does. Something that was there before
    the run exists as well: ``changed`` tells whether the run touched it.
    """

    name: ClassVar[str]
    wanted: ClassVar[bool]

    def parse(self, value: Any) -> Any:
        """A path (text or ``os.PathLike``), or a list of them. Raises ``BadInput``."""
        return one_or_many(f"expect.{self.name}", value, "a path that is not empty, or a list of such", _path)

    def paths(self, expected: Any) -> tuple[str, ...]:
        """All of them, as the caller wrote them."""
        return tuple(each(expected))

    def judge(self, expected: Any, seen: Observation) -> Judgement:
        """By the facts gathered when the command had ended; a path without a fact is ``inconclusive``."""
        facts = seen.findings.files
        wrong, unknown = {}, []
        for path in each(expected):
            fact = facts.get(path)
            if fact is None:
                unknown.append(path)
            elif (fact.kind is not None) is not self.wanted:
                wrong[path] = fact.kind or "absent"
        wish = "exist" if self.wanted else "be absent"
        if wrong:
            path, kind = next(iter(wrong.items()))
            got: Any = kind if not isinstance(expected, list) else dict(list(wrong.items())[:10])
            state = "nothing is there" if self.wanted else f"a {kind} is there"
            more = f" (and {len(wrong) - 1} more: {listed(list(wrong)[1:])})" if len(wrong) > 1 else ""
            return Judgement(self.name, "failed", expected, got, f"{shown(path)} should {wish}: {state}{more}")
        if unknown:
            why = f"nobody looked whether {listed(unknown)} exists when the run ended"
            gaps = seen.findings.notes.get("look_gaps", {})
            if unknown[0] in gaps:
                why = f"{shown(unknown[0])} could not be looked at: {gaps[unknown[0]]}"
            return Judgement(self.name, "inconclusive", expected, None, why)
        state = "exists" if self.wanted else "is absent"
        return Judgement(self.name, "passed", expected, None, f"{listed(each(expected))} {state}")


def _path(value: Any) -> str | None:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    path = text_of(value)
    return None if path is None or "\0" in path else path
