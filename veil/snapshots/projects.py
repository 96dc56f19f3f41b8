"""Where the checkpoints of each folder are: one place per folder, named by the hash of its real path."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from veil.host.blobs import Vault, make_private
from veil.host.turns import turn
from veil.model.errors import BadInput, StoreFailed
from veil.snapshots.index import Index, Row, opened
from veil.snapshots.listings import Manifest, Tree, decode_manifest
from veil.snapshots.sinks import Reader


@dataclass(frozen=True)
class Opened:
    """A project that is being worked on."""

    index: Index
    vault: Vault
    reader: Reader

    def tree(self, manifest: bytes) -> Tree:
        """The state that a manifest describes. Raises ``Refused`` (``damaged``)."""
        return Tree(self.manifest(manifest), self.reader.read)

    def manifest(self, id: bytes) -> Manifest:
        return decode_manifest(self.reader.read(id))


class Project:
    """The place of one folder's checkpoints.

    Attributes:
        origin: the folder, links resolved. folder: where its checkpoints are.
    """

    def __init__(self, base: Path, origin: str, wait: float) -> None:
        digest = hashlib.blake2b(os.fsencode(origin), digest_size=16).hexdigest()
        self.origin, self.folder = origin, base / digest
        self._wait = wait
        self._lock, self._index = self.folder / "lock", self.folder / "index.sqlite3"
        self.cache = self.folder / "cache"

    @property
    def exists(self) -> bool:
        """Whether there was ever a checkpoint."""
        return self._index.exists()

    @contextmanager
    def writing(self) -> Iterator[Opened]:
        """Alone, made when missing. Raises ``StoreFailed``, ``Refused`` (``busy``, ``not_ours``)."""
        for folder in (self.folder.parent.parent, self.folder.parent, self.folder):
            # the outermost may be somebody else's choice: it is made privately when missing, and else left as it is
            if folder != self.folder.parent.parent or not folder.is_dir():
                make_private(folder)
        with self._locked(shared=False), opened(self._index, write=True) as index:
            vault = Vault(self.folder)
            try:
                self._prepare(vault, index)
                yield Opened(index, vault, Reader(index, vault))
            finally:
                vault.close()

    def _prepare(self, vault: Vault, index: Index) -> None:
        try:
            vault.prepare()
            vault.sweep(index.packs(), None)
            name, origin = self.folder / "origin", os.fsencode(self.origin)
            if not name.exists():
                beside = self.folder / "origin-new"
                beside.write_bytes(origin)
                beside.chmod(0o600)
                beside.rename(name)
        except OSError as error:
            raise StoreFailed(f"{self.folder}: {error.strerror}", path=str(self.folder)) from error

    @contextmanager
    def reading(self) -> Iterator[Opened]:
        """Together with other readers; only when it ``exists``. Raises as ``writing``."""
        with self._locked(shared=True), opened(self._index, write=False) as index:
            vault = Vault(self.folder)
            try:
                yield Opened(index, vault, Reader(index, vault))
            finally:
                vault.close()

    @contextmanager
    def _locked(self, *, shared: bool) -> Iterator[None]:
        held = turn(self._lock, self._wait, shared=shared)
        try:
            held.__enter__()
        except OSError as error:
            raise StoreFailed(f"{self._lock}: {error.strerror}", path=str(self._lock)) from error
        try:
            yield
        finally:
            held.__exit__(None, None, None)

    def rows(self) -> list[Row]:
        """Its checkpoints, newest first."""
        if not self.exists:
            return []
        with opened(self._index, write=False) as index:
            return index.rows()


def all_projects(base: Path, wait: float) -> list[Project]:
    """Every project below ``base``."""
    found = []
    if base.is_dir():
        for name in sorted(base.glob("*/origin")):
            project = Project(base, os.fsdecode(name.read_bytes()), wait)
            if project.folder == name.parent and project.exists:
                found.append(project)
    return found


def resolved(directory: object) -> str:
    """The real path of a folder that somebody named; it need not exist. Raises ``BadInput``."""
    if not isinstance(directory, (str, os.PathLike)):
        raise BadInput("dir", directory, "the path of a folder")
    text = os.fspath(directory)
    if not isinstance(text, str) or not text or "\0" in text:
        raise BadInput("dir", directory, "the path of a folder")
    try:
        return os.path.realpath(text)
    except OSError:  # it is relative
        raise BadInput("dir", directory, "an absolute path, since this process's own folder is gone") from None
