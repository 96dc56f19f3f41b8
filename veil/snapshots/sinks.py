"""Where the contents of a tree go that is being looked at: into the store, or nowhere (only their names are wanted)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from veil.host.blobs import LARGE, Pack, Vault, hash_open, name_of
from veil.model.errors import Refused, StoreFailed
from veil.snapshots.index import Index, Place


class Sink(Protocol):
    def has(self, key: bytes) -> bool:
        """Whether the content can be read again."""

    def put(self, content: bytes) -> bytes:
        """Take a small content; its id."""

    def listing(self, content: bytes) -> bytes:
        """Take a folder's listing, which ``read`` may be asked for at once; its id."""

    def file(self, handle: int, size: int) -> tuple[bytes, int]:
        """Take what an open file holds; its id, and its true length (one more than ``size`` at most)."""

    def read(self, key: bytes) -> bytes:
        """A small content. Raises ``Refused`` (``damaged``)."""


class Reader:
    """Contents of one store. Every one that is read is hashed again, so that nothing wrong is ever put into a tree."""

    def __init__(self, index: Index, vault: Vault) -> None:
        self.index, self.vault = index, vault

    def has(self, key: bytes) -> bool:
        return self.index.has(key)

    def read(self, key: bytes) -> bytes:
        """A content as a whole. Raises ``Refused`` (``damaged``)."""
        place = self.index.place(key)
        if place is None:
            raise damaged(key, "it is missing")
        try:
            if place.pack is not None:
                content = self.vault.read(place.pack, place.at, place.size)
            else:
                with os.fdopen(self.vault.open_large(key), "rb") as file:
                    content = file.read()
        except OSError as error:
            raise damaged(key, error.strerror or str(error)) from error
        if name_of(content) != key:
            raise damaged(key, "its bytes are not what they were")
        return content


def damaged(key: bytes, why: str) -> Refused:
    return Refused(
        f"content {key.hex()[:16]} of this checkpoint cannot be read: {why}", code="damaged", content=key.hex(), why=why
    )


class Keeping:
    """Into the store. ``finish`` before what was put is named in the index; ``close`` in any case."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._listings: dict[bytes, bytes] = {}
        self._fresh: dict[bytes, Place] = {}
        self._pack: Pack | None = None
        self._nothing_yet = reader.index.empty()

    def has(self, key: bytes) -> bool:
        return key in self._fresh or (not self._nothing_yet and self._reader.index.has(key))

    def read(self, key: bytes) -> bytes:
        return self._listings[key] if key in self._listings else self._reader.read(key)

    def listing(self, content: bytes) -> bytes:
        key = self.put(content)
        if key in self._fresh:
            self._listings[key] = content
        return key

    def put(self, content: bytes) -> bytes:
        key = name_of(content)
        if not self.has(key):
            with store_trouble(self._reader.vault.packs):
                if self._pack is None:
                    self._pack = Pack(self._reader.vault.packs)
                self._fresh[key] = Place(key, self._pack.name, self._pack.add(content), len(content))
        return key

    def file(self, handle: int, size: int) -> tuple[bytes, int]:
        if size < LARGE:
            content = read_small(handle, size)
            return (self.put(content) if len(content) == size else b"", len(content))
        with store_trouble(self._reader.vault.objects):
            key, length = self._reader.vault.keep_large(handle, size, self.has)
        if length == size and not self.has(key):
            self._fresh[key] = Place(key, None, 0, size)
        return key, length

    def finish(self) -> tuple[tuple[str, int] | None, list[Place]]:
        """See that all is on the disk. The pack (name, size) and where each new content stands."""
        with store_trouble(self._reader.vault.packs):
            self._reader.vault.settle()
            if self._pack is not None:
                self._pack.finish()
        return (None if self._pack is None else (self._pack.name, self._pack.size), list(self._fresh.values()))

    def close(self) -> None:
        if self._pack is not None:
            self._pack.close()


class Naming:
    """Nowhere: contents get their ids, and only listings are held, in memory.

    Args:
        read: for contents that the store has. has: whether it has one.
    """

    def __init__(self, has: Callable[[bytes], bool], read: Callable[[bytes], bytes]) -> None:
        self._has, self._read = has, read
        self._fresh: dict[bytes, bytes] = {}
        self._named: set[bytes] = set()

    def has(self, key: bytes) -> bool:
        return key in self._fresh or key in self._named or self._has(key)

    def put(self, content: bytes) -> bytes:
        key = name_of(content)
        self._named.add(key)
        return key

    def listing(self, content: bytes) -> bytes:
        key = name_of(content)
        self._fresh[key] = content
        return key

    def file(self, handle: int, size: int) -> tuple[bytes, int]:
        key, length = hash_open(handle, size)
        self._named.add(key)
        return key, length

    def read(self, key: bytes) -> bytes:
        return self._fresh[key] if key in self._fresh else self._read(key)


def read_small(handle: int, size: int) -> bytes:
    """At most ``size`` + 1 bytes from the beginning."""
    content = os.pread(handle, size + 1, 0)
    while content and len(content) < size:
        more = os.pread(handle, size + 1 - len(content), len(content))
        if not more:
            break
        content += more
    return content


@contextmanager
def store_trouble(path: Path) -> Iterator[None]:
    """What the system refuses the store, said as such and not as trouble with the tree."""
    try:
        yield
    except OSError as error:
        raise StoreFailed(f"checkpoints cannot be written to {path}: {error.strerror}", path=str(path)) from error
