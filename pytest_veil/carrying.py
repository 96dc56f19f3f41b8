"""What was said of a test, in its report: JSON that crosses between processes, and plain values for JUnit."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from pytest_veil.outcomes import OUTCOMES, ItemOutcome

#: Attribute of a report of a teardown: JSON in ASCII, because only plain values cross between processes.
CARRIED = "veil_outcomes"


def attach(item: pytest.Item, report: pytest.TestReport) -> None:
    """Give a report what was said of its test, and of the shared recordings that ended with it."""
    shared = item.config.stash.get(OUTCOMES, [])
    own = item.stash.get(OUTCOMES, [])
    item.config.stash[OUTCOMES], item.stash[OUTCOMES] = [], []
    if own or shared:
        setattr(report, CARRIED, json.dumps([outcome.to_data() for outcome in (*own, *shared)]))
    for outcome in own:
        report.user_properties += _properties(outcome)


def _properties(outcome: ItemOutcome) -> Iterator[tuple[str, object]]:
    """For JUnit: plain values."""
    yield "veil_mode", outcome.mode
    yield "veil_verdict", outcome.verdict
    yield "veil_steps", len(outcome.steps)
    if outcome.cassette is not None:
        yield "veil_cassette", outcome.cassette.encode("utf-8", "backslashreplace").decode("utf-8")
    if outcome.first_divergence is not None:
        yield "veil_first_divergence", outcome.first_divergence
