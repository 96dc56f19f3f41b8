"""What the last checkpoint knew of each folder, so that an unchanged tree costs a walk of ``lstat`` and no more.

A file counts as unchanged when its size, mtime, ctime and inode are those of then, and the ctime was already old when
it was read: a write in the same tick of the clock as the read would leave no trace. What is younger is read again.

The cache is a help and no record: a damaged, missing or foreign one costs time only. It is a ``marshal`` dump behind a
checksum, since reading twenty thousand rows of JSON takes longer than the walk itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from veil.host.anchored import Row
from veil.host.metadata import Attributes

_MAGIC = b"veil checkpoint cache 1\n"
#: Bytes of ``marshal`` are the same in all versions of Python for this version of the format.
_MARSHAL = 2
#: How old a ctime must be to be trusted: clocks of kernels tick every 1 to 10 ms, those of some file
#: systems every one or two seconds.
TICK_NS, COARSE_TICK_NS = 20_000_000, 2_000_000_000


#: What is known of a row beside it: content (as in ``Entry``), uid, gid, attributes, and whether an unchanged row
#: proves all this. A plain tuple, for ``marshal`` and for speed.
Held = tuple[str, int, int, Attributes, bool]


class Own(NamedTuple):
    """A folder's own facts. ``ctime_ns`` and ``inode`` tell whether they are still so."""

    mode: int
    uid: int
    gid: int
    mtime_ns: int
    attributes: Attributes
    ctime_ns: int
    inode: int


class Sums(NamedTuple):
    """Of the entries of one folder. ``linked``: some file has several names. ``odd``: something is left out."""

    files: int
    bytes: int
    linked: bool
    odd: bool


class Known(NamedTuple):
    """One folder: rows of all that is no folder, the names of folders, what is known of each row, its listing's id."""

    rows: list[Row]
    folders: list[str]
    held: list[Held]
    own: Own
    sums: Sums
    listing: str
    trusted: bool


@dataclass
class Cache:
    """Attributes: folders: by path. epoch: of the index. newest: id of the checkpoint that it was written with."""

    folders: dict[str, Known] = field(default_factory=dict)
    epoch: str = ""
    newest: str = ""


def trusts(ctime_ns: int, looked_ns: int) -> bool:
    """Whether a file with this ctime can be trusted when it was looked at no earlier than ``looked_ns``."""
    coarse = ctime_ns % 1_000_000_000 == 0
    return ctime_ns < looked_ns - (COARSE_TICK_NS if coarse else TICK_NS)


def load(path: Path) -> Cache:
    """The cache; an empty one when there is none that can be used."""
    try:
        data = path.read_bytes()
    except OSError:
        return Cache()
    start = len(_MAGIC) + 32
    if data[: len(_MAGIC)] != _MAGIC or _sum(data[start:]) != data[len(_MAGIC) : start]:
        return Cache()
    folders, epoch, newest = marshal.loads(memoryview(data)[start:])
    return Cache({path: _known(*values) for path, values in folders.items()}, epoch, newest)


def _known(
    rows: list[Row], folders: list[str], held: list[Held], own: Any, sums: Any, listing: str, trusted: bool
) -> Known:
    return Known(rows, folders, held, Own(*own), Sums(*sums), listing, trusted)


def save(path: Path, cache: Cache) -> None:
    """Write it. A disk that refuses costs the next checkpoint some time, and nothing else."""
    folders = {
        folder: (*known[:3], tuple(known.own), tuple(known.sums), known.listing, known.trusted)
        for folder, known in cache.folders.items()
    }
    body = marshal.dumps((folders, cache.epoch, cache.newest), _MARSHAL)
    beside = path.with_name(f"{path.name}-new")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(_MAGIC + _sum(body) + body)
        os.replace(beside, path)
    except OSError:
        with contextlib.suppress(OSError):
            beside.unlink()


def _sum(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=32).digest()
