"""The one guarded way in which veil empties a folder: only below a folder that it marked as its own."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from pathlib import Path

from veil.host import metadata, private
from veil.model.errors import Refused

#: Stands in every folder that veil may empty.
MARK = ".veil-owned"


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
    """Take a folder away with all that is in it, also what a command took the permissions off. No link is followed,
    whoever may still be at work in there. Raises ``OSError``."""
    try:
        shutil.rmtree(path)
    except FileNotFoundError:
        raise
    except OSError:
        metadata.set_mode(path, None, stat.S_IRWXU)
        for _, names, _, at in os.fwalk(path):
            for name in names:  # before the walk goes in, which it could not otherwise
                with contextlib.suppress(OSError):  # it has gone, or it is a link
                    metadata.set_mode(name, at, stat.S_IRWXU)
        shutil.rmtree(path)
