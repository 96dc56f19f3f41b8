"""What others may add to veil. Our own parts come in through the same hooks (``veil.builtin``).

pluggy gathers parts; it never drives a run: a plugin that returned nothing could else let a command run unconfined.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    from veil.checks.base import Check
    from veil.layers.base import Layer
    from veil.settings import Settings

hookspec = pluggy.HookspecMarker("veil")
hookimpl = pluggy.HookimplMarker("veil")


@hookspec
def veil_checks() -> Iterable[Check]:  # type: ignore[empty-body]
    """Post-conditions, one object each. A name that is taken already is refused."""


@hookspec
def veil_layers(settings: Settings, state: Path | None) -> Iterable[tuple[type, Layer]]:  # type: ignore[empty-body]
    """Pairs of a wish's type and the layer that grants it, in the order of entering within one place.

    ``state`` is veil's own folder, ``None`` when there is none.
    """
