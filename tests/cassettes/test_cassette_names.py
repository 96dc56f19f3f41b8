"""No two tests ever share a file, not even where the file system ignores case."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veil.cassettes.names import SUFFIX, file_name, file_stem

IDS = st.one_of(
    st.text(max_size=300),
    st.text("aAbB/[]-._ ", max_size=8),
    st.text("ab-0123456789abcdef", max_size=20),
    st.sampled_from(
        ["x-0123456789ab", "con", "..", ".", "", "-", "a" * 101, "é", "e\u0301", "ß", "ss", "\udcff", "a\n"]
    ),
)


@settings(deadline=None)
@given(IDS, IDS)
def test_different_texts_never_meet(one: str, two: str) -> None:
    first, second = file_name(one), file_name(two)
    assert (first.casefold() == second.casefold()) == (one == two)


@settings(deadline=None)
@given(IDS)
def test_a_name_is_one_safe_short_component(text: str) -> None:
    name = file_name(text)
    assert name.endswith(SUFFIX)
    assert re.fullmatch(r"[a-z0-9_][a-z0-9_.-]*", name)
    assert len(name) <= 130
    assert ".." not in name
    assert name == file_name(text)


@settings(deadline=None)
@given(IDS)
def test_an_altered_name_used_as_a_text_is_altered_again(text: str) -> None:
    if file_stem(text) != text:
        assert file_stem(file_stem(text)) != file_stem(text)


@pytest.mark.parametrize("text", ["test_add", "a", "test_git.test_log", "x-1"])
def test_plain_names_stay(text: str) -> None:
    assert file_stem(text) == text


def test_parameters_of_one_test_get_files_of_their_own(tmp_path: Path) -> None:
    ids = ["test_x[a/b]", "test_x[a-b]", "test_x[A/b]", "test_x[a b]", "test_x", "test_x[" + "l" * 500 + "]", "test_X"]
    for text in ids:
        (tmp_path / file_name(text)).write_text(text)
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == sorted(ids)
    assert file_stem("test_x[a/b]").startswith("test_x-a-b-")
