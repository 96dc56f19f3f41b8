"""Files without a name: what passes through one is found by nobody and is gone with its last descriptor."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

#: Descriptors from here on: scripts use the small ones (and 200, the one in the manual of flock), bash itself 255.
_HIGH, _LOW = 220, 20


@contextlib.contextmanager
def file() -> Iterator[int]:
    """A descriptor of a fresh, empty file; closed afterwards.

    The number is one that scripts do not use. Not inherited unless it is handed down on purpose.
    """
    first = _make()
    try:
        high = _moved(first)
    finally:
        os.close(first)
    try:
        yield high
    finally:
        os.close(high)


def fill(descriptor: int, content: bytes) -> None:
    """Write the whole content; whoever reads begins at its beginning."""
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]
    os.lseek(descriptor, 0, os.SEEK_SET)


def content_of(descriptor: int) -> bytes:
    """All that is in the file, wherever its offset is."""
    size = os.fstat(descriptor).st_size
    pieces, at = [], 0
    while at < size and (piece := os.pread(descriptor, size - at, at)):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def _make() -> int:
    if hasattr(os, "memfd_create"):
        with contextlib.suppress(OSError):  # a kernel or a filter that does not have it: then a file does
            return os.memfd_create("veil")
    import tempfile

    handle, path = tempfile.mkstemp(prefix="veil-")
    os.unlink(path)
    return handle


def _moved(descriptor: int) -> int:
    import fcntl

    for least in (_HIGH, _LOW):
        try:
            return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, least)
        except OSError as error:  # above the number of descriptors that this process may have
            refused = error
    raise refused
