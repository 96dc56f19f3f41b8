"""A foreground run of the command line: a thread runs it, this one shows how it goes and takes the caller's signals."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

from veil import Result, wiring
from veil.cli.screen import is_terminal
from veil.host.orders import Controls, Listener, Orders
from veil.model.record import Record
from veil.present.text import safe_text
from veil.runner import Asked, Runner

#: Signals that end a run instead of the command line alone.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
#: The live line comes after this long, and then moves so often (seconds).
_SHOW_AFTER, _TICK = 0.4, 0.1
_FINISHED = 0


class Progress:
    """What a run has written so far. The pumping thread adds, the main thread looks."""

    def __init__(self) -> None:
        self.bytes = 0
        self._newest = b""

    def add(self, stream: str, data: bytes) -> None:
        self.bytes += len(data)
        self._newest = (self._newest + data)[-4096:]

    @property
    def last_line(self) -> str:
        lines = self._newest.rstrip().rsplit(b"\n", 1)
        return safe_text(lines[-1].rsplit(b"\r", 1)[-1]).strip()


def run(asked: Asked, *, live: bool, listener: Listener | None = None) -> tuple[Result, signal.Signals | None]:
    """See it through; also the signal by which the caller ended it. ``listener`` gets output as it comes.

    The first signal ends the tree with SIGTERM and SIGKILL after 2 s, the second with SIGKILL at once, the third leaves
    this process (a contained run still dies with it).
    """
    progress = Progress()
    orders = Orders()
    controls = Controls(listener=progress.add if live else listener, orders=orders)
    done: list[Record | BaseException] = []
    with _signals() as (wake_read, wake_write):

        def work() -> None:
            try:
                done.append(Runner().perform(asked, controls))
            except BaseException as error:  # raised again on the main thread
                done.append(error)
            finally:
                orders.close()
                os.write(wake_write, bytes([_FINISHED]))

        thread = threading.Thread(target=work, name="veil-run", daemon=True)
        thread.start()
        interrupted = _watch(wake_read, orders, progress if live else None)
        thread.join()
    found = done[0]
    if isinstance(found, BaseException) or asked.request.left_running == "kill":
        wiring.end_adopted()  # what a lost supervisor had adopted came to this process
    if isinstance(found, BaseException):
        raise found
    return Result(found), interrupted


@contextlib.contextmanager
def _signals() -> Iterator[tuple[int, int]]:
    """A pipe that the numbers of ending signals come through; those that are ignored stay ignored (``nohup``)."""
    read, write = os.pipe()
    os.set_blocking(read, False)
    os.set_blocking(write, False)
    before: dict[int, Any] = {}
    wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    for ending in ENDING:
        if signal.getsignal(ending) is not signal.SIG_IGN:
            before[ending] = signal.signal(ending, _noted)
    try:
        yield read, write
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(wakeup)
        os.close(read)
        os.close(write)


def _noted(number: int, frame: FrameType | None) -> None:
    """The number itself comes through the pipe: locks may not be taken in here."""


def _watch(wake: int, orders: Orders, progress: Progress | None) -> signal.Signals | None:
    began = time.monotonic()
    line: _LiveLine | None = None
    first: signal.Signals | None = None
    count = 0
    try:
        while True:
            ready = select.select([wake], [], [], None if progress is None else _TICK)[0]
            if not ready and progress is not None:
                elapsed = time.monotonic() - began
                if line is None and elapsed >= _SHOW_AFTER:
                    line = _LiveLine()
                if line is not None:
                    line.show(elapsed, progress)
                continue
            for number in os.read(wake, 64):
                if number == _FINISHED:
                    return first
                count += 1
                first = first or signal.Signals(number)
                if count == 1:
                    orders.cancel()
                elif count == 2:
                    orders.send(signal.SIGKILL)
                else:
                    os._exit(128 + number)
    finally:
        if line is not None:
            line.close()


class _LiveLine:
    """One line at the foot of the terminal that goes when the run has ended."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(file=sys.stderr), transient=True, auto_refresh=False)
        self._live.start()

    def show(self, elapsed: float, progress: Progress) -> None:
        from rich.filesize import decimal
        from rich.text import Text

        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"{elapsed:6.1f} s  {decimal(progress.bytes):>9}  ", "cyan")
        text.append(progress.last_line)
        self._live.update(text, refresh=True)

    def close(self) -> None:
        self._live.stop()


def wants_live_line() -> bool:
    """Whether somebody watches: both the view and the line go to a terminal."""
    return is_terminal(sys.stderr) and is_terminal(sys.stdout)
