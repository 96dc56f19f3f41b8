"""What is shown of the eval mode on a terminal: one line at the top, a summary at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_veil.outcomes import PRUNING, SAME, ItemOutcome
from pytest_veil.report import UNJUDGED, Gathered, step_counts

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

#: The most lines of one kind; with -v all of them.
SHOWN = 20
#: Verdicts and words that need no line of their own.
_FINE = (*SAME, "replayed", "recorded", "refreshed", "kept", "live", "none")


class Terminal:
    """The plugin; on the controller only, and never asked without a terminal."""

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered

    def pytest_report_header(self, config: pytest.Config) -> str:
        active = self._gathered.active
        runs = f" x{active.runs}" if active.runs > 1 else ""
        where = active.cassettes or "beside the tests"
        return f"veil: {active.mode}{runs}, profile {active.profile} {active.profile_version}, cassettes {where}"

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter, config: pytest.Config) -> None:
        lines = list(summary(self._gathered, config, everything=config.getoption("verbose", 0) > 0))
        if lines:
            terminalreporter.write_sep("=", f"veil: {self._gathered.active.mode}", cyan=True)
            for line in lines:
                shown = line.encode("utf-8", "backslashreplace").decode("utf-8")
                terminalreporter.write_line("".join(c if c.isprintable() else ascii(c)[1:-1] for c in shown))


def summary(gathered: Gathered, config: pytest.Config, *, everything: bool) -> Iterator[str]:
    """The lines; none when no test used veil and nothing is wrong."""
    items = gathered.items
    used = [item for item in (*items, *gathered.shared) if item.verdict not in ("none", *UNJUDGED)]
    if used:
        verdicts = Counter(item.verdict for item in used)
        yield f"{_count(len(used), 'recording')}: {_counts(dict(verdicts.most_common()))}"
        if steps := step_counts(used):
            yield f"{_count(sum(steps.values()), 'step')}: {_counts(steps)}"
    limit = None if everything else SHOWN
    yield from _listed("first differences:", [line for item in used for line in _difference(item)], limit)
    yield from _listed("masked:", [line for item in used for line in _masked(item)], limit)
    unused = [f"{item.nodeid}: {', '.join(map(str, item.unused))}" for item in used if item.unused]
    yield from _listed("unused steps:", unused, limit)
    lost = [f"{item.nodeid}: {item.why}" for item in items if item.verdict in UNJUDGED]
    yield from _listed("no verdict:", lost, limit)
    idle = [entry["name"] for entry in gathered.normalisers() if not entry["fired"]]
    if idle and used and gathered.active.chosen:
        yield f"normalisers that never fired: {', '.join(idle)}"
    if (pruning := config.stash.get(PRUNING, None)) is not None:
        if not pruning.judged:
            yield f"stale recordings: not judged ({pruning.why})"
        else:
            yield from _listed(f"stale recordings{', removed' * pruning.removed}:", list(pruning.stale), limit)
    yield from _listed("troubles:", gathered.troubles, None)
    if gathered.active.report is not None and not gathered.troubles:
        yield f"report: {gathered.active.report}"


def _difference(item: ItemOutcome) -> Iterator[str]:
    if item.verdict in _FINE:
        return
    row = next((step for step in item.steps if step.number == item.first_divergence), None)
    if row is not None:
        many = row.runs is not None and row.runs[1] > 1 and row.word != "unstable"  # which says so itself
        runs = f" ({row.runs[0]} of {row.runs[1]} runs as recorded)" if many and row.runs else ""
        yield f"{item.nodeid} step {row.number}: {row.word}: {row.detail}{runs}"
    else:
        yield f"{item.nodeid}: {item.verdict}{f': {item.why}' if item.why else ''}"


def _masked(item: ItemOutcome) -> Iterator[str]:
    weak = [step for step in item.steps if step.word == "weak" or (step.masked and step.word in SAME)]
    for step in weak:
        yield f"{item.nodeid} step {step.number}: {', '.join(step.masked) or step.detail}"


def _listed(title: str, lines: list[str], limit: int | None) -> Iterator[str]:
    if lines:
        yield title
        for line in lines[:limit]:
            yield f"  {line}"
        if limit is not None and len(lines) > limit:
            yield f"  ({len(lines) - limit} more; -v shows them)"


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{number} {word}" for word, number in counts.items())


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + "s" * (number != 1)
