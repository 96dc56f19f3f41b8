"""From words of the command line to values: every text means one thing, or is refused with what it should have been."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil import BadInput
from veil.cli.expecting import expectations, number


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["exit=0"], {"exit": 0}),
        (["exit=0,1"], {"exit": [0, 1]}),
        (["exit=0", "exit=3"], {"exit": [0, 3]}),
        (["exit=zero"], {"exit": "zero"}),  # whoever judges it names it
        (["stdout_contains=a=b"], {"stdout_contains": "a=b"}),
        (["stdout_contains=a,b"], {"stdout_contains": "a,b"}),
        (["stdout_contains=a", "stdout_contains=b"], {"stdout_contains": ["a", "b"]}),
        (["stdout_contains="], {"stdout_contains": ""}),
        (["stdout_contains=0"], {"stdout_contains": "0"}),
        (["stdout_matches=^\\d+$"], {"stdout_matches": "^\\d+$"}),
        (["changed=true"], {"changed": True}),
        (["changed=false"], {"changed": False}),
        (["changed"], {"changed": True}),
        (["changed=dist/**"], {"changed": "dist/**"}),
        (["changed=a,b"], {"changed": ["a", "b"]}),
        (["changed=a,b", "changed=c"], {"changed": ["a", "b", "c"]}),
        (["stderr_empty"], {"stderr_empty": True}),
        (["stderr_empty=no"], {"stderr_empty": False}),
        (["max_ms=1500"], {"max_ms": 1500}),
        (["max_ms=0.5"], {"max_ms": 0.5}),
        (['json={"a": [1]}'], {"json": {"a": [1]}}),
        (["json=null"], {"json": None}),
        (["file_exists=a", "file_absent=b"], {"file_exists": "a", "file_absent": "b"}),
        ([], {}),
    ],
)
def test_words(words: list[str], expected: dict[str, Any]) -> None:
    found = expectations(words)
    assert found == expected
    assert [type(value) for value in found.values()] == [type(value) for value in expected.values()]


@pytest.mark.parametrize(
    ("words", "argument"),
    [
        (["exit"], "expect"),
        (["stdout_contains"], "expect"),
        ([""], "expect"),
        (["json={"], "expect.json"),
        (["json=1", "json=2"], "expect.json"),
        (["max_ms=1", "max_ms=2"], "expect.max_ms"),
        (["changed=true", "changed=a"], "expect.changed"),
        (["changed=a", "changed=false"], "expect.changed"),
        (["stderr_empty", "stderr_empty=false"], "expect.stderr_empty"),
    ],
)
def test_words_that_mean_nothing(words: list[str], argument: str) -> None:
    with pytest.raises(BadInput) as caught:
        expectations(words)
    assert caught.value.facts["argument"] == argument


@given(st.integers(-(10**6), 10**6) | st.floats(allow_nan=False))
def test_a_number_comes_back(value: float) -> None:
    found = number(repr(value))
    assert found == value
    assert type(found) is type(value)


@given(st.text())
def test_any_text_is_a_number_or_itself(text: str) -> None:
    found = number(text)
    if isinstance(found, int):
        assert found == int(text)
    else:
        assert found is text or math.isnan(found) or found == float(text)  # type: ignore[arg-type]


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_values)
def test_json_comes_back(value: Any) -> None:
    assert expectations([f"json={json.dumps(value)}"]) == {"json": value}


@given(st.lists(st.text(), min_size=1, max_size=4))
def test_texts_come_back_as_they_are(texts: list[str]) -> None:
    found = expectations([f"stdout_contains={text}" for text in texts])["stdout_contains"]
    assert found == (texts[0] if len(texts) == 1 else texts)
