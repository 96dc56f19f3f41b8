"""What a check found, and the error that a failed one raises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_veil.expecting.plain import clipped, plain

if TYPE_CHECKING:
    from veil import Judgement, Result


@dataclass(frozen=True)
class Finding:
    """A judgement, and lines that show more of it than a judgement holds (a diff)."""

    judgement: Judgement
    detail: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """One check that did not hold.

    Attributes:
        call: the check as it is written, such as ``not_.stdout.contains('x')``.
        negated: it came after ``not_``.
        where: file name and line of the check, of one that a block collected (another has its traceback).
    """

    result: Result
    call: str
    negated: bool
    judgement: Judgement
    detail: tuple[str, ...] = ()
    where: str | None = None

    @property
    def story(self) -> str:
        """What went wrong, on one line."""
        message = plain(self.judgement.message)
        if self.judgement.status == "inconclusive":
            return f"cannot be told: {self.call}: {message}"
        return f"expected {self.call}, but {message}" if self.negated else message


class ExpectationError(AssertionError):
    """A check of ``expect`` did not hold. Its text is the whole story; see ``failures`` for the same as data."""

    # the name that callers import it by
    __module__ = "pytest_veil"

    def __init__(self, message: str = "", failures: Sequence[Failure] = ()) -> None:
        super().__init__(message)
        self.failures = tuple(failures)


def call_text(name: str, *args: object, **kwargs: object) -> str:
    """``stdout.contains('x')``."""
    said = [clipped(plain(_argument(arg)), 80) for arg in args]
    said += [f"{key}={clipped(plain(_argument(value)), 80)}" for key, value in kwargs.items()]
    return f"{name}({', '.join(said)})"


def _argument(value: object) -> str:
    # cut before repr: an expected text may be very long
    return repr(value[:200] if isinstance(value, (str, bytes)) else value)
