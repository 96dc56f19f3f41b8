"""A copy of a folder to run in, and what a run did to it: where no overlay can be had."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import time
from dataclasses import dataclass, field

from veil.host import clone
from veil.host.anchored import FILE
from veil.host.differing import Compared, Difference, State, attributes_at, state_of
from veil.host.metadata import dress, set_mode
from veil.host.mounts import mounted_below
from veil.host.tree import TICK_NS, coarse_clock


class TooLarge(Exception):
    """The tree has more bytes than may be copied."""


@dataclass
class Replica:
    """A copy.

    Attributes:
        folder, tree: the folder and where its copy is.
        cloned: it shares its blocks with the folder.
        before, copied: state of each path in the folder when it was copied, and of its copy.
        gaps: what the copy does not have.
    """

    folder: str
    tree: str
    cloned: bool = False
    before: dict[str, State] = field(default_factory=dict)
    copied: dict[str, State] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    made_ns: int = 0


def shares(folder: str, room: str) -> bool:
    """Whether files of the folder can share their blocks with files in the room: tried with one of them.

    A folder without any is judged by the file system that it is on.
    """
    source = _sample(folder)
    if source is None:
        if os.stat(folder).st_dev != os.stat(room).st_dev:
            return False
        with tempfile.NamedTemporaryFile(dir=room) as made:
            made.write(b"x" * 4096)
            made.flush()
            return _shares(made.name, room)
    return _shares(source, room)


def _shares(source: str, room: str) -> bool:
    try:
        handle = os.open(source, FILE)
    except OSError:
        return False
    at = os.open(room, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        target, shared = clone.new_copy(handle, at, "sample")
        os.close(target)
        os.unlink("sample", dir_fd=at)
        return shared
    except OSError:
        return False
    finally:
        os.close(at)
        os.close(handle)


def _sample(folder: str) -> str | None:
    """Some file that is not empty."""
    todo = [folder]  # os.walk calls itself for every level, up to Python 3.11
    while todo:
        here = todo.pop()
        with contextlib.suppress(OSError):  # unreadable, or its path is too long: another may do
            for name in os.listdir(here):
                state = state_of(f"{here}/{name}")
                if state is not None and state.is_file and state.size:
                    return f"{here}/{name}"
                if state is not None and state.is_dir:
                    todo.append(f"{here}/{name}")
    return None


def make(folder: str, tree: str, own: tuple[str, ...], most: int | None) -> Replica:
    """Copy ``folder`` to ``tree``, which is made.

    Args:
        own: paths of ours below it that are left out. most: bytes that it may have; ``None``: any number.

    Raises:
        TooLarge: it has more. OSError: it cannot be read or written.
    """
    made = Replica(folder, tree)
    top = state_of(folder)
    assert top is not None
    device = os.lstat(folder).st_dev
    _list(made, "", device, own, most)
    os.mkdir(tree, 0o700)
    links: dict[int, str] = {}
    for path, state in made.before.items():
        _copy(made, path, state, links)
    made.before[""] = top
    for path in sorted(made.before, key=lambda path: path.count("/") + bool(path), reverse=True):
        if made.before[path].is_dir:
            _dress(f"{folder}/{path}", f"{tree}/{path}" if path else tree, made.before[path])
    made.made_ns = time.time_ns()
    for path in made.before:
        copied = state_of(f"{tree}/{path}" if path else tree)
        if copied is not None:
            made.copied[path] = copied
    return made


def _list(made: Replica, top: str, device: int, own: tuple[str, ...], most: int | None) -> None:
    size, seen = 0, set[int]()
    mounted = set(mounted_below(made.folder))
    stack = [top]
    while stack:
        path = stack.pop()
        here = f"{made.folder}/{path}" if path else made.folder
        try:
            names = sorted(os.listdir(here))
        except OSError as error:
            if not path:
                raise
            made.gaps.append(f"{path} cannot be read: {error.strerror}")
            continue
        for name in names:
            below, real = f"{path}/{name}" if path else name, f"{here}/{name}"
            try:
                state = state_of(real)
            except OSError as error:
                made.gaps.append(f"{below} cannot be looked at: {error.strerror}")
                continue
            if state is None or real in own:
                continue
            made.before[below] = state
            if state.is_dir:
                if os.lstat(real).st_dev != device or below in mounted:
                    made.gaps.append(f"{below} is another file system: it is empty in the copy")
                else:
                    stack.append(below)
            elif state.is_file and state.inode not in seen:
                seen.add(state.inode)
                size += state.size
                if most is not None and size > most:
                    raise TooLarge(f"the tree has more than {most} bytes")


def _copy(made: Replica, path: str, state: State, links: dict[int, str]) -> None:
    real, copy = f"{made.folder}/{path}", f"{made.tree}/{path}"
    if state.is_dir:
        os.mkdir(copy, 0o700)
    elif state.is_link:
        os.symlink(state.target, copy)
        os.utime(copy, ns=(state.mtime_ns, state.mtime_ns), follow_symlinks=False)
        with contextlib.suppress(PermissionError):
            os.chown(copy, state.uid, state.gid, follow_symlinks=False)
    elif state.is_file:
        if state.links > 1 and state.inode in links:
            os.link(links[state.inode], copy, follow_symlinks=False)
            return
        links[state.inode] = copy
        _copy_file(made, path, real, copy, state)
    elif stat.S_ISFIFO(state.mode):
        os.mkfifo(copy, 0o600)
        set_mode(copy, None, stat.S_IMODE(state.mode))
    else:
        made.gaps.append(f"{path} is a socket or a device: the copy does not have it")


def _copy_file(made: Replica, path: str, real: str, copy: str, state: State) -> None:
    above, _, name = copy.rpartition("/")
    folder = os.open(above, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            source = os.open(real, FILE)
        except PermissionError:
            made.gaps.append(f"{path} cannot be read: it is empty in the copy")
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder))
            _dress(real, copy, state)
            return
        try:
            target, shared = clone.new_copy(source, folder, name)
            try:
                made.cloned = made.cloned or shared
                if not shared:
                    clone.copy_bytes(source, target, state.size)
                _dress_open(target, real, state)
            finally:
                os.close(target)
        finally:
            os.close(source)
    finally:
        os.close(folder)


def _dress(real: str, copy: str, state: State) -> None:
    handle = os.open(copy, FILE)
    try:
        _dress_open(handle, real, state)
    finally:
        os.close(handle)


def _dress_open(handle: int, real: str, state: State) -> None:
    attributes = attributes_at(real, state)
    dress(handle, stat.S_IMODE(state.mode), (state.uid, state.gid), state.mtime_ns, attributes)


def difference(made: Replica) -> Difference:
    """What happened to the copy since it was made. Raises ``OSError``."""
    found = Compared(breaks_links=False)
    found.gaps.extend(made.gaps)
    seen = {""}
    _top(made, found)
    stack = [""]
    while stack:
        path = stack.pop()
        here = f"{made.tree}/{path}" if path else made.tree
        try:
            names = os.listdir(here)
        except PermissionError:
            set_mode(here, None, 0o700)
            names = os.listdir(here)
        for name in sorted(names):
            below = f"{path}/{name}" if path else name
            now = state_of(f"{made.tree}/{below}")
            assert now is not None
            seen.add(below)
            if now.is_dir:
                stack.append(below)
            if not _untouched(made, below, now):
                _add(made, found, below, now)
    for path, before in made.before.items():
        if path not in seen and path in made.copied:
            found.add(path, f"{made.folder}/{path}", before, "", None)
    return found.all()


def _top(made: Replica, found: Compared) -> None:
    now = state_of(made.tree)
    assert now is not None
    then = made.copied[""]
    if (now.mode, now.uid, now.gid) != (then.mode, then.uid, then.gid):
        found.add("", made.folder, made.before[""], made.tree, now)


def _untouched(made: Replica, path: str, now: State) -> bool:
    then = made.copied.get(path)
    if then is None:
        return False
    if now.is_dir:
        return then.is_dir and (then.mode, then.uid, then.gid) == (now.mode, now.uid, now.gid)
    if then._replace(links=0) != now._replace(links=0):
        return False
    return not (coarse_clock() and now.is_file and now.ctime_ns >= made.made_ns - TICK_NS)


def _add(made: Replica, found: Compared, path: str, now: State) -> None:
    real, before = f"{made.folder}/{path}", made.before.get(path)
    if before is not None and path not in made.copied:
        before = None
    if before is not None and before.is_file and now.is_file and before != state_of(real):
        # the tree went on meanwhile: its content says nothing any more, so the copy's is taken for new
        found.gaps.append(f"{path} was changed in the tree itself while the preview ran")
        found.new(path, before, f"{made.tree}/{path}", now)
        return
    found.add(path, real, before, f"{made.tree}/{path}", now)
