"""``expect={"exit": 0}``: the exit code."""

from __future__ import annotations

from typing import Any, ClassVar

from veil.checks.values import each, one_or_many
from veil.checks.wording import ending
from veil.model.outcome import Observation
from veil.model.verdict import Judgement


class Exit:
    """The exit code of the last attempt is this one, or any of a list.

    The code is the one of the result: 128+n after signal n, 124 at a timeout, 126 or 127 when it could not start.
    """

    name: ClassVar[str] = "exit"

    def parse(self, value: Any) -> Any:
        """A code from 0 to 255, or a list of them. Raises ``BadInput`` (``True`` is no code)."""
        return one_or_many("expect.exit", value, "an exit code from 0 to 255, or a list of them", _code)

    def paths(self, expected: Any) -> tuple[str, ...]:
        """None."""
        return ()

    def judge(self, expected: Any, seen: Observation) -> Judgement:
        """Never inconclusive."""
        outcome = seen.outcome
        codes = each(expected)
        words = f"exit is {ending(outcome)}"
        if outcome.exit in codes:
            return Judgement(self.name, "passed", expected, outcome.exit, words)
        wanted = str(codes[0]) if len(codes) == 1 else "one of " + ", ".join(map(str, codes[:20]))
        return Judgement(self.name, "failed", expected, outcome.exit, f"{words}, expected {wanted}")


def _code(value: Any) -> int | None:
    usable = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 255
    return int(value) if usable else None
