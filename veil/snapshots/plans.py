"""What must be done to make one state of a tree into another. Nothing is touched here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from veil.snapshots.listings import NAMED_ONLY, Difference, Entry, Tree, compare
from veil.snapshots.walking import Picture

Deed = Literal["created", "replaced", "adjusted"]


@dataclass
class Plan:
    """Attributes:
    delete: path -> what is there, in the order of doing (what is inside first).
    folders: path -> folder to make, in the order of doing.
    put: path -> file, link or fifo to make, in place of what is there.
    adjust: path -> file whose content stays.
    settle: folders that get their mode, owner and times at the end, path -> what they shall be.
    deeds: path -> how it is counted. groups: path -> the paths that shall be the same file with it.
    left: path -> why it cannot be as it was. closed: path -> why it stays although it shall not.
    kept: of both, those at and below which nothing at all is touched.
    """

    delete: dict[str, Entry] = field(default_factory=dict)
    folders: dict[str, Entry] = field(default_factory=dict)
    put: dict[str, Entry] = field(default_factory=dict)
    adjust: dict[str, Entry] = field(default_factory=dict)
    settle: dict[str, Entry] = field(default_factory=dict)
    deeds: dict[str, Deed] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    left: dict[str, str] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    @property
    def idle(self) -> bool:
        """Whether no entry of a folder is to be touched, nor any that stays although it shall not."""
        return not (self.delete or self.folders or self.put or self.adjust or self.closed)

    def keeps(self, path: str) -> bool:
        """Whether ``path`` is one of ``kept`` or below one."""
        return bool(self.kept) and any(path == kept or path.startswith(kept + "/") for kept in self.kept)


def plan(now: Tree, picture: Picture, then: Tree) -> Plan:
    """From ``now`` (seen as ``picture``) to ``then``."""
    made = Plan()
    made.groups = {path: group for group in then.manifest.links for path in group}
    now_groups = {path: group for group in now.manifest.links for path in group}
    doomed: list[tuple[str, Entry]] = []
    for each in compare(now, then):
        if made.keeps(each.path):
            continue
        _sort(each, made, picture, now_groups, doomed)
    _relink(made, now_groups, now, then)
    made.delete = dict(sorted(doomed, key=lambda pair: pair[0].count("/"), reverse=True))
    for path in [*made.delete, *made.folders, *made.put, *made.adjust]:
        above = path.rpartition("/")[0]
        entry = then.entry(above)
        if entry is not None and entry.letter == "d":
            made.settle.setdefault(above, entry)
    made.settle.setdefault("", then.manifest.root)
    return made


def _sort(
    each: Difference,
    made: Plan,
    picture: Picture,
    now_groups: dict[str, tuple[str, ...]],
    doomed: list[tuple[str, Entry]],
) -> None:
    path, old, new = each
    if "m" in each.letters:
        made.left[path] = "something is or was mounted there, so it stays as it is"
        made.kept.add(path)
        return
    if "x" in each.letters:
        if old is not None and old.letter == "x":
            made.closed[path] = (
                "it cannot be read, so it could not be kept and stays as it is: make it readable or take it away, and "
                "restore again"
            )
        else:
            made.left[path] = "it could not be read when this was kept, so what is there stays as it is"
        made.kept.add(path)
        return
    if path in picture.occupied and (new is None or new.letter != "d"):
        made.left[path] = "something mounted, something closed or veil's own state is in it, so it stays"
        return
    stays = old is not None and new is not None and old.letter == new.letter
    if old is not None and not stays and not (old.letter != "d" and new is not None and new.letter in "flp"):
        doomed.append((path, old))
    if new is None:
        return
    if new.letter == "d":
        made.settle[path] = new
        if not stays:
            made.folders[path] = new
            made.deeds[path] = "created"
    elif new.letter in NAMED_ONLY:
        if not stays:
            made.left[path] = "sockets, devices and mounted file systems are not made again"
    elif (
        stays
        and old is not None
        and old.content == new.content
        and new.letter == "f"
        and not _shared(path, picture, now_groups)
    ):
        made.adjust[path] = new
        made.deeds[path] = "adjusted"
    else:
        made.put[path] = new
        made.deeds[path] = "created" if old is None else "replaced"


def _shared(path: str, picture: Picture, groups: dict[str, tuple[str, ...]]) -> bool:
    """Whether the file has a name outside the tree: its mode and times are then not ours alone."""
    row = picture.row(path)
    return row is not None and row[2] > len(groups.get(path, (path,)))


def _relink(made: Plan, now_groups: dict[str, tuple[str, ...]], now: Tree, then: Tree) -> None:
    """Files that are one, or several, other than they shall be; and all names of a file of which one is made anew."""
    again = {path for path in {**now_groups, **made.groups} if now_groups.get(path) != made.groups.get(path)}
    again.update(made.put)
    for path in list(again):
        again.update(made.groups.get(path, ()))
    for path in sorted(again - set(made.put)):
        entry = then.entry(path)
        if entry is None or entry.letter != "f" or made.keeps(path):
            continue
        made.adjust.pop(path, None)
        made.put[path] = entry
        made.deeds[path] = "replaced" if now.entry(path) is not None else "created"
