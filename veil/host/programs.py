"""Programs that veil starts for itself, outside of every confinement: none from where a command of a project works.

The ``bin`` folder of a project's virtual environment stands first in PATH more often than not, and a command that may
write to the project may write there. What it leaves under the name of a tool of veil's is not to be started.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

#: Stands in the folder of a repository.
_REPOSITORY = ".git"


def named(name: str, project: str | None = None) -> Iterator[str]:
    """Programs of this name in the folders of PATH, in their order, but those that are relative or of a project.

    Args:
        project: see ``of_a_project``.
    """
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        program = os.path.isabs(folder) and os.access(path, os.X_OK) and os.path.isfile(path)
        if program and not of_a_project(path, project):
            yield path


def of_a_project(program: str, project: str | None = None) -> bool:
    """Whether commands work where it is: in ``project`` (a folder), in the working folder of this process, or in a
    repository; told from its path, from where its folder really is, and from where it really is itself."""
    try:
        here = os.getcwd()
    except OSError:  # it is gone, and what was in it
        here = ""
    at, really = os.path.split(os.path.normpath(program))[0], os.path.realpath(program)
    for place in dict.fromkeys((at, os.path.realpath(at), os.path.dirname(really))):
        while place != os.path.dirname(place):
            if place in (here, project) or os.path.lexists(os.path.join(place, _REPOSITORY)):
                return True
            place = os.path.dirname(place)
    return False
