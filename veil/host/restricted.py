"""Starting a process from a thread that gave something up first: the process never has it, this program keeps it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def start(restrict: Callable[[], None] | None, begin: Callable[[], T]) -> T:
    """``begin()`` of a thread on which ``restrict()`` went before; without one, ``begin()`` of this thread.

    Landlock domains, seccomp filters, capabilities and no_new_privs belong to the thread that asked for them and go
    down to the children that it starts, so a thread that ends right after the start confines the child alone. Whatever
    either raises is raised here.
    """
    if restrict is None:
        return begin()
    begun: list[T] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            restrict()
            begun.append(begin())
        except BaseException as error:  # raised again on the thread that asked
            failed.append(error)

    thread = threading.Thread(target=work, name="veil-restricted")
    thread.start()
    while True:
        try:
            thread.join()
            break
        except KeyboardInterrupt as error:  # what has been started by then must be known before anybody gives up
            failed.append(error)
    if failed:
        raise failed[0]
    return begun[0]
