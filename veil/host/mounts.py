"""What is mounted below a folder. The device number alone does not tell: a bind mount often has that of the folder."""

from __future__ import annotations

import os
from pathlib import Path

from veil.host.processes import LINUX


def mounted_below(folder: str) -> list[str]:
    """Paths below ``folder`` (absolute, links resolved) at which folders or files are mounted, the first one first.

    Where the system does not say it (macOS, no ``/proc``) the list is empty; there only device numbers tell.
    """
    if not LINUX:
        return []
    try:
        rows = Path("/proc/self/mountinfo").read_bytes().split(b"\n")[:-1]
    except OSError:
        return []
    prefix = os.fsencode(folder if folder.endswith("/") else folder + "/")
    found = []
    for row in rows:
        point = point_of(row)
        if point.startswith(prefix):
            found.append(os.fsdecode(point[len(prefix) :]))
    return list(dict.fromkeys(found))


def point_of(row: bytes) -> bytes:
    """The path at which the mount of one line of ``mountinfo`` is."""
    point = row.split(b" ", 5)[4]
    if b"\\" in point:  # blanks, line ends and backslashes stand as octal numbers
        point = point.decode("unicode_escape").encode("latin-1")
    return point
