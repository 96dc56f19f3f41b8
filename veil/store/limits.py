"""How much a store keeps, and which records have to go. Pure: both stores obey this one rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from veil.model.errors import BadInput

MAX_RECORDS = 500
MAX_BYTES = 256 * 1024 * 1024
TTL_SECONDS = 24 * 60 * 60.0


@dataclass(frozen=True)
class Bounds:
    """Attributes: records: how many are kept. bytes: of metadata and streams together. ttl: seconds since the record
    was last written.

    Raises:
        BadInput: when one of them is not above zero.
    """

    records: int = MAX_RECORDS
    bytes: int = MAX_BYTES
    ttl: float = TTL_SECONDS

    def __post_init__(self) -> None:
        for argument, value in (("max_records", self.records), ("max_bytes", self.bytes), ("ttl_seconds", self.ttl)):
            # `not > 0` also catches NaN
            if isinstance(value, bool) or not value > 0:
                raise BadInput(argument, value, "a number above zero")

    @property
    def stride(self) -> int:
        """Every how many new records the count is looked at: the slack in records, a sixteenth of the limit."""
        return max(1, self.records // 16)

    @property
    def byte_slack(self) -> int:
        """How many bytes one process may add before it looks at the sum again: 1/64 of the limit."""
        return self.bytes // 64


class Seat(NamedTuple):
    """What the rule needs to know of a record. ``seat`` orders them by their last writing, oldest first."""

    number: int
    seat: int
    touched: float
    running: bool
    size: int


def superfluous(seats: Iterable[Seat], bounds: Bounds, now: float, newest: int) -> list[int]:
    """Numbers of the records that must go: the expired ones, then the oldest until count and bytes fit.

    ``newest`` (just written) stays whatever its size, and so does a fresh record of a run that is still going on.
    """
    horizon = now - bounds.ttl
    doomed: list[int] = []
    fresh: list[Seat] = []
    for seat in seats:
        if seat.touched < horizon:
            doomed.append(seat.number)
        else:
            fresh.append(seat)
    fresh.sort(key=lambda seat: seat.seat)
    count, size = len(fresh), sum(seat.size for seat in fresh)
    for seat in fresh:
        if count <= bounds.records and size <= bounds.bytes:
            break
        if seat.number != newest and not seat.running:
            doomed.append(seat.number)
            count -= 1
            size -= seat.size
    return doomed
