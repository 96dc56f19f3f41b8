"""What a layer is: a generator around one launch (the shape of a pytest fixture)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Protocol

from veil.model.outcome import Findings, Outcome
from veil.model.plan import Launch, Place, Plan

#: Yields the Launch to use, is sent the Outcome, returns its Findings. Closed (GeneratorExit) when the run breaks.
Entered = Generator[Launch, Outcome, Findings]


class Layer(Protocol):
    """Grants one kind of wish. ``needed`` layers that cannot be granted refuse the run (safety fails closed);
    the others are skipped with a note (observation fails open).

    Attributes:
        supersedes: types of wishes that need not be granted as well when this layer is in the plan (who traces a
            run knows its changes and takes no pictures).
    """

    name: str
    place: Place
    needed: bool
    supersedes: tuple[type, ...]

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        """Why this machine cannot grant the wish, or ``None``. Cached probes only."""

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        """Wrap the launch."""
