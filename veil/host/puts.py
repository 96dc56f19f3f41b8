"""Paths as they are to be, and whether a list of them may be done at all: it comes from a file that others wrote."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from veil.model.errors import Refused
from veil.model.outcome import Kind

#: Characters of a path below the root: what the kernel takes of a whole path is little more.
_LONGEST = 4000


@dataclass(frozen=True)
class Put:
    """One path as it is to be.

    Attributes:
        path: below the root. kind: ``None`` to have nothing there.
        content: bytes of a file, target of a link; ``None`` leaves the content of a file as it is.
        mode: permission bits. old: where the content comes from (a rename).
        new: nothing is thought to stand there.
    """

    path: str
    kind: Kind | None
    mode: int = 0
    content: bytes | None = None
    old: str | None = None
    new: bool = False


def check(root: str, puts: Sequence[Put]) -> None:
    """Nothing is changed yet when this refuses.

    Raises:
        Refused: a path leads out of the root, through a link or through something that is no folder, now or once the
            others are done; two are for one path; a name or a target is none (``not_applied``).
        OSError: something on the way cannot be looked at.
    """
    kinds = {put.path: put.kind for put in puts} if len(puts) > 1 else {}  # of one alone there is nothing to compare
    if kinds and len(kinds) != len(puts):
        path, _ = Counter(put.path for put in puts).most_common(1)[0]
        raise _no(path, f"the recorded change has two rows for {path!r}")
    folders = frozenset(path for path, kind in kinds.items() if kind == "dir") if kinds else frozenset()
    for put in puts:
        _inside(root, put.path, folders)
        if kinds and put.kind is not None:
            _below_folders(put.path, kinds)
        if put.old is not None:
            _inside(root, put.old, frozenset())
        if put.kind == "symlink" and b"\0" in (put.content or b""):
            raise _no(put.path, f"what the link {put.path!r} is to point to is no path")


def _below_folders(path: str, kinds: Mapping[str, Kind | None]) -> None:
    above = path.rpartition("/")[0]
    while above:
        kind = kinds.get(above, "dir")
        if kind is not None and kind != "dir":
            raise _no(path, f"{above!r} becomes a {kind}, so {path!r} cannot be put there")
        above = above.rpartition("/")[0]


def _inside(root: str, path: str, made: Set[str]) -> None:
    """``made``: what these same changes make a folder of, whatever it is now; all below such a one is new."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or len(path) > _LONGEST or not _nameable(path):
        raise _no(path, f"{path[:200]!r} is no path below the workspace")
    here = root
    for part in parts[:-1]:
        here = os.path.join(here, part)
        try:
            found = os.lstat(here)
        except FileNotFoundError:
            return
        if not stat.S_ISDIR(found.st_mode):
            if os.path.relpath(here, root) in made:
                return
            raise _no(path, f"{here} is no folder, so {path!r} cannot be put there")


def _nameable(path: str) -> bool:
    if path.isascii():
        return "\0" not in path
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _no(path: str, words: str) -> Refused:
    return Refused(words, code="not_applied", path=path)
