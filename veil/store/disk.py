"""Records in one SQLite file per project, shared by every process that works on it."""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from veil.model.errors import NotFound, StoreFailed
from veil.model.record import Record
from veil.store import ids
from veil.store.creation import Busy
from veil.store.database import Database
from veil.store.limits import MAX_BYTES, MAX_RECORDS, TTL_SECONDS, Bounds, Seat, superfluous
from veil.store.live import Control, LiveLog
from veil.store.memory import MemoryStore, unknown
from veil.store.rows import record_of, row_of

if TYPE_CHECKING:
    import sqlite3

_INSERT = "INSERT INTO records (born, touched, running, size, data, packed) VALUES (?, ?, ?, ?, ?, ?)"
_REVIVE = "INSERT INTO records (born, touched, running, size, data, packed, n) VALUES (?, ?, ?, ?, ?, ?, ?)"
_NEWEST = "SELECT max(n) FROM records"
_REPLACE = (
    "UPDATE records SET touched = ?, running = ?, size = ?, data = ?, packed = ?, "
    "seat = (SELECT max(n) FROM records) WHERE n = ?"
)
_PUT_STREAM = "INSERT INTO streams (n, name, data) VALUES (?, ?, ?)"
_SEATS = "SELECT n, coalesce(seat, n), touched, running, size FROM records"
_FORGET = (
    "DELETE FROM records WHERE n = ?",
    "DELETE FROM streams WHERE n = ?",
    "DELETE FROM live_streams WHERE n = ?",
    "DELETE FROM live_chunks WHERE n = ?",
    "DELETE FROM running WHERE n = ?",
)
#: What a reader may see: not expired, and among the newest or still running. So limits hold for readers at every
#: moment, although the rows are only deleted now and then. Parameters: the horizon, the number of records.
_VISIBLE = f"touched >= ? AND (running OR coalesce(seat, n) > ({_NEWEST}) - ?)"
_GET = f"SELECT n, data, packed, born FROM records WHERE n = ? AND {_VISIBLE}"  # noqa: S608 (constant text)
_GET_NEWEST = f"SELECT n, data, packed, born FROM records WHERE {_VISIBLE} ORDER BY n DESC LIMIT 1"  # noqa: S608
_IDS = f"SELECT born, n FROM records WHERE {_VISIBLE} ORDER BY n DESC LIMIT ?"  # noqa: S608


