"""How a server ends: at a signal, with its parent, or when its client leaves; and all that it started with it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Iterator

from veil import wiring
from veil.host.exits import ExitWatch
from veil.tools import Toolbox

_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: How often the parent is looked for where the system cannot tell of its end (seconds).
_LOOK = 0.5


class Lifetime:
    """Calls ``stop`` on the loop once, whatever ends the server first.

    Attributes:
        signal: by which it was ended, if it was.
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._stopped = False
        self.signal: int | None = None

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._stop()

    def _told(self, number: int) -> None:
        if self.signal is not None:
            os._exit(128 + number)  # asked again: what is contained dies with this process
        self.signal = number
        self.stop()

    @contextlib.contextmanager
    def watching(self, parent: int) -> Iterator[None]:
        """Within the block the ending signals are heard, and the end of the parent process of this number (0: none)."""
        loop = asyncio.get_running_loop()
        for number in _ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                loop.add_signal_handler(number, self._told, number)
        watch = _ParentWatch(loop, self.stop, parent) if parent else None
        try:
            yield
        finally:
            if watch is not None:
                watch.close()


class _ParentWatch:
    """Tells when the parent process has ended; with the first process everything ends anyway."""

    def __init__(self, loop: asyncio.AbstractEventLoop, gone: Callable[[], None], parent: int) -> None:
        self._loop, self._gone, self._parent = loop, gone, parent
        self._exit: ExitWatch | None = None
        self._timer: asyncio.TimerHandle | None = None
        if self._parent <= 1:
            return
        self._exit = ExitWatch(self._parent)
        if self._exit.fileno() >= 0:
            loop.add_reader(self._exit.fileno(), self._ended)
        # also when there is a descriptor: the parent may have ended before it was opened
        self._look()

    def _look(self) -> None:
        if os.getppid() != self._parent:
            self._ended()
        elif self._exit is not None and self._exit.fileno() < 0:
            self._timer = self._loop.call_later(_LOOK, self._look)

    def _ended(self) -> None:
        self.close()
        self._gone()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._exit is not None:
            if self._exit.fileno() >= 0:
                self._loop.remove_reader(self._exit.fileno())
            self._exit.close()
            self._exit = None


def reap(box: Toolbox) -> None:
    """End all that was started: calls that are still on their way, background runs, and what they left behind."""
    wiring.jobs.close()
    box.close()  # a checkpoint may take its time: what runs does not wait for it
    wiring.jobs.close()
    wiring.end_adopted()
