"""A folder and what lies below it, reached through descriptors only: no link that takes a folder's place leads on.

Every step down is an ``openat`` with ``O_NOFOLLOW`` from the step above, beginning at a root that is held open. So a
path here can lead to nothing outside the tree, whoever swaps folders for links meanwhile.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType

from veil.host.metadata import set_mode
from veil.model.errors import Refused

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Opening a file that is expected: a fifo that took its place is not waited for, a link not followed.
FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
#: Descriptors of folders kept open at once.
_MOST_OPEN = 48


#: One entry of a folder as ``lstat`` told it: name, mode, links, size, mtime_ns, ctime_ns, inode. A plain tuple, since
#: a walk makes one for every file.
Row = tuple[str, int, int, int, int, int, int]


def row_of(name: str, found: os.stat_result) -> Row:
    """The row that ``found`` makes."""
    return (name, found.st_mode, found.st_nlink, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)


class Anchor:
    """The tree below ``root``. Not for several threads at once.

    Args:
        root: absolute path of a folder, links resolved.
        force: folders of our own that we may not enter are made enterable (``unlocked`` says which).
        opening: called with path, permission bits and inode of whatever is going to be opened up, before it is.

    Attributes:
        force, opening: as given; ``opening`` may be taken away (``None``).
        unlocked: permission bits, as they were, of folders that were opened up, by path.
    """

    def __init__(
        self, root: str, *, force: bool = False, opening: Callable[[str, int, int], None] | None = None
    ) -> None:
        self.root = root
        self.force = force
        self.opening = opening
        self.unlocked: dict[str, int] = {}
        self._open: OrderedDict[str, int] = OrderedDict()
        try:
            self.fd = os.open(root, _FOLDER)
        except PermissionError:
            if not force:
                raise
            self.unlocked[""] = self.open_up("", root, None, stat.S_IRWXU)
            self.fd = os.open(root, _FOLDER)
        self.device = os.fstat(self.fd).st_dev

    def __enter__(self) -> Anchor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of everything. Idempotent."""
        self.refresh()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def refresh(self) -> None:
        """Find every folder anew from the root."""
        while self._open:
            os.close(self._open.popitem()[1])

    def folder(self, path: str) -> int:
        """A descriptor of the folder at ``path`` below the root (empty: the root). It is good for the next few calls.

        Raises ``OSError``: nothing is there, no folder (a link counts as none), or it may not be entered.
        """
        if not path:
            return self.fd
        known = self._open.get(path)
        if known is not None:
            self._open.move_to_end(path)
            return known
        above, rest = path, []
        while above and above not in self._open:
            above, _, name = above.rpartition("/")
            rest.append(name)
        at = self._open[above] if above else self.fd
        for name in reversed(rest):
            below = f"{above}/{name}" if above else name
            at = self._step(at, name, below)
            self._open[below] = at
            above = below
            if len(self._open) > _MOST_OPEN:
                os.close(self._open.popitem(last=False)[1])
        return at

    def _step(self, above: int, name: str, path: str) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=above)
        except PermissionError:
            if not self.force:
                raise
            found = os.stat(name, dir_fd=above, follow_symlinks=False)
            if not stat.S_ISDIR(found.st_mode):
                raise
            mode = self.open_up(path, name, above, stat.S_IRWXU)
            self.unlocked.setdefault(path, mode)
            return os.open(name, _FOLDER, dir_fd=above)
        except OSError as error:
            # Linux answers ENOTDIR for a link here, macOS ELOOP
            if error.errno == errno.ELOOP:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from error
            raise

    def open_up(self, path: str, name: str, above: int | None, bits: int) -> int:
        """Add ``bits`` to the mode of ``name`` in the folder ``above``, which is ``path``; the mode that it had.

        Raises ``OSError``: not ours.
        """
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
        mode = stat.S_IMODE(found.st_mode)
        if self.opening is not None:
            self.opening(path, mode, found.st_ino)
        set_mode(name, above, mode | bits)
        return mode

    def writable(self, path: str) -> int:
        """The folder at ``path``, made writable for its owner when it was not."""
        at = self.folder(path)
        found = os.fstat(at)
        mode = stat.S_IMODE(found.st_mode)
        if mode & 0o300 != 0o300 and os.geteuid() != 0:
            if self.opening is not None:
                self.opening(path, mode, found.st_ino)
            os.fchmod(at, mode | stat.S_IRWXU)
            self.unlocked.setdefault(path, mode)
        return at

    def forget(self, path: str) -> None:
        """Drop the descriptors of ``path`` and of all below it: it is going to be something else."""
        for known in [known for known in self._open if known == path or known.startswith(path + "/")]:
            os.close(self._open.pop(known))

    def lstat(self, path: str) -> os.stat_result | None:
        """What is at ``path``; ``None`` when nothing is, or when something on the way is no folder."""
        above, _, name = path.rpartition("/")
        try:
            return os.stat(name, dir_fd=self.folder(above), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def check(self, path: str, planned: Row | None) -> None:
        """Raises ``Refused`` (``moved``) when ``path`` is no longer what the plan says; ``None``: nothing is there."""
        found = self.lstat(path)
        if found is None and planned is None:
            return
        if found is None or planned is None or not _same(row_of(planned[0], found), planned):
            raise Refused(f"{path} was changed by somebody else meanwhile", code="moved", path=path)

    def remove(self, path: str, planned: Row) -> None:
        """The one way in which something of the tree is deleted: one entry, and only while it is what the plan says.

        A folder must be empty by then. Raises ``Refused`` (``moved``) or ``OSError``.
        """
        above, _, name = path.rpartition("/")
        if not name or name in (".", ".."):
            raise Refused(f"{path!r} is no entry of a folder, so it is not deleted", code="not_ours", path=path)
        at = self.writable(above)
        if stat.S_ISDIR(planned[1]):
            self.forget(path)
            os.rmdir(name, dir_fd=at)
        else:
            self.check(path, planned)
            os.unlink(name, dir_fd=at)


def _same(found: Row, planned: Row) -> bool:
    _, mode, _, size, mtime_ns, ctime_ns, inode = found
    if stat.S_IFMT(mode) != stat.S_IFMT(planned[1]) or inode != planned[6]:
        return False
    if stat.S_ISDIR(mode):
        return True
    # taking one of several links away moves the ctime of the others
    return (size, mtime_ns) == planned[3:5] and (planned[2] > 1 or ctime_ns == planned[5])
