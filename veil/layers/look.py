"""Looks at the paths that the checks will ask about, while the world of the run is still there."""

from __future__ import annotations

import os
from typing import Any

from veil.host.tree import kind_of, signature
from veil.layers.base import Entered
from veil.model.command import Look
from veil.model.outcome import Fact, Findings
from veil.model.plan import Launch, Place, Plan


class LookLayer:
    """Grants ``Look``: what each path is when the run has ended, links not followed (a dangling one is there).

    Relative paths are below the run's cwd, wherever the command itself went. A path that may not be looked at has no
    fact; the note ``look_gaps`` (``{path: reason}``) names it.
    """

    name = "look"
    place = Place.WATCH
    needed = False
    supersedes: tuple[type, ...] = ()

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        return None

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        paths = wish.paths if isinstance(wish, Look) else plan.looks
        yield launch
        facts: dict[str, Fact] = {}
        gaps: dict[str, str] = {}
        for path in paths:
            try:
                sig = None if "\0" in path else signature(os.path.join(launch.cwd, path))
            except OSError as error:
                gaps[path] = error.strerror or "unreadable"
                continue
            facts[path] = Fact(None) if sig is None else Fact(kind_of(sig[0]), sig[1], sig[0] & 0o7777)
        notes: dict[str, Any] = {"look_gaps": gaps} if gaps else {}
        return Findings(files=facts, notes=notes)
