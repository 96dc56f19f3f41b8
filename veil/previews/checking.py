"""Whether a tree still stands where a preview found it: decided by content wherever signatures do not prove it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from veil.host.anchored import FILE, Anchor
from veil.host.blobs import hash_open
from veil.host.differing import State, state_of
from veil.host.mounts import mounted_below
from veil.host.tree import TICK_NS, coarse_clock
from veil.previews.base import Kept, Row
from veil.previews.keeping import CONTENT


class Check:
    """One look at every path that a kept preview would touch. Nothing is changed by it.

    Args:
        folder: where the preview is kept.
        begun: an earlier try was broken off, so what stands as it is to be counts as done.

    Attributes:
        moved: path -> what is otherwise than it was. now: path -> its state at this look. done: paths that are as they
            are to be already.
    """

    def __init__(self, anchor: Anchor, kept: Kept, folder: Path, *, begun: bool) -> None:
        self._anchor, self._kept, self._content, self._begun = anchor, kept, folder / CONTENT, begun
        self._rows = {row.path: row for row in kept.rows}
        self._mounted = mounted_below(anchor.root)
        self.moved: dict[str, str] = {}
        self.now: dict[str, State | None] = {}
        self.done: set[str] = set()

    def run(self) -> None:
        """Raises ``OSError``."""
        for row in self._kept.rows:
            why = self._look(row)
            if why is not None:
                self.moved[row.path] = why

    def _look(self, row: Row) -> str | None:
        foreign = self._way_there(row.path)
        if foreign is not None:
            return foreign
        now = self.now[row.path] = self._state(row.path)
        if row.moved:
            return "it was changed by somebody else while the preview ran"
        if self._begun and self._is_done(row, now):
            self.done.add(row.path)
            return None
        if self._begun and row.after is not None and row.after.is_dir and now is not None and now.is_dir:
            return None  # made, but perhaps not yet given its mode
        if row.before is None:
            return None if now is None else "something is there by now"
        if now is None:
            # an earlier try takes a folder that becomes a file (or the other way) away before the new one comes
            turns = row.after is not None and row.after.is_dir is not row.before.is_dir
            return None if self._begun and turns else "it is gone"
        return self._moved(row, row.before, now)

    def _way_there(self, path: str) -> str | None:
        """Why the folder that ``path`` is in is not the one that it was."""
        for point in self._mounted:
            if path == point or path.startswith(point + "/"):
                return f"{point} is a mount, which the preview did not show"
        above = path.rpartition("/")[0]
        while above and above in self._rows and self._rows[above].before is None:
            if not self._begun:  # it is going to be made, and is looked at for itself
                return None
            above = above.rpartition("/")[0]
        try:
            handle = self._anchor.folder(above)
        except (FileNotFoundError, NotADirectoryError):
            row = self._rows.get(above)
            done = self._begun and row is not None and (row.after is None or not row.after.is_dir)
            turned = row is not None and row.before is not None and not row.before.is_dir
            return None if done or turned else f"{above} is no folder any more"
        if os.fstat(handle).st_dev != self._anchor.device:
            return f"{above} is on another file system, which the preview did not show"
        return None

    def _state(self, path: str) -> State | None:
        found = self._anchor.lstat(path) if path else os.fstat(self._anchor.fd)
        if found is None:
            return None
        above, _, name = path.rpartition("/")
        return state_of(name, found, self._anchor.folder(above) if stat.S_ISLNK(found.st_mode) else None)

    def _moved(self, row: Row, before: State, now: State) -> str | None:
        if stat.S_IFMT(before.mode) != stat.S_IFMT(now.mode):
            return "it is something else by now"
        around = (now.mode, now.uid, now.gid) == (before.mode, before.uid, before.gid)
        if now.is_link:
            return None if now.target == before.target else "it leads somewhere else by now"
        if not around:
            return "its mode or owner was changed"
        if now.is_dir:
            return self._came(row)
        if not now.is_file:
            return None
        if now._replace(links=0) == before._replace(links=0) and not self._racy(before):
            return None
        if now.size != before.size or row.digest is None:
            return "it was written to" if row.digest is not None else "it was touched, and what it held is not known"
        return None if self._digest(row.path, now.size) == row.digest else "it was written to"

    def _racy(self, before: State) -> bool:
        return coarse_clock() and before.ctime_ns >= self._kept.made_ns - TICK_NS

    def _came(self, row: Row) -> str | None:
        """Whether something came into a folder that is to go."""
        if row.after is not None and row.after.is_dir:
            return None
        for name in sorted(os.listdir(self._anchor.folder(row.path))):
            if f"{row.path}/{name}" not in self._rows:
                return f"{name} came into it"
        return None

    def _digest(self, path: str, size: int) -> str | None:
        above, _, name = path.rpartition("/")
        try:
            handle = os.open(name, FILE, dir_fd=self._anchor.folder(above))
        except OSError:
            return None
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            digest, length = hash_open(handle, size)
            return digest.hex() if length == size else None
        finally:
            os.close(handle)

    def _is_done(self, row: Row, now: State | None) -> bool:
        after = row.after
        if after is None or now is None:
            return after is None and now is None
        if stat.S_IFMT(after.mode) != stat.S_IFMT(now.mode):
            return False
        if now.is_link:
            return now.target == after.target
        if now.is_dir:
            return False
        if (now.mode, now.uid, now.gid) != (after.mode, after.uid, after.gid):
            return False
        if now.is_file and row.content is not None:
            return now.size == after.size and self._digest(row.path, now.size) == self._kept_digest(row)
        return not now.is_file or now.mtime_ns == after.mtime_ns

    def _kept_digest(self, row: Row) -> str:
        assert row.after is not None
        handle = os.open(self._content / str(row.content), FILE)
        try:
            return hash_open(handle, row.after.size)[0].hex()
        finally:
            os.close(handle)
