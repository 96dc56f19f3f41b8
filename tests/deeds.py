"""Random trees and random deeds in them; as a program (``deeds.py JSON``) it does them where it is run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Step = Sequence[Any]


def do(root: Path, step: Step) -> None:
    """Do it, or leave it when it cannot be done. Whatever is in the way of something new goes first."""
    kind, path, *rest = step
    at = root / os.fsdecode(path)
    # a step through a link would leave the tree
    if os.path.realpath(at.parent) != str(at.parent) or not at.parent.is_dir():
        return
    with contextlib.suppress(OSError, shutil.Error):
        ACTIONS[str(kind)](root, at, *rest)


def away(at: Path) -> None:
    if at.is_dir() and not at.is_symlink():
        shutil.rmtree(at)
    elif os.path.lexists(at):
        at.unlink()


def new(make: Callable[..., object]) -> Callable[..., None]:
    def action(root: Path, at: Path, *rest: object) -> None:
        away(at)
        make(at, *rest)

    return action


def move(root: Path, at: Path, other: str) -> None:
    target = root / other
    if (
        os.path.realpath(target.parent) != str(target.parent)
        or not os.path.lexists(at)
        or at in (target, *target.parents)
    ):
        return
    if os.path.lexists(target) and (target.is_dir() or at.is_dir()):
        return
    # a folder of the tree cannot be renamed in an overlay, only moved as mv does
    subprocess.run(["mv", "-T", "--", at, target], check=False, capture_output=True)


def rename(root: Path, at: Path, other: str) -> None:
    target = root / other
    if os.path.realpath(target.parent) == str(target.parent):
        at.rename(target)


def _bytes(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode()


def write(root: Path, at: Path, content: str | bytes, keep_time: bool) -> None:
    """Into the same file, perhaps with the time of before."""
    found = os.lstat(at)
    if stat.S_ISREG(found.st_mode):
        with at.open("r+b") as file:
            file.truncate()
            file.write(_bytes(content))
        if keep_time:
            os.utime(at, ns=(1, found.st_mtime_ns))


def open_only(root: Path, at: Path) -> None:
    if stat.S_ISREG(os.lstat(at).st_mode):
        with at.open("r+b"):
            pass


def mode(root: Path, at: Path, bits: int) -> None:
    if not at.is_symlink():
        at.chmod(bits | (0o700 if at.is_dir() else 0))


def bits(root: Path, at: Path, exactly: int) -> None:
    if not at.is_symlink():
        at.chmod(exactly)


def hard(root: Path, at: Path, other: str) -> None:
    target = root / other
    if (
        stat.S_ISREG(os.lstat(target).st_mode)
        and os.path.realpath(target.parent) == str(target.parent)
        and target != at
    ):
        away(at)
        os.link(target, at)


ACTIONS: dict[str, Callable[..., None]] = {
    "file": new(lambda at, content: at.write_bytes(_bytes(content))),
    "folder": new(lambda at: at.mkdir()),
    "link": new(lambda at, target: at.symlink_to(target)),
    "fifo": new(lambda at: os.mkfifo(at)),
    "hard": hard,
    "remove": lambda root, at: away(at),
    "move": move,
    "rename": rename,
    "write": write,
    "open": open_only,
    "mode": mode,
    "bits": bits,
    "time": lambda root, at, ns: os.utime(at, ns=(1, ns), follow_symlinks=False),
}


def facts(root: Path, *, times: bool) -> dict[str, tuple[Any, ...]]:
    """Kind, mode, owner and content by path below ``root`` (``""`` is the root); with times, and inodes and links."""
    found: dict[str, tuple[Any, ...]] = {}

    def look(path: str, shown: str) -> None:
        s = os.lstat(path)
        content: Any = None
        if stat.S_ISLNK(s.st_mode):
            content = os.readlink(path)
        elif stat.S_ISREG(s.st_mode):
            content = Path(path).read_bytes()
        moment = (s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_nlink) if times else ()
        found[shown] = (stat.S_IFMT(s.st_mode), stat.S_IMODE(s.st_mode), s.st_uid, s.st_gid, content, *moment)
        if stat.S_ISDIR(s.st_mode):
            for name in sorted(os.listdir(path)):
                look(os.path.join(path, name), f"{shown}/{name}" if shown else name)

    look(str(root), "")
    return found


def main() -> None:
    root = Path.cwd()
    for step in json.loads(sys.argv[1]):
        do(root, step)


if __name__ == "__main__":
    main()
