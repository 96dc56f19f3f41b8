"""What a boundary may use in all: charged when it is used, also by what fails."""

from __future__ import annotations

import math
import threading
from dataclasses import asdict, dataclass
from typing import Any

from veil.model.errors import BadInput


@dataclass(frozen=True)
class Budget:
    """Bounds of one boundary; ``None`` for none.

    Attributes:
        wall: seconds of all dispatches together. cpu: seconds of processor time (user and system).
        memory: bytes that the largest process of a dispatch may have had.
        dispatches: how many may be started.
    """

    wall: float | None = None
    cpu: float | None = None
    memory: int | None = None
    dispatches: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            whole = name in ("memory", "dispatches")
            good = isinstance(value, int) if whole else isinstance(value, (int, float))
            if value is not None and (isinstance(value, bool) or not good or not 0 <= value < math.inf):
                raise BadInput(f"budget.{name}", value, f"a {'whole ' if whole else ''}number of at least 0, or None")


@dataclass
class Spent:
    """What has been used. ``memory``: the largest peak of any process."""

    wall: float = 0.0
    cpu: float = 0.0
    memory: int = 0
    dispatches: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The JSON view."""
        return {**asdict(self), "wall": round(self.wall, 6), "cpu": round(self.cpu, 6)}


class Account:
    """A budget and what was spent of it. Safe to use from several threads."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._spent = Spent()
        self._aside = 0.0
        self._lock = threading.Lock()

    @property
    def spent(self) -> Spent:
        """A copy of what was used so far."""
        with self._lock:
            return Spent(**asdict(self._spent))

    def empty(self) -> str | None:
        """Which bound is used up, in a few words; ``None`` while nothing is."""
        with self._lock:
            return self._empty()

    def _empty(self) -> str | None:
        budget, spent = self.budget, self._spent
        if budget.dispatches is not None and spent.dispatches >= budget.dispatches:
            return f"all {budget.dispatches} dispatches are used up"
        if budget.wall is not None and spent.wall >= budget.wall:
            return f"all {budget.wall:g} seconds of running are used up"
        if budget.cpu is not None and spent.cpu >= budget.cpu:
            return f"all {budget.cpu:g} seconds of processor time are used up"
        if budget.memory is not None and spent.memory > budget.memory:
            return f"a dispatch has used {spent.memory} bytes of memory, more than {budget.memory}"
        return None

    def begin(self, timeout: float) -> float | str:
        """Charge one dispatch and set seconds aside for it.

        Those that run at the same time share what is left: together they cannot take more. ``end`` gives back what was
        set aside.

        Returns:
            The seconds that it may take, at most ``timeout``; or why it may not start, and nothing is charged.
        """
        with self._lock:
            why = self._empty()
            if why is not None:
                return why
            if self.budget.wall is not None:
                timeout = min(timeout, self.budget.wall - self._spent.wall - self._aside)
                if timeout <= 0:
                    return f"all that is left of {self.budget.wall:g} seconds is set aside for what runs now"
            self._aside += timeout
            self._spent.dispatches += 1
            return timeout

    def end(self, seconds: float) -> None:
        """Nothing has to be set aside for it any more; what it took has been charged."""
        with self._lock:
            self._aside -= seconds

    def charge(self, wall: float, cpu: float, memory: int) -> None:
        """What a dispatch has used, however it ended."""
        with self._lock:
            self._spent.wall += max(0.0, wall)
            self._spent.cpu += max(0.0, cpu)
            self._spent.memory = max(self._spent.memory, memory)
