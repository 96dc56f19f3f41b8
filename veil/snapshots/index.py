"""Which checkpoints of a folder there are, and where each content stands: one SQLite file beside the contents.

A connection lives as long as one operation. What the file says becomes true with one commit, so a process that is
killed leaves either a whole checkpoint or none.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from veil.model.errors import StoreFailed
from veil.snapshots.base import Checkpoint
from veil.snapshots.listings import Manifest

if TYPE_CHECKING:
    import sqlite3

APPLICATION_ID, FORMAT = 0x7665696B, 1
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE checkpoints (
    n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE, label BLOB, created REAL NOT NULL, manifest BLOB NOT NULL,
    files INTEGER NOT NULL, bytes INTEGER NOT NULL, left_out TEXT NOT NULL);
CREATE TABLE packs (n INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, size INTEGER NOT NULL);
CREATE TABLE blobs (id BLOB PRIMARY KEY, pack INTEGER, at INTEGER NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE pending (
    one INTEGER PRIMARY KEY CHECK (one = 1), target BLOB NOT NULL, target_id TEXT NOT NULL,
    before_id TEXT NOT NULL, staging TEXT NOT NULL);
CREATE TABLE epoch (one INTEGER PRIMARY KEY CHECK (one = 1), value TEXT NOT NULL);
INSERT INTO epoch VALUES (1, hex(randomblob(8)));
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
COMMIT;
"""  # noqa: S608 (constant text)
#: What a restore opened up for a look and has not closed again; ``n`` is the order of opening.
_OPENED = "CREATE TABLE IF NOT EXISTS opened (n INTEGER PRIMARY KEY, path BLOB, mode INTEGER, inode BLOB)"
_PLACES = "SELECT blobs.id, packs.name, at, blobs.size FROM blobs LEFT JOIN packs ON pack = packs.n"
_ROWS = "SELECT id, label, created, files, bytes, left_out, manifest FROM checkpoints"


class Row(NamedTuple):
    """A checkpoint and the id of its manifest."""

    checkpoint: Checkpoint
    manifest: bytes


class Place(NamedTuple):
    """Where a content stands: ``pack`` is ``None`` for one that is a file of its own."""

    id: bytes
    pack: str | None
    at: int
    size: int


class Pending(NamedTuple):
    """A restore that has begun and not ended: what it was to make, the displaced state, its folder in the tree."""

    target: bytes
    target_id: str
    before_id: str
    staging: str


