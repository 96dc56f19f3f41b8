"""Two recordings beside each other."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from veil.cli.human import one_line
from veil.cli.screen import Line
from veil.cli.shown import command_of, read
from veil.present.text import safe_text
from veil.taping import Rules, Step, StepVerdict, compare, key_of


@dataclass(frozen=True)
class Row:
    """One step of either recording or of both.

    Attributes: old, new: its number there, None where it does not stand. verdict: None when it stands in one only.
    """

    command: str
    old: int | None
    new: int | None
    verdict: StepVerdict | None = None

    @property
    def word(self) -> str:
        if self.verdict is not None:
            return self.verdict.word
        return "added" if self.old is None else "removed"

    @property
    def same(self) -> bool:
        return self.verdict is not None and self.verdict.same

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        data: dict[str, Any] = {"word": self.word, "command": safe_text(self.command), "old": self.old, "new": self.new}
        if self.verdict is not None and self.verdict.word != "exact":
            said = self.verdict
            facts = {"where": said.where, "detail": said.detail, "expected": said.expected, "got": said.got}
            data.update({name: safe_text(value) for name, value in facts.items() if value})
            data.update({name: list(value) for name in ("needed", "masked") if (value := getattr(said, name))})
        return data


def rows(old: str, new: str, *, exact: bool) -> list[Row]:
    """Steps that ask the same stand beside each other, in order. Raises as ``read``."""
    one, two = read(old).steps, read(new).steps
    rules = Rules(names=()) if exact else Rules()
    found: list[Row] = []
    matcher = difflib.SequenceMatcher(None, [key_of(s) for s in one], [key_of(s) for s in two], autojunk=False)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "equal":
            for at, (then, now) in enumerate(zip(one[a:b], two[c:d], strict=True), 1):
                found.append(Row(command_of(then), a + at, c + at, compare(then, now, rules)))
            continue
        found += [Row(command_of(step), number, None) for number, step in _numbered(one, a, b)]
        found += [Row(command_of(step), None, number) for number, step in _numbered(two, c, d)]
    return found


def _numbered(steps: Sequence[Step], first: int, behind: int) -> Iterator[tuple[int, Step]]:
    return enumerate(steps[first:behind], first + 1)


def lines(rows: Sequence[Row]) -> Iterator[Line]:
    """A line for each step, a second one where it differs, and the whole in one word."""
    for row in rows:
        number = row.new if row.old is None else row.old
        style = "bad" if not row.same else "warn" if row.word == "weak" else "text"
        yield style, f"{number:>3}  {row.word:<12} {one_line(row.command, 80)}"
        if row.verdict is not None and row.verdict.detail:
            yield "head", f"     {one_line(row.verdict.detail, 500)}"
    different = [row for row in rows if not row.same]
    if different:
        yield "bad", f"{len(different)} of {len(rows)} steps differ"
    else:
        yield "good", f"the same in {len(rows)} steps"
