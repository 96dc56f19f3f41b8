"""The real disk while pyfakefs has put a fake one in its place."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator

#: Modules that read the disk that the test sees.
_SEES_THE_FAKE = ("pytest_veil.filling", "pytest_veil.populating")
_lock = threading.RLock()
_depth = 0


@contextlib.contextmanager
def real_disk() -> Iterator[None]:
    """Everything in the block, in every thread, sees the real disk. May be nested; costs nothing without pyfakefs."""
    global _depth
    faking = sys.modules.get("pyfakefs.fake_filesystem_unittest")
    patcher = None if faking is None else faking.Patcher.PATCHER
    if patcher is None:
        yield
        return
    with _lock:
        _depth += 1
        if _depth == 1:
            patcher.pause()
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and faking is not None and faking.Patcher.PATCHER is patcher:
                patcher.resume()


def never_fake() -> None:
    """Tell pyfakefs, when it is there, to leave the modules of veil that are imported by now as they are.

    A background run goes on in threads while the test is back on the fake disk. What reads the fake disk on purpose
    is left out.
    """
    faking = sys.modules.get("pyfakefs.fake_filesystem_unittest")
    if faking is not None:
        faking.Patcher.SKIPMODULES.update(module for name, module in list(sys.modules.items()) if _ours(name))


def _ours(name: str) -> bool:
    package = name.partition(".")[0]
    return package in ("veil", "pytest_veil", "psutil", "filelock", "pluggy") and name not in _SEES_THE_FAKE
