"""Folders and files that are the owner's alone, whatever the umask is, and also when root makes them for somebody else.

Root may work with the state of another user (``sudo`` that keeps the environment, a container with a folder of its
host). What it left there as its own would be in that user's way from then on.
"""

from __future__ import annotations

import os
from pathlib import Path


def make(folder: Path, *, theirs: bool = False) -> None:
    """Make the folder and what is missing above it, each with mode 0700; what is there stays as it is.

    What root makes above it belongs to whom the folder around it belongs to; with ``theirs`` so does ``folder`` itself.

    Raises ``OSError`` when it cannot be made.
    """
    missing = []
    step = folder
    while not os.path.lexists(step):
        missing.append(step)
        step = step.parent
    for step in reversed(missing):
        try:
            os.mkdir(step, 0o700)
        except FileExistsError:
            continue  # another process was faster
        # a umask can only have taken bits away
        if os.geteuid() != 0:
            os.chmod(step, 0o700)
            continue
        # whose folder this is may have put a link there meanwhile, which root must not follow
        handle = os.open(step, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchmod(handle, 0o700)
            if theirs or step != folder:
                give(handle, step.parent)
        finally:
            os.close(handle)


def give(descriptor: int, folder: str | Path) -> None:
    """What root has just made in another user's folder becomes that user's. Does nothing for anybody else."""
    if os.geteuid() == 0:
        owner = os.lstat(folder)
        if owner.st_uid:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
