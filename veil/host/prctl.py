"""What only the C library can set of a process: who adopts its orphans, and how its memory is laid out."""

from __future__ import annotations

import contextlib
import ctypes
import functools
from collections.abc import Iterator

from veil.host.processes import LINUX


@functools.cache
def _libc() -> ctypes.CDLL:
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
    personality = _libc().personality
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
    return bool(_libc().prctl(pr_set_child_subreaper, 1, 0, 0, 0) == 0)
