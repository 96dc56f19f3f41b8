"""The normalisers that come with veil, a file per family. Order matters: the specific comes before the general."""

from __future__ import annotations

import functools

from veil.cassettes.families import identities, places, quantities, runners, text, times
from veil.cassettes.normalise import Registry


@functools.cache
def standard() -> Registry:
    """The registry of all of them. Add yours with ``standard().adding(...)``."""
    return Registry().adding(
        *text.FAMILY, *places.FAMILY, *runners.FAMILY, *times.FAMILY, *identities.FAMILY, *quantities.FAMILY
    )
