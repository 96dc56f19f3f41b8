"""Programs that veil starts for itself, outside of every confinement: found where no confined command can have put one.

The ``bin`` folder of a project's virtual environment stands first in PATH more often than not, and a command that may
write to the project may write there. What it leaves under the name of a tool of veil's is not to be started.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

#: Stands in the folder of a repository.
_REPOSITORY = ".git"


def named(name: str) -> Iterator[str]:
    """Programs of this name in the folders of PATH, in their order, but those that are relative, in the working folder
    of this process, or in a repository."""
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isabs(folder) and os.access(path, os.X_OK) and os.path.isfile(path) and not _of_a_project(folder):
            yield path


def _of_a_project(folder: str) -> bool:
    """Whether commands work in there: told from where the folder is, and from where it really is."""
    try:
        here = os.getcwd()
    except OSError:  # it is gone, and what was in it
        here = ""
    for place in dict.fromkeys((os.path.normpath(folder), os.path.realpath(folder))):
        while place != os.path.dirname(place):
            if place == here or os.path.lexists(os.path.join(place, _REPOSITORY)):
                return True
            place = os.path.dirname(place)
    return False
