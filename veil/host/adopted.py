"""Ending everything below this process: for one that is veil's own and adopts the orphans of its runs."""

from __future__ import annotations

import contextlib
import os
import signal
import time

from veil.host import processes
from veil.host.children import KILL_WAIT


def end_all() -> int:
    """SIGKILL until nobody is left below this process; returns how many could not be ended."""
    deadline = time.monotonic() + KILL_WAIT
    while True:
        below = _below(os.getpid())
        if not below or time.monotonic() > deadline:
            _reap()
            return len(below)
        for process in below:
            processes.send(process, signal.SIGKILL)
        _reap()
        time.sleep(0.002)


def _below(root: int) -> list[processes.Process]:
    seen = processes.everyone()
    children: dict[int, list[processes.Process]] = {}
    for process in seen.values():
        children.setdefault(process.parent, []).append(process)
    found: list[processes.Process] = []
    todo = [root]
    while todo:
        born = children.get(todo.pop(), [])
        found += [process for process in born if not process.zombie]
        todo += [process.pid for process in born]
    return found


def _reap() -> None:
    """Collect every child that has ended: nobody waits for any of them any more."""
    for process in processes.everyone().values():
        if process.parent == os.getpid() and process.zombie:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process.pid, os.WNOHANG)
