"""The backends by name, the strongest first, and which of them confines a run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from veil.host.confine.base import Backend, Bounds, CannotConfine


def _bubblewrap() -> Backend:
    from veil.host.confine.bubblewrap import Bubblewrap

    return Bubblewrap()


def _namespaces() -> Backend:
    from veil.host.confine.namespaces import OwnNamespaces

    return OwnNamespaces()


def _seatbelt() -> Backend:
    from veil.host.confine.seatbelt import Seatbelt

    return Seatbelt()


def _landlock() -> Backend:
    from veil.host.confine.landlock import Landlock

    return Landlock()


#: What makes each backend, in order of strength. One new backend is one new module and one line here.
BACKENDS: Mapping[str, Callable[[], Backend]] = {
    "bubblewrap": _bubblewrap,
    "namespaces": _namespaces,
    "seatbelt": _seatbelt,
    "landlock": _landlock,
}


@functools.cache
def backend(name: str) -> Backend:
    """The backend of this name, made once. ``KeyError``: there is none."""
    return BACKENDS[name]()


def pick(name: str | None, bounds: Bounds) -> Backend:
    """The backend of this name, or the strongest that works here and can do all of these bounds.

    Raises:
        CannotConfine: there is none; it holds the reason of each that was asked.
    """
    if name is not None and name not in BACKENDS:
        raise CannotConfine({name: f"there is no such backend (known: {', '.join(BACKENDS)})"})
    reasons: dict[str, str] = {}
    for known in BACKENDS if name is None else (name,):
        candidate = backend(known)
        reason = candidate.unavailable() or candidate.lacks(bounds)
        if reason is None:
            return candidate
        reasons[known] = reason
    raise CannotConfine(reasons)
