"""Making a kept preview real: everything is made ready beside the tree, then put into its place file by file."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

from veil.host import clone
from veil.host.anchored import FILE, Anchor, Row
from veil.host.differing import TELLING, State
from veil.host.metadata import Attributes, attributes_of, dress, set_mode
from veil.model.errors import Refused
from veil.previews import base
from veil.previews.base import Kept
from veil.previews.checking import Check
from veil.previews.keeping import CONTENT

#: How the folder is called in which contents are made ready, before the name of the preview.
PREFIX = ".veil-apply-"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Promotion:
    """One kept preview on its way into the tree.

    Attributes:
        left: path -> what could not be given to it. failed: the path at which it stopped, and why.
    """

    def __init__(self, anchor: Anchor, kept: Kept, folder: Path, check: Check) -> None:
        self._anchor, self._kept, self._check = anchor, kept, check
        self._content = folder / CONTENT
        self._staging = PREFIX + folder.name
        self._rows = [row for row in kept.rows if row.path not in check.done]
        self._staged: dict[str, str] = {}
        self._times: dict[str, int] = {}
        self.left: dict[str, str] = {}
        self.failed: tuple[str, str] | None = None

    def stage(self) -> None:
        """Make all contents ready. Raises ``OSError`` (the disk refuses); then nothing has changed."""
        self._remember_times()
        clear(self._anchor, self._staging)
        os.mkdir(self._staging, 0o700, dir_fd=self._anchor.writable(""))
        at = os.open(self._staging, _FOLDER, dir_fd=self._anchor.fd)
        try:
            first: dict[int, str] = {}
            for row in self._rows:
                if row.after is None or row.same or row.after.is_dir:
                    continue
                name = str(len(self._staged))
                if row.content is not None and row.content in first:
                    os.link(first[row.content], name, src_dir_fd=at, dst_dir_fd=at, follow_symlinks=False)
                elif self._make(at, name, row, row.after):
                    if row.content is not None:
                        first[row.content] = name
                else:
                    continue
                self._staged[row.path] = name
        finally:
            os.close(at)

    def _make(self, at: int, name: str, row: base.Row, after: State) -> bool:
        if after.is_link:
            os.symlink(after.target, name, dir_fd=at)
            self._dress_name(at, name, row.path, after)
            return True
        if stat.S_ISFIFO(after.mode):
            if os.mkfifo in os.supports_dir_fd:
                os.mkfifo(name, 0o600, dir_fd=at)
            else:  # macOS before 13
                os.mkfifo(os.path.join(self._anchor.root, self._staging, name), 0o600)
            set_mode(name, at, stat.S_IMODE(after.mode))
            self._dress_name(at, name, row.path, after)
            return True
        if not after.is_file:
            self.left[row.path] = "a socket or a device is not made again"
            return False
        source = os.open(self._content / str(row.content), FILE)
        try:
            target, shared = clone.new_copy(source, at, name)
            try:
                if not shared:
                    clone.copy_bytes(source, target, after.size)
                self._dress(row.path, target, after, row.attributes)
            finally:
                os.close(target)
        finally:
            os.close(source)
        return True

    def _dress_name(self, at: int, name: str, path: str, after: State) -> None:
        """Owner and time of what is not opened."""
        found = os.stat(name, dir_fd=at, follow_symlinks=False)
        if (found.st_uid, found.st_gid) != (after.uid, after.gid):
            try:
                os.chown(name, after.uid, after.gid, dir_fd=at, follow_symlinks=False)
            except PermissionError:
                self.left[path] = f"owner {after.uid}:{after.gid} could not be given to it"
        os.utime(name, ns=(after.mtime_ns, after.mtime_ns), dir_fd=at, follow_symlinks=False)

    def commit(self) -> None:
        """Put everything in its place; stops at the first step that cannot be done (``failed``)."""
        deepest_first = sorted(self._rows, key=lambda row: row.path, reverse=True)
        steps = [(row.path, partial(self._remove, row)) for row in deepest_first if _goes(row)]
        steps += [(row.path, partial(self._put, row)) for row in self._rows if row.after is not None]
        steps += [(row.path, partial(self._settle, row)) for row in deepest_first if row.after and row.after.is_dir]
        for path, step in steps:
            if not self._attempt(path, step):
                return

    def _attempt(self, path: str, step: Callable[[], None]) -> bool:
        try:
            step()
        except OSError as error:
            self.failed = (path, error.strerror or str(error))
        except Refused as refusal:
            self.failed = (path, str(refusal))
        return self.failed is None

    def _row(self, path: str) -> Row | None:
        """What ``path`` was at the check."""
        now = self._check.now.get(path)
        if now is None:
            return None
        return (path.rpartition("/")[2], now.mode, now.links, now.size, now.mtime_ns, now.ctime_ns, now.inode)

    def _remove(self, row: base.Row) -> None:
        planned = self._row(row.path)
        if planned is not None:  # else an earlier try took it away
            self._anchor.remove(row.path, planned)

    def _put(self, row: base.Row) -> None:
        assert row.after is not None
        above, _, name = row.path.rpartition("/")
        if row.after.is_dir:
            now = self._check.now.get(row.path)
            if now is None or not now.is_dir:
                os.mkdir(name, 0o700, dir_fd=self._anchor.writable(above))
        elif row.same:
            self._anchor.check(row.path, self._row(row.path))
            self._adjust(row, row.after)
        elif row.path in self._staged:
            self._anchor.check(row.path, None if _goes(row) else self._row(row.path))
            staging = os.open(self._staging, _FOLDER, dir_fd=self._anchor.fd)
            try:
                os.rename(self._staged[row.path], name, src_dir_fd=staging, dst_dir_fd=self._anchor.writable(above))
            finally:
                os.close(staging)

    def _adjust(self, row: base.Row, after: State) -> None:
        above, _, name = row.path.rpartition("/")
        at = self._anchor.folder(above)
        if after.is_link:
            os.chown(name, after.uid, after.gid, dir_fd=at, follow_symlinks=False)
            return
        try:
            handle = os.open(name, FILE, dir_fd=at)
        except PermissionError:
            set_mode(name, at, stat.S_IMODE(after.mode) | stat.S_IRUSR)
            handle = os.open(name, FILE, dir_fd=at)
        try:
            self._dress(row.path, handle, after, row.attributes)
        finally:
            os.close(handle)

    def _settle(self, row: base.Row) -> None:
        assert row.after is not None
        handle = self._anchor.folder(row.path)
        after = row.after
        if row.before is not None and row.before.is_dir:
            after = after._replace(mtime_ns=os.fstat(handle).st_mtime_ns)
        self._dress(row.path, handle, after, row.attributes)
        self._anchor.unlocked.pop(row.path, None)

    def _dress(self, path: str, handle: int, after: State, attributes: Attributes) -> None:
        # what is not the command's doing (labels) stays as the file system gave it
        others = [pair for pair in attributes_of(handle) if not pair[0].startswith(TELLING)]
        wanted = tuple(sorted([*others, *attributes]))
        refused = dress(handle, stat.S_IMODE(after.mode), (after.uid, after.gid), after.mtime_ns, wanted)
        if refused:
            self.left[path] = ", ".join(refused) + " could not be given to it"

    def _remember_times(self) -> None:
        """Of folders in which no name comes or goes, so that they do not look as if."""
        above = {"", *(row.path.rpartition("/")[0] for row in self._rows)}
        moving = {row.path.rpartition("/")[0] for row in self._rows if row.before is None or row.after is None}
        for folder in above - moving:
            with contextlib.suppress(OSError):  # it is going to be made
                self._times[folder] = os.fstat(self._anchor.folder(folder)).st_mtime_ns

    def close(self) -> None:
        """Take away what was made ready; folders get back the modes and times that are theirs. Raises ``OSError``."""
        clear(self._anchor, self._staging)
        self._anchor.refresh()
        for path, mode in reversed(list(self._anchor.unlocked.items())):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # it went with all that was in it
                os.fchmod(self._anchor.folder(path), mode)
        for path, mtime_ns in self._times.items():
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                handle = self._anchor.folder(path)
                os.utime(handle, ns=(os.fstat(handle).st_atime_ns, mtime_ns))


def _goes(row: base.Row) -> bool:
    """Whether what is there has to go first: all of it, or because a folder takes its place or gives it up."""
    return row.before is not None and (row.after is None or row.before.is_dir is not row.after.is_dir)


def clear(anchor: Anchor, name: str) -> None:
    """Take away the folder ``name`` of an earlier try in the root of the tree, if it is there.

    Raises:
        Refused: it is not as we make them (``not_ours``). OSError: the disk refuses.
    """
    try:
        found = os.stat(name, dir_fd=anchor.fd, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or not name.startswith(PREFIX):
        raise Refused(f"{name} in {anchor.root} is no folder of ours", code="not_ours", path=name)
    handle = os.open(name, _FOLDER, dir_fd=anchor.writable(""))
    try:
        for each in os.listdir(handle):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(each, dir_fd=handle)
    finally:
        os.close(handle)
    os.rmdir(name, dir_fd=anchor.fd)
