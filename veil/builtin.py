"""veil's own parts, by name. One new part is one new file and one line here."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

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
from veil.layers.look import LookLayer
from veil.layers.scrub_env import ScrubEnvLayer
from veil.model.command import Effects, Look, ScrubEnv
from veil.secrets.names import is_secret_value
from veil.settings import Settings


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


@hookimpl
def veil_layers(settings: Settings, state: Path | None) -> Iterable[tuple[type, Layer]]:
    own = () if state is None else (str(state),)
    locks = None if state is None else state / "locks"
    return (
        (ScrubEnv, ScrubEnvLayer(is_secret_value)),
        (Effects, EffectsLayer(locks, settings.effects_wait, own)),
        (Look, LookLayer()),
    )
