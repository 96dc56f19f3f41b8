"""Was a recorded test repeated? A verdict per step from one or more live runs of it. Pure: nothing is run here."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_veil.excuses import excuse
from pytest_veil.outcomes import SAME, StepRow, Take
from pytest_veil.suggesting import suggest

if TYPE_CHECKING:
    import pytest

    from veil.taping import Cassette, Key, Rules, Step


@dataclass(frozen=True)
class Verified:
    """What is to be said of a test.

    Attributes:
        rows: one for each recorded step, and one for each command besides (behind the step after which it came).
        word: that of the first row that differs, else the weakest of all (``exact`` without any).
        first: the first row that differs. then, now: its step as recorded and as it was when it differed first.
        fired: normalisers that find something in these steps.
    """

    rows: tuple[StepRow, ...]
    word: str
    first: StepRow | None = None
    then: Step | None = None
    now: Step | None = None
    fired: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the test may pass."""
        return self.word in SAME

    @property
    def skipped(self) -> tuple[int, ...]:
        """Numbers of recorded steps that no run asked for."""
        return tuple(row.number for row in self.rows if row.word == "skipped")


def verify_steps(takes: Sequence[Take]) -> Verified:
    """One verdict per step.

    Args:
        takes: one or more live runs of one test; its recording is that of the first of them.

    Raises:
        ValueError: there is no take, or no recording.
    """
    if not takes or takes[0].recorded is None:
        raise ValueError("nothing to compare with")
    from veil.taping import fired

    recorded, rules = takes[0].recorded, _rules(takes)
    pairings = [_Pairing.of(recorded, take) for take in takes]
    rows: list[StepRow] = []
    stable = True
    first: tuple[Step | None, Step | None] = (None, None)
    for at, step in enumerate(recorded.steps):
        row, now = _row(at, step, takes, pairings, rules, stable)
        if row.word not in SAME and stable:
            stable, first = False, (step, now)
        rows.append(row)
    rows = _with_extras(rows, pairings, len(recorded.steps))
    differs = next((row for row in rows if row.word not in SAME), None)
    if differs is not None and differs.word == "unrecorded":
        first = (None, None)
    weakest = max((SAME.index(row.word) for row in rows if row.word in SAME), default=0)
    seen = (*recorded.steps, *(step for take in takes for step in take.fresh.steps))
    touched = {name for step in seen for name in fired(step, rules)}
    return Verified(
        tuple(rows),
        SAME[weakest] if differs is None else differs.word,
        differs,
        first[0],
        first[1],
        tuple(name for name in rules.registry.names if name in touched),
    )


def _rules(takes: Sequence[Take]) -> Rules:
    """The rules of the first run, with the known values of all."""
    known: dict[str, tuple[str, ...]] = {}
    for take in takes:
        for kind, values in take.rules.known_fresh.items():
            known[kind] = tuple(dict.fromkeys((*known.get(kind, ()), *values)))
    return replace(takes[0].rules, known_fresh=known)


@dataclass(frozen=True)
class _Pairing:
    """Which command of a run answers which recorded step: the next free one of the same key, as in a replay.

    Attributes:
        found: recorded place to fresh step. refused: recorded place to why veil would not run it.
        extras: commands that nothing was recorded for, each with the recorded place after which it came.
    """

    found: Mapping[int, Step]
    refused: Mapping[int, str]
    extras: tuple[tuple[int, str], ...]

    @classmethod
    def of(cls, recorded: Cassette, take: Take) -> _Pairing:
        from veil.taping import key_of

        def key(step: Step) -> Key:
            return key_of(step) if take.rekey is None else take.rekey(key_of(step))

        free: dict[Key, list[int]] = {}
        for at, step in enumerate(recorded.steps):
            free.setdefault(key(step), []).append(at)
        found: dict[int, Step] = {}
        extras: list[tuple[int, str]] = []
        last = -1
        for step in take.fresh.steps:
            places = free.get(key(step))
            if places:
                last = places.pop(0)
                found[last] = step
            else:
                extras.append((last, command_of(step)))
        refused: dict[int, str] = {}
        left = [at for at in range(len(recorded.steps)) if at not in found]
        for refusal in take.refused:
            place = next((n for n in left if _words(recorded.steps[n]) == refusal.command), None)
            if place is not None:  # else it did nothing now, and had nothing to leave behind when it was recorded
                left.remove(place)
                refused[place] = refusal.message
        return cls(found, refused, tuple(extras))


def _words(step: Step) -> str | tuple[str, ...]:
    return step.argv if step.text is None else step.text


def command_of(step: Step) -> str:
    """The command of a step, to be read and pasted; folders are tokens."""
    return shlex.join(step.argv) if step.text is None else step.text


