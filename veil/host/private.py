"""Folders that are the owner's alone, whatever the umask is."""

from __future__ import annotations

import os
from pathlib import Path


def make(folder: Path) -> None:
    """Make the folder and what is missing above it, each with mode 0700; what is there stays as it is.

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
        os.chmod(step, 0o700)  # a umask can only have taken bits away
