"""What is below a folder, by ``lstat`` alone: names, types, sizes, times. Nothing is opened, no link is followed."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from veil.model.outcome import Kind

#: mode, size, mtime_ns, ctime_ns, inode, number of links.
Signature = tuple[int, int, int, int, int, int]

#: A picture holds at most this many entries: two walks of so many take about a second.
MAX_ENTRIES = 200_000
#: ... and takes at most this many seconds (a network file system can be slow with few entries).
MAX_SECONDS = 5.0
#: The tick that time stamps can lag behind on kernels without multigrain time stamps (jiffies of 1 to 10 ms).
TICK_NS = 10_000_000
#: Fresh files hashed at most at a first picture on such kernels, and the largest that is.
MAX_RACY_FILES = 500
MAX_RACY_BYTES = 1_000_000

_KINDS: Mapping[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "dir",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}


class TreeUnknown(Exception):
    """The tree could not be looked at as a whole; the message says why."""


class TooMuch(TreeUnknown):
    """More entries or more seconds than the caller allowed."""


@dataclass
class Scan:
    """Attributes:
    entries: signature by path below the root (``/`` between names, surrogateescape).
    nested: folders below the root that have a ``.git`` of their own.
    gaps: folder -> why nobody looked into it.
    digests: content hashes of files too fresh for their time stamps to be trusted (old kernels only).
    """

    entries: dict[str, Signature] = field(default_factory=dict)
    nested: set[str] = field(default_factory=set)
    gaps: dict[str, str] = field(default_factory=dict)
    digests: dict[str, bytes] = field(default_factory=dict)


def kind_of(mode: int) -> Kind:
    """The word for the type bits of ``st_mode``."""
    return _KINDS.get(stat.S_IFMT(mode), "device")


def signature(path: str) -> Signature | None:
    """The signature of one path, or ``None`` when nothing is there. Raises ``OSError`` when it cannot be told."""
    try:
        s = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return (s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_nlink)


def scan(
    root: str,
    *,
    under: str = "",
    skip: frozenset[str] = frozenset(),
    limit: int = MAX_ENTRIES,
    seconds: float = MAX_SECONDS,
    into: Scan | None = None,
) -> Scan:
    """Walk ``root`` (or only ``under`` below it) and add what is there to ``into``.

    Whatever is called ``.git`` is left out with all below it; so are the paths of ``skip`` and other file systems.
    Names that vanish meanwhile are no trouble. Raises ``TooMuch`` beyond ``limit`` entries in all or ``seconds``,
    ``TreeUnknown`` when the root itself cannot be read.
    """
    found = Scan() if into is None else into
    top = os.path.join(root, under) if under else root
    try:
        device = os.lstat(top).st_dev
    except (FileNotFoundError, NotADirectoryError):
        return found
    except OSError as error:
        raise TreeUnknown(f"{top}: {error.strerror}") from error
    until = time.monotonic() + seconds
    stack = [under]
    while stack:
        folder = stack.pop()
        try:
            _read_folder(os.path.join(root, folder) if folder else root, folder, device, skip, limit, found, stack)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            if not folder:
                raise TreeUnknown(f"{root}: {error.strerror}") from error
            found.gaps[folder] = error.strerror or "unreadable"
        if time.monotonic() > until:
            raise TooMuch(f"the tree could not be read within {seconds:g} s")
    return found


def _read_folder(
    path: str, folder: str, device: int, skip: frozenset[str], limit: int, found: Scan, stack: list[str]
) -> None:
    entries = found.entries
    prefix = folder + "/" if folder else ""
    is_dir = stat.S_ISDIR
    with os.scandir(path) as names:
        for entry in names:
            name = entry.name
            if name == ".git":
                if folder:
                    found.nested.add(folder)
                continue
            below = prefix + name
            if below in skip:
                continue
            try:
                s = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            mode = s.st_mode
            if is_dir(mode):
                if s.st_dev != device:
                    found.gaps[below] = "another file system"
                    continue
                stack.append(below)
            entries[below] = (mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino, s.st_nlink)
        if len(entries) > limit:
            raise TooMuch(f"the tree has more than {limit} entries")


def coarse_clock() -> bool:
    """Whether this kernel's time stamps are so coarse that a second write within a tick can leave no trace.

    Linux has fine ones on demand since 6.13; the file systems of macOS count nanoseconds.
    """
    name = os.uname()
    version = re.match(r"(\d+)\.(\d+)", name.release)
    return name.sysname == "Linux" and (version is None or tuple(map(int, version.groups())) < (6, 13))


def hash_racy(root: str, found: Scan, taken_ns: int) -> None:
    """Keep hashes of regular files whose ctime lies within one tick of ``taken_ns`` (bounded in number and size)."""
    for path, sig in found.entries.items():
        if len(found.digests) >= MAX_RACY_FILES:
            break
        if sig[3] >= taken_ns - TICK_NS and stat.S_ISREG(sig[0]) and sig[1] <= MAX_RACY_BYTES:
            content = digest(os.path.join(root, path))
            if content is not None:
                found.digests[path] = content


def digest(path: str, prefix: bytes = b"", algorithm: str = "sha1") -> bytes | None:
    """Hash of ``prefix`` and a regular file's bytes; ``None`` when it cannot be read or is no regular file."""
    state = hashlib.new(algorithm, prefix, usedforsecurity=False)
    try:
        # never wait at a fifo that took the place of a file, never follow a link
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        while block := os.read(descriptor, 1 << 20):
            state.update(block)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return state.digest()
