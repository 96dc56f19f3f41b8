"""Hands back what was recorded. Starts no process."""

from __future__ import annotations

import select
from collections.abc import Callable
from typing import NamedTuple

from veil.host.orders import Controls
from veil.model.outcome import Observation, Piece, read_from
from veil.model.plan import Work


class Answer(NamedTuple):
    """Attributes: seen: what was recorded. until_killed: a background run that was ended by a signal: it counts as
    running until it is asked to end."""

    seen: Observation
    until_killed: bool = False


class Replay:
    """The executor that looks an answer up.

    Args:
        answer: gives the answer to some work, and does to the tree what the recorded run did. Raises when there is
            none: then nothing has happened.
    """

    name = "replay"

    def __init__(self, answer: Callable[[Work], Answer]) -> None:
        self._answer = answer

    def begin(self, work: Work, controls: Controls) -> ReplayRun:
        return ReplayRun(self._answer(work), controls)


class ReplayRun:
    """One replayed run."""

    replayed = True

    def __init__(self, answer: Answer, controls: Controls) -> None:
        self._answer = answer
        self._controls = controls
        self.pid: int | None = None

    def wait(self) -> Observation:
        outcome = self._answer.seen.outcome
        listener, orders = self._controls.listener, self._controls.orders
        if listener is not None:
            for name in ("stdout", "stderr"):
                data: bytes = getattr(outcome, name).data
                if data:
                    listener(name, data)
        if self._answer.until_killed and orders is not None:
            poll = select.poll()
            poll.register(orders.open(), select.POLLIN)
            while not (orders.take() or orders.cancelled):
                poll.poll()
        return self._answer.seen

    def read(self, stream: str, cursor: int) -> Piece:
        return read_from(getattr(self._answer.seen.outcome, stream), cursor)

    def totals(self, stream: str) -> tuple[int, int]:
        found = getattr(self._answer.seen.outcome, stream)
        return found.total_bytes, found.total_lines
