"""What only the C library can set of a process: who adopts its orphans, its memory's layout, what it gives up."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import struct
from collections.abc import Iterator

from veil.host.processes import LINUX


@functools.cache
def libc() -> ctypes.CDLL:
    """The C library of this process; ``errno`` of a call by ``ctypes.get_errno``."""
    return ctypes.CDLL(None, use_errno=True)


@contextlib.contextmanager
def fixed_addresses(wanted: bool) -> Iterator[None]:
    """Children started by this thread get no address randomisation (Linux; elsewhere, and where forbidden, nothing).

    The personality belongs to the thread and is inherited through fork and exec.
    """
    if not wanted or not LINUX:
        yield
        return
    query, addr_no_randomize = 0xFFFFFFFF, 0x0040000
    personality = libc().personality
    personality.argtypes = [ctypes.c_ulong]
    before = personality(query)
    changed = before >= 0 and personality(before | addr_no_randomize) >= 0
    try:
        yield
    finally:
        if changed:
            personality(before)


def become_subreaper() -> bool:
    """Make this process adopt its orphaned descendants (Linux). ``False`` where there is no such thing."""
    if not LINUX:
        return False
    pr_set_child_subreaper = 36
    return bool(libc().prctl(pr_set_child_subreaper, 1, 0, 0, 0) == 0)


def no_new_privileges() -> None:
    """This thread and what it starts never gain privileges through a program. Raises ``OSError``."""
    pr_set_no_new_privs = 38
    if libc().prctl(pr_set_no_new_privs, 1, 0, 0, 0) != 0:
        raise error("prctl(PR_SET_NO_NEW_PRIVS)")


class _FilterProgram(ctypes.Structure):
    """``struct sock_fprog``."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def filter_calls(program: bytes) -> None:
    """Put this thread and what it starts under a seccomp filter (an array of ``struct sock_filter``); it needs
    ``no_new_privileges`` before. Raises ``OSError``."""
    pr_set_seccomp, seccomp_mode_filter = 22, 2
    code = _FilterProgram(len(program) // 8, program)
    if libc().prctl(pr_set_seccomp, seccomp_mode_filter, ctypes.byref(code), 0, 0) != 0:
        raise error("prctl(PR_SET_SECCOMP)")


def drop_capabilities() -> None:
    """Give up every capability of this thread, and for what it starts. Raises ``OSError``.

    With ``no_new_privileges`` as well it is for good: no program then gains what this thread does not have. So the
    bounding set, which would take a call for each capability, is left as it is.
    """
    pr_cap_ambient, pr_cap_ambient_clear_all = 47, 4
    libc().prctl(pr_cap_ambient, pr_cap_ambient_clear_all, 0, 0, 0)  # kernels before 4.3 have none
    version_3, nothing = 0x20080522, bytes(24)
    if libc().capset(struct.pack("=Ii", version_3, 0), nothing) != 0:
        raise error("capset")


def error(call: str) -> OSError:
    """What the last call of this thread failed with."""
    number = ctypes.get_errno()
    return OSError(number, f"{call}: {os.strerror(number)}")


def keep_private() -> bool:
    """Keep other processes of the same user out of this one's descriptors and memory (Linux; elsewhere ``False``).

    Programs that it starts are not concerned. The superuser is not kept out. No core dump is written any more.
    """
    if not LINUX:
        return False
    pr_set_dumpable = 4
    return bool(libc().prctl(pr_set_dumpable, 0, 0, 0, 0) == 0)
