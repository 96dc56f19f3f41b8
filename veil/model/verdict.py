"""What the checks say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["passed", "failed", "inconclusive"]


@dataclass(frozen=True)
class Judgement:
    """One post-condition judged.

    Attributes:
        check: its name, such as ``stdout_contains``.
        status: ``inconclusive`` means that the evidence was not complete (say: the stream was truncated).
        expected: JSON-ready.
        got: JSON-ready, short (at most a few hundred characters).
        message: one line that tells the whole story.
    """

    check: str
    status: Status
    expected: Any
    got: Any = None
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"check": self.check, "expected": self.expected, "got": self.got, "message": self.message}


@dataclass(frozen=True)
class Verdict:
    """All post-conditions of a run. Empty when none were asked."""

    judgements: tuple[Judgement, ...] = ()

    @property
    def ok(self) -> bool | None:
        """True: all passed. False: one failed. None: none was asked, or none failed but one is inconclusive."""
        if self.failed:
            return False
        return True if self.judgements and not self.inconclusive else None

    @property
    def failed(self) -> tuple[Judgement, ...]:
        return tuple(j for j in self.judgements if j.status == "failed")

    @property
    def inconclusive(self) -> tuple[Judgement, ...]:
        return tuple(j for j in self.judgements if j.status == "inconclusive")
