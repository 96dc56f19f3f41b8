"""What it costs to keep a record: ``DiskStore.add`` against a bare ``sqlite3`` insert of the same bytes and against
starting ``true``. Medians of interleaved calls, in microseconds, and their ratios.

    python benchmarks/store.py [rounds]
"""

from __future__ import annotations

import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from veil.model.outcome import Observation, Outcome, Stream, Usage
from veil.model.record import Record
from veil.store.disk import DiskStore
from veil.store.rows import row_of


def small_record() -> Record:
    out = b"3 passed in 0.12s\n"
    outcome = Outcome("exited", 0, 0.0123, Stream(out, b"", len(out), 1), usage=Usage(0.004, 0.002, 9_000_000))
    command = ("bash", "-c", "pytest -q")
    return Record("", time.time(), "pytest -q", command, "/srv/project", Observation(outcome), text="pytest -q")


def bare_insert(folder: Path, record: Record) -> Callable[[], object]:
    """One transaction with the very same bytes, nothing around it."""
    connection = sqlite3.connect(folder / "bare.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("CREATE TABLE bare (n INTEGER PRIMARY KEY AUTOINCREMENT, data TEXT, packed BLOB)")
    (_, _, text, packed), _ = row_of(record)
    return lambda: connection.execute("INSERT INTO bare (data, packed) VALUES (?, ?)", (text, packed))


def main(rounds: int) -> None:
    record = small_record()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = DiskStore(folder / "store")
        roomy = DiskStore(folder / "roomy", max_records=10**9)
        calls: dict[str, Callable[[], object]] = {
            "bare insert": bare_insert(folder, record),
            "DiskStore.add": lambda: store.add(record),
            "DiskStore.add, never full": lambda: roomy.add(record),
            "reading the newest": lambda: store.get(),
        }
        spent: dict[str, list[float]] = {what: [] for what in calls}
        spawned: list[float] = []
        for turn in range(rounds):
            for what, call in calls.items():
                start = time.perf_counter()
                call()
                spent[what].append(time.perf_counter() - start)
            if turn % 50 == 0:
                start = time.perf_counter()
                subprocess.run(["true"], check=True)
                spawned.append(time.perf_counter() - start)
        store.close()
        roomy.close()
        start = time.perf_counter()
        fresh = DiskStore(folder / "store")
        fresh.add(record)
        opened = time.perf_counter() - start
        start = time.perf_counter()
        fresh.close()
        closed = time.perf_counter() - start
    bare, process = statistics.median(spent["bare insert"]), statistics.median(spawned)
    for what, times in spent.items():
        middle = statistics.median(times)
        mean = statistics.fmean(times)
        print(
            f"{what:26} median {middle * 1e6:8.1f} us   mean {mean * 1e6:8.1f} us   "
            f"{middle / bare:5.2f} x bare insert   {middle / process:7.4f} x subprocess.run(['true'])"
        )
    print(f"{'subprocess.run true':26} median {process * 1e6:8.1f} us")
    print(f"first add of a process, opening included: {opened * 1e6:.0f} us; close: {closed * 1e6:.0f} us")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3000)
