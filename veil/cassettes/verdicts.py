"""Was a recorded step repeated? Pure comparison of two steps, in one word; and what would have made runs equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from veil.cassettes.families import standard
from veil.cassettes.normalise import Context, Registry
from veil.cassettes.pieces import Pieces, differing, endings_of, ids, normalised, paths_of, pieces_of, unkept
from veil.cassettes.steps import Step

Word = Literal[
    "exact",  #: the same bytes
    "normalised",  #: the same but for numbered tokens
    "unordered",  #: the same lines in another order
    "weak",  #: the same where it was looked at; something was masked
    "output-drift",
    "effect-drift",
    "exit-drift",
    # these are given by whoever runs the steps
    "missing-tool",
    "environment",
    "unstable",
    "refused",
    "skipped",
]
WORDS: tuple[str, ...] = get_args(Word)
#: Words that say "repeated", from the strongest to the weakest.
SAME: tuple[Word, ...] = ("exact", "normalised", "unordered", "weak")


@dataclass(frozen=True)
class StepVerdict:
    """One word about one step, and its reasons.

    Attributes:
        where: what differed first: ``ended``, ``exit``, ``signal``, ``status``, ``attempts``,
            ``left_running``, ``tree``, ``files/PATH``, ``stdout``, ``stderr``; None when nothing did.
        detail: one line for people.
        needed: the normalisers without which it would not have been the same. masked: those of them that erase.
        expected, got: what stood there, short.
    """

    word: Word
    where: str | None = None
    detail: str = ""
    needed: tuple[str, ...] = ()
    masked: tuple[str, ...] = ()
    expected: str = ""
    got: str = ""

    @property
    def same(self) -> bool:
        """Whether the step counts as repeated."""
        return self.word in SAME


@dataclass(frozen=True)
class Rules:
    """How to compare.

    Attributes:
        names: normalisers that may be used; None for all of the registry, ``()`` for none.
        known_recorded, known_fresh: known values of either run, as in ``Context``.
    """

    names: tuple[str, ...] | None = None
    registry: Registry = field(default_factory=standard)
    known_recorded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    known_fresh: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def compare(recorded: Step, fresh: Step, rules: Rules | None = None) -> StepVerdict:
    """The word for ``fresh`` when ``recorded`` is what it should be: how it ended, exit, tree, stdout, stderr."""
    rules = rules or Rules()
    found = _ended(recorded, fresh) or _fixed(recorded, fresh)
    if found is not None:
        return found
    one, two = pieces_of(recorded), pieces_of(fresh)
    dropped = _dropped(recorded, fresh)
    if one == two:
        return dropped or StepVerdict("exact")

    def after(chosen: Sequence[str]) -> tuple[Pieces, Pieces]:
        return (
            normalised(one, chosen, rules.known_recorded, rules.registry),
            normalised(two, chosen, rules.known_fresh, rules.registry),
        )

    def open_ends(chosen: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The pieces that really differ, and those of which only the order of lines does."""
        left, right = after(chosen)
        found = differing(left, right)
        order = tuple(label for label in found if _only_order(label, left, right))
        return tuple(label for label in found if label not in order), order

    names = tuple(entry.name for entry in rules.registry.chosen(rules.names))
    really, order = open_ends(names)
    if really:
        return _drift(really[0], *after(names), paths_of(recorded))
    needed = _needed(names, rules.registry, lambda chosen: open_ends(chosen) == ((), order))
    masked = tuple(name for name in needed if rules.registry.entries[name].erases)
    detail = _same_detail(needed, masked)
    if dropped is not None:
        return StepVerdict("weak", dropped.where, "; ".join((dropped.detail, *[detail] * bool(needed))), needed, masked)
    if order:
        said = f"{' and '.join(order)}: the same lines in another order" + (f"; {detail}" if needed else "")
        return StepVerdict("unordered", order[0], said, needed, masked)
    return StepVerdict("weak" if masked else "normalised", None, detail, needed, masked)


