"""Everything that a restore is going to put into the tree, made whole and checked in one folder beside it.

The folder stands in the root of the tree (only there a rename into the tree is sure to work), has mode 0700 and a name
that nobody can guess, and holds no folders: so it is emptied without ever walking down anything.
"""

from __future__ import annotations

import contextlib
import os
import stat

from veil.host.anchored import Anchor
from veil.host.blobs import hash_open
from veil.host.clone import write_all
from veil.host.metadata import dress, set_mode
from veil.model.errors import Refused
from veil.snapshots.listings import Entry
from veil.snapshots.plans import Plan
from veil.snapshots.sinks import Reader, damaged

#: How the folder is called, before a random word.
PREFIX = ".veil-restore-"
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Staging:
    """The folder ``name`` in the root of ``anchor``.

    Attributes:
        fd: its descriptor. files: path in the tree -> name in here. refused: path -> what could not be given to it.
    """

    def __init__(self, anchor: Anchor, name: str) -> None:
        self._anchor, self.name = anchor, name
        root = anchor.writable("")
        os.mkdir(name, 0o700, dir_fd=root)
        self.fd = os.open(name, _FOLDER, dir_fd=root)
        self.files: dict[str, str] = {}
        self.refused: dict[str, str] = {}

    def fill(self, plan: Plan, reader: Reader) -> None:
        """Make all that ``plan`` puts. Raises ``OSError`` (no room), ``Refused`` (``damaged``)."""
        first: dict[tuple[str, ...], str] = {}
        for path, entry in plan.put.items():
            name = str(len(self.files))
            group = plan.groups.get(path)
            if group is not None and group in first:
                os.link(first[group], name, src_dir_fd=self.fd, dst_dir_fd=self.fd, follow_symlinks=False)
            else:
                refused = self._make(name, path, entry, reader)
                if refused:
                    self.refused[path] = ", ".join(refused) + " could not be given to it"
                if group is not None:
                    first[group] = name
            self.files[path] = name

    def _make(self, name: str, path: str, entry: Entry, reader: Reader) -> list[str]:
        if entry.letter == "l":
            os.symlink(entry.content, name, dir_fd=self.fd)
            return self._dress_name(name, entry)
        if entry.letter == "p":
            if os.mkfifo in os.supports_dir_fd:
                os.mkfifo(name, 0o600, dir_fd=self.fd)
            else:  # macOS before 13: nobody else knows the name of the folder
                os.mkfifo(os.path.join(self._anchor.root, self.name, name), 0o600)
            refused = self._dress_name(name, entry)
            set_mode(name, self.fd, entry.mode)
            return refused
        handle = self._file(name, path, entry, reader)
        try:
            return dress(handle, entry.mode, (entry.uid, entry.gid), entry.mtime_ns, entry.attributes)
        finally:
            os.close(handle)

    def _dress_name(self, name: str, entry: Entry) -> list[str]:
        """Owner and times of what is not opened."""
        refused = []
        found = os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        if (found.st_uid, found.st_gid) != (entry.uid, entry.gid):
            try:
                os.chown(name, entry.uid, entry.gid, dir_fd=self.fd, follow_symlinks=False)
            except PermissionError:
                refused.append(f"owner {entry.uid}:{entry.gid}")
        os.utime(name, ns=(found.st_atime_ns, entry.mtime_ns), dir_fd=self.fd, follow_symlinks=False)
        return refused

    def _file(self, name: str, path: str, entry: Entry, reader: Reader) -> int:
        key = bytes.fromhex(entry.content)
        place = reader.index.place(key)
        if place is None:
            raise damaged(key, f"it is missing ({path})")
        if place.pack is None:
            try:
                source = reader.vault.open_large(key)
            except OSError as error:
                raise damaged(key, f"{error.strerror} ({path})") from error
            os.close(source)
            handle = reader.vault.write_large(key, place.size, self.fd, name)
            try:
                if hash_open(handle, place.size) != (key, place.size):
                    raise damaged(key, f"its bytes are not what they were ({path})")
            except BaseException:
                os.close(handle)
                raise
            return handle
        content = reader.read(key)
        handle = os.open(name, _NEW, 0o600, dir_fd=self.fd)
        try:
            write_all(handle, content)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def place(self, path: str) -> None:
        """Put it in its place, over a file, link or fifo that is there. Raises ``OSError``."""
        above, _, name = path.rpartition("/")
        os.rename(self.files[path], name, src_dir_fd=self.fd, dst_dir_fd=self._anchor.writable(above))

    def close(self) -> None:
        """Take the folder away with all that is still in it."""
        os.close(self.fd)
        clear(self._anchor, self.name)


def clear(anchor: Anchor, name: str) -> None:
    """Take away the folder ``name`` (of a restore that ended, or was killed) in the root of the tree, if it is there.

    Raises:
        Refused: it is not as we make them (``not_ours``). OSError: the disk refuses.
    """
    if not name.startswith(PREFIX) or "/" in name:
        raise Refused(f"{name!r} is no folder of a restore", code="not_ours", path=name)
    try:
        found = os.stat(name, dir_fd=anchor.fd, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise Refused(f"{name} in {anchor.root} is no folder of ours", code="not_ours", path=name)
    handle = os.open(name, _FOLDER, dir_fd=anchor.writable(""))
    try:
        for left in os.listdir(handle):
            # a folder was put there by somebody else: that is where this ends
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left, dir_fd=handle)
    finally:
        os.close(handle)
    os.rmdir(name, dir_fd=anchor.fd)
