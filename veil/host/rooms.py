"""Private folders for the length of one run: made on the first place that will do, taken away with all in them.

A room is locked for as long as its run lives, so that what a killed process left can be told from what is in use.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from veil.host import removing
from veil.model.errors import Refused

_LOCK = "in-use"
#: A room without a lock that is younger than this may be one that is just being made (seconds).
_YOUNG = 60.0


class Room:
    """One folder of mode 0700 that nobody else knows.

    Attributes: path: its absolute path, links resolved. passing: it lies in a temporary folder.
    """

    passing = False

    def __init__(self, base: Path) -> None:
        """``base``: a folder marked as veil's own. Raises ``OSError``."""
        self._base = base
        self._name = f"room-{secrets.token_hex(8)}"
        self.path = str(base / self._name)
        os.mkdir(self.path, 0o700)
        self._lock = os.open(os.path.join(self.path, _LOCK), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Take it away. Idempotent. What the disk refuses to take away is left for a later sweep."""
        if self._lock < 0:
            return
        with contextlib.suppress(OSError):
            removing.discard(self._base, self._name)
        os.close(self._lock)
        self._lock = -1


class PassingRoom(Room):
    """A room in the temporary folder, with a marked base of its own that goes with it."""

    passing = True

    def __init__(self, folder: Path) -> None:
        base = Path(tempfile.mkdtemp(prefix="veil-preview-", dir=folder))
        removing.claim(base)
        super().__init__(base)

    def close(self) -> None:
        super().close()
        with contextlib.suppress(OSError):
            removing.remove(str(self._base))


class Rooms:
    """Where rooms can be made.

    Args:
        home: a folder for them alone, made at the first one; ``None``: temporary folders only.
    """

    def __init__(self, home: Path | None) -> None:
        self.home = home

    def places(self, outside: str) -> Iterator[Room]:
        """A room on each place that is there and not below ``outside``; the caller closes those that do not suit."""
        if self.home is not None and not lies_below(str(self.home), outside):
            with contextlib.suppress(OSError, Refused):  # a full or read-only disk: the next place may do
                removing.claim(Path(os.path.realpath(self.home)))
                self.sweep()
                yield Room(Path(os.path.realpath(self.home)))
        seen = set()
        for folder in (tempfile.gettempdir(), "/var/tmp", "/dev/shm"):
            real = os.path.realpath(folder)
            if real in seen or not os.path.isdir(real) or lies_below(real, outside):
                continue
            seen.add(real)
            with contextlib.suppress(OSError, Refused):
                yield PassingRoom(Path(real))

    def sweep(self) -> None:
        """Take away rooms that killed processes left at home. Raises ``OSError``."""
        if self.home is None:
            return
        base = Path(os.path.realpath(self.home))
        for name in os.listdir(base):
            if name.startswith("room-") and _abandoned(base / name):
                with contextlib.suppress(OSError):
                    removing.discard(base, name)


def _abandoned(room: Path) -> bool:
    try:
        handle = os.open(room / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        # being made, or half taken away
        return error.errno == errno.ENOENT and time.time() - room.stat().st_mtime > _YOUNG
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return time.time() - room.stat().st_mtime > _YOUNG


def lies_below(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or lies below it, links resolved."""
    real, top = os.path.realpath(path), os.path.realpath(folder)
    return real == top or real.startswith(top.rstrip("/") + "/")
