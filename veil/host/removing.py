"""The one guarded way in which veil empties a folder: only below a folder that it marked as its own."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from veil.host import metadata, private
from veil.model.errors import Refused

#: Stands in every folder that veil may empty.
MARK = ".veil-owned"

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Linux answers ENOTDIR for a link that is opened as a folder, macOS ELOOP.
_NO_FOLDER = frozenset({errno.ENOTDIR, errno.ELOOP})
#: Somebody put something in before a folder could go.
_FILLED = frozenset({errno.ENOTEMPTY, errno.EEXIST})
#: Times that a folder is emptied anew while somebody else fills it.
_ROUNDS = 10


def claim(base: Path) -> None:
    """Make ``base`` (mode 0700) and mark it as veil's own.

    Raises:
        Refused: it is a link, belongs to somebody else, or holds something that veil did not put there (``not_ours``).
    """
    if base.is_symlink():
        raise Refused(f"{base} is a link, so nothing below it is emptied", code="not_ours", path=str(base))
    private.make(base)
    if base.stat().st_uid != os.geteuid():
        raise Refused(f"{base} belongs to another user", code="not_ours", path=str(base))
    if not (base / MARK).exists():
        if os.listdir(base):
            raise Refused(f"{base} holds files that veil did not put there", code="not_ours", path=str(base))
        (base / MARK).touch(mode=0o600)


def empty(base: Path, name: str) -> Path:
    """Make ``base/name`` an empty folder of mode 0700, whatever was in it, and return it. Links are not followed.

    Raises:
        Refused: ``base`` does not carry veil's mark, or ``name`` is more than one plain name.
    """
    folder = discard(base, name)
    folder.mkdir(mode=0o700)
    return folder


def discard(base: Path, name: str) -> Path:
    """Take ``base/name`` away, whatever it is; its path. No link is followed. Raises as ``empty``, and ``OSError``."""
    if not name or name in (".", "..") or "/" in name or base.is_symlink() or not (base / MARK).exists():
        raise Refused(f"{base}/{name} is not veil's own, so it is not emptied", code="not_ours", path=str(base / name))
    folder = base / name
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        folder.unlink()
    elif folder.exists():
        remove(str(folder))
    return folder


def remove(path: str) -> None:
    """Take a folder away with all that is in it, also what a command took the permissions off, however deep it nested.

    No link is followed, whoever may still be at work in there; a few descriptors are open at most. Raises ``OSError``:
    ``FileNotFoundError`` only when the folder itself has gone.
    """
    try:
        top = os.open(path, _FOLDER)
    except PermissionError:
        metadata.set_mode(path, None, stat.S_IRWXU)
        top = os.open(path, _FOLDER)
    try:
        for again in reversed(range(_ROUNDS)):
            try:
                _clear(top)
                os.rmdir(path)
                return
            except OSError as error:
                if error.errno == errno.EXDEV:  # a lower layer or a volume of its own: nothing in it can be moved out
                    _descend(path)
                    return
                if error.errno not in _FILLED or not again:
                    raise
    finally:
        os.close(top)


def _clear(top: int) -> None:
    """Empty a folder, without going deeper than one step: a folder in a folder is moved to the top before its turn."""
    _let_in(top)
    todo = []
    for name, is_dir in _entries(top):
        if is_dir:
            todo.append(name)
        else:
            _gone(os.unlink, name, top)
    while todo:
        name = todo.pop()
        try:
            folder = _enter(name, top)
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno not in _NO_FOLDER:
                raise
            _gone(os.unlink, name, top)
            continue
        try:
            _let_in(folder)
            with contextlib.suppress(FileNotFoundError):  # a folder that somebody else took away cannot be read
                for below, is_dir in _entries(folder):
                    if is_dir:
                        todo += _lift(below, folder, top)
                    else:
                        _gone(os.unlink, below, folder)
        finally:
            os.close(folder)
        _gone(os.rmdir, name, top)


def _entries(folder: int) -> list[tuple[str, bool]]:
    """Names, and whether each is a folder and no link. All at once: what is deleted meanwhile may hide the next."""
    with os.scandir(folder) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]


def _enter(name: str, above: int) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except PermissionError:
        metadata.set_mode(name, above, stat.S_IRWXU)
        return os.open(name, _FOLDER, dir_fd=above)


def _let_in(folder: int) -> None:
    if os.fstat(folder).st_mode & stat.S_IRWXU != stat.S_IRWXU:
        with contextlib.suppress(OSError):  # not ours: what cannot be done in it says so
            os.fchmod(folder, stat.S_IRWXU)


def _lift(name: str, folder: int, top: int) -> Iterator[str]:
    """Move a folder to the top; its name there. Nothing when somebody else took it away."""
    fresh = f".veil-{secrets.token_hex(8)}"
    with contextlib.suppress(FileNotFoundError):
        try:
            os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)
        except PermissionError:  # what changes its parent must be writable itself
            metadata.set_mode(name, folder, stat.S_IRWXU)
            os.rename(name, fresh, src_dir_fd=folder, dst_dir_fd=top)
        yield fresh


def _gone(away: Callable[..., None], name: str, folder: int) -> None:
    """Delete one entry. One that somebody else took away, filled or put in its place is left to the next round."""
    try:
        away(name, dir_fd=folder)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        pass
    except OSError as error:
        if error.errno not in _FILLED:
            raise


def _descend(path: str) -> None:
    for again in reversed(range(_ROUNDS)):
        try:
            shutil.rmtree(path)
            return
        except FileNotFoundError:  # up to Python 3.12 also for an entry that somebody else took away
            if not again or not os.path.lexists(path):
                raise
        except RecursionError:  # likewise
            why = "nested too deep for a folder that nothing can be moved in"
            raise OSError(errno.ENAMETOOLONG, why, path) from None
