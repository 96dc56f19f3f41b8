"""One SQLite file and one connection to it: made whole or not at all, guarded by a lock, renewed after a fork.

Three facts of SQLite shape this module:

- POSIX locks belong to the process: *any* ``close`` of *any* descriptor of the database file drops all of them. So the
  file itself is never opened but by SQLite (``veil.store.creation`` makes it under another name).
- A connection must not cross a fork, and neither may its file locks be believed in by the child. So connections are
  closed before the process forks, and both sides open anew when they need to.
- Folders of state get deleted while programs run. A connection to a deleted file would swallow records, so the file's
  identity is compared before each use (one ``lstat``).
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from veil.model.errors import StoreFailed
from veil.store.creation import (
    APPLICATION_ID,
    FORMAT,
    NAME,
    Busy,
    create_file,
    file_identity,
    is_busy,
    refuse_strangers,
)

if TYPE_CHECKING:
    import sqlite3

_all: weakref.WeakSet[Database] = weakref.WeakSet()
#: Between "before" and "after" a fork: databases whose lock the forking thread holds, and those it could not get.
_held: list[Database] = []
_missed: list[Database] = []
#: Shut while the process forks: or busy threads would keep the forking one from ever getting their lock.
_gate = threading.Event()
_gate.set()
#: Connections of a parent process, kept from being closed by the garbage collector.
_leaked: list[sqlite3.Connection] = []


class Database:
    """Attributes: directory: where the file lives. patience: seconds that a lock of somebody else is waited for. stamp:
    which file was opened last (another one after somebody deleted the folder).

    Making one touches nothing; the first use opens the file, and only a writing one creates it.
    """

    # also of one whose making failed
    _connection: sqlite3.Connection | None = None
    _pid = 0

    def __init__(self, directory: Path, patience: float = 5.0) -> None:
        self.directory = Path(os.path.abspath(directory))
        self.path = str(self.directory / NAME)
        self.patience = patience
        self.stamp = ""
        self._lock = threading.Lock()
        self._connection = None
        self._identity: tuple[int, int] | None = None
        self._pid = 0
        # the process that was forked while SQLite was at work in another thread: its locks are shut here for ever
        self._lost = 0
        _all.add(self)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection | None]:
        """The connection, or ``None`` when nothing was ever stored here. Raises ``StoreFailed``."""
        _gate.wait()
        with self._lock, self._translated():
            yield self._ready(create=False)

    def insert(self, statement: str, values: tuple[object, ...]) -> int:
        """One INSERT that is a transaction of its own; the new row's number. Raises ``StoreFailed``.

        Spelled out without context managers: this is what every run pays for.
        """
        _gate.wait()
        with self._lock:
            try:
                number = self._created().execute(statement, values).lastrowid
            except Exception as error:
                refusal = self._refusal(error)
                if refusal is None:
                    raise
                raise refusal from error
        assert number is not None  # it was an INSERT
        return number

    @contextmanager
    def plain(self) -> Iterator[sqlite3.Connection]:
        """The connection without a transaction around it. Raises ``StoreFailed``."""
        _gate.wait()
        with self._lock, self._translated():
            yield self._created()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The connection inside one write transaction: all of it is kept, or nothing. Raises ``StoreFailed``."""
        _gate.wait()
        with self._lock, self._translated():
            connection = self._created()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Let go of the file; the next use opens it again. Idempotent."""
        with self._lock:
            self._let_go()

    def __del__(self) -> None:
        # nobody uses it any more; since Python 3.13 a connection that is merely dropped is warned of
        self._let_go()

    # when the interpreter ends, the modules may have been emptied before the last of these goes
    _getpid = staticmethod(os.getpid)

    def _created(self) -> sqlite3.Connection:
        connection = self._ready(create=True)
        if connection is None:
            raise StoreFailed(f"{self.path} vanished while it was being opened", path=self.path)
        return connection

    def _ready(self, *, create: bool) -> sqlite3.Connection | None:
        """The connection to the file that is there now. The lock must be held."""
        connection = self._connection
        if self._lost and self._lost == os.getpid():
            raise StoreFailed(
                f"{self.path}: this process was forked while another thread was writing; it keeps to memory",
                path=self.path,
            )
        if connection is not None:
            if self._pid != os.getpid():
                # A fork that Python did not see. Closing could undo the parent's work: it is left alone for ever.
                _leaked.append(connection)
                self._connection = None
            elif file_identity(self.path) == self._identity:
                return connection
            else:
                self._let_go()
        if file_identity(self.path) is None:
            if not create:
                return None
            create_file(self.directory, self.patience)
        self._connection = self._opened()
        return self._connection

    def _opened(self) -> sqlite3.Connection:
        """A new connection to a finished file. Retries what SQLite reports without waiting (a file being recovered or
        closed by others at this moment)."""
        import sqlite3

        refuse_strangers(self.directory)
        found = os.lstat(self.path)
        if found.st_mode & 0o077:
            os.chmod(self.path, 0o600)
        deadline = time.monotonic() + self.patience
        while True:
            connection = sqlite3.connect(
                self.path, timeout=self.patience, isolation_level=None, check_same_thread=False, cached_statements=64
            )
            try:
                self._recognise(connection)
                break
            except sqlite3.OperationalError as error:
                connection.close()
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            except BaseException:
                connection.close()
                raise
        self._identity = (found.st_dev, found.st_ino)
        self._pid = os.getpid()
        return connection

    def _recognise(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA synchronous = NORMAL")
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if application != APPLICATION_ID:
            raise StoreFailed(f"{self.path} is a database of another program; veil leaves it alone", path=self.path)
        if version != FORMAT:
            raise StoreFailed(
                f"{self.path} has format {version} and this veil knows format {FORMAT}: use the newer veil, "
                "or another VEIL_STATE_DIR",
                path=self.path,
                found=version,
                known=FORMAT,
            )
        self.stamp = connection.execute("SELECT value FROM stamp").fetchone()[0]
        # after a large record the log is cut back to this at the next checkpoint
        connection.execute("PRAGMA journal_size_limit = 4194304")

    def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        self._identity = None
        if connection is None:
            return
        if self._pid != self._getpid():
            _leaked.append(connection)
        else:
            connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            refusal = self._refusal(error)
            if refusal is None:
                raise
            raise refusal from error

    def _refusal(self, error: Exception) -> StoreFailed | None:
        """SQLite's and the system's refusals as ``StoreFailed``; ``None`` for what is none."""
        import sqlite3

        if isinstance(error, OSError):
            where = error.filename if error.filename is not None else self.path
            return StoreFailed(f"{os.fsdecode(where)}: {error.strerror}", path=self.path)
        if not isinstance(error, sqlite3.Error):
            return None
        if is_busy(error):
            return Busy(f"{self.path}: locked for longer than {self.patience} s", path=self.path)
        # whatever it is (full disk, damaged file), the next use starts from a new connection
        self._let_go()
        return StoreFailed(f"{self.path}: {error}", path=self.path)


def _before_fork() -> None:
    _gate.clear()
    for database in list(_all):
        # Waiting for ever would hang a thread that forks in the middle of its own use of the store (a signal handler).
        if database._lock.acquire(timeout=2 * database.patience):
            _held.append(database)
            database._let_go()
        else:
            _missed.append(database)


def _after_in_parent() -> None:
    _missed.clear()
    while _held:
        _held.pop()._lock.release()
    _gate.set()


def _after_in_child() -> None:
    global _gate
    _gate = threading.Event()  # threads that waited at the old one are not here
    while _missed:
        database = _missed.pop()
        database._lock = threading.Lock()
        database._lost = os.getpid()
    _after_in_parent()


os.register_at_fork(before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
