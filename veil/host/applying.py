"""Doing a recorded change of a tree again, all of it or none of it, without ever leaving the tree."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from veil.model.errors import Refused
from veil.model.outcome import Kind


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


#: Up to this many bytes a file is written where it stands: what it held before is kept in memory meanwhile.
SMALL = 64 << 10

#: Tells what one ``apply`` puts into a staging folder from what others do.
_numbers = itertools.count()


def apply(root: str, puts: Sequence[Put], staging: str | None = None) -> None:
    """Make every path as it is to be.

    Small files are written where they stand, as a shell does. For everything else new content is written beside the
    tree first; then all is put in its place. What fails is put back as it was.

    Args:
        staging: an existing folder on the same file system to write to; it may be used by many at once, and stays.
            None: one is made beside the root and removed (which costs more than all the rest, for a small change).

    Raises:
        Refused: a path leads out of the root, through a link or through something that is no folder (``not_applied``),
            or the disk refuses.
    """
    if not puts:
        return
    folders = {put.path for put in puts if put.kind == "dir"}
    for put in puts:
        _inside(root, put.path, folders)
        if put.old is not None:
            _inside(root, put.old, frozenset())
    if _written_where_they_stand(root, puts):
        return
    if staging is None:
        made = tempfile.mkdtemp(prefix=".veil-apply-", dir=os.path.dirname(root))
        try:
            apply(root, puts, made)
        finally:
            shutil.rmtree(made, ignore_errors=True)
        return
    undo: list[tuple[str, str | None]] = []
    staged: dict[str, str] = {}
    at = os.path.join(staging, f"{next(_numbers)}-")
    try:
        _stage(puts, at, staged)
        _commit(root, puts, at, staged, undo)
    except BaseException as error:
        _take_back(undo)
        _clear(staged.values())
        if not isinstance(error, OSError):
            raise
        raise Refused(
            f"the recorded change of {error.filename or root} could not be made: {error.strerror}",
            code="not_applied",
            root=root,
        ) from error
    finally:
        _clear(away for _, away in undo if away is not None)


def _written_where_they_stand(root: str, puts: Sequence[Put]) -> bool:
    """Whether that was possible; nothing has changed when it was not.

    Making and deleting a file costs more than all the rest of a replayed step: ext4 looks at each inode deleted in the
    last seconds before it gives out one, so that a file that changes in each step makes every step slower.
    """
    if not all(put.kind == "file" and put.content is not None and put.old is None for put in puts):
        return False
    undo: list[tuple[str, bytes | None, int]] = []
    try:
        done = all(_written(os.path.join(root, put.path), put, undo) for put in puts)
    except OSError:
        done = False  # the other way tells what is wrong
    except BaseException:
        _write_back(undo)
        raise
    if not done:
        _write_back(undo)
    return done


def _written(path: str, put: Put, undo: list[tuple[str, bytes | None, int]]) -> bool:
    """
    Args:
        undo: gets the path, what it held (``None``: nothing stood there) and its mode.
    """
    content = put.content or b""
    if len(content) > SMALL:
        return False
    before: int | None
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    found = None if put.new else _there(path)
    if found is None:
        # with the mode it is to have, less what the umask takes: a change of mode costs as much as what is written
        handle = os.open(path, flags | os.O_CREAT | os.O_EXCL, put.mode & 0o777)
        was, before = stat.S_IMODE(os.fstat(handle).st_mode), None
    else:
        was, before = stat.S_IMODE(found.st_mode), found.st_size
        # another name of the same file keeps what it has, and may be anywhere
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or before > SMALL:
            return False
        handle = os.open(path, flags)
    try:
        undo.append((path, None if before is None else os.pread(handle, before, 0), was))
        if os.pwrite(handle, content, 0) != len(content):
            return False
        if before is not None and before > len(content):
            os.ftruncate(handle, len(content))
        if put.mode != was:
            os.fchmod(handle, put.mode)
    finally:
        os.close(handle)
    return True


def _there(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None


def _write_back(undo: list[tuple[str, bytes | None, int]]) -> None:
    for path, content, mode in reversed(undo):
        if content is None:
            os.unlink(path)
            continue
        os.chmod(path, mode | stat.S_IRUSR | stat.S_IWUSR)
        Path(path).write_bytes(content)
        os.chmod(path, mode)


def _clear(paths: Iterable[str]) -> None:
    """Take away what was displaced, or was never put in its place; what is in its place again is no longer there."""
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except (IsADirectoryError, PermissionError):  # Linux and macOS about a folder
            shutil.rmtree(path, ignore_errors=True)


def _inside(root: str, path: str, made: Set[str]) -> None:
    """``made``: what these same changes make a folder of, whatever it is now; all below such a one is new."""
    parts = path.split("/")
    if os.path.isabs(path) or not path or any(part in ("", ".", "..") for part in parts):
        raise Refused(f"{path!r} is no path below the workspace", code="not_applied", path=path)
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
            raise Refused(f"{here} is no folder, so {path!r} cannot be put there", code="not_applied", path=path)


def _stage(puts: Sequence[Put], at: str, staged: dict[str, str]) -> None:
    """New files and links, written under numbers into ``staged``: path to staged path."""
    for number, put in enumerate(puts):
        if put.content is None or put.kind not in ("file", "symlink"):
            continue
        name = f"{at}new-{number}"
        if put.kind == "symlink":
            os.symlink(os.fsdecode(put.content), name)
        else:
            handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            staged[put.path] = name
            try:
                left = memoryview(put.content)
                while left:
                    left = left[os.write(handle, left) :]
                os.fchmod(handle, put.mode)
            finally:
                os.close(handle)
        staged[put.path] = name


def _commit(
    root: str, puts: Sequence[Put], at: str, staged: dict[str, str], undo: list[tuple[str, str | None]]
) -> None:
    """
    Args:
        at: what names in the staging folder begin with.
        undo: pairs of a path and where what stood there before has gone (``None``: nothing stood there).
    """

    def displace(path: str) -> None:
        away: str | None = f"{at}old-{len(undo)}"
        try:
            os.rename(path, away or "")
        except FileNotFoundError:
            away = None
        undo.append((path, away))

    # contents that a rename brings along are taken out first: their old places may be wanted by others
    for number, put in enumerate(puts):
        if put.old is not None and put.path not in staged:
            source = os.path.join(root, put.old)
            moved = f"{at}moved-{number}"
            if os.path.lexists(source):
                os.rename(source, moved)
                undo.append((source, moved))
                staged[put.path] = moved
    for put in sorted(puts, key=lambda put: put.path, reverse=True):  # what is inside goes before what is around
        path = os.path.join(root, put.path)
        if put.old is not None:
            displace(os.path.join(root, put.old))
        if put.kind is None:
            displace(path)
    for put in sorted(puts, key=lambda put: put.path):
        if put.kind is None:
            continue
        path = os.path.join(root, put.path)
        _make_folders(root, os.path.dirname(path), undo)
        if put.kind == "dir":
            if not os.path.isdir(path) or os.path.islink(path):
                displace(path)
                os.mkdir(path)
        elif put.path in staged:
            displace(path)
            os.rename(staged[put.path], path)
            if put.content is not None:
                continue  # it was written with its mode
        elif put.kind == "fifo" and not os.path.lexists(path):
            displace(path)
            os.mkfifo(path)
        if put.kind != "symlink" and os.path.lexists(path):
            os.chmod(path, put.mode)


def _make_folders(root: str, folder: str, undo: list[tuple[str, str | None]]) -> None:
    if len(folder) > len(root) and not os.path.isdir(folder):
        _make_folders(root, os.path.dirname(folder), undo)
        os.mkdir(folder)
        undo.append((folder, None))


def _take_back(undo: list[tuple[str, str | None]]) -> None:
    for path, away in reversed(undo):
        if os.path.lexists(path):
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path, ignore_errors=True)
            else:
                os.unlink(path)
        if away is not None:
            with contextlib.suppress(FileNotFoundError):  # it was staged twice (a rename): the first entry brings it
                os.rename(away, path)