@contextmanager
def opened(path: Path, *, write: bool) -> Iterator[Index]:
    """The index in ``path``, made when missing and ``write``. Raises ``StoreFailed``."""
    import sqlite3

    try:
        # for reading as well: what a process left that was killed while it wrote is first put right by the next one
        name = f"file:{quote(bytes(path))}?mode={'rwc' if write else 'rw'}"
        connection = sqlite3.connect(name, uri=True, timeout=30.0, isolation_level=None)
        try:
            _recognise(connection, path, write=write)
            yield Index(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreFailed(f"{path}: {error}", path=str(path)) from error


def _recognise(connection: sqlite3.Connection, path: Path, *, write: bool) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if write and not version and not application:
        connection.executescript(_SCHEMA)
        connection.execute(_OPENED)
        os.chmod(path, 0o600)
    elif (application, version) != (APPLICATION_ID, FORMAT):
        raise StoreFailed(
            f"{path} has format {version} of {application:#x}; this veil knows {FORMAT}", path=str(path), found=version
        )
    elif write:
        connection.execute(_OPENED)


class Index:
    """An open index. Methods raise ``sqlite3.Error``, which ``opened`` turns into ``StoreFailed``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._sql = connection

    # checkpoints

    def rows(self) -> list[Row]:
        """Newest first."""
        return [_row(*found) for found in self._sql.execute(f"{_ROWS} ORDER BY n DESC")]

    def knows(self, id: str) -> bool:
        """Whether there is a checkpoint with this id."""
        return self._sql.execute("SELECT 1 FROM checkpoints WHERE id = ?", (id,)).fetchone() is not None

    def manifest_of(self, id: str) -> bytes | None:
        """Id of the manifest of the checkpoint with this id."""
        found = self._sql.execute("SELECT manifest FROM checkpoints WHERE id = ?", (id,)).fetchone()
        return None if found is None else bytes(found[0])

    def add(
        self,
        label: bytes | None,
        id: bytes,
        manifest: Manifest,
        pack: tuple[str, int] | None,
        places: Iterable[Place],
        restoring: tuple[bytes, str, str] | None = None,
    ) -> Checkpoint:
        """Keep a checkpoint and its new contents, all at once.

        ``restoring``: manifest and id of the target, and the staging folder, of a restore that displaces it.
        """
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            self._put(pack, places)
            left_out = json.dumps(manifest.left_out)
            values = (label, time.time(), id, manifest.files, manifest.bytes, left_out)
            n = self._sql.execute(
                "INSERT INTO checkpoints (label, created, manifest, files, bytes, left_out) VALUES (?, ?, ?, ?, ?, ?)",
                values,
            ).lastrowid
            name = f"ckpt{n}-{secrets.token_hex(4)}"
            self._sql.execute("UPDATE checkpoints SET id = ? WHERE n = ?", (name, n))
            if restoring is not None:
                self.begin(Pending(restoring[0], restoring[1], name, restoring[2]))
            self._sql.execute("COMMIT")
        except BaseException:
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
            raise
        return Checkpoint(
            name, None if label is None else _text(label), values[1], manifest.files, manifest.bytes, manifest.left_out
        )

    def _put(self, pack: tuple[str, int] | None, places: Iterable[Place]) -> None:
        number = None
        if pack is not None:
            number = self._sql.execute("INSERT INTO packs (name, size) VALUES (?, ?)", pack).lastrowid
        self._sql.executemany(
            "INSERT OR IGNORE INTO blobs VALUES (?, ?, ?, ?)",
            ((p.id, None if p.pack is None else number, p.at, p.size) for p in sorted(places)),
        )

    # contents

    def empty(self) -> bool:
        return self._sql.execute("SELECT 1 FROM blobs LIMIT 1").fetchone() is None

    def has(self, id: bytes) -> bool:
        return self._sql.execute("SELECT 1 FROM blobs WHERE id = ?", (id,)).fetchone() is not None

    def place(self, id: bytes) -> Place | None:
        found = self._sql.execute(
            f"{_PLACES} WHERE blobs.id = ?",
            (id,),
        ).fetchone()
        return None if found is None else Place(*found)

    def places(self) -> list[Place]:
        return [Place(*found) for found in self._sql.execute(_PLACES)]

    def packs(self) -> dict[str, int]:
        """Size in bytes by name."""
        return dict(self._sql.execute("SELECT name, size FROM packs").fetchall())

    def epoch(self) -> str:
        """Changes whenever a content goes."""
        return str(self._sql.execute("SELECT value FROM epoch").fetchone()[0])

    # clearing away

    def forget(self, ids: Iterable[str]) -> int:
        """Checkpoints go; their contents stay until ``discard``. How many went."""
        return sum(self._sql.execute("DELETE FROM checkpoints WHERE id = ?", (each,)).rowcount for each in ids)

    def discard(self, ids: Iterable[bytes], packs: Iterable[str], moved: Iterable[tuple[str, list[Place]]]) -> None:
        """Contents ``ids`` and the packs go; contents of ``moved`` now stand in these new packs. All at once."""
        self._sql.execute("BEGIN IMMEDIATE")
        try:
            self._sql.execute("UPDATE epoch SET value = ?", (secrets.token_hex(8),))
            self._sql.executemany("DELETE FROM blobs WHERE id = ?", ((each,) for each in ids))
            for name, places in moved:
                self._sql.executemany("DELETE FROM blobs WHERE id = ?", ((p.id,) for p in places))
                self._put((name, sum(p.size for p in places)), places)
            self._sql.executemany("DELETE FROM packs WHERE name = ?", ((name,) for name in packs))
            self._sql.execute("COMMIT")
        except BaseException:
            if self._sql.in_transaction:
                self._sql.execute("ROLLBACK")
            raise

    # a restore under way

    def pending(self) -> Pending | None:
        found = self._sql.execute("SELECT target, target_id, before_id, staging FROM pending").fetchone()
        return None if found is None else Pending(*found)

    def begin(self, pending: Pending) -> None:
        self._sql.execute("INSERT OR REPLACE INTO pending VALUES (1, ?, ?, ?, ?)", pending)

    def end(self) -> None:
        self._sql.execute("DELETE FROM pending")

    def note_opened(self, path: str, mode: int, inode: int) -> None:
        """``path`` is going to be opened up; ``mode``: its permission bits before."""
        values = (os.fsencode(path), mode, str(inode))
        self._sql.execute("INSERT INTO opened (path, mode, inode) VALUES (?, ?, ?)", values)

    def opened(self) -> list[tuple[str, int, int]]:
        """Path, mode and inode of what was opened up, the last one first."""
        found = self._sql.execute("SELECT path, mode, inode FROM opened ORDER BY n DESC").fetchall()
        return [(os.fsdecode(path), mode, int(inode)) for path, mode, inode in found]

    def forget_opened(self) -> None:
        # also an empty deletion is written to the disk
        if self.opened():
            self._sql.execute("DELETE FROM opened")


def _row(id: str, label: bytes | None, created: float, files: int, size: int, left_out: str, manifest: bytes) -> Row:
    shown = None if label is None else _text(label)
    return Row(Checkpoint(id, shown, created, files, size, json.loads(left_out)), manifest)


def _text(label: bytes) -> str:
    return label.decode("utf-8", "surrogatepass")