class DiskStore:
    """Implements ``veil.store.base.Store`` below one directory. Making one touches nothing; reading creates nothing.
    Safe for threads, processes and forks.

    How exact the limits are: no reader is ever shown an expired record or one beyond ``max_records``. On the disk, up
    to a sixteenth more records, and 1/64 of ``max_bytes`` for every other process that writes at the moment, may be
    there between two looks; ``gc()`` makes it exact. Bytes are those of metadata and streams. What is stored of live
    output has a limit of its own (``LiveLog``). Never evicted: the record just written, and runs still going on that
    were touched within ``ttl_seconds``.

    Args:
        directory: created with mode 0700 at the first record; files in it have 0600.
        max_records, max_bytes, ttl_seconds: see ``veil.store.limits.Bounds``.
        busy_seconds: how long a lock of another process is waited for before a record goes to memory instead.
        memory: where records go that the disk refuses; give the one that also takes the runs without a trace on disk,
            so that every ``memN`` of this process resolves here.
    """

    def __init__(
        self,
        directory: Path,
        *,
        max_records: int = MAX_RECORDS,
        max_bytes: int = MAX_BYTES,
        ttl_seconds: float = TTL_SECONDS,
        busy_seconds: float = 5.0,
        memory: MemoryStore | None = None,
    ) -> None:
        self._bounds = Bounds(max_records, max_bytes, ttl_seconds)
        self._database = Database(directory, busy_seconds)
        self._memory = memory or MemoryStore(max_records=max_records, max_bytes=max_bytes, ttl_seconds=ttl_seconds)
        # the sum of bytes as far as this process knows, and how much of it it wrote since it last looked: look at once
        self._sum = self._unlooked = self._bounds.bytes
        # until when a store that was locked for too long is left alone, so that not every run waits for it, and why
        self._rest: tuple[float, StoreFailed] | None = None
        # only ever touched by single operations: a lock of its own could be held by another thread when this forks
        self._reserved: dict[int, str] = {}
        self.live = LiveLog(self._database)
        self.control = Control(self._database)

    def add(self, record: Record) -> Record:
        try:
            n = self._insert(record)
        except StoreFailed as refusal:
            return self._memory.add(replace(record, why_memory=str(refusal)))
        return replace(record, id=f"cmd{n}", stored="disk", why_memory=None)

    def reserve(self, record: Record) -> Record:
        kept = self.add(record)
        kind, n = ids.parse(kept.id)
        if kind == "cmd":
            self._reserved[n] = self._database.stamp
        return kept

    def update(self, record: Record) -> Record:
        """Never raises because the disk refuses: then the record stands in memory under the id that it has."""
        kind, n = ids.parse(record.id)
        if kind == "mem" or self._memory.find(record.id) is not None:
            return self._memory.update(record)
        try:
            self._replace(n, record)
        except StoreFailed as refusal:
            return self._memory.update(replace(record, why_memory=str(refusal)))
        if record.status != "running":
            self._reserved.pop(n, None)
        return replace(record, stored="disk", why_memory=None)

    def get(self, id: str | None = None) -> Record:
        """See ``veil.store.base.Store.get``. Raises ``StoreFailed`` when the file cannot be read."""
        kind, n = ("", 0) if id is None else ids.parse(id)
        in_memory = None if id is None else self._memory.find(id)
        if in_memory is not None:
            return in_memory
        if kind != "mem":
            found = self._newest() if id is None else self._fetch(n)
            if found is not None:
                return found
        raise NotFound(unknown(id), self._known())

    def ids(self, limit: int = 20) -> list[str]:
        """Newest first, those in memory among them. Raises ``StoreFailed`` when the file cannot be read and memory has
        nothing to show."""
        limit = max(0, limit)
        try:
            with self._database.reading() as connection:
                rows = [] if connection is None else connection.execute(_IDS, (*self._window(), limit)).fetchall()
        except StoreFailed:
            in_memory = self._memory.ids(limit)
            if not in_memory:
                raise
            return in_memory
        return self._merged(((born, f"cmd{n}") for born, n in rows), limit)

    def gc(self) -> dict[str, int]:
        """Bring everything down to its limits and give the room back to the file system.

        Returns: ``records_removed``, ``records_left``, ``live_removed`` (live logs without a running record), and the
        size on disk as ``bytes_freed`` and ``bytes_left``.

        Raises:
            StoreFailed: when the file cannot be written.
        """
        self._memory.gc()
        before = self._size_on_disk()
        with self._database.reading() as connection:
            if connection is None:
                return dict.fromkeys(
                    ("records_removed", "records_left", "live_removed", "bytes_freed", "bytes_left"), 0
                )
        with self._database.writing() as connection:
            newest = connection.execute(_NEWEST).fetchone()[0] or 0
            removed = self._trim(connection, newest)
            left = connection.execute("SELECT count(*) FROM records").fetchone()[0]
            live = self.live.sweep(connection)
        with self._database.plain() as connection:
            # not `execute`: it takes one step only of a statement without columns, and each step frees one page
            connection.executescript("PRAGMA incremental_vacuum")
            # may be refused by a reader at this moment; then the log is written back later
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        after = self._size_on_disk()
        return {
            "records_removed": removed,
            "records_left": left,
            "live_removed": live,
            "bytes_freed": max(0, before - after),
            "bytes_left": after,
        }

    def close(self) -> None:
        self._database.close()

    def _insert(self, record: Record) -> int:
        if self._rest is not None and time.monotonic() < self._rest[0]:
            raise self._rest[1]
        row, large = row_of(record)
        now = time.time()
        values = (now, now, *row)
        try:
            if large:
                with self._database.writing() as connection:
                    n = connection.execute(_INSERT, values).lastrowid or 0
                    connection.executemany(_PUT_STREAM, [(n, name, blob) for name, blob in large])
            else:
                n = self._database.insert(_INSERT, values)
        except Busy as busy:
            self._rest = (time.monotonic() + 2 * self._database.patience, busy)
            raise
        self._written(n, row[1])
        return n

    def _replace(self, n: int, record: Record) -> None:
        row, large = row_of(record)
        now = time.time()
        with self._database.writing() as connection:
            if self._reserved.get(n, self._database.stamp) != self._database.stamp:
                # the number may by now be somebody else's in the new file
                raise StoreFailed(f"{self._database.path} was replaced while the command ran", path=self._database.path)
            connection.execute("DELETE FROM streams WHERE n = ?", (n,))
            if connection.execute(_REPLACE, (now, *row, n)).rowcount == 0:
                connection.execute(_REVIVE, (now, now, *row, n))
            connection.executemany(_PUT_STREAM, [(n, name, blob) for name, blob in large])
        self._written(n, row[1])

    def _written(self, n: int, size: int) -> None:
        """Count what was written; now and then look whether the limits still hold."""
        self._unlooked += size
        self._sum += size
        bounds = self._bounds
        if n % bounds.stride and self._sum <= bounds.bytes and self._unlooked <= bounds.byte_slack:
            return
        try:
            with self._database.writing() as connection:
                self._trim(connection, n)
        except StoreFailed:
            # The record itself is safe. What was not cleared away now is counted still and tried at the next one.
            return

    def _trim(self, connection: sqlite3.Connection, newest: int) -> int:
        """Delete what is too much. Inside a write transaction."""
        bounds, now = self._bounds, time.time()
        count, size, oldest = connection.execute("SELECT count(*), sum(size), min(touched) FROM records").fetchone()
        self._sum, self._unlooked = size or 0, 0
        if not count or (count <= bounds.records and size <= bounds.bytes and oldest >= now - bounds.ttl):
            return 0
        seats = [Seat(*row) for row in connection.execute(_SEATS)]
        doomed = set(superfluous(seats, bounds, now, newest))
        for statement in _FORGET:
            connection.executemany(statement, [(n,) for n in doomed])
        self._sum = sum(seat.size for seat in seats if seat.number not in doomed)
        return len(doomed)

    def _window(self) -> tuple[float, int]:
        return time.time() - self._bounds.ttl, self._bounds.records

    def _fetch(self, n: int) -> Record | None:
        with self._database.reading() as connection:
            if connection is None:
                return None
            row = connection.execute(_GET, (n, *self._window())).fetchone()
            return None if row is None else self._record(connection, row)

    def _newest(self) -> Record | None:
        """The newest of disk and memory. When the disk cannot be read, what memory has is all there is to show."""
        born, newest = next(self._memory.births(), (0.0, None))
        in_memory = None if newest is None else self._memory.find(newest)
        try:
            with self._database.reading() as connection:
                row = None if connection is None else connection.execute(_GET_NEWEST, self._window()).fetchone()
                if row is None or (in_memory is not None and born > row[3]):
                    return in_memory
                assert connection is not None
                return self._record(connection, row)
        except StoreFailed:
            if in_memory is None:
                raise
            return in_memory

    def _record(self, connection: sqlite3.Connection, row: tuple[int, str, bytes | None, float]) -> Record:
        n, text, packed, _ = row
        try:
            return record_of(n, text, packed, connection.execute("SELECT name, data FROM streams WHERE n = ?", (n,)))
        except (KeyError, TypeError, ValueError) as error:
            path = self._database.path
            raise StoreFailed(f"{path}: record cmd{n} cannot be understood ({error!r})", path=path) from error

    def _merged(self, on_disk: Iterable[tuple[float, str]], limit: int) -> list[str]:
        both = heapq.merge(on_disk, self._memory.births(), key=lambda birth: birth[0], reverse=True)
        names = dict.fromkeys(name for _, name in both)  # a record that had to move to memory is in both
        return list(itertools.islice(names, limit))

    def _known(self) -> list[str]:
        try:
            return self.ids()
        except StoreFailed:
            return self._memory.ids()

    def _size_on_disk(self) -> int:
        total = 0
        for suffix in ("", "-wal"):
            try:
                total += Path(self._database.path + suffix).stat().st_size
            except FileNotFoundError:
                continue
            except OSError as error:
                raise StoreFailed(f"{self._database.path}: {error.strerror}", path=self._database.path) from error
        return total
