"""The options of the plugin: each has a form for the command line and a twin for the ini file. Imports only pytest."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import pytest

#: ``int`` came to ini files with pytest 8.4; before, a number was written as text everywhere.
_INT = "int" if pytest.version_tuple >= (8, 4) else "string"


class Option(NamedTuple):
    """One option.

    Attributes:
        name: of the ini twin, and where the value of the line is kept in ``config.option``.
        help: what it does. ini: type of the ini twin.
        flag: form on the command line; None when there is none. metavar: None for a switch.
    """

    name: str
    help: str
    ini: str = "string"
    flag: str | None = None
    metavar: str | None = None


OPTIONS = (
    Option("veil", "turn the eval mode on (mode replay unless told otherwise)", "bool", "--veil"),
    Option(
        "veil_mode",
        "live, replay, record, record-missing, refresh or verify; on the command line it implies --veil",
        flag="--veil-mode",
        metavar="MODE",
    ),
    Option("veil_runs", "verify mode: how often each test is run (default 1)", _INT, "--veil-runs", "N"),
    Option(
        "veil_normalise",
        "which normalisers may be used: standard (default), none, names, or -NAME for all but this one; comma between",
        "args",
        "--veil-normalise",
        "NAMES",
    ),
    Option(
        "veil_env",
        "environment of commands in the eval mode: deterministic (default) or inherit",
        flag="--veil-env",
        metavar="PROFILE",
    ),
    Option(
        "veil_cassettes",
        "folder of the recordings (default: a folder 'cassettes' beside each test file)",
        flag="--veil-cassettes",
        metavar="DIR",
    ),
    Option("veil_report", "write a JSON report of the eval mode", flag="--veil-report", metavar="FILE.json"),
    Option(
        "veil_keep_failed",
        "keep the workspace of a failed test, and its recording when one was being made",
        "bool",
        "--veil-keep-failed",
    ),
    Option(
        "veil_unused",
        "recorded steps that nobody asked for: report (default) or error",
        flag="--veil-unused",
        metavar="WHAT",
    ),
    Option(
        "veil_on_drift",
        "replay when the files that a step touches are not as recorded: error (default), apply or ignore",
        flag="--veil-on-drift",
        metavar="WHAT",
    ),
    Option("veil_facts", "keep durations, dates and the machine beside each recording", "bool", "--veil-facts"),
    Option("veil_secrets", "values that must never stand in a recording or a report, one a line", "linelist"),
    Option("veil_pass_env", "names of variables that commands may see besides those of the profile", "args"),
    Option("veil_failure_lines", "the most lines that the message of a failed expectation has (default 60)", _INT),
    Option(
        "veil_short_fixtures",
        "have veil_checkpoint and veil_sandbox under their short names too (default true)",
        "bool",
    ),
)

MARKER = (
    "veil(mode=..., runs=..., normalise=..., env=..., cassette=..., keep_failed=..., unused=..., on_drift=..., "
    "facts=..., secrets=..., pass_env=..., failure_lines=...): options of the eval mode for one test"
)


def add_options(parser: pytest.Parser) -> None:
    """Every option, in one group, and its ini twin."""
    group = parser.getgroup("veil", "veil: commands recorded, replayed and verified")
    for option in OPTIONS:
        if option.flag is not None:
            how: dict[str, Any] = {"action": "store_true"} if option.metavar is None else {"metavar": option.metavar}
            group.addoption(option.flag, dest=option.name, default=None, help=option.help, **how)
        # None is "not said", which no value of the file can be
        kind = cast('Literal["string", "args", "linelist", "bool"]', option.ini)
        parser.addini(option.name, option.help, type=kind, default=None)


def said_on_line(config: pytest.Config) -> dict[str, Any]:
    """What the command line says, by name."""
    found = {option.name: config.getoption(option.name, None) for option in OPTIONS if option.flag is not None}
    return {name: value for name, value in found.items() if value is not None}


def said_in_ini(config: pytest.Config) -> dict[str, Any]:
    """What the ini file (or ``-o``) says, by name.

    Raises ``pytest.UsageError`` for a value of the wrong type.
    """
    found = {}
    for option in OPTIONS:
        try:
            value = config.getini(option.name)
        except (TypeError, ValueError, pytest.UsageError) as error:
            told = str(error)
            raise pytest.UsageError(told if option.name in told else f"{option.name}: {told}") from None
        if value is not None and value != "" and value != []:
            found[option.name] = value
    return found


def turned_on(config: pytest.Config) -> bool:
    """Whether the eval mode is on."""
    line = said_on_line(config)
    return bool(line.get("veil") or "veil_mode" in line or said_in_ini(config).get("veil"))
