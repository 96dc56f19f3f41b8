"""What the pre-check knows of tools, in the shape in which the policy asks for it: no table is written twice."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from veil.classify import assess
from veil.classify.starting import Starts, starts
from veil.classify.tables import packages, wrappers
from veil.policy.deciding import Judge
from veil.policy.judgements import Tables
from veil.policy.launchers import Launcher
from veil.policy.rules import Policy

_KINDS = {"wrapper": "wrapper", "sudo": "env", "env": "env", "xargs": "xargs", "command": "wrapper"}
_LEVELS = ("read", "mutating", "unknown", "complex", "network")
#: Flags that the pre-check has no need to list, of programs that the policy wants to see through to the last option.
_FLAGS: Mapping[str, str] = {
    "timeout gtimeout": "--foreground --preserve-status -v --verbose -f -p",
    "setsid": "-c --ctty -f --fork -w --wait",
    "time gtime": "-p -v -a -q --portability --verbose --append --quiet",
    "sudo": "-A -b -E -H -n -P -S -B -N -k -K -l -v --preserve-env --set-home --non-interactive --stdin",
    "xargs gxargs": "-0 -r -t -p -x -o --null --no-run-if-empty --verbose --interactive --exit --open-tty",
    "ionice": "-t --ignore",
    "env": "-0 -v --null --debug",
}
#: Options under which the program that is started is somewhere else, or made from a text: never read as understood.
_ELSEWHERE: Mapping[str, str] = {
    # without its PATH, env finds other programs than those that were judged
    "env": "-C --chdir -S --split-string -i --ignore-environment -u --unset",
    "sudo": "-D --chdir -R --chroot -h --host -s --shell -i --login -e --edit",
    "xargs gxargs": "-a --arg-file -i -I -J --replace -e -l --eof --max-lines -R -S",
    "command": "-v -V",
}
_NO_VALUE_AFTER_ALL: Mapping[str, str] = {"ionice": "-t"}


def _launcher(names: str, row: Mapping[str, Any], kind: str) -> Launcher:
    valued: set[str] = set()
    flags = set(_FLAGS.get(names, "").split())
    for level in _LEVELS:
        for word in row.get(level, "").split():
            name = word.rstrip(">").rstrip("=")
            (valued if word.rstrip(">").endswith("=") else flags).add(name)
    never = {*_ELSEWHERE.get(names, "").split()}
    valued -= {*_NO_VALUE_AFTER_ALL.get(names, "").split()}
    return Launcher(frozenset(valued - never), frozenset(flags - never), row.get("skip", 0), kind)


@lru_cache(maxsize=1)
def launchers() -> Mapping[str, Launcher]:
    """How every program that starts another one is read."""
    found: dict[str, Launcher] = {}
    for names, row in wrappers.ROWS.items():
        kind = _KINDS.get(row.get("judge", ""))
        if kind is not None:
            for name in names.split():
                own = next((key for key in _FLAGS if name in key.split()), names)
                found[name] = _launcher(own, row, kind)
    return found


#: Argvs with more characters than this are judged anew each time: they would fill the memory.
_LONG = 4_096


def risk(argv: tuple[str, ...]) -> tuple[str, str]:
    """The pre-check's category for an argv, and its reason."""
    return _kept(argv) if sum(map(len, argv)) < _LONG else _risk(argv)


def _risk(argv: tuple[str, ...]) -> tuple[str, str]:
    assessed = assess(argv)
    worst = next((s for s in assessed.segments if s.category == assessed.category), None)
    return assessed.category, assessed.category if worst is None else worst.reason


_kept = lru_cache(maxsize=8192)(_risk)


def started(command: str | tuple[str, ...]) -> Starts:
    """What an argv, or a text for a shell, starts."""
    return _read(command) if sum(map(len, command)) < _LONG else starts(command)


_read = lru_cache(maxsize=8192)(starts)


@lru_cache(maxsize=1)
def tables() -> Tables:
    """What the judgements know."""
    return Tables(risk, frozenset(name for names in packages.ROWS for name in names.split()), started)


def judge_of(policy: Policy) -> Judge:
    """A judge for a policy."""
    return Judge(policy, launchers(), tables())
