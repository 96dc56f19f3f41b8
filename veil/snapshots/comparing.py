"""What is different between a checkpoint and a tree, in the words of a run's changes."""

from __future__ import annotations

from veil.model.outcome import Change
from veil.snapshots.listings import KINDS, Entry, Tree, compare


def changes(then: Tree, now: Tree) -> list[Change]:
    """From ``then`` to ``now``, sorted by path. Times, owners and attributes alone are no change."""
    found = []
    for path, old, new in compare(then, now):
        if not path:
            continue
        if old is None or new is None:
            entry = old or new
            assert entry is not None
            found.append(Change(path, "created" if old is None else "deleted", KINDS[entry.letter]))
        elif old.letter != new.letter or (old.letter != "d" and old.content != new.content):
            found.append(Change(path, "modified", KINDS[new.letter]))
        elif old.mode != new.mode and old.letter != "l":
            found.append(Change(path, "mode", KINDS[new.letter]))
    return sorted(found, key=lambda change: change.path)


def only_mixes(first: Tree, second: Tree, mixed: Tree) -> bool:
    """Whether every content of ``mixed`` stands at the same path in one of the two others: nothing of it is new."""
    for path, was, entry in compare(first, mixed):
        if entry is None or not path:
            continue
        other = second.entry(path)
        if not _like(entry, was) and not _like(entry, other):
            return False
    return True


def same_contents(one: Tree, other: Tree) -> bool:
    """Whether all paths hold the same; modes and times do not count."""
    return all(old is not None and new is not None and _like(new, old) for _, old, new in compare(one, other))


def _like(entry: Entry, other: Entry | None) -> bool:
    if other is None or entry.letter != other.letter:
        return False
    return entry.letter == "d" or entry.content == other.content
