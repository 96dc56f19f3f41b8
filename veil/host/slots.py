"""Places for stages: the same few names every time, each held by one process at a time."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path

from veil.host.removing import claim, empty
from veil.model.errors import Refused

#: Names have three digits, so that every place has a path of the same length; workers of large machines all find one.
_PLACES = 1000


class Slot:
    """A folder that belongs to its holder until ``close``.

    Attributes: path: the folder.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def close(self, *, keep: bool = False) -> None:
        """Give it back, and remove what is in it unless it is to be kept. Idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        try:
            if not keep:
                empty(self.path.parent, self.path.name).rmdir()
        finally:
            os.close(descriptor)

    def __enter__(self) -> Slot:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def take(place: str | None, name: str) -> Slot:
    """The first free of the folders ``<place>/veil-<uid>/<name>-<three digits>``.

    Args:
        place: a folder; where it cannot be used, or None, the one for temporary files.

    Raises:
        Refused: all are held (``no_place``), or ``veil-<uid>`` is not ours (``not_ours``).
    """
    above = place if place is not None and os.access(place, os.W_OK | os.X_OK) else tempfile.gettempdir()
    base = Path(os.path.realpath(above), f"veil-{os.geteuid()}")
    claim(base)
    for number in range(_PLACES):
        path = base / f"{name}-{number:03d}"
        descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            continue
        empty(base, path.name)
        return Slot(path, descriptor)
    raise Refused(f"all {_PLACES} places below {base} are in use", code="no_place", path=str(base))
