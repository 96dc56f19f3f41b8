"""Putting many paths of a tree in their places, so that all of it can be taken back.

Every step down is an ``openat`` that follows no link, beginning at a root that is held open, and every change is made
in the folder that was so reached. So whatever order the changes come in, and whatever they or others make of a folder
meanwhile, nothing outside the tree is touched.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from veil.host import removing
from veil.host.metadata import set_mode
from veil.host.puts import Put
from veil.host.tree import kind_of
from veil.model.errors import Refused

# a folder that may be entered need not be one that may be listed, where the system can tell these apart
_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


class Placing:
    """One list of changes. What is displaced stands beside the tree until ``close``.

    Args:
        root: absolute path of the tree.
        at: what the names of our own begin with, in a folder on the same file system.

    Attributes:
        doing: the path below the root that is dealt with just now.

    Raises:
        OSError: the root cannot be entered.
    """

    def __init__(self, root: str, at: str) -> None:
        self.doing = ""
        self._root = os.open(root, _FOLDER)
        self._names = (f"{at}{number}" for number in itertools.count())
        self._beside: list[str] = []
        self._staged: dict[str, str] = {}
        self._undo: list[Callable[[], None]] = []

    def close(self) -> None:
        """Take away what was displaced, or was never put in its place; what is in its place is no longer there."""
        os.close(self._root)
        for path in self._beside:
            try:
                os.unlink(path)
            except FileNotFoundError:
                continue
            except (IsADirectoryError, PermissionError):  # Linux and macOS about a folder
                with contextlib.suppress(OSError):  # the change is made; what stays is beside the tree
                    removing.remove(path)

    def stage(self, puts: Sequence[Put]) -> None:
        """Write new files and links beside the tree, with their modes. Raises ``OSError``."""
        for put in puts:
            if put.content is None or put.kind not in ("file", "symlink"):
                continue
            self.doing, name = put.path, self._name()
            if put.kind == "symlink":
                os.symlink(os.fsdecode(put.content), name)
            else:
                handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
                try:
                    left = memoryview(put.content)
                    while left:
                        left = left[os.write(handle, left) :]
                    os.fchmod(handle, put.mode)
                finally:
                    os.close(handle)
            self._staged[put.path] = name

    def place(self, puts: Sequence[Put]) -> None:
        """Raises ``OSError``, or ``Refused`` (``not_applied``): something else stands where a mode is due."""
        written = frozenset(self._staged)
        for put in puts:
            found = self._there(put.path) if put.kind == "dir" else None
            if found is not None and stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_IRWXU != stat.S_IRWXU:
                # until all is in it
                self._change_mode(put.path, stat.S_IMODE(found.st_mode), stat.S_IMODE(found.st_mode) | stat.S_IRWXU)
        # contents that a rename brings along are taken out first: their old places may be wanted by others
        for put in puts:
            if put.old is not None and put.kind != "dir" and put.path not in written:
                moved = self._take(put.old)
                if moved is not None:
                    self._staged[put.path] = moved
        by_path = sorted(puts, key=lambda put: put.path)
        for put in reversed(by_path):  # what is inside goes before what is around
            if put.old is not None:
                self._take(put.old)
            if put.kind is None:
                self._take(put.path)
        for put in by_path:
            if put.kind is not None:
                self._put(put)
            if put.kind not in (None, "dir", "symlink") and put.path not in written:
                self._dress(put)
        for put in reversed(by_path):
            if put.kind == "dir":
                self._dress(put)

    def take_back(self) -> list[str]:
        """Make everything as it was; what of it failed, in words. What could not go back stays beside the tree."""
        failed = []
        while self._undo:
            try:
                self._undo.pop()()
            except OSError as error:
                failed.append(f"{self.doing}: {error.strerror}")
        if failed:
            self._beside.clear()
        return failed

    @contextlib.contextmanager
    def _folder_of(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The folder that ``path`` is in, open, and its name there; ``make`` folders that are missing on the way."""
        self.doing = path
        *folders, name = path.split("/")
        handle = os.dup(self._root)
        try:
            for count, folder in enumerate(folders, 1):
                try:
                    below = _below(folder, handle)
                except FileNotFoundError:
                    if not make:
                        raise
                    os.mkdir(folder, dir_fd=handle)
                    self._undo.append(partial(self._remove_folder, "/".join(folders[:count])))
                    below = _below(folder, handle)
                os.close(handle)
                handle = below
            yield handle, name
        finally:
            os.close(handle)

    def _name(self) -> str:
        self._beside.append(next(self._names))
        return self._beside[-1]

    def _there(self, path: str) -> os.stat_result | None:
        try:
            with self._folder_of(path) as (folder, name):
                return os.stat(name, dir_fd=folder, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _take(self, path: str) -> str | None:
        """Displace what stands there; where it has gone, or ``None``: nothing stood there (nor behind a link)."""
        away = self._name()
        try:
            self._away(path, away)
        except (FileNotFoundError, NotADirectoryError):
            if self._there(path) is not None:  # it is where it was to go that is missing
                raise
            return None
        self._undo.append(partial(self._back, path, away))
        return away

    def _put(self, put: Put) -> None:
        staged = self._staged.get(put.path)
        found = self._there(put.path) if put.kind in ("dir", "fifo") else None
        if put.kind == "dir":
            if found is None or not stat.S_ISDIR(found.st_mode):
                self._take(put.path)
                with self._folder_of(put.path, make=True) as (folder, name):
                    os.mkdir(name, 0o700, dir_fd=folder)
                    self._undo.append(partial(self._remove_folder, put.path))
            return
        if staged is None and put.kind == "fifo" and (found is None or not stat.S_ISFIFO(found.st_mode)):
            staged = self._name()
            os.mkfifo(staged)
        if staged is not None:
            self._replace(put.path, staged)

    def _replace(self, path: str, staged: str) -> None:
        self._take(path)
        with self._folder_of(path, make=True) as (folder, name):
            os.rename(staged, name, dst_dir_fd=folder)
            self._undo.append(partial(self._away, path, staged))

    def _dress(self, put: Put) -> None:
        """Give what stands there its mode, unless nothing does."""
        found = self._there(put.path)
        if found is None:
            return
        kind, mode = kind_of(found.st_mode), stat.S_IMODE(found.st_mode)
        if kind != put.kind:
            raise Refused(
                f"{put.path!r} is a {kind} where the recording has a {put.kind}, so its mode cannot be set",
                code="not_applied",
                path=put.path,
            )
        if mode == put.mode:
            return
        if kind != "file" or found.st_nlink == 1:
            self._change_mode(put.path, mode, put.mode)
            return
        # another name of the same file keeps the mode that it has, and may be anywhere
        copy = self._name()
        with self._folder_of(put.path) as (folder, name):
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        with os.fdopen(handle, "rb") as source, open(copy, "xb") as target:  # noqa: PTH123
            shutil.copyfileobj(source, target)
            os.fchmod(target.fileno(), put.mode)
        self._replace(put.path, copy)

    def _change_mode(self, path: str, was: int, mode: int) -> None:
        self._set_mode(path, mode)
        self._undo.append(partial(self._set_mode, path, was))

    def _set_mode(self, path: str, mode: int) -> None:
        with self._folder_of(path) as (folder, name):
            set_mode(name, folder, mode)

    def _away(self, path: str, to: str) -> None:
        with self._folder_of(path) as (folder, name):
            os.rename(name, to, src_dir_fd=folder)

    def _back(self, path: str, away: str) -> None:
        with self._folder_of(path) as (folder, name):
            os.rename(away, name, dst_dir_fd=folder)

    def _remove_folder(self, path: str) -> None:
        with self._folder_of(path) as (folder, name):
            os.rmdir(name, dir_fd=folder)


def _below(name: str, folder: int) -> int:
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:  # macOS about a link, where Linux says that it is no folder
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), name) from error
        raise
