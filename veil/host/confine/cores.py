"""No core files for a process that is started without anything between it and this one.

The limit belongs to the whole process, so this one gives up its own for the moment of the start (which a new process
inherits), takes it back, and then takes the higher limit, to which a command could raise its own, from the new process.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading

from veil.host.confine.status import broken

_lock = threading.Lock()
#: Starts under way, and the limit that this process had before the first of them.
_starting = 0
_before = 0


def _after_fork() -> None:
    """Threads that were about to start something are not here."""
    global _lock, _starting
    _lock = threading.Lock()
    if _starting:
        _starting = 0
        _set(_before)


os.register_at_fork(after_in_child=_after_fork)


def _set(soft: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (soft, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def give_up() -> None:
    """What is started from now on until ``take_back`` begins without core files."""
    global _starting, _before
    with _lock:
        soft = resource.getrlimit(resource.RLIMIT_CORE)[0]
        if soft or not _starting:  # also where somebody raised it in the middle of another start
            _before = soft
        if soft:
            _set(0)
        _starting += 1


def take_back(started: int | None) -> None:
    """The end of that. ``started``: the process, which from now on cannot raise its limit any more; ``None``: none was.

    Raises ``VeilError`` (``sandbox_broken``) when the kernel does not let it.
    """
    global _starting
    with _lock:
        _starting -= 1
        if not _starting and _before:
            _set(_before)
    if started is not None:
        try:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(started, resource.RLIMIT_CORE, (0, 0))
        except OSError as error:
            raise broken(f"core files could not be taken from it: {error.strerror}") from error
