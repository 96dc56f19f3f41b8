"""Copying a file by sharing its blocks where the file system can (btrfs, XFS, APFS ...), else by its bytes."""

from __future__ import annotations

import errno
import os

#: ``ioctl`` request of Linux: make this file share the blocks of that one.
_FICLONE = 0x40049409
_CHUNK = 1 << 20


def share(source: int, target: int) -> bool:
    """Make the empty file ``target`` share the blocks of ``source``. ``False`` when this cannot be had here."""
    try:
        import fcntl

        fcntl.ioctl(target, _FICLONE, source)
    except OSError:
        # whatever the reason (another file system, no such call), the caller copies the bytes and meets it again there
        return False
    return True


def share_at(source: int, folder: int, name: str) -> bool:
    """``share`` for macOS, where the copy must not exist yet: makes ``name`` in the folder. ``False`` as there."""
    import ctypes

    if getattr(os.fstat(source), "st_flags", 0):  # the copy would be immutable, hidden ... as well
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "fclonefileat", None)
    return call is not None and call(source, folder, os.fsencode(name), 0) == 0


def new_copy(source: int, folder: int, name: str) -> tuple[int, bool]:
    """Make ``name`` (mode 0600) in the folder, sharing the blocks of ``source`` where that works.

    Returns:
        a descriptor for reading and writing, and whether it is a copy already (else it is empty).

    Raises:
        OSError: the folder cannot be written, or has the name.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    if os.uname().sysname == "Darwin" and share_at(source, folder, name):
        handle = os.open(name, flags, dir_fd=folder)
        os.fchmod(handle, 0o600)
        return handle, True
    handle = os.open(name, flags | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder)
    return handle, share(source, handle)


def copy_bytes(source: int, target: int, size: int) -> None:
    """Write ``size`` bytes of ``source``, from its beginning, to ``target``. Raises ``OSError`` if it has fewer."""
    at = 0
    while at < size:
        block = os.pread(source, min(_CHUNK, size - at), at)
        if not block:
            raise OSError(errno.EIO, "the file is shorter than it should be")
        write_all(target, block)
        at += len(block)


def write_all(target: int, data: bytes | memoryview) -> None:
    """``os.write`` until everything is written. Raises ``OSError``."""
    left = memoryview(data)
    while left:
        left = left[os.write(target, left) :]
