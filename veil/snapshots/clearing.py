"""Taking checkpoints away, and the room they had with them."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from veil.host.blobs import Pack
from veil.model.errors import Refused, StoreFailed
from veil.snapshots.base import BEFORE_RESTORE
from veil.snapshots.index import Place, Row
from veil.snapshots.listings import decode_listing, decode_manifest
from veil.snapshots.projects import Opened, Project, all_projects
from veil.snapshots.sinks import store_trouble

#: Share of a pack that must be dead before ``drop`` writes the rest of it anew.
DEAD_SHARE = 0.5
#: Share of the limit that is in use after a trim, so that not every checkpoint in a full store has to clear.
FILL = 0.9


def collect(base: Path, wait: float, max_bytes: int) -> dict[str, int]:
    """See ``Checkpoints.gc``."""
    projects = all_projects(base, wait)
    total, costs = 0, []
    for project in projects:
        with project.writing() as at:
            pinned, candidates = _apart(at)
            seen: set[bytes] = set()
            total += _beside(project) + _gain(at, pinned, seen)
            for row in candidates:
                gain = _gain(at, [row.manifest], seen)
                total += gain
                costs.append((row.checkpoint.created, row.checkpoint.number, row.checkpoint.id, gain))
    doomed: set[str] = set()
    for _, _, key, gain in sorted(costs):
        if total <= max_bytes:
            break
        doomed.add(key)
        total -= gain
    removed = left = before = after = 0
    for project in projects:
        with project.writing() as at:
            before += _size(project, at)
            # one that became needed meanwhile (a label cannot, the newest of a folder can) is looked for again
            ids = [row.checkpoint.id for row in _apart(at)[1] if row.checkpoint.id in doomed]
            removed += at.index.forget(ids)
            sweep(at, 0.0)
            left += len(at.index.rows())
            after += _size(project, at)
    return {"removed": removed, "left": left, "bytes_freed": max(0, before - after), "bytes_left": after}


def trim(base: Path, max_bytes: int) -> str | None:
    """See ``Checkpoints.trim``."""
    size = _about(base)
    if size <= max_bytes:
        return None
    try:
        if any(_may_go(project.rows(), set()) for project in all_projects(base, 0.0)):
            size = collect(base, 0.0, int(max_bytes * FILL))["bytes_left"]
    except (Refused, StoreFailed) as error:
        why = "others are at work on some of them" if error.code == "busy" else str(error)
        return f"{size} bytes, more than {max_bytes}: {why}"
    if size <= max_bytes:
        return None
    return (
        f"{size} bytes, more than {max_bytes}: those with a label and the newest of each folder never go by themselves"
    )


def _about(folder: str | Path) -> int:
    """Bytes on the disk below a folder, looked at without a turn: files come and go meanwhile."""
    total = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                total += _about(entry.path)
                continue
            with contextlib.suppress(FileNotFoundError):
                total += entry.stat(follow_symlinks=False).st_size
    return total


def _size(project: Project, at: Opened) -> int:
    return _beside(project) + at.vault.size_on_disk()


def _beside(project: Project) -> int:
    """Bytes of the index and the cache, which clearing does not give back."""
    return sum(status.st_size for file in project.folder.iterdir() if stat.S_ISREG((status := file.lstat()).st_mode))


def _apart(at: Opened) -> tuple[list[bytes], list[Row]]:
    """Manifests that stay in any case, and checkpoints that may go, newest first."""
    rows = at.index.rows()
    pending = at.index.pending()
    pinned = [] if pending is None else [pending.target]
    candidates = _may_go(rows, set() if pending is None else {pending.before_id})
    going = {row.checkpoint.id for row in candidates}
    pinned += [row.manifest for row in rows if row.checkpoint.id not in going]
    return pinned, candidates


def _may_go(rows: Sequence[Row], stays: set[str]) -> list[Row]:
    """Of the checkpoints of one folder, newest first, those that may be cleared away."""
    newest = next((row for row in rows if row.checkpoint.label != BEFORE_RESTORE), None)
    undo = next((row for row in rows if row.checkpoint.label == BEFORE_RESTORE), None)
    stays = stays | {row.checkpoint.id for row in (newest, undo) if row is not None}
    return [row for row in rows if row.checkpoint.label in (None, BEFORE_RESTORE) and row.checkpoint.id not in stays]


def _gain(at: Opened, manifests: Iterable[bytes], seen: set[bytes]) -> int:
    """Add to ``seen`` all contents that the manifests lead to; how many bytes the new ones among them have."""
    fresh = _reach(at, manifests, seen)
    places = (at.index.place(key) for key in fresh)
    return sum(place.size for place in places if place is not None)


def _reach(at: Opened, manifests: Iterable[bytes], seen: set[bytes]) -> list[bytes]:
    fresh = []
    listings = []
    for key in manifests:
        if key not in seen:
            seen.add(key)
            fresh.append(key)
            if at.index.has(key):  # the target of a forced restore can be in the store of another folder
                listings.append(bytes.fromhex(decode_manifest(at.reader.read(key)).root.content))
    while listings:
        key = listings.pop()
        if key in seen:
            continue
        seen.add(key)
        fresh.append(key)
        for entry in decode_listing(at.reader.read(key)).values():
            if entry.letter == "d":
                listings.append(bytes.fromhex(entry.content))
            elif entry.letter == "f" and (below := bytes.fromhex(entry.content)) not in seen:
                seen.add(below)
                fresh.append(below)
    return fresh


def sweep(at: Opened, share: float = DEAD_SHARE) -> None:
    """Delete contents that no checkpoint needs.

    Args:
        share: packs of which more than this is dead are written anew without it.

    Raises:
        Refused: a checkpoint is damaged, so what it needs cannot be told (``damaged``); then nothing is deleted.
        StoreFailed: the disk refuses.
    """
    pinned, candidates = _apart(at)
    live: set[bytes] = set()
    _reach(at, [*pinned, *(row.manifest for row in candidates)], live)
    places = at.index.places()
    dead = [place.id for place in places if place.id not in live]
    by_pack: dict[str, list[Place]] = {name: [] for name in at.index.packs()}
    for place in places:
        if place.pack is not None and place.id in live:
            by_pack[place.pack].append(place)
    with store_trouble(at.vault.packs):
        gone, moved = _repacked(at, by_pack, share)
        if dead or gone:
            at.index.discard(dead, gone, moved)
        at.vault.close()  # packs that go must not stay open
        large = {place.id.hex() for place in at.index.places() if place.pack is None}
        at.vault.sweep(at.index.packs(), large)


def _repacked(
    at: Opened, by_pack: dict[str, list[Place]], share: float
) -> tuple[list[str], list[tuple[str, list[Place]]]]:
    """Packs that are no longer wanted, and new ones with what is still wanted of them."""
    gone, moved = [], []
    for name, size in at.index.packs().items():
        kept = by_pack[name]
        if size - sum(place.size for place in kept) <= share * size and kept:
            continue
        gone.append(name)
        if kept:
            pack = Pack(at.vault.packs)
            try:
                new = [
                    Place(place.id, pack.name, pack.add(at.vault.read(name, place.at, place.size)), place.size)
                    for place in sorted(kept, key=lambda place: place.at)
                ]
                pack.finish()
            finally:
                pack.close()
            moved.append((pack.name, new))
    return gone, moved
