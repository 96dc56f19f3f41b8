"""Files that hold content by its hash: small ones one after the other in a pack, large ones each as a file of its own.

A pack costs one file however many contents it holds, which is what makes the first checkpoint of a tree quicker than a
copy of it. A large content as a file of its own can share its blocks with the file it came from. Nothing here knows
which content is where: that is the index's business. What no index names is rubbish (a process was killed), and
``sweep`` takes it away.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Collection
from pathlib import Path

from veil.host import private
from veil.host.clone import copy_bytes, new_copy, write_all
from veil.model.errors import Refused, StoreFailed

#: Bytes from which a content becomes a file of its own.
LARGE = 256 << 10
_CHUNK = 1 << 20
#: Bytes gathered before they are written to a pack.
_GATHERED = 4 << 20
_PACK = re.compile(r"[0-9a-f]{24}")
_OBJECT = re.compile(r"[0-9a-f]{64}")
_PASSING = re.compile(r"new-[0-9a-f]{24}")


def name_of(content: bytes) -> bytes:
    """The id of a content: 32 bytes."""
    return hashlib.blake2b(content, digest_size=32).digest()


def hash_open(handle: int, size: int) -> tuple[bytes, int]:
    """Id and true length of an open file, read from its beginning. Stops one byte after ``size``: it has grown then."""
    state = hashlib.blake2b(digest_size=32)
    at = 0
    while at <= size:
        block = os.pread(handle, min(_CHUNK, size + 1 - at), at)
        if not block:
            break
        state.update(block)
        at += len(block)
    return state.digest(), at


def make_private(folder: Path) -> None:
    """Make ``folder`` with mode 0700, or see that it is one of ours. Raises ``Refused`` or ``StoreFailed``."""
    try:
        private.make(folder)
        found = os.lstat(folder)
    except OSError as error:
        raise StoreFailed(f"{folder}: {error.strerror}", path=str(folder)) from error
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise Refused(f"{folder} is a link or belongs to another user", code="not_ours", path=str(folder))
    if found.st_mode & 0o077:
        os.chmod(folder, 0o700)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Pack:
    """A pack being written. ``add`` returns where a content stands; ``finish`` makes it safe against a power cut."""

    def __init__(self, folder: Path) -> None:
        self.name = secrets.token_hex(12)
        self.size = 0
        self._folder = folder
        self._gathered: list[bytes] = []
        self._waiting = 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._handle = os.open(folder / self.name, flags, 0o600)

    def add(self, content: bytes) -> int:
        at = self.size
        self.size += len(content)
        self._gathered.append(content)
        self._waiting += len(content)
        if self._waiting >= _GATHERED:
            self._flush()
        return at

    def _flush(self) -> None:
        write_all(self._handle, b"".join(self._gathered))
        self._gathered, self._waiting = [], 0

    def finish(self) -> None:
        try:
            self._flush()
            os.fsync(self._handle)
            _sync(self._folder)
        finally:
            self.close()

    def close(self) -> None:
        """Idempotent. A pack that was never finished is swept away later."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


class Vault:
    """The files below one folder. Making one touches nothing; ``prepare`` makes the folders.

    Not for several threads at once. Every method may raise ``OSError``.
    """

    def __init__(self, folder: Path) -> None:
        self.packs, self.objects = folder / "packs", folder / "objects"
        self._open: dict[str, int] = {}
        self._unsynced: list[Path] = []

    def prepare(self) -> None:
        for folder in (self.packs, self.objects):
            folder.mkdir(mode=0o700, exist_ok=True)

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def keep_large(self, source: int, size: int, known: Callable[[bytes], bool]) -> tuple[bytes, int]:
        """Keep what an open file holds as a file of its own, unless its id is ``known``.

        Returns:
            its id, and how many bytes it really had (one more than ``size`` at most).
        """
        passing = f"new-{secrets.token_hex(12)}"
        folder = os.open(self.objects, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            copy, shared = new_copy(source, folder, passing)
            try:
                name, length = hash_open(copy, size) if shared else self._copied(source, copy, size)
            finally:
                os.close(copy)
            path = self.objects / name.hex()
            if length != size or known(name):
                os.unlink(passing, dir_fd=folder)
            else:
                os.rename(passing, path.name, src_dir_fd=folder, dst_dir_fd=folder)
                self._unsynced.append(path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(passing, dir_fd=folder)
            raise
        finally:
            os.close(folder)
        return name, length

    @staticmethod
    def _copied(source: int, copy: int, size: int) -> tuple[bytes, int]:
        state = hashlib.blake2b(digest_size=32)
        at = 0
        while at <= size:
            block = os.pread(source, min(_CHUNK, size + 1 - at), at)
            if not block:
                break
            state.update(block)
            write_all(copy, block)
            at += len(block)
        return state.digest(), at

    def settle(self) -> None:
        """See that large contents kept since the last call are on the disk."""
        paths, self._unsynced = self._unsynced, []
        for path in paths:
            _sync(path)
        if paths:
            _sync(self.objects)

    def read(self, pack: str, offset: int, size: int) -> bytes:
        """Bytes out of a pack."""
        handle = self._open.get(pack)
        if handle is None:
            if len(self._open) >= 32:
                os.close(self._open.pop(next(iter(self._open))))
            handle = self._open[pack] = os.open(self.packs / pack, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        return os.pread(handle, size, offset)

    def open_large(self, name: bytes) -> int:
        """A descriptor of a content that is a file of its own."""
        return os.open(self.objects / name.hex(), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)

    def write_large(self, name: bytes, size: int, folder: int, file: str) -> int:
        """Make ``file`` (mode 0600) in the folder with a large content. A descriptor; its hash is not looked at."""
        source = self.open_large(name)
        try:
            target, shared = new_copy(source, folder, file)
            try:
                if not shared:
                    copy_bytes(source, target, size)
            except BaseException:
                os.close(target)
                raise
        finally:
            os.close(source)
        return target

    def drop_large(self, name: bytes) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.objects / name.hex())

    def sweep(self, packs: Collection[str], objects: Collection[str] | None) -> None:
        """Delete files of our making that nobody names (``objects=None``: of the large ones only unfinished ones)."""
        for entry in list(os.scandir(self.packs)):
            if _PACK.fullmatch(entry.name) and entry.name not in packs:
                os.unlink(entry.path)
        for entry in list(os.scandir(self.objects)):
            finished = _OBJECT.fullmatch(entry.name) is not None
            if (finished and objects is not None and entry.name not in objects) or _PASSING.fullmatch(entry.name):
                os.unlink(entry.path)

    def size_on_disk(self) -> int:
        """Bytes of all of it."""
        return sum(
            entry.stat(follow_symlinks=False).st_size
            for folder in (self.packs, self.objects)
            if folder.is_dir()
            for entry in os.scandir(folder)
        )
