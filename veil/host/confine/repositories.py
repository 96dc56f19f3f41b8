"""What a git repository runs on somebody's behalf: hooks and configuration, found below what a command may write to."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

#: Repositories within a repository (submodules) that are looked at.
_MOST = 50


@dataclass(frozen=True)
class Kept:
    """Attributes:
    readonly: hooks folders and configuration files. pinned: folders around them that must not be moved out of the way.
    gaps: what is not there to be kept.
    """

    readonly: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()


def folders(root: str) -> list[str]:
    """Git folders that a repository at ``root`` uses: its own, one that a ``.git`` file names, the common one, those of
    submodules."""
    found: dict[str, None] = {}
    dot = os.path.join(root, ".git")
    if os.path.isfile(dot):
        named = _first_line(dot)
        if named.startswith("gitdir:"):
            dot = os.path.join(root, named[len("gitdir:") :].strip())
    if os.path.isdir(dot):
        found[os.path.realpath(dot)] = None
        common = _first_line(os.path.join(dot, "commondir"))
        if common and os.path.isdir(joined := os.path.join(dot, common)):
            found[os.path.realpath(joined)] = None
    for folder in list(found):
        for below in _submodules(folder):
            found[below] = None
    return list(found)


def _submodules(folder: str) -> Iterator[str]:
    todo, seen = [os.path.join(folder, "modules")], 0
    while todo and seen < _MOST:
        here = todo.pop()
        with contextlib.suppress(OSError), os.scandir(here) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    seen += 1
                    if os.path.lexists(os.path.join(entry.path, "HEAD")):
                        yield os.path.realpath(entry.path)
                    else:  # a submodule's name may have slashes in it
                        todo.append(entry.path)


def _first_line(path: str) -> str:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return os.fsdecode(file.readline(8192).strip())
    except OSError:
        return ""


def parts(folder: str) -> list[str]:
    """What git runs or obeys in one git folder, whether it is there or not."""
    return [os.path.join(folder, name) for name in ("hooks", "config", "config.worktree")]


def of(roots: Iterable[str]) -> Kept:
    """Of the repositories at these folders."""
    readonly: dict[str, None] = {}
    pinned: dict[str, None] = {}
    gaps: list[str] = []
    for root in roots:
        dot = os.path.join(root, ".git")
        if os.path.lexists(dot) and not os.path.islink(dot):
            (pinned if os.path.isdir(dot) else readonly)[dot] = None
        for folder in folders(root):
            # a commondir that is made would lead git to another folder for its configuration and hooks
            for path in [*parts(folder), os.path.join(folder, "commondir")]:
                if os.path.exists(path):
                    readonly[os.path.realpath(path)] = None
                elif not path.endswith("config.worktree"):
                    gaps.append(f"protect_git: {os.path.relpath(path, root)} is not there, so it can be made")
    return Kept(tuple(readonly), tuple(pinned), tuple(gaps))


def signature(roots: Iterable[str]) -> dict[str, object]:
    """What hooks and configuration look like now, to be compared later."""
    found: dict[str, object] = {}
    for root in roots:
        for folder in folders(root):
            for path in [*parts(folder), *_leading(folder)]:
                found[path] = _state(path)
                if path.endswith("/hooks"):
                    with contextlib.suppress(OSError), os.scandir(path) as entries:
                        for entry in entries:
                            if not entry.name.endswith(".sample"):
                                found[entry.path] = _state(entry.path)
    return {path: state for path, state in found.items() if state is not None}


def _leading(folder: str) -> Iterator[str]:
    """What leads git from one git folder to others: to the common one, or a link in the place of a submodule's."""
    yield os.path.join(folder, "commondir")
    modules = os.path.join(folder, "modules")
    if os.path.islink(modules) or not os.path.isdir(modules):
        yield modules
        return
    with contextlib.suppress(OSError), os.scandir(modules) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield entry.path


def _state(path: str) -> tuple[int, ...] | None:
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    if os.path.isdir(path):  # its own times move with whatever comes and goes in it, which is told by name
        return (seen.st_mode, seen.st_ino)
    return (seen.st_mode, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)


def changed(before: dict[str, object], after: dict[str, object]) -> list[str]:
    """Paths that are not what they were, in order."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
