"""Why a step may differ although nothing that it tests is wrong: another profile, a tool that is not here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_veil.outcomes import Take

if TYPE_CHECKING:
    from veil.taping import Step

#: How shells say on their error stream that a program is not there: dash, bash and ksh, zsh.
_NOT_FOUND = (
    re.compile(rb"^(?:\S+: )(?:line )?\d+: (?P<tool>[^:\n]+): (?:command )?not found$", re.MULTILINE),
    re.compile(rb"^\S+: (?P<tool>[^:\n]+): (?:command )?not found$", re.MULTILINE),
    re.compile(rb"^\S*zsh:\d*:? command not found: (?P<tool>[^\n]+)$", re.MULTILINE),
)
_WORD = re.compile(r"[\w.+/-]+")


def excuse(take: Take, then: Step, now: Step) -> tuple[str, str] | None:
    """``missing-tool`` or ``environment`` with a reason, for a step that differs; None when it is the step itself."""
    missing = _missing(then, now)
    if missing is not None:
        return "missing-tool", missing
    if take.recorded is not None:
        before, today = take.recorded.header, take.fresh.header
        if (before.profile, before.profile_version) != (today.profile, today.profile_version):
            return "environment", (
                f"recorded under profile {before.profile} {before.profile_version}, "
                f"now {today.profile} {today.profile_version}"
            )
    other = _other_tools(take, then)
    return None if not other else ("environment", "; ".join(other))


def _missing(then: Step, now: Step) -> str | None:
    """A program that was there when it was recorded and is not now."""
    one, two = then.ending, now.ending
    if two.ended == "spawn_failed" and one.ended != "spawn_failed":
        return f"it could not start ({two.spawn_error})"
    tools = sorted(_not_found(now) - _not_found(then))
    if tools:
        return f"{', '.join(tools)} not found"
    if two.ended == "exited" and two.exit in (126, 127) and one.exit not in (126, 127):
        return "a program is not there" if two.exit == 127 else "a program may not be run"
    return None


def _not_found(step: Step) -> set[str]:
    kept = step.ending.stdout if step.merged else step.ending.stderr
    data = kept.head + kept.tail
    found = (match["tool"] for pattern in _NOT_FOUND for match in pattern.finditer(data))
    return {tool.decode("utf-8", "replace").strip() for tool in found}


def _other_tools(take: Take, step: Step) -> list[str]:
    """Tools that the command names and that are not those of the recording."""
    if take.machine_then is None or take.machine_now is None:
        return []
    named = tools_of(step)
    found = []
    for name, version in take.machine_then.items():
        today = take.machine_now.get(name, "(none)")
        if name in named and today != version:
            found.append(f"{name} was {version}, is {today}")
    return found


def tools_of(step: Step) -> set[str]:
    """Names in a machine's fingerprint that bear on a step: each word of the command, and the shell of a text."""
    text = " ".join(step.argv) if step.text is None else step.text
    words = {word.rpartition("/")[2] for word in _WORD.findall(text)}
    return words | {"locale"} | ({"shell"} if step.text is not None else set())
