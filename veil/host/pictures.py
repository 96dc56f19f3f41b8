"""One picture of a tree before a run and one after: by stat scan, or by git where that is quicker."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal

from veil.host import git
from veil.host.git_index import Index
from veil.host.repository import Repository, find
from veil.host.tree import MAX_ENTRIES, Scan, TooMuch, TreeUnknown, coarse_clock, hash_racy, scan, signature

#: Tracked files beyond which git is asked instead of scanning. Measured (ext4, warm, clean, both pictures together):
#: at 1,000 files git takes twice as long, at 3,000 to 4,000 as long, at 6,000 0.8, at 12,000 0.65 of the scan's time
#: (``benchmarks/effects.py --crossing``).
GIT_FIRST = 3_000
#: Entries beyond which the scan of a work tree is given up for git (ignored and untracked files count here too).
SCAN_FIRST_ENTRIES = 9_000

How = Literal["scan", "git"]


def lies_in(path: str, folders: Collection[str]) -> bool:
    """Whether ``path`` is one of ``folders`` or lies below one."""
    at = path
    while folders and at:
        if at in folders:
            return True
        at = at.rpartition("/")[0]
    return False


@dataclass(frozen=True)
class Tree:
    """Attributes: cwd, root: absolute, links resolved; the run is in ``cwd``, the pictures are of ``root``.
    own: paths below the root that are never reported. most: entries that a picture of it may have."""

    cwd: str
    root: str
    repository: Repository | None
    own: frozenset[str] = frozenset()
    most: int = MAX_ENTRIES

    def is_own(self, path: str) -> bool:
        """Whether ``path`` (below the root) is one of ``own`` or lies below one."""
        return lies_in(path, self.own)


@dataclass
class Picture:
    """Attributes:
    scan: signatures: of everything (``how`` is ``scan``), else of what git does not know to be clean.
    taken_ns: when it was begun, since the epoch.
    head, index: of the work tree, when there is one and it could be read.
    listed: paths that git named, also those that are not on disk.
    place: device and inode of the root.
    """

    how: How
    taken_ns: int
    scan: Scan = field(default_factory=Scan)
    head: git.Head | None = None
    index: Index | None = None
    listed: frozenset[str] = frozenset()
    place: tuple[int, int] | None = None


def locate(cwd: str, own_paths: tuple[str, ...] = (), most: int = MAX_ENTRIES) -> Tree:
    """The tree that a run in ``cwd`` is watched in: the git top level, else ``cwd`` itself.

    ``own_paths``: absolute, links resolved. Raises ``TreeUnknown``.
    """
    if "\0" in cwd:
        raise TreeUnknown("the working directory has a NUL in its name")
    real = _resolved(cwd)
    repository = find(real)
    root = real if repository is None else repository.root
    prefix = root if root.endswith("/") else root + "/"
    own = frozenset(path[len(prefix) :] for path in own_paths if path.startswith(prefix))
    return Tree(real, root, repository, own, most)


#: Bytes that an entry of git's index takes at least.
_ENTRY_BYTES = 64


def tracks_more(tree: Tree, files: int) -> bool:
    """Whether git tracks more files than that there, by the size of its index: costs one look at the file."""
    if tree.repository is None:
        return False
    try:
        return os.stat(os.path.join(tree.repository.git_dir, "index")).st_size > files * _ENTRY_BYTES
    except OSError:
        return False


#: cwd -> its real path and the device and inode that both led to.
_known: dict[str, tuple[str, int, int]] = {}


def _resolved(path: str) -> str:
    """``os.path.realpath``, remembered while the path and the remembered answer still lead to the same folder."""
    known = _known.get(path)
    try:
        if known is not None:
            here = os.stat(path)
            real = here if known[0] == path else os.stat(known[0])
            if (here.st_dev, here.st_ino) == (real.st_dev, real.st_ino) == known[1:]:
                return known[0]
        resolved = os.path.realpath(path)
        found = os.stat(resolved)
    except OSError:
        return os.path.realpath(path)
    if len(_known) >= 256:
        _known.clear()
    _known[path] = (resolved, found.st_dev, found.st_ino)
    return resolved


def narrowed(tree: Tree) -> Tree | None:
    """The tree cut down to the working directory, when that is not all of it. git is not asked there."""
    if tree.cwd == tree.root:
        return None
    prefix = tree.cwd[len(tree.root.rstrip("/")) + 1 :] + "/"
    own = frozenset(p[len(prefix) :] for p in tree.own if p.startswith(prefix))
    return Tree(tree.cwd, tree.cwd, None, own, tree.most)


#: Root and way -> why it was too much, and until when nobody tries again.
_hopeless: dict[tuple[str, bool], tuple[str, float]] = {}
#: Seconds for which a tree that was too much to look at is not tried again: each try costs seconds.
HOPELESS_SECONDS = 300.0


def first(tree: Tree, *, ignored: bool = False, git_first: int = GIT_FIRST) -> Picture:
    """The picture before the run. ``ignored``: what git ignores counts too, so it must be a scan.
    ``git_first``: tracked files beyond which git is asked. Raises ``TreeUnknown`` (``TooMuch`` beyond the bounds, and
    then at once for the next minutes)."""
    if _hopeless:
        why, until = _hopeless.get((tree.root, ignored), ("", 0.0))
        if time.monotonic() < until:
            raise TooMuch(why)
    try:
        return _first(tree, ignored, git_first)
    except TooMuch as error:
        if len(_hopeless) >= 256:
            _hopeless.clear()
        _hopeless[tree.root, ignored] = (str(error), time.monotonic() + HOPELESS_SECONDS)
        raise


def _first(tree: Tree, ignored: bool, git_first: int) -> Picture:
    picture = Picture("scan", time.time_ns(), place=_place(tree.root))
    if tree.repository is not None:
        try:
            picture.index = tree.repository.index()
            picture.head = git.head(tree.repository)
        except (OSError, git.GitFailed):
            picture.index = None
    index = picture.index
    if index is not None and not ignored and index.readable:
        if index.count <= git_first:
            try:
                _take_scan(tree, picture, min(SCAN_FIRST_ENTRIES, tree.most))
                return picture
            except TooMuch:
                picture.scan = Scan()
        try:
            return _take_status(tree, picture, index)
        except git.GitFailed:
            picture.scan = Scan()
    _take_scan(tree, picture, tree.most)
    return picture


def second(tree: Tree, before: Picture) -> Picture:
    """The picture after the run, taken in the same way as the one before. Raises ``TreeUnknown``."""
    picture = Picture(before.how, time.time_ns(), place=_place(tree.root))
    if picture.place not in (None, before.place) and os.path.realpath(tree.root) != tree.root:
        # the files behind it were there before: not one of them was created by the run
        raise TreeUnknown(f"a link now stands on the way to {tree.root}")
    if tree.repository is not None and before.index is not None:
        try:
            picture.head = git.head(tree.repository)
        except git.GitFailed:
            picture.head = None
    if before.how == "scan":
        scan(tree.root, skip=tree.own, limit=tree.most, into=picture.scan)
        return picture
    assert tree.repository is not None
    try:
        return _take_status(tree, picture, tree.repository.index())
    except (OSError, git.GitFailed) as error:
        raise TreeUnknown(f"git could be asked before the run but not after it: {error}") from error


def _place(root: str) -> tuple[int, int] | None:
    try:
        found = os.stat(root)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _take_scan(tree: Tree, picture: Picture, limit: int) -> None:
    scan(tree.root, skip=tree.own, limit=limit, into=picture.scan)
    if coarse_clock():
        hash_racy(tree.root, picture.scan, picture.taken_ns)


def _take_status(tree: Tree, picture: Picture, index: Index) -> Picture:
    assert tree.repository is not None
    told = git.status(tree.repository, index)
    picture.how, picture.index = "git", index
    picture.listed = frozenset(p for p in told.listed if not tree.is_own(p)) if tree.own else told.listed
    entries = picture.scan.entries
    if len(picture.listed) > tree.most:
        raise TooMuch(f"git lists more than {tree.most} files as changed or untracked")
    for path in picture.listed:
        try:
            sig = signature(os.path.join(tree.root, path))
        except OSError as error:
            picture.scan.gaps[path] = error.strerror or "unreadable"
            continue
        if sig is not None and not stat.S_ISDIR(sig[0]):
            entries[path] = sig
    for folder in told.nested:
        picture.scan.nested.add(folder)
        scan(tree.root, under=folder, skip=tree.own, limit=tree.most, into=picture.scan)
    if coarse_clock():
        hash_racy(tree.root, picture.scan, picture.taken_ns)
    return picture
