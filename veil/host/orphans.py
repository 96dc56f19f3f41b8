"""Whose child is whose in a process that adopts the orphans of its runs, and has several runs at once.

Children of such a process are those that it started, and those that came to it when their parents ended. Only the
latter may be taken for what a run left behind, or be collected without being asked for.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from veil.host import processes

#: Commands and supervisors that this process started and has not let go of.
_own: set[int] = set()
#: Between the start of a child and its entry in the book nobody may take it for an orphan.
_starting = threading.Lock()


def _after_fork() -> None:
    """Another thread may have held the lock, and is not here; what it started are not the children of this process."""
    global _starting
    _starting = threading.Lock()
    _own.clear()


os.register_at_fork(after_in_child=_after_fork)


def start(begin: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """``begin()``, and what it started is known as this process's own."""
    with _starting:
        started = begin()
        _own.add(started.pid)
    return started


def let_go(pid: int) -> None:
    """It has been collected, or nobody waits for it any more."""
    _own.discard(pid)


def is_one(process: processes.Process) -> bool:
    """Whether a child of this process, as it was seen just now, is an orphan. Commands and their offspring have
    sessions of their own, so what is in this process's session is a helper of some other part of it."""
    with _starting:  # whoever was seen while it was being started is in the book by now
        return _is_one(process)


def _is_one(process: processes.Process) -> bool:
    return process.pid not in _own and process.session != os.getsid(0)


def none() -> bool:
    """Whether a cheap look tells that this process has no living orphan; ``False`` leaves it open. Orphans that have
    ended are let go of.

    Without one, nobody is left of a command that has been collected: the nearest living ancestor of anybody there would
    have come to this process.
    """
    with _starting:
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return True  # no child at all
            if ended is None or _started_here(ended.si_pid):
                break
            with contextlib.suppress(ChildProcessError):
                os.waitpid(ended.si_pid, os.WNOHANG)
        # while one of them ends the list may leave another one out, but hardly twice
        return all(_started_here(pid) for _ in range(2) for pid in _children())


#: Stands for children of which nothing can be known: a kernel need not list them.
_UNKNOWN = [0]


def _children() -> list[int]:
    found: list[int] = []
    for thread in os.listdir("/proc/self/task"):
        try:
            found += map(int, Path(f"/proc/self/task/{thread}/children").read_bytes().split())
        except OSError:
            if os.path.isdir(f"/proc/self/task/{thread}"):
                return _UNKNOWN
    return found


def _started_here(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        return pid in _own or (pid > 0 and os.getsid(pid) == os.getsid(0))
    return True  # it has been collected meanwhile


def collect() -> None:
    """Let go of every orphan that has ended."""
    with _starting:
        for process in processes.everyone().values():
            if process.parent == os.getpid() and process.zombie and _is_one(process):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
