"""Settings: defaults, then ``[tool.veil]``, then ``VEIL_*``, then arguments. Read here and nowhere below.

The fields of ``Settings`` are the one table: each carries its variable, its range and what it does. The key in
``pyproject.toml`` is the variable in lower case without ``VEIL_``. ``docs/settings.md`` is made from the same table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from veil.model.command import DEFAULT_STREAM_BYTES, DEFAULT_TIMEOUT
from veil.model.errors import BadInput, nearest
from veil.settings.kinds import PREFIX, Folder, Kind, Number, Program, Setting, Switch
from veil.settings.pyproject import values_of

#: Variables that veil itself sets or its own test suite reads: no settings, and never a slip of the pen.
_NOT_SETTINGS = frozenset({"VEIL_RUN", "VEIL_CI"})


def _line(variable: str, kind: Kind, meaning: str, *, in_project: bool = True) -> dict[str, Setting]:
    return {"setting": Setting(variable, kind, meaning, in_project=in_project)}


_DAY_MS = 86_400_000
_YEAR_MS = 365 * _DAY_MS
_TERABYTE = 10**12


@dataclass(frozen=True)
class Settings:
    """Every setting of one project. Durations are seconds, sizes bytes."""

    timeout: float | None = field(
        default=DEFAULT_TIMEOUT,
        metadata=_line(
            "VEIL_TIMEOUT_MS",
            Number(1, _YEAR_MS, "milliseconds", scale=1000, none=True),
            "How long a command may take when the call does not say; `none` for no limit.",
        ),
    )
    # a row of the store holds both streams, and SQLite ends a row at 10^9 bytes
    stream_bytes: int = field(
        default=DEFAULT_STREAM_BYTES,
        metadata=_line(
            "VEIL_MAX_STREAM_BYTES",
            Number(0, 500_000_000, "bytes"),
            "Bytes kept of each output stream: the first fifth and the newest rest.",
        ),
    )
    effects: bool | Literal["all"] = field(
        default=True,
        metadata=_line(
            "VEIL_EFFECTS",
            Switch("all"),
            "Whether a run tells which files changed; `all` includes what git ignores.",
        ),
    )
    effects_wait: float = field(
        default=2.0,
        metadata=_line(
            "VEIL_EFFECTS_WAIT_MS",
            Number(0, _DAY_MS, "milliseconds", scale=1000),
            "How long a run waits for another in the same tree; then it goes ahead, its changes labelled shared.",
        ),
    )
    state_dir: Path | None = field(
        default=None,
        metadata=_line(
            "VEIL_STATE_DIR",
            Folder(),
            "Where records are kept. Unset: `$XDG_STATE_HOME/veil`, `~/.local/state/veil`, then a temporary folder.",
            in_project=False,
        ),
    )
    max_records: int = field(
        default=500,
        metadata=_line(
            "VEIL_MAX_RECORDS", Number(1, 1_000_000, "records"), "Records kept per project; the oldest go first."
        ),
    )
    max_store_bytes: int = field(
        default=256_000_000,
        metadata=_line(
            "VEIL_MAX_STORE_BYTES",
            Number(1, _TERABYTE, "bytes"),
            "Bytes of records kept per project; the record just written always stays.",
        ),
    )
    record_ttl: float = field(
        default=86_400.0,
        metadata=_line(
            "VEIL_RECORD_TTL_MS", Number(1, 10 * _YEAR_MS, "milliseconds", scale=1000), "Age at which a record goes."
        ),
    )
    max_background: int = field(
        default=16,
        metadata=_line("VEIL_MAX_BG_PROCS", Number(0, 1024, "runs"), "Background runs alive at once; 0 refuses them."),
    )
    max_sessions: int = field(
        default=64,
        metadata=_line(
            "VEIL_MAX_SESSIONS",
            Number(0, 10_000, "sessions"),
            "Shell sessions open at once in a process; 0 refuses them.",
        ),
    )
    no_store: bool = field(
        default=False, metadata=_line("VEIL_NO_STORE", Switch(), "Keep every record in memory; nothing on disk.")
    )
    redact: bool = field(
        default=False,
        metadata=_line("VEIL_REDACT", Switch(), "Replace known secret values before anything of a run is kept."),
    )
    shell: str | None = field(
        default=None,
        metadata=_line(
            "VEIL_SHELL",
            Program(),
            "The shell that reads a command text. Unset: bash where there is one, else sh.",
            in_project=False,
        ),
    )
    scrub_env: bool = field(
        default=False,
        metadata=_line(
            "VEIL_SCRUB_ENV", Switch(), "Take credential-shaped variables out of the environment of commands."
        ),
    )
    max_checkpoint_bytes: int = field(
        default=5_000_000_000,
        metadata=_line(
            "VEIL_MAX_CHECKPOINT_BYTES",
            Number(1, 1000 * _TERABYTE, "bytes"),
            "Bytes of all checkpoints together; over it the oldest go. Labelled ones and the newest of a folder stay.",
            in_project=False,
        ),
    )

    max_preview_bytes: int = field(
        default=1_000_000_000,
        metadata=_line(
            "VEIL_MAX_PREVIEW_BYTES",
            Number(1, 1000 * _TERABYTE, "bytes"),
            "Bytes of a tree copied for a preview where nothing cheaper works, and of all kept previews together.",
            in_project=False,
        ),
    )

    @classmethod
    def load(cls, *, project: Path, environ: Mapping[str, str], **overrides: Any) -> Settings:
        """The settings of ``project`` (its root folder) under ``environ``; ``overrides`` are fields by name.

        Raises ``BadInput`` naming the variable, the key and its file, or the argument, with what was expected; and
        ``Refused`` (``settings_unreadable``) when the project's ``pyproject.toml`` is there but cannot be read.
        """
        values = values_of(project, environ, TABLE)
        values.update(_from_environment(environ))
        for name, value in overrides.items():
            if name not in TABLE:
                raise BadInput(name, value, f"the name of a setting{nearest(name, tuple(TABLE))}")
            kind = TABLE[name].kind
            try:
                values[name] = kind.from_python(value)
            except ValueError:
                raise BadInput(name, value, kind.python_range) from None
        return cls(**values)


#: Field name to its line, in the order of the class: the table, read from the fields themselves.
TABLE: Mapping[str, Setting] = {f.name: f.metadata["setting"] for f in fields(Settings)}
_BY_VARIABLE = {line.variable: name for name, line in TABLE.items()}


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """Values of ``VEIL_*``. Set but empty counts as not set. Surrounding blanks are dropped.

    A foreign name with the prefix is left alone (a newer veil may know it), but one that is nearly a setting is
    refused: a limit that silently does not hold is worse than a stop.
    """
    values: dict[str, Any] = {}
    for variable in [name for name in environ if name.startswith(PREFIX)]:
        name = _BY_VARIABLE.get(variable)
        if name is None:
            if variable not in _NOT_SETTINGS:
                _refuse_near_miss(variable)
            continue
        text = environ[variable]
        if not text:
            continue
        kind = TABLE[name].kind
        try:
            values[name] = kind.from_text(text.strip(), environ)
        except ValueError:
            raise BadInput(variable, text, kind.range) from None
    return values


def _refuse_near_miss(variable: str) -> None:
    import difflib

    close = difflib.get_close_matches(variable[len(PREFIX) :], [v[len(PREFIX) :] for v in _BY_VARIABLE], 1, 0.75)
    if close:
        raise BadInput(variable, variable, f"a variable that veil knows (did you mean {PREFIX + close[0]!r}?)")
