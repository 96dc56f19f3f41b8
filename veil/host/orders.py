"""What goes along with one run beside its launch: listeners, filters, and orders from other threads."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass

from veil.host.capture import Filter

#: Signals that are meant to end a program.
ENDING = frozenset((signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGKILL))

Listener = Callable[[str, bytes], None]


class Orders:
    """What other threads want of a running pump. Thread-safe; costs nothing until used."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pending: list[int] = []
        self._cancelled = False
        self._wake: tuple[int, int] | None = None

    def open(self) -> int:
        """The descriptor that is readable when there is an order."""
        with self._lock:
            if self._wake is None:
                self._wake = os.pipe()
                for fd in self._wake:
                    os.set_blocking(fd, False)
                if self._pending or self._cancelled:
                    os.write(self._wake[1], b"!")
            return self._wake[0]

    def _poke(self) -> None:
        if self._wake is not None:
            with contextlib.suppress(BlockingIOError):
                os.write(self._wake[1], b"!")

    def send(self, signum: int) -> None:
        with self._lock:
            self._pending.append(signum)
            self._poke()

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            self._poke()

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def take(self) -> list[int]:
        """Signals asked for since the last call."""
        with self._lock:
            if self._wake is not None:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake[0], 4096)
            taken, self._pending = self._pending, []
            return taken

    def close(self) -> None:
        with self._lock:
            if self._wake is not None:
                for fd in self._wake:
                    os.close(fd)
                self._wake = None


@dataclass
class Controls:
    """What goes along with one run beside its launch.

    Attributes:
        listener: called on the pumping thread with the stream's name and what was kept; an exception ends the run.
        filters: makes the filter of one stream (redaction).
        orders: the way in for other threads.
    """

    listener: Listener | None = None
    filters: Callable[[], Filter] | None = None
    orders: Orders | None = None
