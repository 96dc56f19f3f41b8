"""Which names a folder has, remembered while its times tell that nothing came or went."""

from __future__ import annotations

import os
import time

#: Seconds after which a change would show in a folder's times; some file systems keep them in steps of two.
SETTLED = 3.0
_MOST = 64
#: Path -> (device, inode, mtime_ns, ctime_ns) and the names.
_kept: dict[str, tuple[tuple[int, int, int, int], frozenset[str]]] = {}


def names_in(folder: str) -> frozenset[str] | None:
    """Its names; none when it is no folder; ``None`` when it may be entered without being listed."""
    try:
        found = os.stat(folder)
        stamp = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
        known = _kept.get(folder)
        if known is not None and known[0] == stamp:
            return known[1]
        before = time.time_ns()
        names = frozenset(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError:
        return None
    if before - max(stamp[2:]) > SETTLED * 1e9:
        if len(_kept) >= _MOST:
            _kept.clear()
        _kept[folder] = (stamp, names)
    return names
