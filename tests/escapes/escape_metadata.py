"""Mode, owner, times, attributes and flags of files outside. The host compares them."""

from __future__ import annotations

import fcntl
import os
import struct

from attempts import LANDLOCK, Family, Through
from calls import OUTSIDE, TARGET, Cannot, syscall

FAMILY = Family(__name__)
attempt, shell = FAMILY.attempt, FAMILY.shell

OPEN = Through(LANDLOCK, "Landlock has no right for it", gap="mode, owner, times")
OWNERS = {"user": "only root gives files away"}

shell("mode", 'chmod 777 "$ESCAPE_OUTSIDE/target"', through=OPEN)
shell("mode of a folder", 'chmod 700 "$ESCAPE_OUTSIDE/sub"', through=OPEN)
shell("set-user-id bit", 'chmod 4755 "$ESCAPE_OUTSIDE/program"', through=OPEN)
shell("owner", 'chown 12345 "$ESCAPE_OUTSIDE/target"', bare=OWNERS)
shell("group", 'chgrp 12345 "$ESCAPE_OUTSIDE/target"', bare=OWNERS)
shell("times", 'touch -d 2001-01-01 "$ESCAPE_OUTSIDE/target"', through=OPEN)
shell("times of a link", 'touch -h -d 2001-01-01 "$ESCAPE_OUTSIDE/link"', through=OPEN)


@attempt("mode through an opened descriptor", through=OPEN)
def fchmod() -> None:
    os.fchmod(os.open(TARGET, os.O_RDONLY), 0o777)


@attempt("mode through a descriptor that only names (/proc/self/fd)", through=OPEN)
def chmod_by_path() -> None:
    os.chmod(f"/proc/self/fd/{os.open(TARGET, os.O_PATH)}", 0o777)


@attempt("mode by the newest call (fchmodat2)", through=OPEN)
def fchmodat2() -> None:
    syscall("fchmodat2", os.open(TARGET, os.O_PATH), b"", 0o777, 0x1000)


@attempt("an attribute set", through=OPEN)
def set_attribute() -> None:
    os.setxattr(TARGET, "user.attempt", b"x")


@attempt("an attribute removed", through=OPEN)
def remove_attribute() -> None:
    if "user.kept" not in os.listxattr(TARGET):
        raise Cannot("a file system without attributes")
    os.removexattr(TARGET, "user.kept")


@attempt("an access list", through=OPEN)
def access_list() -> None:
    # struct posix_acl_xattr: the owner, user 12345, the group, the mask, all others
    entries = ((1, 6, -1), (2, 6, 12345), (4, 4, -1), (16, 6, -1), (32, 4, -1))
    packed = b"".join(struct.pack("=HHi", *entry) for entry in entries)
    os.setxattr(TARGET, "system.posix_acl_access", struct.pack("=I", 2) + packed)


@attempt("a flag of the file system", through=OPEN)
def flags() -> None:
    get, put, nodump = 0x80086601, 0x40086602, 0x40
    handle = os.open(TARGET, os.O_RDONLY)
    try:
        found = struct.unpack("=II", fcntl.ioctl(handle, get, bytes(8)))[0]
    except OSError as error:
        raise Cannot("a file system without flags") from error
    fcntl.ioctl(handle, put, struct.pack("=II", found | nodump, 0))


@attempt("access of others to a file kept for oneself", through=OPEN)
def opened_to_all() -> None:
    os.chmod(f"{OUTSIDE}/private", 0o644)
