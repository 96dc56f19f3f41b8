"""Who works in a tree without waiting for its window: a run that went ahead, a job in the background.

Each is a file ``job-*`` held under ``flock`` for life, so that a dead one counts for nothing; ``came`` grows by a byte
whenever one comes.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import time
from types import TracebackType
from typing import Literal

from veil.host import private

#: Whether others may have changed the tree meanwhile: no, yes, or nobody could tell (no place for lock files).
Shared = Literal[False, True, "unknown"]

#: Seconds after which a job file that never got its final name is rubbish.
_UNBORN_SECONDS = 60.0


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
            unlink(path)
            let_go(self._descriptor)

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def mark(folder: str) -> Job:
    """The file gets its final name only when it is locked: nobody ever takes a newborn job for a dead one."""
    name = f"{os.getpid()}-{secrets.token_hex(6)}"
    born, path = os.path.join(folder, f"new-{name}"), os.path.join(folder, f"job-{name}")
    descriptor = -1
    try:
        descriptor = os.open(born, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        private.give(descriptor, folder)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(born, path)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        counter = os.open(os.path.join(folder, "came"), flags, 0o600)
        try:
            private.give(counter, folder)
            os.write(counter, b".")
        finally:
            os.close(counter)
    except OSError:
        if descriptor >= 0:
            os.close(descriptor)
            unlink(born)
            unlink(path)
        return Job(None, -1)
    return Job(path, descriptor)


def anyone_beside(folder: str) -> Shared:
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
            unlink(path)
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
        unlink(path)
        return False
    finally:
        os.close(descriptor)


def _age(path: str) -> float:
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return 0.0


def unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # already gone, or a folder that is no longer ours to write: it counts for nothing all the same
        return


def let_go(descriptor: int) -> None:
    # said aloud, because a forked child may still have a copy of the descriptor
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
