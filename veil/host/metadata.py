"""What a file is beside its bytes: mode, owner, times, extended attributes. No link is followed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping

#: Extended attributes: name and value in hexadecimal, sorted by name.
Attributes = tuple[tuple[str, str], ...]

#: Access lists are set after the mode, which they are a finer form of.
_ACCESS_LISTS = "system.posix_acl_"
#: Answers that mean: this file system (or this kind of file) has no such thing.
_NONE_HERE = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENODATA, errno.ENOSYS})


def attributes_of(handle: int) -> Attributes:
    """Extended attributes of an open file or folder; none where Python cannot ask (macOS). Raises ``OSError``."""
    if not hasattr(os, "listxattr"):
        return ()
    try:
        names = os.listxattr(handle)
        return tuple((name, os.getxattr(handle, name).hex()) for name in sorted(names)) if names else ()
    except OSError as error:
        if error.errno in _NONE_HERE:
            return ()
        raise


def set_mode(name: str, folder: int | None, mode: int) -> None:
    """Set the permission bits of something that may not be opened, never through a link.

    Args:
        name: in the folder whose descriptor ``folder`` is (``None``: a path).

    Raises:
        OSError: not ours, or it is a link.
    """
    if os.chmod in os.supports_follow_symlinks and not hasattr(os, "O_PATH"):
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if stat.S_ISLNK(os.fstat(handle).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        # the way to the very file that was opened, whatever stands at its name by now
        os.chmod(f"/proc/self/fd/{handle}", mode)
    finally:
        os.close(handle)


def dress(handle: int, mode: int, owner: tuple[int, int], mtime_ns: int, attributes: Attributes) -> list[str]:
    """Give an open file or folder its mode, owner, attributes and mtime.

    Returns:
        what this user or this file system does not allow (owner, mode, mtime, single attributes); the rest is done.

    Raises:
        OSError: any other trouble.
    """
    refused = []
    found = os.fstat(handle)
    if (found.st_uid, found.st_gid) != owner:
        try:
            os.fchown(handle, *owner)
        except PermissionError:
            refused.append(f"owner {owner[0]}:{owner[1]}")
    wanted, present = dict(attributes), dict(attributes_of(handle))
    try:
        if wanted != present and not found.st_mode & stat.S_IWUSR:
            os.fchmod(handle, stat.S_IMODE(found.st_mode) | stat.S_IWUSR)
        refused += _set_attributes(handle, wanted, present, lists=False)
        # also when it is so already: giving a file away takes its set-user-id bit off
        if stat.S_IMODE(os.fstat(handle).st_mode) != mode:
            os.fchmod(handle, mode)
    except PermissionError:
        refused.append(f"mode {mode:04o}")
    refused += _set_attributes(handle, wanted, present, lists=True)
    try:
        os.utime(handle, ns=(found.st_atime_ns, mtime_ns))
    except PermissionError:
        refused.append("its time of modification")
    return refused


def _set_attributes(handle: int, wanted: Mapping[str, str], present: Mapping[str, str], *, lists: bool) -> list[str]:
    refused = []
    for name in sorted({**wanted, **present}):
        if name.startswith(_ACCESS_LISTS) is not lists or wanted.get(name) == present.get(name):
            continue
        try:
            if name in wanted:
                os.setxattr(handle, name, bytes.fromhex(wanted[name]))
            else:
                os.removexattr(handle, name)
        except OSError as error:
            if error.errno not in (*_NONE_HERE, errno.EPERM, errno.EACCES):
                raise
            if name in wanted:
                refused.append(f"attribute {name}")
    return refused
