"""A workspace filled from files of the test: from the fake disk too, while pyfakefs has put one there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_veil.real_disk import real_disk
from veil import BadInput

#: Relative name, permission bits and content of an entry: text is the target of a link, None a folder.
Entry = tuple[str, int, "bytes | str | None"]


def copy_in(root: Path, paths: Sequence[Path | str], into: str) -> None:
    """See ``VeilRun.copy_in``. Reads from whatever disk the test sees, writes to the real one."""
    place = os.path.normpath(os.path.join(root, into))
    if place != str(root) and not place.startswith(f"{root}{os.sep}"):
        raise BadInput("into", into, "a folder in the workspace")
    entries = [entry for path in paths for entry in read(os.path.abspath(path))]
    with real_disk():
        for name, mode, content in entries:
            _write(os.path.join(place, name), mode, content)


def read(top: str) -> Iterator[Entry]:
    """Everything at and below a path, on whatever disk the test sees; the path itself comes first."""
    # while pyfakefs is at work an import gives the fake modules; the names above may be the real ones
    import io
    import os
    import stat

    if not os.path.lexists(top):
        raise BadInput("paths", top, "files and folders that are there")
    above = os.path.dirname(top)
    stack = [top]
    while stack:
        path = stack.pop()
        found = os.lstat(path)
        name, mode = os.path.relpath(path, above), stat.S_IMODE(found.st_mode)
        if stat.S_ISLNK(found.st_mode):
            yield name, mode, os.readlink(path)
        elif stat.S_ISDIR(found.st_mode):
            yield name, mode, None
            stack += sorted((os.path.join(path, inner) for inner in os.listdir(path)), reverse=True)
        elif stat.S_ISREG(found.st_mode):
            with io.open(path, "rb") as file:  # noqa: UP020 - the name open may be the real one
                yield name, mode, file.read()


def _write(place: str, mode: int, content: bytes | str | None) -> None:
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if content is None:
        os.makedirs(place, exist_ok=True)
        return
    if isinstance(content, str):
        os.symlink(content, place)
        return
    with open(place, "wb") as file:  # noqa: PTH123
        file.write(content)
    os.chmod(place, mode)
