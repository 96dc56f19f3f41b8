"""What the eval mode says of one test: plain data that crosses from workers to the controller as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class StepRow:
    """One step of a test.

    Attributes:
        number: from 1, its place in the cassette (in ``live`` mode: in the test).
        word: its verdict (``exact`` ... in verify mode; ``replayed``, ``recorded``, ``kept``, ``live`` otherwise).
        command: copy-pasteable, tokens for folders.
        where, detail, expected, got: what differed first, short.
        needed, masked: normalisers without which it would not be the same; those of them that erase.
        runs: in verify mode, how often it was run, and how many of these were as recorded.
        proposal: normalisers that would have made the runs equal.
    """

    number: int
    word: str
    command: str
    where: str | None = None
    detail: str = ""
    expected: str = ""
    got: str = ""
    needed: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    runs: tuple[int, int] | None = None
    proposal: tuple[str, ...] = ()


@dataclass(frozen=True)
class ItemOutcome:
    """One test that used veil.

    Attributes:
        nodeid: pytest's. mode: the mode that it ran in.
        outcome: ``passed``, ``failed``, ``skipped`` (as pytest has it) or ``error``.
        verdict: one word for the whole: a step word in verify mode; else ``replayed``, ``recorded``, ``refreshed``,
            ``live``, ``missing-cassette``, ``not-written`` (and then ``why``), ``none`` (no command was run).
        cassette: path relative to the root folder of the run, POSIX separators; None where there is none.
        first_divergence: number of the first step that differs.
        unused: numbers of recorded steps that nobody asked for.
        fired, idle: normalisers that changed something, and those that never did.
    """

    nodeid: str
    mode: str
    outcome: str
    verdict: str
    cassette: str | None = None
    steps: tuple[StepRow, ...] = ()
    first_divergence: int | None = None
    unused: tuple[int, ...] = ()
    fired: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    why: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    def to_data(self) -> dict[str, Any]:
        """JSON-ready."""
        return asdict(self)

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> ItemOutcome:
        """What ``to_data`` gave, also after a trip through JSON."""
        rows = tuple(
            StepRow(
                **{
                    **row,
                    "needed": tuple(row["needed"]),
                    "masked": tuple(row["masked"]),
                    "proposal": tuple(row["proposal"]),
                    "runs": None if row["runs"] is None else (row["runs"][0], row["runs"][1]),
                }
            )
            for row in data["steps"]
        )
        many = {name: tuple(data[name]) for name in ("unused", "fired", "idle")}
        return cls(**{**data, "steps": rows, **many})
