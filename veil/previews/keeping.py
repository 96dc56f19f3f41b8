"""Keeping what a preview would change: the contents as files by number, everything else in one file beside them."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

from veil.host import clone
from veil.host.anchored import FILE
from veil.host.blobs import hash_open
from veil.host.differing import Difference, State, Touched, opened, state_of
from veil.host.metadata import set_mode
from veil.previews.base import VERSION, Kept, Row, row_of

MANIFEST = "preview.json"
CONTENT = "content"
#: Bytes of what stands in the tree that are read for one preview, so that later it can be told by content whether it
#: moved; beyond, only what no time stamp has touched counts as unmoved.
MAX_READ = 256_000_000


def size_of(difference: Difference) -> int:
    """Bytes of the contents that would have to be kept."""
    found = {each.after.inode: each.after.size for each in difference.touched if each.after is not None and _new(each)}
    return sum(found.values())


def keep(folder: Path, real: str, difference: Difference, opened_ns: int, made_ns: int) -> None:
    """Fill ``folder`` (empty, ours). Contents are taken out of the view. Raises ``OSError``.

    Args:
        real: the folder that was previewed.
        opened_ns: what moved in it after that was moved by somebody else.
    """
    contents = folder / CONTENT
    contents.mkdir(mode=0o700)
    numbers: dict[int, int] = {}
    rows: list[Row] = []
    left = MAX_READ
    for each in difference.touched:
        number = None
        if _new(each):
            assert each.after is not None
            number = numbers.get(each.after.inode)
            if number is None:
                number = numbers[each.after.inode] = len(numbers)
                _take(each.source, contents / str(number), each.after.size)
        before = each.before
        moved = before is not None and not before.is_dir and before.ctime_ns > opened_ns
        digest = None
        if before is not None and before.is_file and not moved and before.size <= left:
            digest = digest_of(f"{real}/{each.path}", before)
            left -= before.size
            moved = digest is None and state_of(f"{real}/{each.path}") != before
        rows.append(Row(each.path, before, each.after, each.same, each.attributes, number, digest, moved))
    data = {"version": VERSION, "folder": real, "made_ns": made_ns, "rows": [row.to_data() for row in rows]}
    passing = folder / f"{MANIFEST}.new"
    # escapes keep names that are not UTF-8
    passing.write_text(json.dumps(data), encoding="ascii")
    passing.rename(folder / MANIFEST)


def _new(each: Touched) -> bool:
    return each.after is not None and each.after.is_file and not each.same


def _take(source: str, target: Path, size: int) -> None:
    """Move a content here; copied when it lies on another file system."""
    try:
        try:
            os.rename(source, target)
        except PermissionError:  # the command took the right to write off the folder it is in
            set_mode(os.path.dirname(source), None, 0o700)
            os.rename(source, target)
        set_mode(str(target), None, 0o600)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
    else:
        return
    handle = opened(source)
    at = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        copy, shared = clone.new_copy(handle, at, target.name)
        try:
            if not shared:
                clone.copy_bytes(handle, copy, size)
        finally:
            os.close(copy)
    finally:
        os.close(at)
        os.close(handle)


def digest_of(path: str, expected: State) -> str | None:
    """Hash of a file that is still as expected; ``None`` when it cannot be read or moves meanwhile."""
    try:
        handle = os.open(path, FILE)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        digest, length = hash_open(handle, expected.size)
        return digest.hex() if length == expected.size and state_of(path, os.fstat(handle)) == expected else None
    except OSError:
        return None
    finally:
        os.close(handle)


def load(folder: Path) -> Kept | None:
    """What ``keep`` wrote down; ``None`` when it is not there or cannot be understood."""
    try:
        data = json.loads((folder / MANIFEST).read_text(encoding="ascii"))
        if data["version"] != VERSION:
            return None
        return Kept(data["folder"], data["made_ns"], tuple(row_of(row) for row in data["rows"]))
    except (OSError, KeyError, TypeError, ValueError):
        return None


def size_on_disk(folder: Path) -> int:
    """Bytes that a kept preview takes."""
    total = 0
    for place in (folder, folder / CONTENT):
        try:
            with os.scandir(place) as entries:
                total += sum(entry.stat(follow_symlinks=False).st_size for entry in entries if entry.is_file())
        except FileNotFoundError:
            continue
    return total
