"""From keywords to one ``Request``: the single place where an option has its name, type, range and error text.

The Python API, the fixtures, the command line and the JSON tools all come through here. ``options.JSON_NAMES`` maps the
JSON tools' names and units (milliseconds) to these (seconds).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from veil.asking.command import command_of
from veil.asking.options import BACKGROUND_INCOMPATIBLE, NAMES, NOT_IN_BACKGROUND, OTHER_WORDS
from veil.asking.wishes import safety, secrets_protected
from veil.checks.base import Check
from veil.model.command import Effects, Limits, Request, Retry, ScrubEnv
from veil.model.errors import BadInput, Refused, nearest
from veil.settings import Settings

_RETRYING = frozenset({"retries", "retry_on_exit", "backoff"})
_NO_RETRY = Retry()
_KNOWN = frozenset(NAMES)
_MAX_TIMEOUT = 10 * 365 * 86400.0


class UnknownOption(BadInput, TypeError):
    """A keyword that means nothing."""

    code = "unknown_option"


def build(
    command: str | Sequence[str],
    options: Mapping[str, Any],
    settings: Settings,
    checks: Mapping[str, Check],
    *,
    background: bool = False,
) -> Request:
    """The request. Raises ``BadInput`` naming the argument, or ``Refused`` (``background_incompatible``)."""
    if not _KNOWN.issuperset(options):
        name = next(name for name in options if name not in _KNOWN)
        hint = f" ({OTHER_WORDS[name]})" if name in OTHER_WORDS else nearest(name, NAMES)
        raise UnknownOption(name, options[name], f"an option that veil knows{hint}")
    said = {name: value for name, value in options.items() if value is not None}
    if background:
        _refuse_waiting(said)
    wishes = safety(said)
    if _flag(said, "scrub_env", settings.scrub_env or any(map(secrets_protected, wishes))):
        wishes.append(ScrubEnv())
    effects = _effects(said, settings)
    if effects is not None and not background:
        wishes.append(effects)
    expect = parse_expect(said.get("expect"), checks)
    if said.get("effects") is False and any(name == "changed" for name, _ in expect):
        raise BadInput("effects", False, "True or 'all' when expect.changed is asked (else nobody looks)")
    merged = _flag(said, "merge_stderr", False)
    if merged and (blind := [name for name, _ in expect if name.startswith("stderr_")]):
        raise BadInput("merge_stderr", True, f"False with expect.{blind[0]} (merged, stderr is in stdout)")
    return Request(
        command=command_of(command, said, settings),
        limits=Limits(
            None if background else _timeout(said, settings),
            _whole(said, "max_output", 0, 500_000_000) if "max_output" in said else settings.stream_bytes,
        ),
        wishes=tuple(wishes),
        expect=expect,
        retry=_retry(said),
        full=_flag(said, "full", False),
        no_store=_flag(said, "no_store", settings.no_store),
        # who asks for changes by name wants them looked at, whatever the pre-check thinks of the command
        insist="effects" in said or any(name == "changed" for name, _ in expect),
        merge_stderr=merged,
        redact=_flag(said, "redact", settings.redact) or bool(said.get("secrets")),
        secrets=_secrets(said.get("secrets", ())),
        contain=_flag(said, "contain", False) or background,
        background=background,
        left_running=_choice(said, "left_running", ("kill", "keep")),
    )


def _refuse_waiting(said: Mapping[str, Any]) -> None:
    named = (*BACKGROUND_INCOMPATIBLE, *NOT_IN_BACKGROUND)
    wrong = [name for name in named if said.get(name) not in (None, False)]
    # a background run is always owned by a supervisor: what asks for less cannot be granted
    wrong += [name for name in ("contain",) if said.get(name) is False]
    if wrong:
        raise Refused(
            f"{', '.join(wrong)}: a background run is not waited for, so this cannot hold; "
            "leave it out, or judge the result of handle.wait()",
            code="background_incompatible",
            options=wrong,
        )


def number(argument: str, value: object, low: float, high: float, what: str) -> float:
    """A finite number within bounds; bool, NaN and text are refused by name."""
    # every comparison with NaN is false, so it is never within bounds
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
        raise BadInput(argument, value, what)
    # beyond any float is as good as for ever; only where there is no upper bound
    return float(value) if value <= sys.float_info.max else math.inf


def _timeout(said: Mapping[str, Any], settings: Settings) -> float | None:
    if "timeout" not in said:
        return settings.timeout
    value = said["timeout"]
    if isinstance(value, float) and value == math.inf:
        return None
    seconds = number("timeout", value, 0, math.inf, "seconds greater than 0 (math.inf for no limit)")
    if seconds == 0:
        raise BadInput("timeout", value, "seconds greater than 0 (math.inf for no limit)")
    # beyond ten years there is no difference to no limit, and no clock arithmetic to overflow
    return seconds if seconds < _MAX_TIMEOUT else None


def _whole(said: Mapping[str, Any], name: str, low: int, high: int) -> int:
    value = said.get(name, low)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise BadInput(name, value, f"a whole number from {low} to {high}")
    return value


def _flag(said: Mapping[str, Any], name: str, default: bool) -> bool:
    value = said.get(name, default)
    if not isinstance(value, bool):
        raise BadInput(name, value, "True or False")
    return value


def _choice(said: Mapping[str, Any], name: str, allowed: tuple[str, ...]) -> Any:
    value = said.get(name, allowed[0])
    if value not in allowed:
        raise BadInput(name, value, " or ".join(repr(word) for word in allowed))
    return value


def _effects(said: Mapping[str, Any], settings: Settings) -> Effects | None:
    value = said.get("effects", settings.effects)
    if value == "all":
        return Effects(ignored=True)
    if not isinstance(value, bool):
        raise BadInput("effects", value, "True, False or 'all'")
    return Effects() if value else None


def _secrets(value: object) -> tuple[str, ...]:
    # the values themselves are never shown, not even in an error
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise BadInput("secrets", type(value).__name__, "a list of secret values")
    for at, secret in enumerate(value):
        if not isinstance(secret, str):
            raise BadInput(f"secrets[{at}]", type(secret).__name__, "text")
    return tuple(value)


def _retry(said: Mapping[str, Any]) -> Retry:
    if not _RETRYING.intersection(said):
        return _NO_RETRY
    times = _whole(said, "retries", 0, 100)
    if times and said.get("left_running") == "keep":
        raise BadInput("left_running", "keep", "'kill' with retries (a retry never starts beside what is left)")
    raw = said.get("retry_on_exit", ())
    codes = (raw,) if isinstance(raw, int) else raw
    if isinstance(codes, (str, bytes)) or not isinstance(codes, Sequence):
        raise BadInput("retry_on_exit", raw, "an exit code or a list of them")
    for code in codes:
        if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 255:
            raise BadInput("retry_on_exit", code, "exit codes from 0 to 255")
    backoff = number("backoff", said.get("backoff", 0), 0, 86_400, "seconds from 0 to 86400")
    if not times and ("retry_on_exit" in said or backoff):
        raise BadInput("retries", said.get("retries"), "at least 1 when retry_on_exit or backoff is given")
    return Retry(times, tuple(codes), backoff)


def parse_expect(value: object, checks: Mapping[str, Check]) -> tuple[tuple[str, Any], ...]:
    """Post-conditions as pairs of check name and parsed value. Raises ``BadInput`` naming the check."""
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise BadInput("expect", value, "a mapping of post-conditions to what they expect")
    parsed = []
    for name, expected in value.items():
        check = checks.get(name) if isinstance(name, str) else None
        if check is None:
            hint = nearest(name, tuple(checks)) if isinstance(name, str) else ""
            raise BadInput(f"expect.{name}", expected, f"one of {', '.join(sorted(checks))}{hint}")
        parsed.append((name, check.parse(expected)))
    return tuple(parsed)
