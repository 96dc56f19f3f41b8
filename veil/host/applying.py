"""Doing a recorded change of a tree again, all of it or none of it, without ever leaving the tree."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from veil.model.errors import Refused
from veil.model.outcome import Kind


@dataclass(frozen=True)
class Put:
    """One path as it is to be.

    Attributes:
        path: below the root. kind: ``None`` to have nothing there.
        content: bytes of a file, target of a link; ``None`` leaves the content of a file as it is.
        mode: permission bits. old: where the content comes from (a rename).
    """

    path: str
    kind: Kind | None
    mode: int = 0
    content: bytes | None = None
    old: str | None = None


#: Tells what one ``apply`` puts into a staging folder from what others do.
_numbers = itertools.count()


def apply(root: str, puts: Sequence[Put], staging: str | None = None) -> None:
    """Make every path as it is to be.

    New content is written beside the tree first; then everything is put in its place, and put back when one step of
    that fails.

    Args:
        staging: an existing folder on the same file system to write to; it may be used by many at once, and stays.
            None: one is made beside the root and removed (which costs more than all the rest, for a small change).

    Raises:
        Refused: a path leads out of the root, through a link or through something that is no folder (``not_applied``),
            or the disk refuses.
    """
    if not puts:
        return
    for put in puts:
        for path in (put.path, put.old):
            if path is not None:
                _inside(root, path)
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


def _clear(paths: Iterable[str]) -> None:
    """Take away what was displaced, or was never put in its place; what is in its place again is no longer there."""
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except (IsADirectoryError, PermissionError):  # Linux and macOS about a folder
            shutil.rmtree(path, ignore_errors=True)


def _inside(root: str, path: str) -> None:
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
