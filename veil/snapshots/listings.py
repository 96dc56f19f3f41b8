"""What a checkpoint is made of: a listing per folder, named by its hash, and a manifest that names the root's listing.

A folder's listing holds the ids of the listings below it, so two folders with the same id are the same all the way down
and nobody needs to look into them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, cast

from veil.model.errors import Refused
from veil.model.outcome import Kind

#: file, folder, link, fifo, socket, device, mount point, something closed to us (only in a displaced state).
Letter = Literal["f", "d", "l", "p", "s", "b", "m", "x"]
#: How a change names them. A mount point is a folder.
KINDS: Mapping[Letter, Kind] = {
    "f": "file",
    "d": "dir",
    "l": "symlink",
    "p": "fifo",
    "s": "socket",
    "b": "device",
    "m": "dir",
    "x": "file",
}
#: Kinds that are known by name only: they are neither made again nor looked into.
NAMED_ONLY: frozenset[Letter] = frozenset({"s", "b", "m", "x"})
FORMAT = 1


class Entry(NamedTuple):
    """One name in a folder.

    ``content``: id of a file's bytes or of a folder's listing (hexadecimal), or a link's target.
    """

    name: str
    letter: Letter
    mode: int
    uid: int
    gid: int
    mtime_ns: int
    size: int
    content: str
    attributes: tuple[tuple[str, str], ...] = ()

    @property
    def facts(self) -> tuple[object, ...]:
        """What a restore brings back beside the content."""
        return (self.mode, self.uid, self.gid, self.mtime_ns, self.attributes)


@dataclass(frozen=True)
class Manifest:
    """One state of a tree.

    Attributes:
        root: the folder itself, under the empty name.
        links: groups of paths that are one file, each sorted.
        files, bytes: regular files and their size. left_out: see ``Checkpoint``.
    """

    root: Entry
    links: tuple[tuple[str, ...], ...] = ()
    files: int = 0
    bytes: int = 0
    left_out: Mapping[str, str] = field(default_factory=dict)


#: Gives the bytes that an id names. Raises ``Refused`` (``damaged``) when they are missing or others.
Read = Callable[[bytes], bytes]


def encode_listing(entries: list[Entry]) -> bytes:
    return json.dumps(sorted(entries), separators=(",", ":")).encode("ascii")


def decode_listing(data: bytes) -> dict[str, Entry]:
    """Entry by name. Raises ``Refused`` (``damaged``) for names that are none: each becomes one step of a path."""
    found: dict[str, Entry] = {}
    for name, letter, mode, uid, gid, mtime_ns, size, content, attributes in json.loads(data):
        if not name or name in (".", "..") or "/" in name or "\0" in name or letter not in KINDS:
            raise Refused(f"a checkpoint holds {name!r}, which is no file name", code="damaged", name=name)
        pairs = tuple((key, value) for key, value in attributes)
        found[name] = Entry(name, letter, mode, uid, gid, mtime_ns, size, content, pairs)
    return found


def encode_manifest(manifest: Manifest) -> bytes:
    value = {
        "format": FORMAT,
        "root": manifest.root,
        "links": manifest.links,
        "files": manifest.files,
        "bytes": manifest.bytes,
        "left_out": manifest.left_out,
    }
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode("ascii")


def decode_manifest(data: bytes) -> Manifest:
    """Raises ``Refused`` (``damaged``) for a format that this version does not know."""
    value = json.loads(data)
    if value["format"] != FORMAT:
        raise Refused(f"this checkpoint has format {value['format']}; known is {FORMAT}", code="damaged")
    name, letter, mode, uid, gid, mtime_ns, size, content, attributes = value["root"]
    pairs = tuple((key, text) for key, text in attributes)
    entry = Entry(name, letter, mode, uid, gid, mtime_ns, size, content, pairs)
    links = tuple(tuple(group) for group in value["links"])
    return Manifest(entry, links, value["files"], value["bytes"], value["left_out"])


def join(folder: str, name: str) -> str:
    """A path below the root."""
    return f"{folder}/{name}" if folder else name


class Tree:
    """A state that can be looked into by path. Listings are read when they are first needed."""

    def __init__(self, manifest: Manifest, read: Read) -> None:
        self.manifest = manifest
        self._read = read
        self._known: dict[str, dict[str, Entry]] = {}

    def listing(self, id: str) -> dict[str, Entry]:
        """Entries of the folder whose listing has this id."""
        known = self._known.get(id)
        if known is None:
            known = self._known[id] = decode_listing(self._read(bytes.fromhex(id)))
        return known

    def entry(self, path: str) -> Entry | None:
        """What stands at ``path`` (empty: the root)."""
        at: Entry | None = self.manifest.root
        for name in path.split("/") if path else ():
            if at is None or at.letter != "d":
                return None
            at = self.listing(at.content).get(name)
        return at

    def below(self, path: str, entry: Entry) -> Iterator[tuple[str, Entry]]:
        """Everything in the folder ``entry`` at ``path``: what is around before what is inside."""
        stack = [(path, entry)]
        while stack:
            folder, at = stack.pop()
            for name, found in self.listing(at.content).items():
                yield join(folder, name), found
                if found.letter == "d":
                    stack.append((join(folder, name), found))


class Difference(NamedTuple):
    """A path that is not the same in two states; ``None``: nothing is there."""

    path: str
    old: Entry | None
    new: Entry | None

    @property
    def letters(self) -> tuple[Letter | None, Letter | None]:
        return (self.old and self.old.letter, self.new and self.new.letter)


def compare(old: Tree, new: Tree) -> Iterator[Difference]:
    """All paths that differ in anything, a folder before what is in it. Folders with the same id are not entered."""
    stack = [Difference("", old.manifest.root, new.manifest.root)]
    while stack:
        at = stack.pop()
        if at.old == at.new:
            continue
        yield at
        before = old.listing(at.old.content) if at.old is not None and at.old.letter == "d" else {}
        after = new.listing(at.new.content) if at.new is not None and at.new.letter == "d" else {}
        if at.letters == ("d", "d") and cast(Entry, at.old).content == cast(Entry, at.new).content:
            continue
        for name in {**before, **after}:
            stack.append(Difference(join(at.path, name), before.get(name), after.get(name)))
