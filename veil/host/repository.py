"""A git work tree as its files show it: where it is, where HEAD and the refs point. git itself is never run."""

from __future__ import annotations

import os
from dataclasses import dataclass

from veil.host.git_index import Index, read_index


@dataclass(frozen=True)
class Repository:
    """A work tree. Attributes: root: its top level. git_dir: where its HEAD and index are. common: where refs are."""

    root: str
    git_dir: str
    common: str

    @property
    def oid_size(self) -> int:
        """Bytes of an object name: 20, or 32 in a repository of SHA-256."""
        config = read_file(os.path.join(self.common, "config")) or b""
        return 32 if b"sha256" in config.lower() else 20

    def index(self) -> Index:
        """The index file. Raises ``OSError`` when it cannot be read."""
        return read_index(os.path.join(self.git_dir, "index"), self.oid_size)


def find(folder: str) -> Repository | None:
    """The work tree that ``folder`` (absolute, links resolved) lies in, by walking upward; git itself is not run.

    Like git it does not go over to another file system.
    """
    at = folder
    while True:
        entry = at + "/.git"
        if os.path.lexists(entry) and (git_dir := _git_dir(entry)) is not None:
            try:
                if os.stat(at).st_dev != os.stat(folder).st_dev:
                    return None
            except OSError:
                return None
            common = read_file(os.path.join(git_dir, "commondir"))
            shared = git_dir if common is None else os.path.join(git_dir, os.fsdecode(common.rstrip(b"\n")))
            return Repository(at or "/", git_dir, os.path.normpath(shared))
        if not at or at == "/":
            return None
        at = at.rpartition("/")[0]


def _git_dir(entry: str) -> str | None:
    """Where a ``.git`` entry leads, when a repository is there."""
    if os.path.lexists(os.path.join(entry, "HEAD")):
        return entry
    text = read_file(entry)
    if text is None or not text.startswith(b"gitdir: "):
        return None
    path = os.path.join(os.path.dirname(entry), os.fsdecode(text[8:].rstrip(b"\r\n")))
    return os.path.normpath(path) if os.path.lexists(os.path.join(path, "HEAD")) else None


def read_file(path: str) -> bytes | None:
    """The whole file, or ``None`` when there is none that can be read. Never waits at a fifo."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        parts = []
        while block := os.read(descriptor, 1 << 16):
            parts.append(block)
        return b"".join(parts)
    except OSError:  # a folder opens but does not read
        return None
    finally:
        os.close(descriptor)


def ref(repository: Repository, name: str, depth: int = 5) -> str | None:
    """What a ref names (loose or packed; symbolic ones are followed ``depth`` times), or ``None``."""
    for folder in dict.fromkeys((repository.git_dir, repository.common)):
        text = read_file(os.path.join(folder, name))
        if text is not None and text.strip():
            if text.startswith(b"ref: ") and depth:
                return ref(repository, os.fsdecode(text[5:].strip()), depth - 1)
            return text.strip().decode("ascii", "replace")
    packed = read_file(os.path.join(repository.common, "packed-refs"))
    if packed:
        end = packed.find(b" " + os.fsencode(name) + b"\n")
        if end >= 0:
            return packed[packed.rfind(b"\n", 0, end) + 1 : end].decode("ascii", "replace")
    return None
