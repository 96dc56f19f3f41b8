"""What an executor is: the only seam between a plan and the world."""

from __future__ import annotations

from typing import Protocol

from veil.host.orders import Controls
from veil.model.outcome import Observation, Piece
from veil.model.plan import Work


class Running(Protocol):
    """A run that has begun. Used on the thread that began it, except ``read`` and ``totals``, which any may call."""

    #: Process id of the command; ``None`` when there is none (it could not start, or nothing runs at all).
    pid: int | None
    #: Nothing really runs: it is answered from a recording.
    replayed: bool

    def wait(self) -> Observation:
        """See it through. Nothing of it is alive when this returns or raises."""

    def read(self, stream: str, cursor: int) -> Piece:
        """What ``stdout`` or ``stderr`` has kept from a byte cursor on."""

    def totals(self, stream: str) -> tuple[int, int]:
        """Bytes and lines so far."""


class Executor(Protocol):
    """Turns work into an observation."""

    name: str

    def begin(self, work: Work, controls: Controls) -> Running:
        """Prepare and start."""
