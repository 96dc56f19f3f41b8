"""A view of a folder in which everything can be written and nothing is: an overlay that only the command sees.

Mounting is done by the small program ``mounting.py`` in namespaces of its own; here is what it needs, whether it works
on this machine (by doing it), and what the layer of writes says of what was done.
"""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from veil.host.differing import Compared, Difference, State, Touched, listed, state_of
from veil.host.metadata import attributes_of, dress, set_mode
from veil.host.processes import LINUX

_PROGRAM = str(Path(__file__).with_name("mounting.py"))
_SECONDS = 20.0
_OPAQUE = "user.overlay.opaque"
#: Entries of the folder that are looked at for files which a user namespace could not hand on.
_LOOKED_AT = 1_000


def words(verb: str, kind: str, folder: str, room: str, hidden: Sequence[str]) -> tuple[str, ...]:
    """The program with its arguments. ``hidden``: folders in the view that are to be empty."""
    # -I -S -B: nothing of the user's is imported, nothing is written; utf8: every byte of a word survives
    return (sys.executable, "-X", "utf8", "-I", "-S", "-B", _PROGRAM, verb, kind, folder, room, *hidden)


def prepare(folder: str, room: str) -> State:
    """Make what an overlay writes to; the state of its top, which looks as the folder does. Raises ``OSError``."""
    upper = os.path.join(room, "upper")
    os.mkdir(os.path.join(room, "work"), 0o700)
    os.mkdir(upper, 0o700)
    os.setxattr(upper, "user.veil", b"1")  # without these an overlay could not say that a folder was replaced
    os.removexattr(upper, "user.veil")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        found, attributes = os.fstat(handle), attributes_of(handle)
    finally:
        os.close(handle)
    shown = tuple(pair for pair in attributes if pair[0].startswith(("user.", "system.posix_acl_")))
    handle = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        dress(handle, stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid), found.st_mtime_ns, shown)
    finally:
        os.close(handle)
    top = state_of(upper)
    assert top is not None
    return top


def unsuited(folder: str) -> str | None:
    """Why an overlay of this folder would not behave as the folder does, or ``None``."""
    if not LINUX:
        return "only Linux has overlays"
    if os.geteuid() == 0:
        return None
    me, group = os.geteuid(), os.getegid()
    with os.scandir(folder) as entries:
        found = [(folder, os.stat(folder))]
        for entry in entries:
            if len(found) > _LOOKED_AT:
                break
            if not entry.is_symlink():
                found.append((entry.path, entry.stat(follow_symlinks=False)))
    for path, status in found:
        mine = status.st_uid == me
        if (mine and status.st_gid != group) or (not mine and os.access(path, os.W_OK)):
            return f"{path} belongs to another user or group, which a user namespace cannot hand on"
    return None


def prove(kind: str, folder: str, room: str, hidden: Sequence[str]) -> None:
    """Mount it once. Raises ``OSError`` with the reason when that cannot be done here."""
    look(kind, folder, room, hidden, [folder])


def look(
    kind: str, folder: str, room: str, hidden: Sequence[str], paths: Sequence[str]
) -> list[tuple[int, int] | OSError | None]:
    """What stands at each path in the view, links not followed: mode and size; ``None`` when nothing does.

    Raises ``OSError`` when the view cannot be made again.
    """
    asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
    try:
        done = subprocess.run(
            words("look", kind, folder, room, hidden),
            input=asked,
            capture_output=True,
            timeout=_SECONDS,
            env={},
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        raise OSError(errno.ETIMEDOUT, f"mounting did not end within {_SECONDS:g} s") from None
    if done.returncode != 0:
        raise OSError(errno.EPERM, broken(room) or done.stderr.decode("utf-8", "replace").strip() or "it was ended")
    found: list[tuple[int, int] | OSError | None] = []
    for line in done.stdout.decode().splitlines():
        mode, size, error = line.split()
        number = int(error)
        if not number:
            found.append((int(mode), int(size)))
        elif number in (errno.ENOENT, errno.ENOTDIR):
            found.append(None)
        else:
            found.append(OSError(number, os.strerror(number)))
    return found


def broken(room: str) -> str | None:
    """Why the view did not stand at the last try; ``None`` when it did."""
    if os.path.lexists(os.path.join(room, "covered")):
        return None
    try:
        return Path(room, "broken").read_text("utf-8", "replace")
    except FileNotFoundError:
        return "something that confines it keeps it from mounting, or it was ended"


def unstarted(room: str, program: str) -> OSError | None:
    """Why the program could not be started in the view; ``None`` when it could."""
    try:
        number = int(Path(room, "unstarted").read_text())
    except FileNotFoundError:
        return None
    return OSError(number, os.strerror(number), program)


def difference(folder: str, room: str, top: State) -> Difference:
    """What the layer of writes says, against the folder itself. ``top``: as ``prepare`` made it. Raises ``OSError``."""
    upper = os.path.join(room, "upper")
    found = Compared()
    _compare_top(folder, upper, top, found)
    _walk(folder, upper, found)
    return found.all()


def _compare_top(folder: str, upper: str, top: State, found: Compared) -> None:
    now, real = state_of(upper), state_of(folder)
    assert now is not None
    if real is None:
        found.gaps.append("the folder itself is gone")
        return
    if (now.mode, now.uid, now.gid) != (top.mode, top.uid, top.gid):
        owner = (now.uid, now.gid) if (now.uid, now.gid) != (top.uid, top.gid) else (real.uid, real.gid)
        found.touched.append(Touched("", real, now._replace(uid=owner[0], gid=owner[1]), True, upper))


def _walk(folder: str, upper: str, found: Compared) -> None:
    """Every folder of the layer. With each stands whether it is a folder in the tree as well."""
    todo = [("", True)]
    while todo:
        path, below = todo.pop()
        here = os.path.join(upper, path) if path else upper
        for name in sorted(_names(here)):
            shown = f"{path}/{name}" if path else name
            real = f"{folder}/{shown}"
            now = state_of(f"{here}/{name}")
            before = state_of(real) if below else None
            assert now is not None
            if now.is_dir:
                todo.append((shown, before is not None and before.is_dir))
            _written(shown, real, before, f"{here}/{name}", now, found)


def _written(shown: str, real: str, before: State | None, at: str, now: State, found: Compared) -> None:
    """One entry of the layer, at ``at``; what lies below a folder is left to its own turn."""
    was_dir = before is not None and before.is_dir
    if stat.S_ISCHR(now.mode) and os.lstat(at).st_rdev == 0:  # how an overlay says that something is gone
        if before is not None:
            found.gone(shown, real, before)
        return
    opaque = now.is_dir and was_dir and _opaque(at)
    if not now.is_dir and was_dir:
        _replaced(found, shown, real, set())
    found.add(shown, real, before, at, now)
    if opaque:
        _replaced(found, shown, real, set(_names(at)))


def _replaced(found: Compared, shown: str, real: str, kept: set[str]) -> None:
    """What was in a folder of the tree that another took the place of, or a file; ``kept``: names in the new one."""
    for name, state in listed(real, found.gaps, shown):
        if name not in kept:
            found.gone(f"{shown}/{name}", f"{real}/{name}", state)


def _names(folder: str) -> list[str]:
    """Of a folder of ours, whatever its mode."""
    try:
        return os.listdir(folder)
    except PermissionError:
        set_mode(folder, None, 0o700)
        return os.listdir(folder)


def _opaque(folder: str) -> bool:
    try:
        return os.getxattr(folder, _OPAQUE, follow_symlinks=False) == b"y"
    except OSError:
        return False
