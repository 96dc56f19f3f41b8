"""veil's own parts, by name. One new part is one new file and one line here."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from veil.checks.base import Check
from veil.checks.changed import Changed
from veil.checks.exit import Exit
from veil.checks.file_absent import FileAbsent
from veil.checks.file_exists import FileExists
from veil.checks.json_subset import JsonSubset
from veil.checks.max_ms import MaxMs
from veil.checks.stderr_contains import StderrContains
from veil.checks.stderr_empty import StderrEmpty
from veil.checks.stderr_matches import StderrMatches
from veil.checks.stdout_contains import StdoutContains
from veil.checks.stdout_empty import StdoutEmpty
from veil.checks.stdout_matches import StdoutMatches
from veil.hookspecs import hookimpl
from veil.layers.base import Layer
from veil.layers.effects import EffectsLayer
from veil.layers.late import Late
from veil.layers.look import LookLayer
from veil.layers.scrub_env import ScrubEnvLayer
from veil.layers.trace import TraceLayer
from veil.model.command import Carry, Effects, Look, Preview, Request, Sandbox, ScrubEnv, Trace
from veil.model.errors import Refused
from veil.model.plan import Place
from veil.secrets.names import is_secret_value
from veil.settings import Settings
from veil.store.where import trespass

if TYPE_CHECKING:
    from veil.previews import Previews


@hookimpl
def veil_checks() -> Iterable[Check]:
    return (
        Exit(),
        StdoutContains(),
        StdoutMatches(),
        StdoutEmpty(),
        StderrContains(),
        StderrMatches(),
        StderrEmpty(),
        JsonSubset(),
        FileExists(),
        FileAbsent(),
        Changed(),
        MaxMs(),
    )


#: Shells whose texts the pre-check can read.
_SHELLS = ("bash", "sh", "dash")


def _harmless(request: Request) -> bool:
    """Whether the pre-check is sure that the command changes nothing. Costs some 50 ms the first time, then 0.05."""
    from veil.classify import assess
    from veil.classify.base import READ

    command = request.command
    if any(isinstance(wish, Carry) for wish in request.wishes):
        return False  # an alias, a function or a PATH of the session can stand behind any word
    if command.env or (command.text is not None and os.path.basename(command.argv[0]) not in _SHELLS):
        return False  # a variable can make a harmless program run another; another shell reads another language
    try:
        return assess(command.argv if command.text is None else command.text).category == READ
    except Refused:  # no parser here: a run does not need one
        return False


def kept_previews(settings: Settings, state: Path) -> Previews:
    """What previews of this state folder would have changed. Makes nothing."""
    from veil.previews import Previews

    return Previews(
        state / "previews" / "kept",
        max_bytes=settings.max_preview_bytes,
        ttl_seconds=settings.record_ttl,
        most=settings.max_records,
    )


def _session() -> Layer:
    from veil.layers.session.layer import SessionLayer

    return SessionLayer()


def _sandbox(own: tuple[str, ...]) -> Layer:
    from veil.layers.sandbox import SandboxLayer

    return SandboxLayer(own)


def _preview(settings: Settings, state: Path | None, own: tuple[str, ...]) -> Layer:
    from veil.layers.preview import PreviewLayer

    why = None if state is None else trespass(state / "previews")
    if state is None or why is not None:
        return PreviewLayer(None, None, max_bytes=settings.max_preview_bytes, own=own, why_not=why or "")
    keeper = partial(kept_previews, settings, state)
    return PreviewLayer(state / "previews" / "rooms", keeper, max_bytes=settings.max_preview_bytes, own=own)


@hookimpl
def veil_layers(settings: Settings, state: Path | None) -> Iterable[tuple[type, Layer]]:
    own = () if state is None else (str(state),)
    locks = None if state is None else state / "locks"
    return (
        (ScrubEnv, ScrubEnvLayer(is_secret_value)),
        (Effects, EffectsLayer(locks, settings.effects_wait, own, harmless=_harmless)),
        (Look, LookLayer()),
        # within a sandbox: what it puts before a command has to be confined with it
        (Carry, Late("session", Place.CONFINE, _session, needed=True)),
        (Sandbox, Late("sandbox", Place.CONFINE, partial(_sandbox, own), needed=True)),
        (Trace, TraceLayer()),
        (
            Preview,
            Late(
                "preview",
                Place.PLACE,
                partial(_preview, settings, state, own),
                needed=True,
                supersedes=(Effects, Look),
            ),
        ),
    )