def _row(
    at: int, step: Step, takes: Sequence[Take], pairings: Sequence[_Pairing], rules: Rules, stable: bool
) -> tuple[StepRow, Step | None]:
    """The verdict on one recorded step, and the run of it that shows the difference."""
    from veil.taping import compare, settle

    row = StepRow(at + 1, "skipped", command_of(step), detail="it was not asked for", runs=(0, len(takes)))
    there = [(take, pairing.found[at]) for take, pairing in zip(takes, pairings, strict=True) if at in pairing.found]
    if not there:
        why = next((pairing.refused[at] for pairing in pairings if at in pairing.refused), None)
        return (row if why is None else replace(row, word="refused", detail=why)), None
    runs = [fresh for _, fresh in there]
    verdict = settle(step, runs, rules)
    alike = [verdict.same] if len(runs) == 1 else [compare(step, run, rules).same for run in runs]
    row = replace(
        row,
        word=verdict.word,
        where=verdict.where,
        detail=verdict.detail,
        expected=verdict.expected,
        got=verdict.got,
        needed=verdict.needed,
        masked=verdict.masked,
        runs=(sum(alike), len(takes)),
    )
    if verdict.same:
        if len(runs) < len(takes) and stable:
            said = f"it was asked for in {len(runs)} of {len(takes)} runs"
            return replace(row, word="unstable", where="asked", detail=said), None
        return row, None
    take, now = there[alike.index(False)]
    row = replace(row, proposal=_proposal(step, runs, rules))
    if verdict.word == "unstable":  # told against the recording, not against the run before
        wrong = compare(step, now, rules)
        said = f"as recorded in {sum(alike)} of {len(takes)} runs; {wrong.detail}"
        row = replace(row, where=wrong.where, detail=said, expected=wrong.expected, got=wrong.got)
        return row if row.proposal else replace(row, suggestion=suggest([step, *runs], wrong.where, rules)), now
    if (found := excuse(take, step, now)) is not None:
        word, why = found
        row = replace(row, word=word, detail=f"{why}; {verdict.detail}")
    return row, now


def _proposal(step: Step, runs: Sequence[Step], rules: Rules) -> tuple[str, ...]:
    """Normalisers that the user left out and that would have made it the same."""
    if rules.names is None:
        return ()
    from veil.taping import propose

    needed = propose([step, *runs], replace(rules, names=None)).needed or ()
    return tuple(name for name in needed if name not in rules.names)


def _with_extras(rows: list[StepRow], pairings: Sequence[_Pairing], recorded: int) -> list[StepRow]:
    """The rows, and what was run besides, once however many runs did it."""
    seen: dict[tuple[int, str, int], int] = {}
    for pairing in pairings:
        times: dict[tuple[int, str], int] = {}
        for after, command in pairing.extras:
            time = times[after, command] = times.get((after, command), 0) + 1
            seen[after, command, time] = seen.get((after, command, time), 0) + 1
    found = list(rows)
    for number, ((after, command, _), count) in enumerate(sorted(seen.items()), recorded + 1):
        told = f"the recording has no such command; it was asked for in {count} of {len(pairings)} runs"
        row = StepRow(number, "unrecorded", command, detail=told, runs=(0, len(pairings)))
        found.insert(after + 1 + number - recorded - 1, row)
    return found


def rules_of(config: pytest.Config, words: Sequence[str] = ("standard",)) -> Rules:
    """How steps are compared: by other plugins' normalisers and those of veil, of which ``words`` choose.

    Args:
        words: ``standard`` (all of them) or ``none``; or names; or ``-name``, all the others.

    Raises ``pytest.UsageError`` for a name that is unknown or given twice, and for words that contradict each other.
    """
    import pytest

    from veil import VeilError
    from veil.taping import Normaliser, Rules, standard

    registry = standard()
    without = {word[1:] for word in words if word.startswith("-")}
    named = {word for word in words if not word.startswith("-")}
    if named - {"standard"} and (without or (len(named) > 1 and named & {"none", "standard"})):
        said = ", ".join(words)
        raise pytest.UsageError(f"--veil-normalise: expected standard, none, names or -names, got {said}")
    try:
        for more in config.hook.pytest_veil_normalisers(config=config):
            given = tuple(more or ())
            wrong = [entry for entry in given if not isinstance(entry, Normaliser)]
            if wrong:
                raise pytest.UsageError(f"pytest_veil_normalisers: {wrong[0]!r} is no veil.taping.Normaliser")
            registry = registry.adding(*given, first=True)
        registry.chosen(named - {"standard", "none"} | without)
    except VeilError as error:
        raise pytest.UsageError(f"--veil-normalise: {error}") from None
    if named == {"standard"} and not without:
        return Rules(registry=registry)
    some = named - {"standard", "none"}
    everything = not some and "none" not in named
    names = tuple(name for name in registry.names if (everything or name in some) and name not in without)
    return Rules(names=names, registry=registry)
