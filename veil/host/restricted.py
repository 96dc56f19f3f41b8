"""Starting a process from a thread that gave something up first: the process never has it, this program keeps it."""

from __future__ import annotations

import _thread
from collections.abc import Callable
from typing import TypeVar

from veil.model.plan import Restrict

T = TypeVar("T")


def start(restrict: Restrict | None, begin: Callable[[], T]) -> T:
    """``begin()`` of a thread on which ``restrict()`` went before; without one, ``begin()`` of this thread.

    Landlock domains, seccomp filters, capabilities and no_new_privs belong to the thread that asked for them and go
    down to the children that it starts, so a thread that ends right after the start confines the child alone. What
    ``restrict()`` answers, if anything, is called with what was begun (``None`` when nothing was). Whatever any of them
    raises is raised here.
    """
    if restrict is None:
        return begin()
    begun: list[T] = []
    failed: list[BaseException] = []

    done = _thread.allocate_lock()

    def work() -> None:
        try:
            settle = restrict()
            try:
                begun.append(begin())
            finally:
                if settle is not None:
                    settle(begun[0] if begun else None)
        except BaseException as error:  # raised again on the thread that asked
            failed.append(error)
        finally:
            done.release()

    done.acquire()
    # not a threading.Thread: waiting until that has told of its start takes longer than all that is done on it
    _thread.start_new_thread(work, ())
    while True:
        try:
            done.acquire()
            break
        except KeyboardInterrupt as error:  # what has been started by then must be known before anybody gives up
            failed.append(error)
    if failed:
        raise failed[0]
    return begun[0]
