"""Doing a recorded change of a tree again, all of it or none of it, without ever leaving the tree."""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from veil.host.placing import Placing
from veil.host.puts import Put, check
from veil.model.errors import Refused

__all__ = ["SMALL", "Put", "apply"]

#: Up to this many bytes a file is written where it stands: what it held before is kept in memory meanwhile.
SMALL = 64 << 10

#: Tells what one ``apply`` puts into a staging folder from what others do.
_numbers = itertools.count()


def apply(root: str, puts: Sequence[Put], staging: str | None = None) -> None:
    """Make every path as it is to be.

    Small files are written where they stand, as a shell does. For everything else new content is written beside the
    tree first; then all is put in its place. What fails is put back as it was, modes too. Whatever is in ``puts``,
    nothing outside of ``root`` is changed.

    Args:
        staging: an existing folder on the same file system to write to; it may be used by many at once, and stays.
            None: one is made beside the root and removed (which costs more than all the rest, for a small change).

    Raises:
        Refused: a path leads out of the root, through a link or through something that is no folder, now or once the
            others are done; two are for one path; or the disk refuses (``not_applied``).
    """
    if not puts:
        return
    try:
        check(root, puts)
        if _written_where_they_stand(root, puts):
            return
        if staging is not None:
            _placed(root, puts, staging)
            return
        made = tempfile.mkdtemp(prefix=".veil-apply-", dir=os.path.dirname(root))
        try:
            _placed(root, puts, made)
        finally:
            with contextlib.suppress(OSError):  # something in it could not be put back, and is kept
                os.rmdir(made)
    except OSError as error:
        raise _not_made(str(error.filename or root), error) from error


def _placed(root: str, puts: Sequence[Put], staging: str) -> None:
    placing = Placing(root, os.path.join(staging, f"{next(_numbers)}-"))
    try:
        placing.stage(puts)
        placing.place(puts)
    except BaseException as error:
        path = os.path.join(root, placing.doing)
        failed = placing.take_back()
        if failed:
            kept = f"; these could not be put back from {staging}: {', '.join(failed[:3])}"
            raise _not_made(path, error, kept) from error
        if not isinstance(error, OSError):
            raise
        raise _not_made(path, error) from error
    finally:
        placing.close()


def _not_made(path: str, error: BaseException, more: str = "") -> Refused:
    why = error.strerror if isinstance(error, OSError) else error
    return Refused(f"the recorded change of {path} could not be made: {why}{more}", code="not_applied", path=path)


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
        if put.mode != was or put.mode & (stat.S_ISUID | stat.S_ISGID):  # the kernel takes these off at a write
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
