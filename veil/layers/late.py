"""A layer whose own module is imported when somebody wishes for it: most runs wish for none of them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from veil.layers.base import Entered, Layer
from veil.model.plan import Launch, Place, Plan


class Late:
    """Stands for the layer that ``make`` gives, which has the same name, place, needs and supersedes the same."""

    def __init__(
        self, name: str, place: Place, make: Callable[[], Layer], *, needed: bool, supersedes: tuple[type, ...] = ()
    ) -> None:
        self.name, self.place, self.needed, self.supersedes = name, place, needed, supersedes
        self._make = make

    @cached_property
    def layer(self) -> Layer:
        """The layer itself. Raises ``TypeError`` when it is not what was said of it."""
        made = self._make()
        for what in ("name", "place", "needed", "supersedes"):
            if getattr(made, what) != getattr(self, what):
                raise TypeError(f"{made!r}: {what} is {getattr(made, what)!r}, not {getattr(self, what)!r}")
        return made

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        """As the layer says."""
        return self.layer.unavailable(wish, plan)

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        """As the layer does."""
        return self.layer.enter(wish, launch, plan)
