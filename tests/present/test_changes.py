"""Rows of changed files: everything when few, summed up without losing one when many."""

from __future__ import annotations

import json
import os
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veil.model.errors import BadInput
from veil.model.outcome import Change, Happened
from veil.present.changes import shown

NAMES = st.text(alphabet="abc.\n\udcff \"'", min_size=1, max_size=3).filter(lambda n: n not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
WORDS: st.SearchStrategy[Happened] = st.sampled_from(["created", "modified", "deleted", "mode", "renamed"])
CHANGES = st.lists(st.tuples(PATHS, WORDS), max_size=80, unique=True).map(lambda rows: [Change(p, w) for p, w in rows])


def test_few_changes_are_rows_in_their_order() -> None:
    rows = shown([Change("b", "renamed", "symlink", "a"), Change("a/x", "created")])
    assert rows == [
        {"path": "b", "change": "renamed", "kind": "symlink", "old": "a"},
        {"path": "a/x", "change": "created", "kind": "file"},
    ]


def test_many_in_one_folder_leave_room_for_the_others() -> None:
    changes = [Change(f"node_modules/p{n}/index.js", "created") for n in range(5000)]
    changes += [Change("src/deep/a.py", "modified"), Change("package.json", "modified"), Change("old", "deleted")]
    rows = shown(changes)
    assert {"path": "node_modules/", "change": "created", "kind": "dir", "count": 5000} in rows
    assert {"path": "src/deep/a.py", "change": "modified", "kind": "file"} in rows
    assert {"path": "old", "change": "deleted", "kind": "file"} in rows
    assert len(rows) == 4


def test_files_of_the_working_directory_itself() -> None:
    rows = shown([Change(f"f{n}", "created") for n in range(201)])
    assert rows == [{"path": "./", "change": "created", "kind": "dir", "count": 201}]


@given(CHANGES, st.integers(min_value=5, max_value=40))
def test_never_more_rows_than_asked_and_every_change_is_counted(changes: list[Change], limit: int) -> None:
    rows = shown(changes, limit)
    assert len(rows) <= limit
    told: Counter[str] = Counter()
    for row in rows:
        told[row["change"]] += row.get("count", 1)
    assert told == Counter(change.change for change in changes)
    for row in rows:
        if "count" in row:
            prefix = "" if row["path"] == "./" else row["path"]
            below = [c for c in changes if c.change == row["change"] and c.path.startswith(prefix)]
            assert len(below) >= row["count"]


@given(PATHS)
def test_any_name_survives_json(path: str) -> None:
    text = json.dumps(shown([Change(path, "created")]))
    assert json.loads(text)[0]["path"] == path
    assert os.fsencode(json.loads(text)[0]["path"]) == os.fsencode(path)


def test_a_limit_that_cannot_tell_the_words_apart_is_refused() -> None:
    with pytest.raises(BadInput) as caught:
        shown([], 4)
    assert caught.value.facts["argument"] == "limit"
