"""The window of a tree: runs that are told from two pictures take turns, across threads and processes.

In ``<locks>/<hash of the root>/``: ``window`` is the lock (``flock``: taken at once when free, else waited for by
filelock); ``came`` grows by a byte whenever a run or a job comes that does not wait; ``job-*`` is one such run or job,
held under ``flock`` for life, so that a dead one counts for nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import secrets
import stat
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Literal, overload

#: Whether others may have changed the tree meanwhile: no, yes, or nobody could tell (no place for lock files).
Shared = Literal[False, True, "unknown"]

#: Seconds between two looks at a lock that another run holds.
POLL_SECONDS = 0.005
#: The byte counter starts anew beyond this size.
_MAX_COUNTER = 65_536
#: Seconds after which a job file that never got its final name is rubbish.
_UNBORN_SECONDS = 60.0


def folder_of(directory: Path, root: str) -> str:
    """Where the lock files of the tree at ``root`` (links resolved) are."""
    return os.path.join(directory, hashlib.blake2b(os.fsencode(root), digest_size=16).hexdigest())


class Job:
    """Says that somebody works in the tree without waiting for the window, until ``close`` or the process's death."""

    def __init__(self, path: str | None, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @property
    def seen(self) -> bool:
        """Whether other runs can see it (False: there was no place for its file)."""
        return self._path is not None

    def close(self) -> None:
        """End it. Idempotent, from any thread."""
        path, self._path = self._path, None
        if path is not None:
            _unlink(path)
            _let_go(self._descriptor)

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Window:
    """One run's turn (or its going ahead without). ``leave`` ends it and says whether it was shared."""

    def __init__(self, shared: Shared, release: Callable[[], object] | None = None, folder: str | None = None) -> None:
        self._shared = shared
        self._release = release
        self._folder = folder
        if folder is not None:  # its turn: whoever comes from here on is seen by the counter
            self._came = _counter(folder)
            self._shared = _anyone_beside(folder)

    def leave(self) -> Shared:
        """Give the turn to the next. Idempotent; the first answer stays. Call it when the second picture is taken."""
        release, self._release = self._release, None
        if release is not None:
            if self._folder is not None and _counter(self._folder) != self._came:
                self._shared = True
            release()
        return self._shared


@overload
def enter(directory: Path | None, root: str, wait: float) -> Window: ...
@overload
def enter(directory: Path | None, root: str, wait: float, needless: Callable[[], bool]) -> Window | None: ...
def enter(directory: Path | None, root: str, wait: float, needless: Callable[[], bool] | None = None) -> Window | None:
    """Wait at most ``wait`` seconds for the turn in the tree at ``root``, then go ahead and let the others know.

    ``needless`` is asked before it would wait: when it says so, nobody waits and there is no window.

    Never raises because of the disk: without a place for lock files the run goes ahead and shares with ``unknown``.
    """
    folder = _prepared(directory, root)
    if folder is None:
        return Window("unknown")
    path = os.path.join(folder, "window")
    descriptor = _take_free(path)
    if descriptor is not None and descriptor >= 0:
        if _counter(folder) > _MAX_COUNTER:
            _truncate(folder)
        return Window(False, partial(_let_go, descriptor), folder)
    if needless is not None and needless():
        return None
    from filelock import FileLock, Timeout

    # not per thread: the thread that ends a run need not be the one that began it
    lock = FileLock(path, mode=0o600, thread_local=False)
    try:
        lock.acquire(timeout=max(wait, 0.0), poll_interval=POLL_SECONDS)
    except (Timeout, RuntimeError):  # RuntimeError: this thread holds it already, waiting would be for ever
        return Window(True, _mark(folder).close)
    except (OSError, NotImplementedError):
        return Window("unknown")
    return Window(False, lock.release, folder)


def mark_job(directory: Path | None, root: str) -> Job:
    """Let runs in the tree at ``root`` know of a job. Never raises because of the disk (see ``Job.seen``)."""
    folder = _prepared(directory, root)
    return Job(None, -1) if folder is None else _mark(folder)


def _prepared(directory: Path | None, root: str) -> str | None:
    """The tree's folder, made when missing; ``None`` when there cannot be one of our own."""
    if directory is None:
        return None
    folder = folder_of(directory, root)
    try:
        found = os.lstat(folder)
    except OSError:
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            Path(folder).mkdir(mode=0o700, exist_ok=True)
            _write_root(folder, root)
            # one new tree in 64 pays for clearing away those of trees that are gone
            if hashlib.blake2b(os.fsencode(folder), digest_size=1).digest()[0] % 64 == 0:
                prune(directory)
            found = os.lstat(folder)
        except OSError:
            return None
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    return folder if ours else None


def _write_root(folder: str, root: str) -> None:
    descriptor = os.open(os.path.join(folder, "root"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, os.fsencode(root))
    finally:
        os.close(descriptor)


def prune(directory: Path) -> int:
    """Clear away the lock folders of trees that are gone. Returns how many went."""
    gone = 0
    for folder in directory.iterdir():
        try:
            root = (folder / "root").read_bytes()
            if os.path.lexists(root) or any(name.startswith("job-") for name in os.listdir(folder)):
                continue
            for name in ("window", "came", "root"):
                _unlink(str(folder / name))
            folder.rmdir()
            gone += 1
        except OSError:  # in use, not of our making, or another process was quicker: it stays
            continue
    return gone


def _take_free(path: str) -> int | None:
    """A descriptor that holds the lock, ``-1`` when another has it, ``None`` when ``flock`` itself does not work here.

    filelock waits for the same lock on the same file; but its book-keeping around a lock that nobody holds costs more
    than the two pictures of a small tree (measured: 110 us against 5 us, twice that with caches cold from a child).
    """
    for _ in range(10):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # some releases of filelock remove the file when they let go: a lock on what has no name guards nothing
            if os.fstat(descriptor).st_nlink:
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return -1
        except OSError:
            os.close(descriptor)
            return None
        os.close(descriptor)
    return -1


def _let_go(descriptor: int) -> None:
    # said aloud, because a forked child may still have a copy of the descriptor
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _counter(folder: str) -> int:
    try:
        return os.stat(os.path.join(folder, "came")).st_size
    except OSError:
        return 0


def _truncate(folder: str) -> None:
    try:
        os.truncate(os.path.join(folder, "came"), 0)
    except OSError:  # it goes on growing by a byte a job: no harm
        return


def _mark(folder: str) -> Job:
    """The file gets its final name only when it is locked: nobody ever takes a newborn job for a dead one."""
    name = f"{os.getpid()}-{secrets.token_hex(6)}"
    born, path = os.path.join(folder, f"new-{name}"), os.path.join(folder, f"job-{name}")
    descriptor = -1
    try:
        descriptor = os.open(born, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(born, path)
        counter = os.open(os.path.join(folder, "came"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(counter, b".")
        finally:
            os.close(counter)
    except OSError:
        if descriptor >= 0:
            os.close(descriptor)
            _unlink(born)
            _unlink(path)
        return Job(None, -1)
    return Job(path, descriptor)


def _anyone_beside(folder: str) -> Shared:
    """Whether a job lives; the files of dead ones are cleared away."""
    living = False
    try:
        names = os.listdir(folder)
    except OSError:  # somebody cleared the state away
        return "unknown"
    for name in names:
        path = os.path.join(folder, name)
        if name.startswith("job-"):
            living = _alive(path) or living
        elif name.startswith("new-") and _age(path) > _UNBORN_SECONDS:
            _unlink(path)
    return living


def _alive(path: str) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        # shared, so that two who look at once do not take each other for the owner
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        _unlink(path)
        return False
    finally:
        os.close(descriptor)


def _age(path: str) -> float:
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return 0.0


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # already gone, or a folder that is no longer ours to write: it counts for nothing all the same
        return
