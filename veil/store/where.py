"""Where records live: from the environment to a state directory, from a folder to its project. Creates nothing."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class StateDirectory:
    """The answer.

    Attributes:
        path: absolute; ``None`` when no place can be trusted (then records stay in memory).
        source: which rule gave it.
        why: the reason when ``path`` is ``None``, or why the usual place was passed over.
    """

    path: Path | None
    source: Literal["VEIL_STATE_DIR", "XDG_STATE_HOME", "home", "temp", "none"]
    why: str | None = None


def state_directory(env: Mapping[str, str]) -> StateDirectory:
    """``VEIL_STATE_DIR``, else ``$XDG_STATE_HOME/veil``, else ``~/.local/state/veil``, else ``<temp>/veil-<uid>``.

    What the caller named in ``VEIL_STATE_DIR`` is taken at its word (relative: from the working directory; a leading
    ``~`` is the home folder). The others are passed over when they cannot be written; a relative ``XDG_STATE_HOME``
    is ignored, as its specification wants.
    """
    home = _home(env)
    named = env.get("VEIL_STATE_DIR", "")
    if named:
        if home is not None and (named == "~" or named.startswith("~/")):
            named = f"{home}{named[1:]}"
        return StateDirectory(Path(os.path.abspath(named)), "VEIL_STATE_DIR")
    why = []
    xdg = env.get("XDG_STATE_HOME", "")
    if os.path.isabs(xdg):
        path = Path(xdg, "veil")
        reason = _unwritable(path)
        if reason is None:
            return StateDirectory(path, "XDG_STATE_HOME")
        why.append(reason)
    if home is not None:
        path = Path(home, ".local", "state", "veil")
        reason = _unwritable(path)
        if reason is None:
            return StateDirectory(path, "home", "; ".join(why) or None)
        why.append(reason)
    else:
        why.append("there is no home folder")
    return _temporary(env, why)


def _temporary(env: Mapping[str, str], why: list[str]) -> StateDirectory:
    base = env.get("TMPDIR", "")
    if not os.path.isabs(base) or not os.path.isdir(base):
        import tempfile

        base = tempfile.gettempdir()
    path = Path(base, f"veil-{os.geteuid()}")
    reason = _not_my_folder(path) or _unwritable(path)
    if reason is not None:
        return StateDirectory(None, "none", "; ".join([*why, reason]))
    return StateDirectory(path, "temp", "; ".join(why) or None)


def project_root(folder: Path) -> Path:
    """The top of the git work tree that holds ``folder``, else ``folder`` itself; resolved. Runs no git.

    A ``.git`` counts as git counts it: a folder with a ``HEAD``, or a file (linked work trees and submodules).
    """
    start = Path(os.path.realpath(folder))
    for candidate in (start, *start.parents):
        dot_git = candidate / ".git"
        if os.path.lexists(dot_git / "HEAD") or dot_git.is_file():
            return candidate
    return start


def project_directory(state: Path, root: Path) -> Path:
    """``<state>/projects/<hash>``; the same for every spelling of the same folder, and for any name it may have."""
    import hashlib

    digest = hashlib.blake2b(os.fsencode(os.path.realpath(root)), digest_size=12).hexdigest()
    return state / "projects" / digest


def trespass(directory: Path) -> str | None:
    """Why records must not be put below ``directory``, or ``None``.

    In a folder that everybody can write to (such as /tmp), the next step down must belong to us or to root: whoever
    owns it could read or swap what lies below. The directory itself must be ours.
    """
    mine = os.geteuid()
    steps = [*reversed(directory.parents), directory]
    open_to_all = False
    for step in steps:
        try:
            found = os.lstat(step)
        except (FileNotFoundError, NotADirectoryError):  # nobody put anything there; whoever makes it will be told
            return None
        except OSError as error:  # the step before it is closed to us
            return f"{step} cannot be looked at: {error.strerror}"
        if open_to_all and found.st_uid not in (mine, 0):
            return f"{step} belongs to another user"
        if step == directory and not stat.S_ISLNK(found.st_mode) and found.st_uid != mine and mine != 0:
            return f"{step} belongs to another user"
        open_to_all = stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_IWOTH)
    return None


def _home(env: Mapping[str, str]) -> str | None:
    named = env.get("HOME", "")
    if os.path.isabs(named):
        return named.rstrip("/") or "/"
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir or None
    except KeyError:
        return None


def _not_my_folder(path: Path) -> str | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{path}: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{path} is not a folder"
    if found.st_uid != os.geteuid():
        return f"{path} belongs to another user"
    return None


def _unwritable(path: Path) -> str | None:
    """Why ``path`` could not be made or written: asked of the nearest folder that is there."""
    for step in (path, *path.parents):
        if os.path.lexists(step):
            if not os.path.isdir(step):
                return f"{step} is not a folder"
            return None if os.access(step, os.W_OK | os.X_OK) else f"{step} cannot be written"
    return f"{path} has no parent"  # pragma: no cover  (the root folder is always there)
