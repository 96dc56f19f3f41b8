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

from veil.host import processes

#: Commands and supervisors that this process started and has not let go of.
_own: set[int] = set()
#: Between the start of a child and its entry in the book nobody may take it for an orphan.
_starting = threading.Lock()


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
    """Whether a child of this process is an orphan. Commands and their offspring have sessions of their own, so what is
    in this process's session is a helper of some other part of it."""
    return process.pid not in _own and process.session != os.getsid(0)


def childless() -> bool:
    """Whether this process has no child at all any more, living or dead; orphans that have ended are let go of.

    One or two system calls. ``True`` means that nobody is left below it: the nearest living ancestor of anybody there
    would be its child.
    """
    with _starting:
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return True
            if ended is None or ended.si_pid in _own or os.getsid(ended.si_pid) == os.getsid(0):
                return False
            with contextlib.suppress(ChildProcessError):
                os.waitpid(ended.si_pid, os.WNOHANG)


def collect() -> None:
    """Let go of every orphan that has ended."""
    with _starting:
        for process in processes.everyone().values():
            if process.parent == os.getpid() and process.zombie and is_one(process):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, os.WNOHANG)
