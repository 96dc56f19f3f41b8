"""What holds for every check, whoever wrote it."""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import veil.checks
from veil.checks.base import Check
from veil.checks.changed import Changed
from veil.checks.exit import Exit
from veil.checks.file_absent import FileAbsent
from veil.checks.file_exists import FileExists
from veil.checks.json_subset import JsonSubset
from veil.checks.max_ms import MaxMs
from veil.checks.stderr_contains import StderrContains
from veil.checks.stderr_empty import StderrEmpty
from veil.checks.stderr_matches import StderrMatches
from veil.checks.stdout_contains import StdoutContains
from veil.checks.stdout_empty import StdoutEmpty
from veil.checks.stdout_matches import StdoutMatches
from veil.model.errors import BadInput
from veil.model.outcome import Change, Fact, Findings, Observation, Outcome, Stream

EVERY: tuple[Check, ...] = (
    Changed(),
    Exit(),
    FileAbsent(),
    FileExists(),
    JsonSubset(),
    MaxMs(),
    StderrContains(),
    StderrEmpty(),
    StderrMatches(),
    StdoutContains(),
    StdoutEmpty(),
    StdoutMatches(),
)

#: Values that each check takes.
GOOD: dict[str, list[Any]] = {
    "changed": [True, False, "a", ["src/**", "b.txt"], ("x", "x")],
    "exit": [0, 255, [0, 1], (2, 2)],
    "file_absent": ["core", ["a", "b/c"], ("a",)],
    "file_exists": ["dist/app.js", ["a", "b/c"], "/absolute"],
    "json": [None, True, 1, 1.5, "x", {"a": [1, {"b": None}]}, (1, 2), {}],
    "max_ms": [1, 0.5, 1e6],
    "stderr_contains": ["warning", ["a", "b"]],
    "stderr_empty": [True, False],
    "stderr_matches": ["^error", ["a+", r"\d"]],
    "stdout_contains": ["passed", ["a", "é\n"], "\udcff"],
    "stdout_empty": [True, False],
    "stdout_matches": ["^ok$", ["a+", r"\d"]],
}

#: Values that cannot mean anything.
BAD: dict[str, list[Any]] = {
    "changed": [None, 1, "", [], [True], ["/etc/passwd"], ["!x"], [3], {"a": 1}, ".", "/"],
    "exit": [None, True, False, -1, 256, "0", 0.0, [], [0, True], [[0]]],
    "file_absent": [None, "", [], 3, b"x", "a\0b", ["a", ""], "\ud800", True],
    "file_exists": [None, "", [], 3, b"x", "a\0b", ["a", ""], "\ud800", True],
    "json": [float("nan"), float("inf"), {1: 2}, b"x", {"a": {3}}, object(), 10**5000, [float("-inf")]],
    "max_ms": [None, True, 0, -1, float("nan"), float("inf"), "5", [5], 10**400],
    "stderr_contains": [None, "", [], [""], 3, b"x", "\ud800"],
    "stderr_empty": [None, 0, 1, "true", []],
    "stderr_matches": [None, "", [], "(", ["ok", "["], 3],
    "stdout_contains": [None, "", [], [""], 3, b"x", "\ud800"],
    "stdout_empty": [None, 0, 1, "true", []],
    "stdout_matches": [None, "", [], "(", ["ok", "["], 3, "((a{1000}){1000}){1000}"],
}

ids = pytest.mark.parametrize("check", EVERY, ids=lambda check: check.name)


def test_every_check_of_the_room_is_here() -> None:
    found = set()
    for module in pkgutil.iter_modules(veil.checks.__path__):
        room = importlib.import_module(f"veil.checks.{module.name}")
        for _, kind in inspect.getmembers(room, inspect.isclass):
            if kind.__module__ == room.__name__ and isinstance(getattr(kind, "name", None), str):
                found.add(kind)
    assert found == {type(check) for check in EVERY}
    assert {check.name for check in EVERY} == set(GOOD) == set(BAD)


@ids
def test_parse_gives_json_and_is_settled(check: Check) -> None:
    for value in GOOD[check.name]:
        parsed = check.parse(value)
        assert check.parse(parsed) == parsed
        assert json.loads(json.dumps(parsed)) == parsed


@ids
def test_bad_values_are_refused_by_name(check: Check) -> None:
    for value in BAD[check.name]:
        with pytest.raises(BadInput) as caught:
            check.parse(value)
        assert caught.value.facts["argument"] == f"expect.{check.name}"
        json.dumps(caught.value.to_dict())


@ids
def test_paths_are_texts_of_the_expected_value(check: Check) -> None:
    for value in GOOD[check.name]:
        paths = check.paths(check.parse(value))
        assert isinstance(paths, tuple)
        assert all(isinstance(path, str) and path for path in paths)


blobs = st.binary(max_size=60) | st.sampled_from([b"passed\n", b"{}", b'{"a": 1}', b"[" * 5000, b"\xff\0", b"NaN"])
streams = st.builds(
    lambda head, tail, dropped, lines: Stream(head, tail, len(head) + len(tail) + dropped, lines),
    blobs,
    blobs,
    st.integers(0, 5),
    st.integers(0, 9),
)
outcomes = st.builds(
    Outcome,
    ended=st.sampled_from(["exited", "signaled", "timed_out", "spawn_failed"]),
    exit=st.integers(0, 255),
    seconds=st.floats(),
    stdout=streams,
    stderr=streams,
    signal=st.none() | st.just("SIGKILL"),
    spawn_error=st.none() | st.text(max_size=5),
)
names = st.text(min_size=1, max_size=8) | st.sampled_from(["a", "b/c", "src/x", "dist/app.js", "\udcff"])
findings = st.builds(
    Findings,
    changes=st.none() | st.lists(st.builds(Change, names, st.just("renamed"), old=st.none() | names)).map(tuple),
    source=st.sampled_from([None, "git", "scan"]),
    files=st.dictionaries(names, st.builds(Fact, st.sampled_from([None, "file", "symlink"]))),
    notes=st.dictionaries(
        st.sampled_from(["shared", "effects_unavailable", "ignored_changed", "ignored_unseen", "effects_gaps"]),
        st.text() | st.sampled_from([[], True, {}, ["a: gone", 3], {"total": "x", "first": ["a", 1]}, {"first": None}]),
    ),
)


@settings(max_examples=60, deadline=None)
@given(seen=st.builds(Observation, outcome=outcomes, findings=findings))
def test_judging_never_raises_and_fits_a_line(seen: Observation) -> None:
    for check in EVERY:
        for value in GOOD[check.name]:
            expected = check.parse(value)
            said = check.judge(expected, seen)
            assert said.check == check.name
            assert said.status in ("passed", "failed", "inconclusive")
            assert said.expected == expected
            assert said.message
            assert len(said.message) < 2000
            assert not any(sign in said.message for sign in "\n\r\x1b\0")
            assert len(json.dumps(said.to_dict())) < 20_000
