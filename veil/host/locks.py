"""The window of a tree: runs that are told from two pictures take turns, across threads and processes.

In ``<locks>/<hash of the root>/``: ``window`` is the lock (``flock``: taken at once when free, else waited for by
filelock). Who does not wait for it is in ``beside``.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from veil.host import private
from veil.host.beside import Job, Shared, anyone_beside, let_go, mark, unlink

#: Seconds between two looks at a lock that another run holds.
POLL_SECONDS = 0.005
#: Seconds between two looks whether the run that waits is still wanted.
_ASK_SECONDS = 0.1
#: The byte counter starts anew beyond this size.
_MAX_COUNTER = 65_536


def folder_of(directory: Path, root: str) -> str:
    """Where the lock files of the tree at ``root`` (links resolved) are."""
    return os.path.join(directory, hashlib.blake2b(os.fsencode(root), digest_size=16).hexdigest())


class Window:
    """One run's turn (or its going ahead without). ``leave`` ends it and says whether it was shared.

    Attributes: needless: nobody needs a turn, and nobody has one.
    """

    def __init__(
        self,
        shared: Shared,
        release: Callable[[], object] | None = None,
        folder: str | None = None,
        needless: bool = False,
    ) -> None:
        self.needless = needless
        self._shared = shared
        self._release = release
        self._folder = folder
        if folder is not None:  # its turn: whoever comes from here on is seen by the counter
            self._came = _counter(folder)
            self._shared = anyone_beside(folder)

    def leave(self) -> Shared:
        """Give the turn to the next. Idempotent; the first answer stays. Call it when the second picture is taken."""
        release, self._release = self._release, None
        if release is not None:
            if self._folder is not None and _counter(self._folder) != self._came:
                self._shared = True
            release()
        return self._shared


def never() -> bool:
    """The answer of those whom nobody asks otherwise."""
    return False


def enter(
    directory: Path | None,
    root: str,
    wait: float,
    needless: Callable[[], bool] = never,
    unwanted: Callable[[], bool] = never,
) -> Window:
    """Wait at most ``wait`` seconds for the turn in the tree at ``root``, then go ahead and let the others know.

    ``needless`` is asked before it would wait: when it says so, nobody waits and it is no window.
    ``unwanted`` ends the waiting as if the time were over.

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
        return Window(False, partial(let_go, descriptor), folder)
    if needless():
        return Window(False, needless=True)
    if os.lstat(folder).st_uid != os.geteuid():
        # root in another user's folder: filelock may follow a link that its owner puts in the place of the file
        return Window(True, mark(folder).close)
    from filelock import FileLock, Timeout

    # not per thread: the thread that ends a run need not be the one that began it
    lock = FileLock(path, mode=0o600, thread_local=False)
    until = time.monotonic() + wait
    while True:
        left = until - time.monotonic()
        try:
            lock.acquire(timeout=min(max(left, 0.0), _ASK_SECONDS), poll_interval=POLL_SECONDS)
        except Timeout:
            if left > _ASK_SECONDS and not unwanted():
                continue
            return Window(True, mark(folder).close)
        except RuntimeError:  # this thread holds it already, waiting would be for ever
            return Window(True, mark(folder).close)
        except (OSError, NotImplementedError):
            return Window("unknown")
        return Window(False, lock.release, folder)


def mark_job(directory: Path | None, root: str) -> Job:
    """Let runs in the tree at ``root`` know of a job. Never raises because of the disk (see ``Job.seen``)."""
    folder = _prepared(directory, root)
    return Job(None, -1) if folder is None else mark(folder)


def _prepared(directory: Path | None, root: str) -> str | None:
    """The tree's folder, made when missing; ``None`` when there cannot be one of our own."""
    if directory is None:
        return None
    folder = folder_of(directory, root)
    try:
        found = os.lstat(folder)
    except OSError:
        try:
            private.make(Path(folder), theirs=True)
            _write_root(folder, root)
            # one new tree in 64 pays for clearing away those of trees that are gone
            if hashlib.blake2b(os.fsencode(folder), digest_size=1).digest()[0] % 64 == 0:
                prune(directory)
            found = os.lstat(folder)
        except OSError:
            return None
    ours = stat.S_ISDIR(found.st_mode) and os.geteuid() in (found.st_uid, 0) and not found.st_mode & 0o022
    return folder if ours else None


def _write_root(folder: str, root: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(os.path.join(folder, "root"), flags, 0o600)
    try:
        private.give(descriptor, folder)
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
                unlink(str(folder / name))
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
            found = os.fstat(descriptor)
            if found.st_nlink:
                if found.st_uid == 0:
                    private.give(descriptor, os.path.dirname(path))
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            return -1
        except OSError:
            os.close(descriptor)
            return None
        os.close(descriptor)
    return -1


def _counter(folder: str) -> int:
    try:
        return os.stat(os.path.join(folder, "came")).st_size
    except OSError:
        return 0


def _truncate(folder: str) -> None:
    try:
        os.close(os.open(os.path.join(folder, "came"), os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError:  # it goes on growing by a byte a job: no harm
        return
