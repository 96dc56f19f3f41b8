"""Looking at a tree: one walk of ``lstat``, and reading what the cache does not prove unchanged."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from veil.host.anchored import Anchor, Row
from veil.host.metadata import attributes_of
from veil.host.mounts import mounted_below
from veil.snapshots.known import Cache, Held, Known, Own, Sums, trusts
from veil.snapshots.listings import NAMED_ONLY, Entry, Letter, Manifest, encode_listing, join
from veil.snapshots.reading import CLOSED, Moved, Reading, changing
from veil.snapshots.sinks import Sink

#: How often a folder, or the whole tree, is looked at again because it changed meanwhile.
TRIES = 6
#: Seconds before the second look; doubled each time.
FIRST_PAUSE = 0.005
_LETTERS: dict[int, Letter] = {
    stat.S_IFREG: "f",
    stat.S_IFLNK: "l",
    stat.S_IFIFO: "p",
    stat.S_IFSOCK: "s",
    stat.S_IFDIR: "m",
    CLOSED: "x",
}
_WHY: dict[Letter, str] = {
    "p": "a fifo: its name and mode only",
    "s": "a socket: its name only",
    "b": "a device: its name only",
    "m": "something is mounted there, which is not looked into",
    "x": "it cannot be read: its name only",
}


@dataclass(frozen=True)
class Picture:
    """A tree as it was found.

    Attributes:
        manifest: of all of it. folders: what is known of each, by path.
        occupied: folders that hold, somewhere below, what is never touched (veil's own, a mount, what is closed).
        changed: whether anything is not as the cache had it. own: (device, inode) of folders that are veil's own.
    """

    manifest: Manifest
    folders: dict[str, Known]
    occupied: frozenset[str]
    changed: bool
    own: frozenset[tuple[int, int]] = frozenset()
    _by_name: dict[str, dict[str, Row]] = field(default_factory=dict, repr=False)

    def row(self, path: str) -> Row | None:
        """The row of anything but a folder; for a folder one that says so."""
        above, _, name = path.rpartition("/")
        known = self.folders.get(above)
        if known is None:
            return None
        if path in self.folders:
            return (name, stat.S_IFDIR, 0, 0, 0, 0, self.folders[path].own.inode)
        rows = self._by_name.get(above)
        if rows is None:
            rows = self._by_name[above] = {row[0]: row for row in known.rows}
        return rows.get(name)


class Walk:
    """One look at the tree at ``anchor``.

    Args:
        sink: where contents go. cache: what was known.
        own: (device, inode) of folders that are veil's own and never part of a checkpoint.
        staging: name of a folder of ours in the root that is passed over.
    """

    def __init__(
        self, anchor: Anchor, sink: Sink, cache: Cache, own: frozenset[tuple[int, int]], staging: str = ""
    ) -> None:
        self._anchor, self._sink, self._own, self._staging = anchor, sink, own, staging
        self._cache = cache.folders
        # contents that went since the cache was written must not be taken for present
        self._has: Callable[[bytes], bool] | None = sink.has
        self._reading = Reading(anchor, sink)
        self._user = os.geteuid()
        self._mounted: dict[str, set[str]] = {}
        for path in mounted_below(anchor.root):
            above, _, name = path.rpartition("/")
            self._mounted.setdefault(above, set()).add(name)
        self._found: dict[str, Known] = {}
        self._clean: set[str] = set()
        self._occupied: set[str] = set()

    def trust_cache(self) -> None:
        """Every content that the cache names is in the store."""
        self._has = None

    def run(self) -> Picture:
        """Raises ``Refused``: ``unreadable``, or ``changing`` when the tree does not hold still long enough."""
        pause = FIRST_PAUSE
        for attempt in range(TRIES):
            try:
                order = self._round()
                break
            except Moved as moved:
                if attempt == TRIES - 1:
                    raise changing(moved.path) from None
                # what was read so far need not be read again
                self._cache = {**self._cache, **self._found}
                self._anchor.refresh()
                self._found, self._clean, self._occupied = {}, set(), set()
                time.sleep(pause)
                pause *= 2
        same: set[str] = set()
        for path in reversed(order):
            self._seal(path, same)
        changed = "" not in same or len(self._found) != len(self._cache)
        return Picture(self._manifest(), self._found, frozenset(self._occupied), changed, self._own)

    def _round(self) -> list[str]:
        order, stack = [], [""]
        while stack:
            path = stack.pop()
            known = self._found[path] = self._folder(path)
            order.append(path)
            prefix = path + "/" if path else ""
            stack.extend([prefix + name for name in known.folders])
        return order

    def _folder(self, path: str) -> Known:
        pause = FIRST_PAUSE
        for _ in range(TRIES):
            handle = self._reading.folder(path)
            looked = time.time_ns()
            try:
                before = os.fstat(handle)
                known = self._look(path, handle, before, looked)
                after = os.fstat(self._reading.folder(path))
                if (before.st_ctime_ns, before.st_mtime_ns, before.st_ino) == (
                    after.st_ctime_ns,
                    after.st_mtime_ns,
                    after.st_ino,
                ):
                    return known
            except Moved:
                pass  # a name in it went while it was being read: the folder is looked at again
            time.sleep(pause)
            pause *= 2
        raise changing(path or self._anchor.root)

    def _look(self, path: str, handle: int, found: os.stat_result, looked: int) -> Known:
        rows, folders = self._listed(path, handle)
        known = self._cache.get(path)
        if known is not None and not self._usable(known):
            known = None
        own = self._own_facts(path, handle, found, known, looked)
        if known is not None and known.trusted and rows == known.rows and folders == known.folders:
            self._clean.add(path)
            return Known(known.rows, known.folders, known.held, own, known.sums, known.listing, True)
        before: dict[str, tuple[Row, Held]] = {}
        if known is not None:
            before = {row[0]: (row, held) for row, held in zip(known.rows, known.held, strict=True)}
        now: list[Row] = []
        facts: list[Held] = []
        for row in rows:
            old = before.get(row[0])
            if old is not None and old[1][4] and old[0] == row:
                now.append(row)
                facts.append(old[1])
            else:
                row, held = self._reading.entry(path, row)
                now.append(row)
                facts.append(held)
            if stat.S_IFMT(row[1]) == CLOSED:
                self._occupy(path)
        sums = Sums(
            sum(1 for row in now if stat.S_ISREG(row[1])),
            sum(row[3] for row in now if stat.S_ISREG(row[1])),
            any(row[2] > 1 and stat.S_ISREG(row[1]) for row in now),
            any(not stat.S_ISREG(row[1]) and not stat.S_ISLNK(row[1]) for row in now),
        )
        return Known(now, folders, facts, own, sums, "", all(held[4] for held in facts))

    def _usable(self, known: Known) -> bool:
        """Whether what the cache names is still in the store."""
        if self._has is None:
            return True
        wanted = [bytes.fromhex(known.listing)] if known.listing else []
        for row, held in zip(known.rows, known.held, strict=True):
            if stat.S_ISREG(row[1]):
                wanted.append(bytes.fromhex(held[0]))
        return all(self._has(key) for key in wanted)

    def _listed(self, path: str, handle: int) -> tuple[list[Row], list[str]]:
        rows: list[Row] = []
        folders: list[str] = []
        is_dir, device = stat.S_ISDIR, self._anchor.device
        mounted = self._mounted.get(path, ())
        with os.scandir(handle) as entries:
            for entry in entries:
                try:
                    s = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # the folder's time stamp moves with it, and that is noticed
                mode = s.st_mode
                name = entry.name
                if not is_dir(mode) and name not in mounted:
                    rows.append((name, mode, s.st_nlink, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino))
                elif (s.st_dev, s.st_ino) in self._own or (not path and name == self._staging):
                    self._occupy(path)
                elif s.st_dev != device or name in mounted:
                    rows.append((name, stat.S_IFDIR | stat.S_IMODE(mode), 0, 0, 0, 0, 0))
                    self._occupy(path)
                elif s.st_uid != self._user and self._reading.is_closed(join(path, name)):
                    rows.append((name, CLOSED | stat.S_IMODE(mode), 0, 0, 0, 0, 0))
                else:
                    folders.append(name)
        return rows, folders

    def _occupy(self, path: str) -> None:
        while path:
            self._occupied.add(path)
            path = path.rpartition("/")[0]

    def _own_facts(self, path: str, handle: int, found: os.stat_result, known: Known | None, looked: int) -> Own:
        mode = self._anchor.unlocked.get(path, stat.S_IMODE(found.st_mode))
        if known is not None and trusts(found.st_ctime_ns, looked):
            own = known.own
            if (own.mode, own.mtime_ns, own.ctime_ns, own.inode) == (
                mode,
                found.st_mtime_ns,
                found.st_ctime_ns,
                found.st_ino,
            ):
                return own
        attributes = attributes_of(handle)
        return Own(mode, found.st_uid, found.st_gid, found.st_mtime_ns, attributes, found.st_ctime_ns, found.st_ino)

    def _seal(self, path: str, same: set[str]) -> None:
        """Name the folder's listing; all below it are named. ``same``: folders that are as the cache had them."""
        known, cached = self._found[path], self._cache.get(path)
        below = [join(path, name) for name in known.folders]
        if path in self._clean and known.listing and all(folder in same for folder in below):
            listing = known.listing
        else:
            entries = [entry_of(row, held) for row, held in zip(known.rows, known.held, strict=True)]
            for name, folder in zip(known.folders, below, strict=True):
                entries.append(folder_entry(name, self._found[folder]))
            listing = self._sink.listing(encode_listing(entries)).hex()
            self._found[path] = known._replace(listing=listing)
        if (
            cached is not None
            and path in self._clean
            and listing == cached.listing
            and known.own == cached.own
            and known.trusted
        ):
            same.add(path)

    def _manifest(self) -> Manifest:
        files = size = 0
        left_out: dict[str, str] = dict(self._reading.left_out)
        groups: dict[int, list[str]] = {}
        for path, known in self._found.items():
            files += known.sums.files
            size += known.sums.bytes
            if not known.sums.linked and not known.sums.odd:
                continue
            for row in known.rows:
                if row[2] > 1 and stat.S_ISREG(row[1]):
                    groups.setdefault(row[6], []).append(join(path, row[0]))
                elif not stat.S_ISREG(row[1]) and not stat.S_ISLNK(row[1]):
                    left_out[join(path, row[0])] = _WHY[letter_of(row[1])]
        links = tuple(sorted(tuple(sorted(group)) for group in groups.values() if len(group) > 1))
        return Manifest(folder_entry("", self._found[""]), links, files, size, dict(sorted(left_out.items())))


def letter_of(mode: int) -> Letter:
    return _LETTERS.get(stat.S_IFMT(mode), "b")


def entry_of(row: Row, held: Held) -> Entry:
    """The entry of anything but a folder."""
    letter = letter_of(row[1])
    content, uid, gid, attributes, _ = held
    size = row[3] if letter == "f" else 0
    mtime_ns = 0 if letter in NAMED_ONLY else row[4]
    return Entry(row[0], letter, stat.S_IMODE(row[1]), uid, gid, mtime_ns, size, content, attributes)


def folder_entry(name: str, known: Known) -> Entry:
    own = known.own
    return Entry(name, "d", own.mode, own.uid, own.gid, own.mtime_ns, 0, known.listing, own.attributes)
