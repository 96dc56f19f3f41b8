"""Stores that nobody uses any more."""

from __future__ import annotations

import gc
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from veil.store.database import Database
from veil.store.disk import DiskStore

ROOT = Path(__file__).parents[2]


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


LAST = """
import os, sys
from pathlib import Path
from veil.store.disk import DiskStore
store = DiskStore(Path(sys.argv[1]))
with store._database.writing() as connection:
    connection.execute("SELECT 1").fetchall()
os.getpid = None
del store
"""


def test_one_that_goes_when_modules_are_emptied_already_goes_in_silence(tmp_path: Path) -> None:
    """The interpreter empties its modules one by one when it ends; a store in somebody's rubbish may outlive ``os``."""
    words = [sys.executable, "-c", LAST, str(tmp_path / "state")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr == ""
