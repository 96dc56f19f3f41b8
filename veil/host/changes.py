"""What happened between two pictures of a tree: the one comparison behind both ways of taking them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import Any

from veil.host import git
from veil.host.git_index import Entry
from veil.host.ignored import ignored_paths
from veil.host.judging import Candidate, judge
from veil.host.pictures import Picture, Tree, lies_in
from veil.host.tree import TICK_NS, Signature, TreeUnknown, kind_of, signature
from veil.model.outcome import Change

#: Ignored paths and gaps named at most in the notes.
MAX_NAMED = 20


@dataclass
class Compared:
    """Attributes: changes: sorted by path, relative to the run's cwd. notes: JSON-ready (see ``docs/effects.md``)."""

    changes: tuple[Change, ...]
    notes: dict[str, Any] = field(default_factory=dict)


def compare(tree: Tree, before: Picture, after: Picture, *, ignored: bool = False) -> Compared:
    """All changes between two pictures of ``tree``. ``ignored``: report what git ignores as well.

    Raises ``TreeUnknown`` when they cannot be known.
    """
    notes = _head_notes(before, after)
    gaps = {**before.scan.gaps, **after.scan.gaps}
    found = _scanned(before, after) if before.how == "scan" else _told_by_git(tree, before, after)
    if gaps:
        found = [c for c in found if not lies_in(c.path, gaps)]
    found = _without_full_dirs(found, before, after)
    judge(tree, before, found)
    found = [c for c in found if c.verdict is not None]
    if tree.repository is not None and not ignored and found:
        found = _without_ignored(tree, before, after, found, notes)
    found = _joined_renames(found)
    if gaps:
        named = sorted(gaps.items())
        notes.setdefault("effects_gaps", []).extend(f"{path}: {why}" for path, why in named[:MAX_NAMED])
        if len(named) > MAX_NAMED:
            notes["effects_gaps"].append(f"and {len(named) - MAX_NAMED} more")
    return Compared(tuple(_reported(tree, found)), notes)


def _head_notes(before: Picture, after: Picture) -> dict[str, Any]:
    if before.head is None or after.head is None:
        return {}
    notes: dict[str, Any] = {}
    pairs = (
        ("head", before.head.oid, after.head.oid),
        ("branch", before.head.branch, after.head.branch),
        ("stash", before.head.stash, after.head.stash),
    )
    for name, old, new in pairs:
        if old != new:
            notes[name] = {"before": old, "after": new}
    return notes


def _scanned(before: Picture, after: Picture) -> list[Candidate]:
    old, new = before.scan.entries, after.scan.entries
    digests = before.scan.digests
    if old == new and not digests:
        return []
    found = [Candidate(path, sig, new.get(path)) for path, sig in old.items() if new.get(path) != sig]
    found += [Candidate(path, None, sig) for path, sig in new.items() if path not in old]
    found += [Candidate(path, old[path], old[path]) for path in digests if new.get(path) == old[path]]
    if found and before.index is not None and before.index.entries:
        entries, written = before.index.entries, before.index.written_ns
        for each in found:
            entry = entries.get(each.path)
            each.tracked = entry is not None
            sig = each.before
            if entry is None or sig is None or entry.absent:
                continue
            if _known_clean(entry, sig, written):
                each.clean = entry
    return found


def _known_clean(entry: Entry, sig: Signature, written_ns: int) -> bool:
    """Whether the index proves that git knew the file to be clean: looked at since its last change, and not so soon
    before the index was written that a later change could bear the same time (unless the ctime is the same too)."""
    if entry.size != sig[1] or entry.mtime_ns != sig[2] or not _same_type(entry.mode, sig[0]):
        return False
    return sig[2] < written_ns or entry.ctime_ns == sig[3]


def _same_type(git_mode: int, mode: int) -> bool:
    if stat.S_IFMT(git_mode) != stat.S_IFMT(mode):
        return False
    return not stat.S_ISREG(mode) or bool(git_mode & stat.S_IXUSR) == bool(mode & stat.S_IXUSR)


def _told_by_git(tree: Tree, before: Picture, after: Picture) -> list[Candidate]:
    assert tree.repository is not None
    names: set[str] = set(before.listed | after.listed)
    names.update(before.scan.entries, after.scan.entries)
    if before.head is not None and after.head is not None and before.head.oid != after.head.oid:
        try:
            names |= git.moved_files(tree.repository, before.head.oid, after.head.oid)
        except git.GitFailed as error:
            raise TreeUnknown(f"git could not compare the commits before and after: {error}") from error
    nested = before.scan.nested | after.scan.nested
    came = _Arrivals(tree, before.taken_ns - 2 * TICK_NS)
    found: list[Candidate] = []
    for path in names - nested:
        if tree.is_own(path):
            continue
        old, new = before.scan.entries.get(path), after.scan.entries.get(path)
        if new is None and path not in after.listed:
            new = _now(tree, path)
        each = Candidate(path, old, new)
        if old is None and path not in before.listed:
            if not _complete_from_index(each, before) and new is not None and not came.since(path, new):
                continue  # it was there before, ignored then
        elif path in before.listed and before.index is not None and before.index.entries is not None:
            each.tracked = path in before.index.entries
        if each.before != each.after or path in before.scan.digests:
            found.append(each)
    return found


