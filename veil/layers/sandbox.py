"""Confines the command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from veil.host.confine import backends, links, repositories
from veil.host.confine.base import Bounds, CannotConfine, Wrapped
from veil.host.confine.bounds import CannotBound, Drawn, drawn, sketch
from veil.layers.base import Entered
from veil.model.command import Sandbox
from veil.model.errors import Refused
from veil.model.outcome import Findings, Outcome
from veil.model.plan import Enclosure, Launch, Place, Plan

#: Variables that lead to a helper of the user's by a socket. What the sandbox hides, the environment does not promise.
_DOORS = ("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
_TEMPORARY = ("TMPDIR", "TMP", "TEMP", "TEMPDIR")


class SandboxLayer:
    """Grants ``Sandbox``, with the strongest backend that can do all of it, or refuses.

    Notes that it leaves: ``sandboxed`` (``True``), ``sandbox`` (``backend``, ``network``, ``unreadable``: how many
    folders and files, ``foreign_cwd``: the user whom cwd belongs to when root has no rights there, ``gaps``: what is
    not covered here, ``git_changed``: hooks and configuration that the command changed), ``secrets_protected`` (how
    many places with credentials), and ``limit`` (the option whose limit ended the command).

    Args:
        own: veil's own folders, which no confined command may reach.
    """

    name = "sandbox"
    place = Place.CONFINE
    needed = True
    supersedes: tuple[type, ...] = ()

    def __init__(self, own: tuple[str, ...] = ()) -> None:
        self._own = own

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        """Never an answer: what cannot be granted is refused with its own code.

        Raises:
            Refused: no backend can do it (``sandbox_unavailable``).
        """
        assert isinstance(wish, Sandbox)
        _picked(wish, sketch(wish, plan.request.command.cwd))
        return None

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        """Yields the command inside.

        Raises:
            Refused: ``sandbox_unavailable``, naming what is missing and the way out.
            VeilError: ``sandbox_broken``, when it fell apart before the command began.
        """
        assert isinstance(wish, Sandbox)
        try:
            with drawn(wish, launch.cwd, launch.env, self._own, launch.readable) as found:
                bounds = found.bounds
                backend = _picked(wish, bounds)
                roots = (bounds.cwd, *bounds.writable)
                before = repositories.signature(roots)
                linked = links.Search(roots)
                with backend.confine(launch.argv, bounds) as wrapped:
                    outcome = yield _launch(launch, wrapped, bounds, _asked_for(plan), linked)
                    notes = _notes(backend.name, (*backend.gaps(bounds), *found.gaps, *linked.gaps()), found, wish)
                    if (limit := _limit(wrapped, outcome)) is not None:
                        notes["limit"] = limit
                found.temporary.deserted = outcome.survivors == "none"
                found.temporary.kept = outcome.survivors == "kept"
                if changed := repositories.changed(before, repositories.signature(roots)):
                    notes["sandbox"]["git_changed"] = [os.path.relpath(path, bounds.cwd) for path in changed]
        except CannotBound as error:
            raise Refused(f"sandbox: {error}", code="sandbox_unavailable", option=error.option) from error
        return Findings(notes=notes)


def _asked_for(plan: Plan) -> set[str]:
    return {name for name, value in plan.request.command.env if value is not None}


def _picked(wish: Sandbox, bounds: Bounds) -> Any:
    try:
        return backends.pick(wish.backend, bounds)
    except CannotConfine as error:
        out = "leave out the option that it cannot grant" if wish.backend is None else "leave out backend="
        raise Refused(
            f"sandbox: nothing here can confine this: {error}; {out}, or see 'veil doctor' for how to get it",
            code="sandbox_unavailable",
            backend=wish.backend,
            reasons=error.reasons,
        ) from error


def _launch(launch: Launch, wrapped: Wrapped, bounds: Bounds, asked_for: set[str], linked: links.Search) -> Launch:
    def started() -> Enclosure | None:
        linked.look()  # while the backend makes its namespaces
        return None if wrapped.started is None else wrapped.started()

    return replace(
        launch,
        argv=wrapped.argv,
        env=_environment(launch.env, wrapped.temp or bounds.temp, bounds.sockets, asked_for),
        pass_fds=(*launch.pass_fds, *wrapped.pass_fds),
        restrict=wrapped.restrict,
        started=started,
        settle=_both(wrapped.settle, launch.settle),
    )


_Settle = Callable[[Outcome], Outcome]


def _both(first: _Settle | None, then: _Settle | None) -> _Settle | None:
    if first is None or then is None:
        return first or then
    return lambda outcome: then(first(outcome))


def _environment(env: Mapping[str, str], temp: str, sockets: tuple[str, ...], asked_for: set[str]) -> dict[str, str]:
    """The child's, pointing at its own temporary folder and at no helper that it cannot reach."""
    found = {
        name: value
        for name, value in env.items()
        if name not in _DOORS or name in asked_for or os.path.realpath(value) in sockets
    }
    for name in _TEMPORARY:
        if name == "TMPDIR" or name in found:
            found[name] = temp
    return found


def _limit(wrapped: Wrapped, outcome: Outcome) -> str | None:
    return None if wrapped.limit is None else wrapped.limit(outcome)


def _notes(backend: str, gaps: tuple[str, ...], found: Drawn, wish: Sandbox) -> dict[str, Any]:
    told: dict[str, Any] = {"backend": backend, "network": wish.network}
    if found.foreign is not None:
        told["foreign_cwd"] = found.foreign
    if unreadable := len(found.bounds.masked_folders) + len(found.bounds.masked_files):
        told["unreadable"] = unreadable
    notes: dict[str, Any] = {"sandboxed": True, "sandbox": {**told, "gaps": list(gaps)}}
    if wish.protect_secrets:
        notes["secrets_protected"] = found.secrets
    return notes
