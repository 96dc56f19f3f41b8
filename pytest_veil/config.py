"""What was asked for, understood: command line before marker before ini file before default."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import pytest

from pytest_veil.options import said_in_ini, said_on_line, turned_on

Mode = Literal["off", "live", "replay", "record", "record-missing", "refresh", "verify"]
Unused = Literal["report", "error"]
OnDrift = Literal["error", "apply", "ignore"]
Environment = Literal["deterministic", "inherit"]

MODES: tuple[Mode, ...] = get_args(Mode)[1:]
#: Modes in which recordings may be written.
WRITING: frozenset[Mode] = frozenset({"record", "record-missing", "refresh"})
#: Modes in which recordings answer.
REPLAYING: frozenset[Mode] = frozenset({"replay", "record-missing"})
#: What a marker may say; the rest holds for the whole session.
OF_A_TEST = frozenset(
    {"mode", "runs", "normalise", "env", "cassette", "keep_failed", "unused", "on_drift", "facts", "secrets"}
    | {"pass_env", "failure_lines"}
)


@dataclass(frozen=True)
class Settings:
    """Everything that can be chosen, for the session or for one test.

    Attributes:
        mode: ``off``: the eval mode is off, commands run as ``veil.run`` would run them.
        runs: verify mode: how often a test is run.
        normalise: words as said: ``standard``, ``none``, names, ``-name``.
        env: profile of the environment; None: ``deterministic`` in the eval mode, else ``inherit``.
        cassettes: root of all recordings; None: a folder beside each test file.
        cassette: name or path that a marker chose.
        report: where the JSON report goes. facts: whether to write the sidecar with durations and dates.
        secrets: values to keep out. pass_env: names that commands may see.
        failure_lines: the most lines of a failed expectation.
        short_fixtures: whether there are fixtures ``checkpoint`` and ``sandbox``.
    """

    mode: Mode = "off"
    runs: int = 1
    normalise: tuple[str, ...] = ("standard",)
    env: Environment | None = None
    cassettes: Path | None = None
    cassette: str | None = None
    report: Path | None = None
    keep_failed: bool = False
    unused: Unused = "report"
    on_drift: OnDrift = "error"
    facts: bool = False
    secrets: tuple[str, ...] = ()
    pass_env: tuple[str, ...] = ()
    failure_lines: int = 60
    short_fixtures: bool = True
    #: Names that the command line chose: a marker does not change these.
    fixed: frozenset[str] = field(default=frozenset())


def _one_of(*words: str) -> Callable[[str, Any], Any]:
    def read(name: str, value: Any) -> Any:
        if value not in words:
            raise pytest.UsageError(
                f"{name}: expected one of {', '.join(words)}, got {value!r}{_nearest(value, words)}"
            )
        return value

    return read


def _nearest(value: object, words: tuple[str, ...]) -> str:
    import difflib

    close = difflib.get_close_matches(str(value), words, n=1, cutoff=0.5)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _whole(least: int, most: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        try:
            number = None if isinstance(value, (bool, float)) else int(value)
        except (TypeError, ValueError):
            number = None
        if number is None or not least <= number <= most:
            raise pytest.UsageError(f"{name}: expected a whole number from {least} to {most}, got {value!r}")
        return number

    return read


def _switch(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise pytest.UsageError(f"{name}: expected true or false, got {value!r}")
    return value


def _texts(name: str, value: Any) -> tuple[str, ...]:
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) and part for part in parts):
        raise pytest.UsageError(f"{name}: expected texts, got {value!r}")
    return tuple(parts)


def _names(name: str, value: Any) -> tuple[str, ...]:
    """Texts that may also stand in one text with commas or blanks between them."""
    found = [part for text in _texts(name, value) for part in text.replace(",", " ").split()]
    if not found:
        raise pytest.UsageError(f"{name}: expected names, got {value!r}")
    return tuple(found)


def _file(name: str, value: Any) -> str:
    try:
        text = os.fspath(value)
    except TypeError:
        text = None
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise pytest.UsageError(f"{name}: expected a path, got {value!r}")
    return text


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "mode": _one_of(*MODES),
    "runs": _whole(1, 1000),
    "normalise": _names,
    "env": _one_of(*get_args(Environment)),
    "cassettes": _file,
    "cassette": _file,
    "report": _file,
    "keep_failed": _switch,
    "unused": _one_of(*get_args(Unused)),
    "on_drift": _one_of(*get_args(OnDrift)),
    "facts": _switch,
    "secrets": _texts,
    "pass_env": _names,
    "failure_lines": _whole(5, 10_000),
    "short_fixtures": _switch,
}
#: What does nothing where the eval mode is off.
_OF_THE_EVAL_MODE = ("runs", "normalise", "cassettes", "report", "unused", "on_drift", "facts")
_SETTINGS = pytest.StashKey[Settings]()


def settings_of(config: pytest.Config) -> Settings:
    """Those of the session, read once. Raises ``pytest.UsageError`` that names what came and what was expected."""
    if _SETTINGS in config.stash:
        return config.stash[_SETTINGS]
    line = _read(said_on_line(config), "--veil-{}", dashes=True)
    ini = _read(said_in_ini(config), "veil_{}")
    chosen = {**ini, **line}
    chosen["secrets"] = ini.get("secrets", ())
    for name in ("cassettes", "report"):
        if name in chosen:
            base = config.invocation_params.dir if name in line else (config.inipath or config.rootpath / "x").parent
            chosen[name] = Path(os.path.abspath(base / chosen[name]))
    if "report" in chosen and chosen["report"].is_dir():
        raise pytest.UsageError(f"--veil-report: {chosen['report']} is a folder, expected a file")
    if "cassettes" in chosen and chosen["cassettes"].exists() and not chosen["cassettes"].is_dir():
        raise pytest.UsageError(f"--veil-cassettes: {chosen['cassettes']} is not a folder")
    if not turned_on(config):
        _refuse_idle(line)
        chosen["mode"] = "off"
    else:
        chosen.setdefault("mode", "replay")
    settings = config.stash[_SETTINGS] = Settings(**chosen, fixed=frozenset(line))
    return settings


def _refuse_idle(line: Mapping[str, Any]) -> None:
    """A report that was asked for and never comes would be found out late: what means nothing here is not taken."""
    idle = [name for name in line if name in _OF_THE_EVAL_MODE]
    if idle:
        flag = "--veil-" + idle[0].replace("_", "-")
        raise pytest.UsageError(
            f"{flag}: expected with --veil or --veil-mode=MODE, since it is for the eval mode, which is off "
            f"(for every run that has it on: veil_{idle[0]} in the ini file)"
        )


def _read(said: Mapping[str, Any], form: str, *, dashes: bool = False) -> dict[str, Any]:
    found = {}
    for name, value in said.items():
        short = name.removeprefix("veil_")
        if short in _READERS:
            shown = form.format(short.replace("_", "-") if dashes else short)
            found[short] = _READERS[short](shown, value)
    return found


def settings_for(item: pytest.Item, session: Settings) -> Settings:
    """Those of one test: what its markers say, nearest first, where the command line says nothing.

    Raises ``pytest.UsageError`` that names the test.
    """
    said: dict[str, Any] = {}
    for mark in item.iter_markers("veil"):
        if mark.args:
            raise pytest.UsageError(f"{item.nodeid}: the marker veil takes only keywords, got {mark.args!r}")
        for name, value in mark.kwargs.items():
            if name not in OF_A_TEST:
                known = tuple(sorted(OF_A_TEST))
                raise pytest.UsageError(
                    f"{item.nodeid}: the marker veil knows no {name!r}{_nearest(name, known)}; "
                    f"it knows {', '.join(known)}"
                )
            said.setdefault(name, _READERS[name](f"{item.nodeid}: veil({name}=...)", value))
    for name in ("secrets", "pass_env"):  # these only ever add
        if name in said:
            said[name] = (*getattr(session, name), *said[name])
    if session.mode == "off":
        said.pop("mode", None)  # a marker says which mode, only --veil turns it on
    allowed = {name: value for name, value in said.items() if name not in session.fixed}
    return replace(session, **allowed) if allowed else session
