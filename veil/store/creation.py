"""How the database file comes to be: made under another name, finished, synced, then renamed. Whatever is found under
the final name is whole, wherever the maker was killed."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from veil.host import private
from veil.model.errors import StoreFailed
from veil.store.where import trespass

#: Marks the file as ours (``veil`` in ASCII) and tells its format; a program never writes to a newer format.
APPLICATION_ID = 0x7665696C
FORMAT = 1
NAME = "store.db"

_SCHEMA = """
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
BEGIN;
-- small streams stand in the row itself (packed), large ones in rows of their own
CREATE TABLE records (
    n INTEGER PRIMARY KEY AUTOINCREMENT, born REAL NOT NULL, touched REAL NOT NULL, running INTEGER NOT NULL,
    size INTEGER NOT NULL, seat INTEGER, data TEXT NOT NULL, packed BLOB);
CREATE TABLE streams (n INTEGER, name TEXT, data BLOB NOT NULL, PRIMARY KEY (n, name)) WITHOUT ROWID;
CREATE TABLE live_streams (
    n INTEGER, stream TEXT, total INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    newlines INTEGER NOT NULL, open_line INTEGER NOT NULL, ended INTEGER NOT NULL,
    PRIMARY KEY (n, stream)) WITHOUT ROWID;
CREATE TABLE live_chunks (
    n INTEGER, stream TEXT, start INTEGER, data BLOB NOT NULL, PRIMARY KEY (n, stream, start)) WITHOUT ROWID;
CREATE TABLE running (
    n INTEGER PRIMARY KEY, owner INTEGER NOT NULL, child INTEGER NOT NULL, identity TEXT NOT NULL, requested TEXT);
-- which file this is: an inode number is used again when the folder was deleted
CREATE TABLE stamp (value TEXT NOT NULL);
INSERT INTO stamp VALUES ('{stamp}');
PRAGMA application_id = {application};
PRAGMA user_version = {format};
COMMIT;
"""


class Busy(StoreFailed):
    """Somebody else held the store for longer than the patience."""


def is_busy(error: BaseException) -> bool:
    """Is it another connection's lock that SQLite complains of?"""
    # the error codes have names only from Python 3.11 on
    return any(word in str(error) for word in ("database is locked", "locking protocol", "table is locked"))


def file_identity(path: str) -> tuple[int, int] | None:
    """Device and inode of a database that is there; ``None`` for none or an empty file (a crash can leave one)."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(found.st_mode):
        raise StoreFailed(f"{path} is not a regular file", path=path)
    return (found.st_dev, found.st_ino) if found.st_size else None


def refuse_strangers(directory: Path) -> None:
    """Raise ``StoreFailed`` when somebody else could read or swap what lies below this folder."""
    why = trespass(directory)
    if why is not None:
        raise StoreFailed(f"no records are kept below {directory}: {why}", path=str(directory))


def create_file(directory: Path, patience: float) -> None:
    """Make the folder and the database in it, unless they are there. Whoever comes first makes it, the others wait.

    Raises:
        Busy: when another process has been at it for ``patience`` seconds.
        OSError, sqlite3.Error: when the disk refuses.
    """
    import fcntl

    refuse_strangers(directory)
    _private_directory(directory)
    refuse_strangers(directory)  # again: somebody may have been faster than we were
    path = str(directory / NAME)
    lock = os.open(directory / "init.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(lock, 0o600)
        private.give(lock, directory)
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                if time.monotonic() > deadline:
                    raise Busy(f"{path}: another process has been making it for {patience} s", path=path) from error
                time.sleep(0.005)
        if file_identity(path) is None:
            _build(path)
    finally:
        os.close(lock)


def _build(path: str) -> None:
    import sqlite3

    draft = f"{path}.new"
    # what a killed maker left, and the log of a deleted file, which SQLite would take for the log of the new one
    for leftover in (draft, f"{draft}-wal", f"{draft}-shm", f"{draft}-journal", f"{path}-wal", f"{path}-shm"):
        Path(leftover).unlink(missing_ok=True)
    made = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    # SQLite gives its log files the mode and the owner of the database, whatever the umask and whoever writes
    os.fchmod(made, 0o600)
    private.give(made, os.path.dirname(path))
    os.close(made)
    connection = sqlite3.connect(draft, isolation_level=None)
    try:
        connection.executescript(_SCHEMA.format(application=APPLICATION_ID, format=FORMAT, stamp=os.urandom(12).hex()))
    finally:
        connection.close()  # the last one out writes the log back and syncs
    os.rename(draft, path)


def _private_directory(directory: Path) -> None:
    """Make the folder for the owner only; narrow it when it is wider."""
    private.make(directory, theirs=True)
    found = os.stat(directory)
    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and found.st_mode & 0o077:
        os.chmod(directory, 0o700)
