"""What runs in the background tell other processes: output by byte cursor, and who owns the run.

The process that holds the child appends; any process reads. Both tables are in the project's database, so an id means
the same thing while a command runs and after it has ended.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from veil.model.errors import BadInput, NotFound
from veil.store import ids
from veil.store.database import Database

if TYPE_CHECKING:
    import sqlite3

#: Bytes kept of each stream of a running command unless told otherwise.
LIVE_BYTES = 10_000_000
#: Bytes that one reading hands out at most unless told otherwise.
READ_BYTES = 1_000_000
#: Output is dropped in pieces of this size; small writes are gathered into pieces of the lesser one.
_PIECE = 32_768
_GATHERED = 4096

_STATE = "SELECT total, first, last, newlines, open_line, ended FROM live_streams WHERE n = ? AND stream = ?"
_PUT_STATE = "INSERT OR REPLACE INTO live_streams VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_PUT_CHUNK = "INSERT OR REPLACE INTO live_chunks VALUES (?, ?, ?, ?)"
_CHUNK = "SELECT data FROM live_chunks WHERE n = ? AND stream = ? AND start = ?"
_CHUNKS = """SELECT start, data FROM live_chunks WHERE n = ?1 AND stream = ?2 AND start >= coalesce(
    (SELECT max(start) FROM live_chunks WHERE n = ?1 AND stream = ?2 AND start <= ?3), 0) ORDER BY start"""
_FIRST = "SELECT min(start) FROM live_chunks WHERE n = ? AND stream = ? AND start >= ?"
_DROP = "DELETE FROM live_chunks WHERE n = ? AND stream = ? AND start < ?"
_KNOWN = "SELECT 1 FROM records WHERE n = ?1 AND running UNION ALL SELECT 1 FROM running WHERE n = ?1"
#: Numbers of runs that are not going on any more, as far as the store knows.
_OVER = "SELECT n FROM {table} WHERE n NOT IN (SELECT n FROM records WHERE running)"


class LiveSlice(NamedTuple):
    """Attributes: data: the bytes. next_cursor: where to go on; always ``cursor + gap + len(data)``. gap: bytes after
    the cursor that were dropped and cannot be had. total_bytes, total_lines: what was really written so far."""

    data: bytes
    next_cursor: int
    gap: int
    total_bytes: int
    total_lines: int


class LiveLog:
    """The newest output of running commands, at most ``stream_bytes`` of each stream."""

    def __init__(self, database: Database, stream_bytes: int = LIVE_BYTES) -> None:
        if isinstance(stream_bytes, bool) or stream_bytes < 1:
            raise BadInput("stream_bytes", stream_bytes, "a number above zero")
        self._database = database
        self._cap = stream_bytes
        self._piece = max(1, min(_PIECE, stream_bytes // 8))

    def limited(self, stream_bytes: int) -> LiveLog:
        """The same log for a writer that keeps another number of bytes."""
        return LiveLog(self._database, stream_bytes)

    def append(self, id: str, stream: str, data: bytes) -> None:
        """Add output. Raises ``StoreFailed`` when the disk refuses; then nothing of it was added."""
        n = _number(id)
        if not data:
            return
        with self._database.writing() as connection:
            row = connection.execute(_STATE, (n, stream)).fetchone()
            total, first, last, newlines, _, ended = row or (0, 0, 0, 0, 0, 0)
            start, end = total, total + len(data)
            kept = data
            gathered = min(_GATHERED, self._piece)
            if len(data) > self._cap:
                kept = data[-self._cap :]
                start = end - len(kept)
            elif row is not None and end - last <= gathered:
                # few bytes: rewrite the last piece, or a command that writes byte by byte would make a row of each
                kept = connection.execute(_CHUNK, (n, stream, last)).fetchone()[0] + data
                start = last
            pieces = range(0, len(kept), self._piece)
            connection.executemany(_PUT_CHUNK, [(n, stream, start + at, kept[at : at + self._piece]) for at in pieces])
            last = start + pieces[-1]
            if end - first > self._cap:
                first = connection.execute(_FIRST, (n, stream, end - self._cap)).fetchone()[0]
                connection.execute(_DROP, (n, stream, first))
            state = (end, first, last, newlines + data.count(b"\n"), not data.endswith(b"\n"), ended)
            connection.execute(_PUT_STATE, (n, stream, *state))

    def end(self, id: str, stream: str) -> None:
        """Nothing more will come: readers get what was held back."""
        n = _number(id)
        with self._database.writing() as connection:
            row = connection.execute(_STATE, (n, stream)).fetchone() or (0, 0, 0, 0, 0, 0)
            connection.execute(_PUT_STATE, (n, stream, *row[:5], 1))

    def read(self, id: str, stream: str, cursor: int = 0, limit: int = READ_BYTES) -> LiveSlice:
        """Output from byte ``cursor`` on, at most ``limit`` bytes (never less than four, one whole character).

        A UTF-8 character that is not complete yet is held back until it is, or until the stream ends. After a gap,
        bytes of a character whose beginning was dropped belong to the gap. A cursor beyond the end yields nothing
        and stays.

        Raises:
            BadInput: for a cursor that is no offset, and for text that is no id.
            NotFound: when this run has no live log (it is over, or never was).
            StoreFailed: when the file cannot be read.
        """
        n = _number(id)
        if isinstance(cursor, bool) or not isinstance(cursor, int) or cursor < 0:
            raise BadInput("cursor", cursor, "a byte offset, 0 or more")
        with self._database.reading() as connection:
            row = None if connection is None else connection.execute(_STATE, (n, stream)).fetchone()
            if connection is None or (row is None and connection.execute(_KNOWN, (n,)).fetchone() is None):
                raise NotFound(f"live output of {id}")
            total, first, _, newlines, open_line, ended = row or (0, 0, 0, 0, 0, 0)
            lines = newlines + open_line
            start = max(cursor, first)
            if start >= total:
                return LiveSlice(b"", cursor, 0, total, lines)
            data = self._bytes(connection, n, stream, start, min(max(4, limit), total - start))
        if start > cursor:
            orphans = _orphans(data)
            data = data[orphans:]
            start += orphans
        if not (ended and start + len(data) == total):
            data = data[: len(data) - incomplete(data)]
        return LiveSlice(data, start + len(data), start - cursor, total, lines)

    def drop(self, id: str) -> None:
        """Forget the live output: the final record is there. Does nothing when there is none."""
        n = _number(id)
        with self._database.reading() as connection:
            if connection is None:
                return
        with self._database.writing() as connection:
            connection.execute("DELETE FROM live_chunks WHERE n = ?", (n,))
            connection.execute("DELETE FROM live_streams WHERE n = ?", (n,))

    def sweep(self, connection: sqlite3.Connection) -> int:
        """Remove what dead owners left of runs that the store does not call running; how many runs. Inside a write
        transaction."""
        over = {row for table in ("live_streams", "running") for row in connection.execute(_OVER.format(table=table))}
        for table in ("live_chunks", "live_streams", "running"):
            connection.executemany(f"DELETE FROM {table} WHERE n = ?", over)  # noqa: S608 (constant names)
        return len(over)

    def _bytes(self, connection: sqlite3.Connection, n: int, stream: str, start: int, length: int) -> bytes:
        found = bytearray()
        for at, piece in connection.execute(_CHUNKS, (n, stream, start)):
            found += piece[max(0, start - at) :]
            if len(found) >= length:
                break
        return bytes(found[:length])


@dataclass(frozen=True)
class Running:
    """One announced run. ``owner`` and ``child`` are process ids; ``identity`` tells a child from a later process with
    its number (made and compared by the caller); ``requested`` is the signal that somebody asked the owner to send."""

    id: str
    owner: int
    child: int
    identity: str
    requested: str | None


class Control:
    """Who owns which running command, and what others ask of the owner."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def announce(self, id: str, owner: int, child: int, identity: str) -> None:
        """Tell everybody who holds this run. Raises ``StoreFailed`` when the disk refuses."""
        n = _number(id)
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO running VALUES (?, ?, ?, ?, NULL)", (n, owner, child, identity))

    def request(self, id: str, signal: str) -> bool:
        """Ask the owner to send ``signal`` (such as ``SIGTERM``); a later request replaces one not yet carried out.
        False when no such run is announced."""
        n = _number(id)
        with self._database.reading() as connection:
            if connection is None:
                return False
        with self._database.writing() as connection:
            return connection.execute("UPDATE running SET requested = ? WHERE n = ?", (signal, n)).rowcount > 0

    def requested(self, id: str) -> str | None:
        """The signal asked for, or ``None``. Cheap enough to be asked several times a second."""
        found = self.state(id)
        return None if found is None else found.requested

    def take(self, id: str) -> str | None:
        """The signal asked for, which then counts as carried out: a later request is told from it."""
        signal = self.requested(id)
        if signal is not None:
            with self._database.writing() as connection:
                statement = "UPDATE running SET requested = NULL WHERE n = ? AND requested = ?"
                connection.execute(statement, (_number(id), signal))
        return signal

    def touched(self, id: str) -> float | None:
        """When the owner last gave a sign of life (``touch``), in seconds since the epoch."""
        n = _number(id)
        with self._database.reading() as connection:
            row = connection and connection.execute("SELECT touched FROM records WHERE n = ?", (n,)).fetchone()
            return row[0] if row else None

    def state(self, id: str) -> Running | None:
        n = _number(id)
        return next((run for run in self._select("WHERE n = ?", (n,))), None)

    def all(self) -> list[Running]:
        """Every announced run, newest first. Their owners may have died: compare ``identity`` before believing."""
        return self._select("ORDER BY n DESC", ())

    def touch(self, id: str) -> None:
        """Say that the run still goes on, so that its record stays fresh. To be called well within the store's TTL."""
        n = _number(id)
        with self._database.writing() as connection:
            connection.execute("UPDATE records SET touched = ? WHERE n = ? AND running", (time.time(), n))

    def withdraw(self, id: str) -> None:
        """The run is over. Does nothing when it was not announced."""
        n = _number(id)
        with self._database.reading() as connection:
            if connection is None:
                return
        with self._database.writing() as connection:
            connection.execute("DELETE FROM running WHERE n = ?", (n,))

    def _select(self, which: str, values: tuple[int, ...]) -> list[Running]:
        with self._database.reading() as connection:
            if connection is None:
                return []
            statement = f"SELECT n, owner, child, identity, requested FROM running {which}"  # noqa: S608 (constant)
            return [Running(f"cmd{n}", *rest) for n, *rest in connection.execute(statement, values)]


def incomplete(data: bytes) -> int:
    """How many bytes at the end begin a UTF-8 character without finishing it (0 to 3)."""
    for length in range(1, min(3, len(data)) + 1):
        byte = data[-length]
        if byte & 0xC0 == 0x80:
            continue
        needed = 2 if 0xC2 <= byte <= 0xDF else 3 if 0xE0 <= byte <= 0xEF else 4 if 0xF0 <= byte <= 0xF4 else 0
        return length if needed > length else 0
    return 0


def _orphans(data: bytes) -> int:
    """How many bytes at the start continue a character whose beginning is not there (0 to 3)."""
    count = 0
    while count < min(3, len(data)) and data[count] & 0xC0 == 0x80:
        count += 1
    return count


def _number(id: str) -> int:
    kind, n = ids.parse(id)
    if kind != "cmd":
        raise NotFound(f"{id} (runs in memory have no live log)")
    return n
