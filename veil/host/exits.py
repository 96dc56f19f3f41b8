"""Hearing of the end of a process without collecting it."""

from __future__ import annotations

import contextlib
import os
import select
import sys
from typing import Any


class ExitWatch:
    """A descriptor that is readable once a process has ended (pidfd, kqueue), or -1 where there is none (then poll)."""

    def __init__(self, pid: int) -> None:
        self._pidfd = -1
        self._queue: Any = None
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):  # a kernel without it
                self._pidfd = os.pidfd_open(pid)
        elif sys.platform != "linux":
            queue = select.kqueue()
            try:
                queue.control([select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)], 0)
                self._queue = queue
            except OSError:  # it ended before it could be watched
                queue.close()

    def fileno(self) -> int:
        return self._pidfd if self._queue is None else int(self._queue.fileno())

    def close(self) -> None:
        if self._queue is not None:
            self._queue.close()
            self._queue = None
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
