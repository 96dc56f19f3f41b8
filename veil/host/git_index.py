"""git's index file, read without git: what the last ``git add`` or checkout knew of every tracked file."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

_FIXED = struct.Struct(">10I")
_LONGEST_NAME = 0xFFF


@dataclass(frozen=True)
class Entry:
    """Attributes: mode: type and permission as git keeps them (0o100644, 0o100755, 0o120000, 0o160000).
    inode: its lower 32 bits; 0 when whoever wrote the index did not say. oid: hash of the blob.
    absent: not meant to be on disk (sparse checkout) or only announced (``add -N``)."""

    mode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    oid: bytes
    absent: bool = False


class Index:
    """The index as it was at one moment. Entries are parsed when first asked for (``None``: the format is not known).

    Attributes: data: the file's bytes, empty when there is no index yet. written_ns: its mtime.
    """

    def __init__(self, data: bytes = b"", written_ns: int = 0, oid_size: int = 20) -> None:
        self.data = data
        self.written_ns = written_ns
        self.oid_size = oid_size
        self._entries: dict[str, Entry] | None = None
        self._parsed = False

    @property
    def count(self) -> int:
        """Number of entries, from the header."""
        return int.from_bytes(self.data[8:12], "big") if self.data[:4] == b"DIRC" else 0

    @property
    def readable(self) -> bool:
        """Whether ``entries`` will be had: a version known here, and not split into two files."""
        if not self.data:
            return True
        version = int.from_bytes(self.data[4:8], "big")
        return self.data[:4] == b"DIRC" and version in (2, 3, 4) and b"\0link\0" not in self.data

    @property
    def may_have_submodules(self) -> bool:
        """False only when no entry has the mode of a submodule (its four bytes occur nowhere)."""
        return b"\0\0\xe0\0" in self.data

    @property
    def entries(self) -> dict[str, Entry] | None:
        if not self._parsed:
            self._parsed = True
            try:
                self._entries = self._parse() if self.readable else None
            except (struct.error, IndexError, ValueError):
                self._entries = None
        return self._entries

    def _parse(self) -> dict[str, Entry]:
        data, size, at = self.data, self.oid_size, 12
        packed = int.from_bytes(data[4:8], "big") == 4
        found: dict[str, Entry] = {}
        name = b""
        for _ in range(self.count):
            start = at
            ctime, ctime_ns, mtime, mtime_ns, _, inode, mode, _, _, length = _FIXED.unpack_from(data, at)
            oid = data[at + 40 : at + 40 + size]
            at += 40 + size
            flags = int.from_bytes(data[at : at + 2], "big")
            at += 2
            extended = 0
            if flags & 0x4000:
                extended = int.from_bytes(data[at : at + 2], "big")
                at += 2
            if packed:
                drop, at = _varint(data, at)
                end = data.index(b"\0", at)
                name = name[: len(name) - drop] + data[at:end]
                at = end + 1
            else:
                known = flags & _LONGEST_NAME
                end = at + known if known < _LONGEST_NAME else data.index(b"\0", at)
                name = data[at:end]
                # padded with 1 to 8 NUL bytes to a multiple of eight
                at = start + ((end - start + 8) & ~7)
            stamps = (mtime * 1_000_000_000 + mtime_ns, ctime * 1_000_000_000 + ctime_ns)
            found[os.fsdecode(name)] = Entry(mode, length, *stamps, inode, oid, bool(extended & 0x6000))
        return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The offset encoding of pack files: seven bits a byte, each further byte counting from one."""
    byte = data[at]
    at += 1
    value = byte & 0x7F
    while byte & 0x80:
        byte = data[at]
        at += 1
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at


def read_index(path: str, oid_size: int = 20) -> Index:
    """The index at ``path``; an empty one when there is none. Raises ``OSError`` when it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Index(oid_size=oid_size)
    try:
        found = os.fstat(descriptor)
        parts = []
        while block := os.read(descriptor, found.st_size + 1):
            parts.append(block)
        return Index(b"".join(parts), found.st_mtime_ns, oid_size)
    finally:
        os.close(descriptor)
