"""A process that stands behind another one: however that one ends, nothing lives on that it started (Linux)."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator
from types import FrameType

from veil.host import adopted, prctl
from veil.host.exits import ExitWatch

#: Signals that are handed on to the process that is guarded.
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
#: How often is looked where the system cannot tell of the end of a process (milliseconds).
_LOOK = 500


def stand_guard(*, leave_with_parent: bool) -> tuple[int | None, int]:
    """Split in two: the caller goes on in a new process, and this one stands guard behind it.

    The guard adopts whatever the guarded process leaves when it is killed, and ends it. It hands signals on and holds
    neither standard input nor output. The guarded process leads a session of its own, so that a signal to the group of
    the guard comes once.

    Args:
        leave_with_parent: the guarded process gets SIGTERM when the process ends that started this one.

    Returns:
        In the guard, once all is over: the exit code of the guarded process (128+n after signal n), and 0. In the
        guarded process: ``None``, and the process with whose end it has to end, its guard.

    To be called before there are threads. Where orphans cannot be adopted nobody stands guard: the caller goes on, and
    the process to look out for is the one that started it (0 without ``leave_with_parent``).
    """
    parent = os.getppid() if leave_with_parent else 0
    if not prctl.become_subreaper():
        return None, parent
    guard = os.getpid()
    with _held_back():
        guarded = os.fork()
        if guarded == 0:
            os.setsid()
            return None, guard
        _let_go_of_streams()

        def hand_on(number: int, frame: FrameType | None) -> None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(guarded, number)

        for number in ENDING:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
                signal.signal(number, hand_on)
    code = _wait(guarded, parent)
    adopted.end_all()
    return code if code >= 0 else 128 - code, 0


@contextlib.contextmanager
def _held_back() -> Iterator[None]:
    """Ending signals wait: between the fork and the handlers one would end the guard alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _let_go_of_streams() -> None:
    """Whoever waits for the end of one of them waits for the guarded process."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)


def _wait(guarded: int, parent: int) -> int:
    """Until it has ended; its exit code, negative for a signal."""
    watches = [ExitWatch(pid) for pid in (guarded, parent) if pid > 1]
    try:
        poll = select.poll()
        for watch in watches:
            if watch.fileno() >= 0:
                poll.register(watch.fileno(), select.POLLIN)
        blind = any(watch.fileno() < 0 for watch in watches)
        while True:
            found, status = os.waitpid(guarded, os.WNOHANG)
            if found:
                return os.waitstatus_to_exitcode(status)
            if parent > 1 and os.getppid() != parent:
                os.kill(guarded, signal.SIGTERM)  # it is a child that nobody has waited for: the number is its own
                return os.waitstatus_to_exitcode(os.waitpid(guarded, 0)[1])
            poll.poll(_LOOK if blind else None)
    finally:
        for watch in watches:
            watch.close()