class _Arrivals:
    """Whether a path came to its place in the run: its own ctime moved, or that of a folder it was carried in."""

    def __init__(self, tree: Tree, start_ns: int) -> None:
        self._tree = tree
        self._start_ns = start_ns
        self._folders: dict[str, bool] = {"": False}

    def since(self, path: str, sig: Signature) -> bool:
        return sig[3] >= self._start_ns or self._moved(path.rpartition("/")[0])

    def _moved(self, folder: str) -> bool:
        unknown = []
        while folder not in self._folders:
            unknown.append(folder)
            try:
                sig = signature(os.path.join(self._tree.root, folder))
            except OSError as error:
                raise TreeUnknown(f"{folder}: {error.strerror}") from error
            if sig is None or sig[3] >= self._start_ns:
                self._folders[folder] = True
            else:
                folder = folder.rpartition("/")[0]
        moved = self._folders[folder]
        self._folders.update(dict.fromkeys(unknown, moved))
        return moved


def _now(tree: Tree, path: str) -> Signature | None:
    try:
        sig = signature(os.path.join(tree.root, path))
    except OSError as error:
        raise TreeUnknown(f"{path}: {error.strerror}") from error
    return None if sig is not None and stat.S_ISDIR(sig[0]) else sig


def _complete_from_index(each: Candidate, before: Picture) -> bool:
    """A file that git did not list before was as the index says. Returns whether the index knows it."""
    entry = (before.index.entries or {}).get(each.path) if before.index is not None else None
    if entry is None or entry.absent:
        return entry is not None
    each.before = (entry.mode, entry.size, entry.mtime_ns, 0, entry.inode, 1)
    each.clean, each.tracked, each.from_index = entry, True, True
    return True


def _is_dir(sig: Signature | None) -> bool:
    return sig is not None and stat.S_ISDIR(sig[0])


def _without_full_dirs(found: list[Candidate], before: Picture, after: Picture) -> list[Candidate]:
    """A folder is a change of its own when it came or went empty, or when its mode moved.

    Where a folder took a file's place, or a file a folder's, the file is what is told, and what lies below the folder.
    """
    full: dict[bool, set[str]] = {}
    kept: list[Candidate] = []
    for each in found:
        old, new = _is_dir(each.before), _is_dir(each.after)
        if old and new:
            assert each.before is not None
            assert each.after is not None
            if each.before[0] == each.after[0]:
                continue
        elif old and each.after is not None:
            each.before = None
        elif new and each.before is not None:
            each.after = None
        elif old or new:
            if new not in full:
                entries = (after if new else before).scan.entries
                full[new] = {path.rpartition("/")[0] for path in entries}
            if each.path in full[new]:
                continue
        kept.append(each)
    return kept


def _without_ignored(
    tree: Tree, before: Picture, after: Picture, found: list[Candidate], notes: dict[str, Any]
) -> list[Candidate]:
    """Leave out what git ignores; name it in the notes, so that nobody takes it for unchanged."""
    asked = {
        each.path: _is_dir(each.before) or _is_dir(each.after)
        for each in found
        if not each.tracked and each.path not in after.listed  # git lists nothing that it ignores
    }
    try:
        dropped = ignored_paths(tree, asked, before.scan.nested | after.scan.nested)
    except git.GitFailed as error:
        notes.setdefault("effects_gaps", []).append(f"git could not say what is ignored: {error}")
        return found
    if dropped:
        notes["ignored_changed"] = {"total": len(dropped), "first": _relative(tree, sorted(dropped)[:MAX_NAMED])}
    return [each for each in found if each.path not in dropped]


def _joined_renames(found: list[Candidate]) -> list[Candidate]:
    """A file that went and one that came with its inode, size, mtime and type are one renamed file."""
    went: dict[tuple[int, ...], list[Candidate]] = {}
    for each in found:
        if each.verdict == "deleted" and each.before is not None and each.before[4]:
            went.setdefault(_identity(each.before), []).append(each)
    joined: set[str] = set()
    for each in sorted(found, key=lambda c: c.path):
        if each.verdict == "created" and each.after is not None:
            origins = went.get(_identity(each.after))
            if origins:
                origin = min(origins, key=lambda c: c.path)
                origins.remove(origin)
                joined.add(origin.path)
                each.verdict, each.old = "renamed", origin.path
    return [each for each in found if each.path not in joined or each.verdict == "renamed"]


def _identity(sig: Signature) -> tuple[int, ...]:
    # git keeps 32 bits of the inode; a re-used inode is told apart by size and time
    return (stat.S_IFMT(sig[0]), sig[1], sig[2], sig[4] & 0xFFFFFFFF)


def _reported(tree: Tree, found: list[Candidate]) -> list[Change]:
    rows = []
    for each in found:
        sig = each.after or each.before
        assert sig is not None
        assert each.verdict is not None
        old = None if each.old is None else _relative(tree, [each.old])[0]
        rows.append(Change(_relative(tree, [each.path])[0], each.verdict, kind_of(sig[0]), old))
    return sorted(rows, key=lambda row: row.path)


def _relative(tree: Tree, paths: list[str]) -> list[str]:
    """Paths below the root as seen from the cwd."""
    if tree.cwd == tree.root:
        return list(paths)
    return [os.path.relpath(os.path.join(tree.root, path), tree.cwd) for path in paths]
