"""Exit codes and time."""

from __future__ import annotations

from typing import Any

import pytest

from veil.checks.exit import Exit
from veil.checks.max_ms import MaxMs
from veil.model.outcome import Observation, Outcome


@pytest.mark.parametrize(
    ("outcome", "code", "words"),
    [
        (Outcome("exited", 1), 1, "exit is 1"),
        (Outcome("exited", 2), 2, "exit is 2"),
        (Outcome("exited", 44), 44, "exit is 44"),
        (Outcome("signaled", 137, signal="SIGKILL"), 137, "exit is 137 (ended by SIGKILL)"),
        (Outcome("exited", 127), 127, "exit is 127"),
        (
            Outcome("spawn_failed", 126, spawn_error="Permission denied"),
            126,
            "exit is 126 (could not start: Permission",
        ),
        (Outcome("timed_out", 124), 124, "exit is 124 (timed out)"),
    ],
)
def test_exp_01_a_failure_is_never_a_success(outcome: Outcome, code: int, words: str) -> None:
    seen = Observation(outcome)
    assert Exit().judge(code, seen).status == "passed"
    assert Exit().judge([3, code], seen).status == "passed"
    said = Exit().judge(0, seen)
    assert (said.status, said.got) == ("failed", code)
    assert said.message.startswith(words)
    assert said.message.endswith("expected 0")


def test_a_list_of_codes_means_any() -> None:
    said = Exit().judge([0, 5], Observation(Outcome("exited", 1)))
    assert said.status == "failed"
    assert said.message == "exit is 1, expected one of 0, 5"


@pytest.mark.parametrize(
    ("limit", "seconds", "status"),
    [
        (1000, 0.5, "passed"),
        (500, 0.5, "passed"),
        (499.9, 0.5, "failed"),
        (1, float("nan"), "failed"),
        (1e15, float("inf"), "failed"),
    ],
)
def test_time(limit: Any, seconds: float, status: str) -> None:
    check = MaxMs()
    assert check.judge(check.parse(limit), Observation(Outcome("exited", 0, seconds=seconds))).status == status


def test_the_last_attempt_is_judged() -> None:
    seen = Observation(Outcome("exited", 0, seconds=0.1), earlier=(Outcome("exited", 1, seconds=9.0),))
    assert Exit().judge(0, seen).status == "passed"
    assert MaxMs().judge(200, seen).status == "passed"