def fired(step: Step, rules: Rules | None = None) -> tuple[str, ...]:
    """The normalisers that find something in a step, needed or not; a report flags those that never do."""
    rules = rules or Rules()
    context = Context(known=rules.known_recorded)
    found: set[str] = set()
    for _, data in pieces_of(step):
        if b"\0" not in data:
            found.update(rules.registry.normalise(data, rules.names, context).fired)
    return tuple(name for name in rules.registry.names if name in found)


def settle(recorded: Step, runs: Sequence[Step], rules: Rules | None = None) -> StepVerdict:
    """The word after one or more runs: a difference that does not repeat itself is ``unstable``, not drift."""
    verdicts = [compare(recorded, run, rules) for run in runs]
    first = verdicts[0]
    if all(verdict.same for verdict in verdicts):
        return max(verdicts, key=lambda verdict: SAME.index(verdict.word))
    again = [compare(runs[0], run, rules) for run in runs[1:]]
    different = next((verdict for verdict in again if not verdict.same), None)
    if different is None and not first.same:
        return first
    alike = sum(verdict.same for verdict in verdicts)
    wrong = different or next(verdict for verdict in verdicts if not verdict.same)
    detail = f"as recorded in {alike} of {len(runs)} runs; {wrong.detail}"
    return StepVerdict("unstable", wrong.where, detail, expected=wrong.expected, got=wrong.got)


@dataclass(frozen=True)
class Trajectory:
    """Attributes: word: that of the first step that differs, else the weakest of all (``exact`` without steps).
    step: number (from 1) of the first step that differs, None when none does. counts: steps per word."""

    word: Word
    step: int | None
    counts: Mapping[str, int]


def trajectory(verdicts: Sequence[StepVerdict]) -> Trajectory:
    """One word for a whole cassette: whatever comes after the first difference may only follow from it."""
    counts: dict[str, int] = dict(Counter(verdict.word for verdict in verdicts))
    for number, verdict in enumerate(verdicts, 1):
        if not verdict.same:
            return Trajectory(verdict.word, number, counts)
    weakest = max((SAME.index(verdict.word) for verdict in verdicts), default=0)
    return Trajectory(SAME[weakest], None, counts)


@dataclass(frozen=True)
class Proposal:
    """What would have made runs equal.

    Attributes:
        agree: runs with exactly the bytes of the most frequent one, of ``runs``.
        needed: the normalisers that make all runs equal; None when all of them together do not.
        masked: those of them that erase.
    """

    agree: int
    runs: int
    needed: tuple[str, ...] | None
    masked: tuple[str, ...] = ()


def propose(
    runs: Sequence[Step], rules: Rules | None = None, known: Sequence[Mapping[str, tuple[str, ...]]] | None = None
) -> Proposal:
    """Which normalisers would have made these runs of one step equal (the fewest, erasing ones only if they must).

    ``known`` holds the known values of each run, as in ``Context``; without it ``rules.known_fresh`` goes for all.
    """
    rules = rules or Rules()
    contexts = [rules.known_fresh] * len(runs) if known is None else list(known)
    raw = [(endings_of(step), pieces_of(step), ids(step)) for step in runs]
    agree = max((sum(other == mine for other in raw) for mine in raw), default=0)
    if agree == len(runs):
        return Proposal(agree, len(runs), ())

    def equal(chosen: Sequence[str]) -> bool:
        first = None
        for (facts, pieces, fixed), values in zip(raw, contexts, strict=True):
            now = (facts, normalised(pieces, chosen, values, rules.registry), fixed)
            if first is not None and now != first:
                return False
            first = now
        return True

    names = tuple(entry.name for entry in rules.registry.chosen(rules.names))
    if not equal(names):
        return Proposal(agree, len(runs), None)
    needed = _needed(names, rules.registry, equal)
    return Proposal(agree, len(runs), needed, tuple(n for n in needed if rules.registry.entries[n].erases))


