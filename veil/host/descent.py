"""Who descends from a process, as the kernel lists it: quicker than looking at everyone, and only on Linux."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


def children_of(pid: int) -> list[int] | None:
    """Processes that the main thread of this one started or was given; ``None`` where nobody keeps a list (Linux with
    ``CONFIG_PROC_CHILDREN`` does). Of one that is gone: none."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:  # noqa: PTH123
            return [int(word) for word in file.read().split()]
    except ProcessLookupError:  # gone between open and read
        return []
    except OSError:
        return [] if os.path.exists("/proc/self/stat") and not os.path.exists(f"/proc/{pid}") else None


def below(first: int) -> Iterator[int]:
    """Everything that descends from a process, itself left out; threads that start processes are asked as well."""
    todo = [first]
    while todo:
        pid = todo.pop()
        with contextlib.suppress(OSError):  # gone while it was looked at
            for task in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{task}/children", "rb") as file:  # noqa: PTH123
                    children = [int(word) for word in file.read().split()]
                yield from children
                todo += children
