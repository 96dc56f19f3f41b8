"""Stores that nobody uses any more."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import pytest

from veil.store.database import Database
from veil.store.disk import DiskStore


@pytest.mark.filterwarnings("error")
def test_a_store_that_is_dropped_closes_its_file(tmp_path: Path) -> None:
    """From Python 3.13 on a connection that is merely dropped is warned of, and ``-W error`` makes that a failure."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        store = DiskStore(tmp_path)
        database = store._database
        with database.writing() as connection:
            connection.execute("SELECT 1").fetchall()
        del store, database
        gc.collect()
        with pytest.raises(Exception, match="closed"):
            connection.execute("SELECT 1")
    assert [str(each.message) for each in heard] == []


@pytest.mark.filterwarnings("error")
def test_one_whose_making_failed_is_dropped_in_silence() -> None:
    with pytest.raises(TypeError):
        Database(None)  # type: ignore[arg-type]
    gc.collect()
