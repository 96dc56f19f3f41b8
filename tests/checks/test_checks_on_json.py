"""The deep subset of stdout as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.checks.json_subset import JsonSubset
from veil.model.errors import BadInput
from veil.model.outcome import Observation, Outcome, Stream
from veil.model.verdict import Judgement


def judge(expected: Any, out: bytes | str, dropped: int = 0) -> Judgement:
    data = out.encode() if isinstance(out, str) else out
    check = JsonSubset()
    stream = Stream(data, b"", len(data) + dropped, 1)
    return check.judge(check.parse(expected), Observation(Outcome("exited", 0, stdout=stream)))


@pytest.mark.parametrize(
    ("expected", "out"),
    [
        ({}, '{"a": 1}'),
        ({"a": {"b": 1}}, '{"a": {"b": 1, "c": 2}, "d": 3}'),
        ([{"a": 1}, 2], '[{"a": 1, "b": 2}, 2]'),
        (1, "1.0"),
        (1.0, "1"),
        (10**30 + 1, str(10**30 + 1)),
        (None, "null"),
        ("é", '"\\u00e9"'),
        ({"a": None}, '{"a": null}'),
        ([], " [] \n"),
        (True, "\ufefftrue"),
        ({"b": 2}, '{"a": 1, "a": 1, "b": 2}'),
        (0, "-0"),
    ],
)
def test_holds(expected: Any, out: str) -> None:
    assert judge(expected, out).status == "passed"


@pytest.mark.parametrize(
    ("expected", "out", "words"),
    [
        ({"a": 1}, '{"b": 1}', "at $.a: no such key"),
        ({"a": None}, "{}", "no such key"),
        ({"a": [1, {"x y": 2}]}, '{"a": [1, {"x y": 3}]}', 'at $.a[1]["x y"]: expected 2, got 3'),
        ([1], "[1, 2]", "array of 1, got an array of 2"),
        ([2, 1], "[1, 2]", "$[0]"),
        (1, "true", "expected 1, got true"),
        (True, "1", "expected true, got 1"),
        (1, '"1"', 'expected 1, got "1"'),
        (0, "false", "got false"),
        (0, "null", "got null"),
        (2**53, str(2**53 + 1), "expected"),
        (1, "9" * 5000, "expected 1, got"),
        (1.5, "1e400", "got inf"),
        ({}, "[]", "expected an object"),
        ([], "{}", "expected an array"),
        ({"a": 1}, '{"a": 1, "a": 1}', "more than once"),
        (1, "", "stdout is not JSON: it is empty"),
        (1, "{'a': 1}", "line 1 column 2 (character 1)"),
        (1, '{"a": 1}\n{"a": 2}', "Extra data at line 2 column 1"),
        (1, "[NaN]", "NaN is not a JSON value"),
        (1, "-Infinity", "-Infinity is not a JSON value"),
        (1, b'"\xff"', "byte 1 is not UTF-8"),
        (1, "[1,]", "not JSON"),
    ],
)
def test_does_not_hold(expected: Any, out: bytes | str, words: str) -> None:
    said = judge(expected, out)
    assert said.status == "failed"
    assert words in said.message


def test_a_truncated_stream_is_inconclusive() -> None:
    assert judge({}, "{}", dropped=3).status == "inconclusive"


def test_depth_is_no_crash() -> None:
    assert judge(1, "[" * 200_000 + "]" * 200_000).status == "inconclusive"


def test_an_expected_value_has_a_depth_limit() -> None:
    value: Any = 1
    for _ in range(100):
        value = [value]
    assert judge(value, json.dumps(value)).status == "passed"
    with pytest.raises(BadInput, match="100 deep"):
        JsonSubset().parse([value])


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@given(values)
def test_every_value_holds_itself(value: Any) -> None:
    assert judge(value, json.dumps(value)).status == "passed"
    assert judge(value, json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")).status == "passed"


@given(values, values)
def test_with_more_keys_it_still_holds(value: Any, more: Any) -> None:
    assert judge({"a": value}, json.dumps({"z": more, "a": value})).status == "passed"
    assert judge({"a": value, "z": more}, json.dumps({"a": value})).status == "failed"
