"""Making a tree into what a plan says. Every step leaves a state from which the same plan can be made again."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from functools import partial

from veil.host.anchored import FILE, Anchor, row_of
from veil.host.metadata import dress, set_mode
from veil.model.errors import Refused
from veil.snapshots.listings import Entry, Tree
from veil.snapshots.plans import Plan
from veil.snapshots.staging import Staging
from veil.snapshots.walking import Picture, letter_of


def nothing_done() -> dict[str, int]:
    """How many of each there are at the beginning."""
    return dict.fromkeys(("created", "replaced", "deleted", "adjusted"), 0)


class Applying:
    """One restore.

    Attributes:
        failed: path -> why it is not as it shall be. left: path -> what had to stay otherwise (no failure).
        done: how many were created, replaced, deleted, adjusted.
    """

    def __init__(self, anchor: Anchor, plan: Plan, picture: Picture, then: Tree, staging: Staging) -> None:
        self._anchor, self._plan, self._picture, self._then, self._staging = anchor, plan, picture, then, staging
        self.failed: dict[str, str] = dict(plan.closed)
        self.left: dict[str, str] = {**plan.left, **staging.refused}
        self.done = nothing_done()
        self._adjusted: set[str] = set()

    def run(self) -> None:
        """Do all that can be done; what cannot is in ``failed``."""
        plan = self._plan
        for path in plan.delete:
            if self._attempt(path, partial(self._delete, path)):
                self.done["deleted"] += 1
        for path in plan.folders:
            self._count(path, partial(self._make_folder, path))
        for path in plan.put:
            self._count(path, partial(self._place, path))
        for path, entry in plan.adjust.items():
            same = next((name for name in plan.groups.get(path, ()) if name in self._adjusted), None)
            step = partial(self._adjust, path, entry) if same is None else partial(self._still, path, same)
            self._count(path, step)

    def settle(self) -> None:
        """Give folders their modes and times, and look whether everything that was touched is as it shall be."""
        for path in self._anchor.unlocked:
            entry = self._then.entry(path)
            if entry is not None and entry.letter == "d":
                self._plan.settle.setdefault(path, entry)
        deepest_first = sorted(self._plan.settle, key=lambda path: path.count("/") + bool(path), reverse=True)
        for path in deepest_first:
            self._attempt(path, partial(self._compare, path))
            self._attempt(path, partial(self._settle, path, self._plan.settle[path]))

    def _attempt(self, path: str, step: Callable[[], None]) -> bool:
        try:
            step()
        except OSError as error:
            self.failed.setdefault(path, error.strerror or str(error))
            return False
        except Refused as refusal:
            self.failed.setdefault(path, str(refusal))
            return False
        return True

    def _count(self, path: str, step: Callable[[], None]) -> None:
        if self._attempt(path, step):
            self.done[self._plan.deeds[path]] += 1

    def _delete(self, path: str) -> None:
        row = self._picture.row(path)
        assert row is not None  # the plan was made from this picture
        self._anchor.remove(path, row)

    def _make_folder(self, path: str) -> None:
        above, _, name = path.rpartition("/")
        os.mkdir(name, 0o700, dir_fd=self._anchor.writable(above))

    def _place(self, path: str) -> None:
        if path in self._plan.delete:
            row = None
        else:
            row = self._picture.row(path)
        self._anchor.check(path, row)
        self._staging.place(path)

    def _still(self, path: str, other: str) -> None:
        """``path`` is another name of a file that was adjusted by one already, which changed it for both."""
        here, there = self._anchor.lstat(path), self._anchor.lstat(other)
        if here is None or there is None or not os.path.samestat(here, there):
            raise Refused(f"{path} was changed by somebody else meanwhile", code="moved", path=path)

    def _adjust(self, path: str, entry: Entry) -> None:
        self._anchor.check(path, self._picture.row(path))
        above, _, name = path.rpartition("/")
        at = self._anchor.folder(above)
        try:
            handle = os.open(name, FILE, dir_fd=at)
        except PermissionError:
            set_mode(name, at, entry.mode | stat.S_IRUSR)
            handle = os.open(name, FILE, dir_fd=at)
        try:
            self._dressed(path, handle, entry)
        finally:
            os.close(handle)
        self._adjusted.add(path)

    def _settle(self, path: str, entry: Entry) -> None:
        self._dressed(path, self._anchor.folder(path), entry)

    def _dressed(self, path: str, handle: int, entry: Entry) -> None:
        refused = dress(handle, entry.mode, (entry.uid, entry.gid), entry.mtime_ns, entry.attributes)
        if refused:
            self.left[path] = ", ".join(refused) + " could not be given to it"

    def _compare(self, path: str) -> None:
        """Names, kinds, sizes, modes and times in one folder against what they shall be."""
        handle = self._anchor.folder(path)
        wanted = dict(self._then.listing(self._plan.settle[path].content))
        prefix = path + "/" if path else ""
        with os.scandir(handle) as entries:
            for found in entries:
                if not path and found.name == self._staging.name:
                    continue
                below = prefix + found.name
                entry = wanted.pop(found.name, None)
                if below in self.failed or below in self.left or below in self._picture.occupied:
                    continue
                status = found.stat(follow_symlinks=False)
                if entry is None:
                    if not self._own(status):
                        self.failed[below] = "it came while the restore was under way, so it was left alone"
                elif not _is(entry, status):
                    self.failed[below] = "it was changed by somebody else while the restore was under way"
        for name in wanted:
            below = prefix + name
            if below not in self.left:
                self.failed.setdefault(below, "it was taken away by somebody else while the restore was under way")

    def _own(self, status: os.stat_result) -> bool:
        return stat.S_ISDIR(status.st_mode) and (status.st_dev, status.st_ino) in self._picture.own


def _is(entry: Entry, status: os.stat_result) -> bool:
    if entry.letter in ("m", "x"):
        return True
    if entry.letter == "d":
        return stat.S_ISDIR(status.st_mode)
    if letter_of(status.st_mode) != entry.letter:
        return False
    _, mode, _, size, mtime_ns, _, _ = row_of(entry.name, status)
    if entry.letter == "f":
        return (stat.S_IMODE(mode), size, mtime_ns) == (entry.mode, entry.size, entry.mtime_ns)
    return True
