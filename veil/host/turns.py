"""One lock file, waited for with patience: taken for oneself (writing) or together with others (reading)."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from veil.model.errors import Refused

_POLL_SECONDS = 0.01


@contextmanager
def turn(path: Path, wait: float, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock on ``path`` (made with mode 0600). A dead process holds nothing.

    Raises:
        Refused: not had within ``wait`` seconds (``busy``).
        OSError: the file cannot be made or opened.
    """
    flags = os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + wait
        while True:
            try:
                fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise Refused(
                        f"another process has been at work on these checkpoints for more than {wait:g} s",
                        code="busy",
                        path=str(path),
                    ) from None
                time.sleep(_POLL_SECONDS)
        try:
            yield
        finally:
            # said aloud: a forked child may still have a copy of the descriptor
            fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)
