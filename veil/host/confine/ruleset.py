"""Landlock's own words: what may be done beneath which path, and the system calls that say so to the kernel."""

from __future__ import annotations

import ctypes
import functools
import os
import stat
import struct

from veil.host import prctl

#: From linux/landlock.h. The calls have the same numbers on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION, _PATH_BENEATH = 1, 1
#: From linux/openat2.h.
_OPENAT2, _AT_FDCWD, _NO_SYMLINKS = 437, -100, 4

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = (1 << bit for bit in range(4))
READ = EXECUTE | READ_FILE | READ_DIR
_REMOVE_AND_MAKE = sum(1 << bit for bit in range(4, 13))
_REFER, _TRUNCATE, _IOCTL_DEV = (1 << bit for bit in range(13, 16))
#: The rights that mean something for what is no folder.
_OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | _TRUNCATE | _IOCTL_DEV
#: The interface version that brought a right.
_SINCE = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEV}
_BIND_AND_CONNECT, _ABSTRACT_AND_SIGNALS = 3, 3


@functools.cache
def version() -> int:
    """The version of the kernel's interface; 0: it has none, or it is switched off."""
    found = prctl.libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(int(found), 0)


def write_rights(abi: int) -> int:
    """All rights that change something, as far as this version of the interface knows them."""
    return (WRITE_FILE | _REMOVE_AND_MAKE) | sum(right for since, right in _SINCE.items() if since <= abi)


class Ruleset:
    """What is restricted, and where it is allowed nevertheless. Several threads may take them on.

    Args:
        rights: of the file system, denied everywhere but beneath the paths of ``allow``.
        network: ``False`` denies TCP. Signals to processes outside and abstract sockets made outside are always denied.
        abi: what this version of the interface cannot express is left out.

    Raises:
        OSError: the kernel refuses.
    """

    def __init__(self, rights: int, *, network: bool, abi: int) -> None:
        self._rights = rights
        ports = 0 if network or abi < 4 else _BIND_AND_CONNECT
        scopes = 0 if abi < 6 else _ABSTRACT_AND_SIGNALS
        size = 8 if abi < 4 else 16 if abi < 6 else 24
        attributes = struct.pack("=QQQ", rights, ports, scopes)[:size]
        self._fd = prctl.libc().syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(size), ctypes.c_uint32(0))
        if self._fd < 0:
            raise prctl.error("landlock_create_ruleset")

    def allow(self, path: str, rights: int) -> bool:
        """Grant the rights beneath a path that has no link in it. ``False``: there is no such path.

        Raises:
            OSError: the kernel does not take the rule.
        """
        # a path that had no link when it was looked at may have one by now
        how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _NO_SYMLINKS)
        fd = prctl.libc().syscall(_OPENAT2, _AT_FDCWD, os.fsencode(path), how, ctypes.c_size_t(len(how)))
        if fd < 0:
            return False
        try:
            mode = os.fstat(fd).st_mode
            rights &= self._rights if stat.S_ISDIR(mode) else self._rights & _OF_FILES
            if rights:
                rule = struct.pack("=Qi", rights, fd)
                if prctl.libc().syscall(_ADD_RULE, self._fd, _PATH_BENEATH, rule, ctypes.c_uint32(0)) != 0:
                    raise prctl.error(f"landlock_add_rule {path!r}")
            return True
        finally:
            os.close(fd)

    def restrict_thread(self) -> None:
        """Put the calling thread, and what it starts, under these rules. It needs ``prctl.no_new_privileges`` before.

        Raises:
            OSError: the kernel refuses (more than 16 domains inside one another, for one).
        """
        if prctl.libc().syscall(_RESTRICT_SELF, self._fd, ctypes.c_uint32(0)) != 0:
            raise prctl.error("landlock_restrict_self")

    def __del__(self) -> None:
        if getattr(self, "_fd", -1) >= 0:
            os.close(self._fd)
