"""The temporary folder of one confined run: made for it alone, and gone or bare when it has ended.

A folder that a command left as it was given is kept for the next run of this process: making and removing one takes
longer than most of what else a sandbox does. One that anything was left in is removed with it.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import stat
import tempfile
import threading
from collections.abc import Iterator

from veil.host import processes, removing

_PREFIX = "veil-tmp-"
#: Bare folders that one process keeps.
_MOST = 4


class Temporary:
    """One folder.

    Attributes:
        path: real.
        deserted: nobody can be using it any more; whoever knows that says so.
        kept: processes that were left running on purpose still use it: it stays, and is theirs.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.deserted = False
        self.kept = False


class _Pool:
    """Bare folders by their path, with what they looked like; of this process only, not of a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = os.getpid()
        self._bare: dict[str, tuple[int, ...]] = {}
        self._hooked = False
        self._swept: set[str] = set()

    def take(self) -> str:
        base = os.path.realpath(tempfile.gettempdir())  # as the folders are called: often a link leads there
        with self._lock:
            if self._owner != os.getpid():
                self._owner, self._bare, self._hooked = os.getpid(), {}, False
            if base not in self._swept:
                self._swept.add(base)
                _sweep(base)
            for path in [path for path in self._bare if os.path.dirname(path) == base]:
                if _bare(path) == self._bare.pop(path):
                    return path
        return tempfile.mkdtemp(prefix=f"{_PREFIX}{_space()}-{os.getpid()}-", dir=base)

    def give_back(self, path: str) -> bool:
        """``False``: it is not bare, or there are enough."""
        looks = _bare(path)
        with self._lock:
            if looks is None or self._owner != os.getpid():
                return False
            if len(self._bare) >= _MOST:
                # the process looks elsewhere for its temporary folders now: those from before would stand in the way
                old = next((each for each in self._bare if os.path.dirname(each) != os.path.dirname(path)), None)
                if old is None:
                    return False
                del self._bare[old]
                with contextlib.suppress(OSError):  # somebody else cleared it away, or uses it
                    os.rmdir(old)
            self._bare[path] = looks
            if not self._hooked:
                atexit.register(self.close)
                self._hooked = True
        return True

    def close(self) -> None:
        if self._owner == os.getpid():
            while self._bare:
                with contextlib.suppress(OSError):  # somebody else cleared the folder for temporary files
                    os.rmdir(self._bare.popitem()[0])


_pool = _Pool()


@functools.cache
def _space() -> int:
    """Tells the numbers of processes here from those of a container that shares the folder."""
    with contextlib.suppress(OSError):
        return os.stat("/proc/self/ns/pid").st_ino
    return 0


def _sweep(base: str) -> None:
    """Take away bare folders of processes that ended without a word. One with anything in it may be somebody's."""
    mine = f"{_PREFIX}{_space()}-"
    with contextlib.suppress(OSError):  # unreadable: then nothing is swept
        for name in os.listdir(base):
            owner = name[len(mine) :].partition("-")[0]
            if name.startswith(mine) and owner.isdigit() and processes.look(int(owner)) is None:
                with contextlib.suppress(OSError):
                    os.rmdir(os.path.join(base, name))


def _bare(path: str) -> tuple[int, ...] | None:
    """What an empty folder of mode 0700 without attributes looks like; ``None`` when it is none."""
    try:
        seen = os.lstat(path)
        if not stat.S_ISDIR(seen.st_mode) or stat.S_IMODE(seen.st_mode) != stat.S_IRWXU or seen.st_uid != os.geteuid():
            return None
        if os.listdir(path) or (hasattr(os, "listxattr") and os.listxattr(path)):
            return None
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


@contextlib.contextmanager
def temporary() -> Iterator[Temporary]:
    """A folder of mode 0700 with nothing in it. Raises ``OSError`` when none can be made."""
    made = Temporary(_pool.take())
    try:
        yield made
    finally:
        if not made.kept and not (made.deserted and _pool.give_back(made.path)):
            with contextlib.suppress(FileNotFoundError):
                removing.remove(made.path)
