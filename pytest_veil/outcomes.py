"""What the eval mode says of one test: plain data that crosses from workers to the controller as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from veil.taping import Cassette, Key, Refusal, Rules

#: Verdicts with which a test may pass: everything else says that it did not do what was recorded.
SAME = ("exact", "normalised", "unordered", "weak")


@dataclass(frozen=True)
class StepRow:
    """One step of a test.

    Attributes:
        number: from 1, its place in the cassette (in ``live`` mode: in the test). A command that the recording does
            not have (``unrecorded``) is numbered on from the last recorded step.
        word: its verdict (``exact`` ... and ``unrecorded`` in verify mode; ``replayed``, ``recorded``, ``kept``,
            ``live`` otherwise).
        command: copy-pasteable, tokens for folders.
        where, detail, expected, got: what differed first, short.
        needed, masked: normalisers without which it would not be the same; those of them that erase.
        runs: in verify mode, in how many runs it was as recorded, and how many there were (``3, 5``: 3 of 5).
        proposal: normalisers that would have made the runs equal.
        suggestion: Python for a new one that would, where those of veil would not.
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
    suggestion: str = ""


@dataclass(frozen=True)
class ItemOutcome:
    """One test that used veil.

    Attributes:
        nodeid: pytest's; of the file or folder when ``scope`` says that many tests share one recording.
        mode: the mode that it ran in.
        outcome: ``passed``, ``failed``, ``skipped`` (as pytest has it) or ``error``.
        verdict: one word for the whole: a step word in verify mode; else ``replayed``, ``recorded``, ``refreshed``,
            ``live``, ``missing-cassette``, ``not-written`` (and then ``why``), ``none`` (no command was run).
        cassette: path relative to the root folder of the run, POSIX separators; None where there is none.
        first_divergence: number of the first step that differs.
        unused: numbers of recorded steps that nobody asked for.
        fired, idle: normalisers that changed something, and those that never did.
        scope: ``function``, or ``class``, ``module``, ``package``, ``session`` for a shared recording.
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
    scope: str = "function"
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


#: What is said of a test, on its item; and of shared recordings, on the config until a report takes it along.
OUTCOMES = pytest.StashKey[list[ItemOutcome]]()


def note(node: pytest.Item | pytest.Collector, outcome: ItemOutcome) -> None:
    """Say something of a test, or of a recording that the tests below ``node`` share.

    The next report of a teardown carries it to the controller. The last word on a ``nodeid`` and ``cassette`` counts.
    """
    said = _stash(node).setdefault(OUTCOMES, [])
    this = (outcome.nodeid, outcome.cassette)
    said[:] = [*(other for other in said if (other.nodeid, other.cassette) != this), outcome]


def _stash(node: pytest.Item | pytest.Collector) -> pytest.Stash:
    return node.stash if isinstance(node, pytest.Item) else node.config.stash


@dataclass(frozen=True)
class Take:
    """One live run of a test in verify mode, left at the end of its fixture for whoever judges it.

    Attributes:
        file: the cassette, relative to the root folder of the run, POSIX separators.
        recorded: None when there is no such file.
        fresh: what was done now, under the header that a recording made now would carry.
        rules: how to compare (``verifying.rules_of``).
        nodeid, scope: as in ``ItemOutcome``.
        runs: how often the test is to be run (``--veil-runs``).
        rekey: changes what makes two runs the same question (hook ``pytest_veil_key``), as for a ``Tape``.
        refused: what veil would not run.
        machine_then, machine_now: fingerprints, None where none is known.
        stands_alone: the recording is the test.
    """

    file: str
    recorded: Cassette | None
    fresh: Cassette
    rules: Rules
    nodeid: str
    scope: str = "function"
    runs: int = 1
    rekey: Callable[[Key], Key] | None = None
    refused: tuple[Refusal, ...] = ()
    machine_then: dict[str, str] | None = None
    machine_now: dict[str, str] | None = None
    stands_alone: bool = False


#: What is to be judged, where ``OUTCOMES`` are.
TAKES = pytest.StashKey[list[Take]]()


def leave(node: pytest.Item | pytest.Collector, take: Take) -> None:
    """In verify mode, at the end of the fixture: the run is over, whether it was as recorded is judged elsewhere."""
    _stash(node).setdefault(TAKES, []).append(take)


def left(node: pytest.Item | pytest.Collector) -> list[Take]:
    """What was left to be judged; then nothing is."""
    found = _stash(node).get(TAKES, [])
    _stash(node)[TAKES] = []
    return found


@dataclass(frozen=True)
class Pruning:
    """What became of cassettes that no test owns.

    Attributes:
        judged: whether the run could tell. why: what kept it from that.
        stale: cassettes without a test, relative to the root folder. removed: whether they were removed.
    """

    judged: bool
    why: str = ""
    stale: tuple[str, ...] = ()
    removed: bool = False


@dataclass(frozen=True)
class Active:
    """What holds for the whole session, for header and report.

    Attributes:
        mode: the session's; single tests may have another. runs: of each test in verify mode (``--veil-runs``).
        profile, profile_version: of the children. cassettes: root folder named by the user, None: next to the tests.
        normalisers: those that may be used, in order: name, version, whether it erases.
        chosen: whether the user named them.
        report: absolute path of the JSON report, None for none.
    """

    mode: str
    profile: str
    profile_version: int
    runs: int = 1
    cassettes: str | None = None
    normalisers: tuple[tuple[str, int, bool], ...] = ()
    chosen: bool = False
    report: str | None = None


#: On the config: what holds for the session; on the controller also what became of stale cassettes.
ACTIVE = pytest.StashKey[Active]()
PRUNING = pytest.StashKey[Pruning]()
