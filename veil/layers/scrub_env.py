"""Takes credential-shaped variables out of the child's environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from veil.layers.base import Entered
from veil.model.command import ScrubEnv
from veil.model.outcome import Findings
from veil.model.plan import Launch, Place, Plan

#: Variables of which it is remembered what was said.
_MOST = 1000


class ScrubEnvLayer:
    """Grants ``ScrubEnv``.

    What the caller passed as ``env`` for this very run stays, whatever it is called: it was asked for. Everything
    else that the predicate names goes. The result tells how many went, never which and never what was in them.
    """

    name = "scrub_env"
    place = Place.GUARD
    needed = True
    supersedes: tuple[type, ...] = ()
    grants = ScrubEnv

    def __init__(self, is_secret: Callable[[str, str], bool]) -> None:
        """``is_secret``: takes name and value of a variable; wiring passes ``veil.secrets.names.is_secret_value``."""
        self._is_secret = is_secret
        #: Name -> hash of its value and what was said of it: the same variables come with every run, and nothing of a
        #: value is kept.
        self._said: dict[str, tuple[int, bool]] = {}

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        """Never: every machine can do this."""
        return None

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        """Yields the launch without them; finds ``secrets_env_scrubbed``."""
        asked = {name for name, value in plan.request.command.env if value is not None}
        env = dict(launch.env)
        gone = [name for name, value in env.items() if name not in asked and self._secret(name, value)]
        for name in gone:
            if name.upper().startswith("GIT_CONFIG_VALUE_"):
                env[name] = ""  # git counts these and fails when one is missing
            else:
                del env[name]
        yield dataclasses.replace(launch, env=env)
        return Findings(notes={"secrets_env_scrubbed": len(gone)})

    def _secret(self, name: str, value: str) -> bool:
        known = self._said.get(name)
        if known is not None and known[0] == hash(value):
            return known[1]
        said = self._is_secret(name, value)
        if len(self._said) >= _MOST:
            self._said.clear()
        self._said[name] = (hash(value), said)
        return said
