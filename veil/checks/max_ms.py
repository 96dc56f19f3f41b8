"""``expect={"max_ms": 2000}``: how long the command may take."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from veil.model.errors import BadInput
from veil.model.outcome import Observation
from veil.model.verdict import Judgement


class MaxMs:
    """Wall time of the last attempt in milliseconds, from start to end of the command, is at most this."""

    name: ClassVar[str] = "max_ms"

    def parse(self, value: Any) -> Any:
        """A finite number greater than 0. Raises ``BadInput``."""
        usable = isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0
        if not usable or (isinstance(value, float) and not math.isfinite(value)) or value > 1e15:
            raise BadInput("expect.max_ms", value, "a number of milliseconds greater than 0")
        return value

    def paths(self, expected: Any) -> tuple[str, ...]:
        """None."""
        return ()

    def judge(self, expected: Any, seen: Observation) -> Judgement:
        """Never inconclusive."""
        took = round(seen.outcome.seconds * 1000, 3) if math.isfinite(seen.outcome.seconds) else None
        if took is not None and took <= expected:
            return Judgement(self.name, "passed", expected, took, f"took {took:g} ms, at most {expected:g} ms allowed")
        words = "it is not known how long it took" if took is None else f"took {took:g} ms"
        return Judgement(self.name, "failed", expected, took, f"{words}, expected at most {expected:g} ms")
