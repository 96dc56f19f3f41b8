"""``veil doctor``: what this machine can do, and how to get the rest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import veil
from veil import wiring
from veil.cli import screen
from veil.cli.screen import Line
from veil.host.probes import Probe, probes
from veil.layers.tracing.handling import CALLS


def _place() -> tuple[wiring.Session, dict[str, Any]]:
    session = wiring.session(dict(os.environ))
    data: dict[str, Any] = {
        "project": str(session.project),
        "state": None if session.state is None else str(session.state),
    }
    if session.why is not None:
        data["why"] = session.why
    return session, data


def doctor(*, as_json: bool) -> int:
    """Look and tell. Exit code 0: what is missing is told, and no failure by itself."""
    session, place = _place()
    found = list(probes(session.state, CALLS))
    if as_json:
        screen.document({"version": veil.__version__, **place, "probes": [probe.to_dict() for probe in found]})
    else:
        screen.show(_lines(place, found))
    return 0


def _lines(place: dict[str, Any], found: list[Probe]) -> Iterator[Line]:
    yield "text", f"veil {veil.__version__}, records of {place['project']} in {place['state'] or 'memory only'}"
    if "why" in place:
        yield "warn", f"  {place['why']}"
    width = max(len(probe.name) for probe in found)
    for probe in found:
        yield "good" if probe.ok else "bad", f"{'yes' if probe.ok else 'no ':<4} {probe.name:<{width}}  {probe.found}"
        if probe.remedy is not None:
            yield "warn", f"     {'':<{width}}  for: {probe.use}. To get it: {probe.remedy}"
