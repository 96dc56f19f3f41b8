"""The normalisers that come with veil, a file per family. Order matters: the specific comes before the general."""

from __future__ import annotations

import functools
from collections.abc import Iterable

from veil.cassettes.families import identities, places, quantities, runners, text, times
from veil.cassettes.normalise import Context, Normalised, Registry


@functools.cache
def standard() -> Registry:
    """The registry of all of them. Add yours with ``standard().adding(...)``."""
    return Registry().adding(
        *text.FAMILY, *places.FAMILY, *runners.FAMILY, *times.FAMILY, *identities.FAMILY, *quantities.FAMILY
    )


def normalise(
    text: bytes, names: Iterable[str] | None, context: Context, registry: Registry | None = None
) -> Normalised:
    """``text`` after the named normalisers of ``registry`` (the standard one by default; all of them for None)."""
    return (standard() if registry is None else registry).normalise(text, names, context)