def _ended(recorded: Step, fresh: Step) -> StepVerdict | None:
    one, two = recorded.ending, fresh.ending
    rows: list[tuple[str, object, object]] = [
        ("ended", one.ended, two.ended),
        ("exit", one.exit, two.exit),
        ("status", recorded.status, fresh.status),
        ("attempts", [e.exit for e in recorded.earlier], [e.exit for e in fresh.earlier]),
    ]
    if one.signal is not None and two.signal is not None:
        rows.insert(1, ("signal", one.signal, two.signal))
    for where, expected, got in rows:
        if expected != got:
            return StepVerdict(
                "exit-drift", where, f"{where}: recorded {expected}, now {got}", expected=str(expected), got=str(got)
            )
    return None


def _fixed(recorded: Step, fresh: Step) -> StepVerdict | None:
    """Effects that no normaliser may touch."""
    left = (recorded.ending.left_running, fresh.ending.left_running)
    if left[0] != left[1]:
        return _effect("left_running", f"processes left behind: recorded {left[0]}, now {left[1]}", *map(str, left))
    if (recorded.changes is None) != (fresh.changes is None):
        said = ["not known" if step.changes is None else "known" for step in (recorded, fresh)]
        return _effect("tree", f"what changed: recorded {said[0]}, now {said[1]}", *said)
    one, two = dict(ids(recorded)), dict(ids(fresh))
    for path in sorted(one.keys() & two.keys()):
        if one[path] != two[path]:
            return _effect(f"files/{path}", f"{path}: recorded as {one[path]}, now {two[path]}", one[path], two[path])
    return None


def _dropped(recorded: Step, fresh: Step) -> StepVerdict | None:
    """The word for streams of which only the kept parts are known to be the same; None where there is no such."""
    found = unkept(recorded, fresh)
    if found is None:
        return None
    where, said, then, now = found
    if not (then and now):
        return StepVerdict("weak", where, f"{said}, and nobody looked at them")
    detail = f"{said}, and the digest of all of it is another"
    return StepVerdict("output-drift", where, detail, expected=then, got=now)


def _effect(where: str, detail: str, expected: str, got: str) -> StepVerdict:
    return StepVerdict("effect-drift", where, detail, expected=expected, got=got)


def _needed(names: tuple[str, ...], registry: Registry, good: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """The names without those that ``good`` can do without.

    Erasing ones are dropped first, and general ones (which come later in a registry) before specific ones.
    """
    left = list(names)
    order = {name: (not registry.entries[name].erases, -place) for place, name in enumerate(names)}
    for name in sorted(names, key=lambda n: order[n]):
        without = [other for other in left if other != name]
        if good(without):
            left = without
    return tuple(left)


def _only_order(label: str, one: Pieces, two: Pieces) -> bool:
    if not label.endswith(("stdout", "stderr")):
        return False
    return sorted(dict(one)[label].split(b"\n")) == sorted(dict(two).get(label, b"").split(b"\n"))


def _same_detail(needed: tuple[str, ...], masked: tuple[str, ...]) -> str:
    said = f"the same with {', '.join(needed)}"
    return f"{said}; masked by {', '.join(masked)}" if masked else said


def _drift(label: str, one: Pieces, two: Pieces, changed: Sequence[str]) -> StepVerdict:
    """The first line in which a piece differs. ``changed``: paths by the numbers that files have in labels."""
    mine, theirs = (dict(pieces).get(label, b"").splitlines(keepends=True) for pieces in (one, two))
    at = next((n for n, pair in enumerate(zip(mine, theirs, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(mine), len(theirs)) if at is None else at
    expected, got = (_short(lines[at]) if at < len(lines) else "(nothing)" for lines in (mine, theirs))
    where = label
    if label.startswith("file "):
        where = f"files/{changed[int(label.removeprefix('file '))]}"
    word: Word = "output-drift" if label.endswith(("stdout", "stderr")) else "effect-drift"
    detail = f"{where} line {at + 1}: recorded {expected}, now {got}"
    return StepVerdict(word, where, detail, expected=expected, got=got)


def _short(line: bytes) -> str:
    text = repr(line.decode("utf-8", "backslashreplace"))
    return text if len(text) <= 200 else text[:197] + "..."
