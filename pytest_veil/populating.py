"""Files for a workspace: written down in the test, from a folder, or from a fake file system of pyfakefs.

A fake file system is read through its own objects and never through ``open``: which disk that means depends on the
moment. What a path means is asked while the test's disk is there, and everything is written to the real one.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

from pytest_veil.filling import Entry, read
from pytest_veil.real_disk import real_disk
from veil import BadInput

if TYPE_CHECKING:
    from veil.taping import Put

#: What ``populate`` takes; the fake file system is named in words, because pyfakefs need not be there.
Source: TypeAlias = Union[Mapping[str, Any], str, "os.PathLike[str]", Any]

_SOURCES = "a mapping of names to text, bytes or mappings, the path of a folder or file, or a fake file system"


def populate(root: Path, source: Source, into: str, below: str) -> None:
    """See ``Workspace.populate``."""
    place = _name("into", into) if into != "." else ""
    if isinstance(source, Mapping):
        entries = list(_written(source, ""))
    elif isinstance(source, (str, os.PathLike)):
        entries = list(_copied(os.path.abspath(source)))
    elif _is_fake(source):
        with real_disk():
            entries = list(_faked(source, below))
    else:
        raise BadInput("source", source, _SOURCES)
    with real_disk():
        from veil.taping import apply

        apply(str(root), [_put(place, entry) for entry in entries])


def _put(place: str, entry: Entry) -> Put:
    from veil.taping import Put

    name, mode, content = entry
    path = os.path.normpath(os.path.join(place, name))
    if content is None:
        return Put(path, "dir", mode)
    if isinstance(content, str):
        return Put(path, "symlink", 0, os.fsencode(content))
    return Put(path, "file", mode, content)


def _name(argument: str, name: object) -> str:
    """A path below the workspace, as it is written."""
    if isinstance(name, str) and name and "\0" not in name and not os.path.isabs(name):
        found = os.path.normpath(name)
        if found.split(os.sep)[0] not in (".", ".."):
            return found
    raise BadInput(argument, name, "a relative path that stays in the workspace")


def _written(files: Mapping[Any, Any], above: str) -> Iterator[Entry]:
    for name, content in files.items():
        path = os.path.join(above, _name("source", name))
        if isinstance(content, Mapping):
            yield path, 0o755, None
            yield from _written(content, path)
        elif isinstance(content, str):
            yield path, 0o644, content.encode("utf-8", "surrogateescape")
        elif isinstance(content, (bytes, bytearray)):
            yield path, 0o644, bytes(content)
        else:
            raise BadInput(f"source[{path!r}]", content, "text, bytes, or a mapping for a folder")


def _copied(top: str) -> Iterator[Entry]:
    """The content of a folder, or the file, on the disk that the test sees."""
    entries = iter(read(top))
    name, mode, content = next(entries)
    if content is not None:
        yield name, mode, content
    for path, mode, content in entries:
        yield os.path.relpath(path, name), mode, content


def _is_fake(source: object) -> bool:
    module = sys.modules.get("pyfakefs.fake_filesystem")
    return module is not None and isinstance(source, module.FakeFilesystem)


def _faked(fs: Any, below: str) -> Iterator[Entry]:
    """Everything below a folder of a fake file system, but the empty folders that pyfakefs makes for ``tempfile``, and
    its link to them."""
    try:
        top = fs.resolve(below)
        entries = top.entries
    except (OSError, AttributeError):
        raise BadInput("below", below, "a folder of the fake file system") from None
    own = {str(path) for start in (tempfile.gettempdir(), "/tmp") for path in (Path(start), *Path(start).parents)}
    yield from _inside(entries, "", below, own)


def _inside(entries: Mapping[str, Any], above: str, below: str, own: set[str]) -> Iterator[Entry]:
    for name, item in list(entries.items()):
        path, mode = os.path.join(above, name), stat.S_IMODE(item.st_mode)
        if stat.S_ISLNK(item.st_mode):
            if os.path.normpath(os.path.join(below, path)) != "/tmp" or item.contents not in own:
                yield path, mode, item.contents
        elif stat.S_ISDIR(item.st_mode):
            found = list(_inside(item.entries, path, below, own))
            if found or os.path.normpath(os.path.join(below, path)) not in own:
                yield path, mode, None
                yield from found
        elif stat.S_ISREG(item.st_mode):
            yield path, mode, item.byte_contents or b""
