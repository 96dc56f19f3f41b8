"""What a run in a view changed: each path as it stands in the tree, and as it would stand."""

from __future__ import annotations

import errno
import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from veil.host.anchored import FILE
from veil.host.metadata import Attributes, set_mode

_CHUNK = 1 << 20
#: Attributes that make a difference; what else there is (labels, and what an overlay notes for itself) is no deed of
#: the command's.
TELLING = ("user.", "system.posix_acl_")
_OVERLAYS_OWN = "user.overlay."
_NONE_HERE = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENODATA, errno.ENOSYS, errno.EPERM, errno.EACCES})


class State(NamedTuple):
    """One path as ``lstat`` tells it. ``target``: where a link leads. Times in nanoseconds."""

    mode: int
    links: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    uid: int
    gid: int
    target: str = ""

    @property
    def is_dir(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)


def state_of(path: str, found: os.stat_result | None = None, folder: int | None = None) -> State | None:
    """The state of ``path``; ``None`` when nothing is there. Raises ``OSError``.

    ``found``: what is known of it already; ``folder``: the descriptor of the folder that a link's name is then in.
    """
    if found is None:
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
    target = os.readlink(path, dir_fd=folder) if stat.S_ISLNK(found.st_mode) else ""
    return State(
        found.st_mode,
        found.st_nlink,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
        found.st_ino,
        found.st_uid,
        found.st_gid,
        target,
    )


@dataclass(frozen=True)
class Touched:
    """One path that is not the same in the view.

    Attributes:
        path: below the folder; empty for the folder itself.
        before: in the tree. after: in the view. ``None``: nothing is there.
        same: its content is the same (bytes of a file, target of a link), only what is around it is not.
        source: where the file with the new content lies, for a regular file.
        attributes: extended attributes that it would have, for files and folders.
    """

    path: str
    before: State | None
    after: State | None
    same: bool = False
    source: str = ""
    attributes: Attributes = ()

    @property
    def is_dir(self) -> bool:
        """Whether a folder is what stands there, or, when nothing will, what stood there."""
        state = self.after or self.before
        return state is not None and state.is_dir


@dataclass(frozen=True)
class Difference:
    """Attributes: touched: sorted by path. gaps: what is not as a real run would have it, or could not be looked at."""

    touched: tuple[Touched, ...] = ()
    gaps: tuple[str, ...] = ()


@dataclass
class Compared:
    """A difference in the making. ``breaks_links``: writing to a file in the view parts it from its other names."""

    breaks_links: bool = True
    touched: list[Touched] = field(default_factory=list)
    gaps: list[str] = field(default_factory=list)

    def add(self, path: str, real: str, before: State | None, source: str, after: State | None) -> None:
        """One path: at ``real`` in the tree and at ``source`` in the view. Raises ``OSError``."""
        if before is not None and after is not None and kind(before) == kind(after):
            same = self._same(path, real, before, source, after)
            attributes = attributes_at(source, after)
            if same and around(before) == around(after) and attributes == attributes_at(real, before):
                return
            if self.breaks_links and not same and before.is_file and before.links > 1:
                self.gaps.append(f"{path} is a hard link: outside the preview its other names would change with it")
            self.touched.append(Touched(path, before, after, same, source, attributes))
        elif before is not None or after is not None:
            attributes = () if after is None else attributes_at(source, after)
            self.touched.append(Touched(path, before, after, False, source, attributes))

    def _same(self, path: str, real: str, before: State, source: str, after: State) -> bool:
        try:
            return same_content(real, before, source, after)
        except OSError as error:
            self.gaps.append(f"{path} could not be compared, so it is taken for changed: {error.strerror}")
            return False

    def new(self, path: str, before: State | None, source: str, after: State) -> None:
        """A path whose content is taken for other than it was without a look."""
        self.touched.append(Touched(path, before, after, False, source, attributes_at(source, after)))

    def gone(self, path: str, real: str, before: State) -> None:
        """``path`` and everything below it is not there any more."""
        todo = [(path, real, before)]
        while todo:
            path, real, before = todo.pop()
            self.touched.append(Touched(path, before, None))
            if before.is_dir:
                todo += ((f"{path}/{name}", f"{real}/{name}", state) for name, state in listed(real, self.gaps, path))

    def all(self) -> Difference:
        touched = sorted(self.touched, key=lambda each: each.path)
        return Difference(tuple(touched), (*self.gaps, *_parted(touched)))


def _parted(touched: list[Touched]) -> Iterator[str]:
    """New names that a real run would have given to files that were there."""
    new = [each for each in touched if each.after is not None and each.after.is_file and not each.same]
    names = Counter(each.after.inode for each in new if each.after is not None)
    # one name of several that was moved: a view may have copied it
    moved = {
        (each.before.size, each.before.mtime_ns)
        for each in touched
        if each.after is None and each.before is not None and each.before.is_file and each.before.links > 1
    }
    for each in new:
        after = each.after
        came = each.before is None
        if after and (after.links > names[after.inode] or (came and (after.size, after.mtime_ns) in moved)):
            yield f"{each.path} is another name of a file that was there; when it is applied it is a file of its own"


def listed(folder: str, gaps: list[str], shown: str) -> Iterator[tuple[str, State]]:
    """What is in a folder of the tree; one that cannot be read is a gap."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
    except OSError as error:
        gaps.append(f"{shown} cannot be read: {error.strerror}")
        return
    for name in names:
        state = state_of(f"{folder}/{name}")
        if state is not None:
            yield name, state


def kind(state: State) -> int:
    """The type bits of the mode."""
    return stat.S_IFMT(state.mode)


def around(state: State) -> tuple[int, int, int, int]:
    """What counts beside the content: permissions, owner, group, and of a file the time of its modification."""
    # the time of a folder moves with every name in it, and is told by those; so does a link's mean nothing by itself
    mtime = state.mtime_ns if state.is_file else 0
    mode = 0 if state.is_link else stat.S_IMODE(state.mode)
    return mode, state.uid, state.gid, mtime


def same_content(one: str, first: State, other: str, second: State) -> bool:
    """Whether two paths of one kind hold the same. Raises ``OSError``."""
    if first.is_file:
        return first.size == second.size and (first.size == 0 or same_bytes(one, other))
    return first.target == second.target


def same_bytes(one: str, other: str) -> bool:
    """Whether two regular files hold the same bytes. ``other`` is ours: it is made readable. Raises ``OSError``."""
    first = os.open(one, FILE)
    try:
        second = opened(other)
        try:
            at = 0
            while True:
                here, there = os.pread(first, _CHUNK, at), os.pread(second, _CHUNK, at)
                if here != there:
                    return False
                if not here:
                    return True
                at += len(here)
        finally:
            os.close(second)
    finally:
        os.close(first)


def opened(path: str) -> int:
    """A descriptor for reading a file of ours, whatever its mode. Raises ``OSError``."""
    try:
        return os.open(path, FILE)
    except PermissionError:
        set_mode(path, None, 0o600)
        return os.open(path, FILE)


def attributes_at(path: str, state: State) -> Attributes:
    """Extended attributes that count; those of links and special files are not asked."""
    if not (state.is_file or state.is_dir) or not hasattr(os, "listxattr"):
        return ()
    try:
        names = [
            name
            for name in os.listxattr(path, follow_symlinks=False)
            if name.startswith(TELLING) and not name.startswith(_OVERLAYS_OWN)
        ]
        return tuple((name, os.getxattr(path, name, follow_symlinks=False).hex()) for name in sorted(names))
    except OSError as error:
        if error.errno in _NONE_HERE:
            return ()
        raise
