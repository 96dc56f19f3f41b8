"""One checkpoint into the store."""

from __future__ import annotations

from veil.host.anchored import Anchor
from veil.snapshots import known
from veil.snapshots.base import Checkpoint
from veil.snapshots.listings import Tree, encode_manifest
from veil.snapshots.projects import Opened, Project
from veil.snapshots.sinks import Keeping, Naming, Sink
from veil.snapshots.walking import Picture, Walk

#: (device, inode) of folders that are veil's own.
Own = frozenset[tuple[int, int]]


class Taking:
    """A look at the tree at ``anchor``, to be kept or not. Close it in any case.

    Attributes: picture, tree: what was found.

    Raises: ``StoreFailed``, ``Refused`` (``unreadable``, ``changing``).
    """

    def __init__(self, project: Project, at: Opened, anchor: Anchor, own: Own) -> None:
        self._project, self._at = project, at
        self._keeping = Keeping(at.reader)
        try:
            self.picture, self._cache = _look(project, at, anchor, own, self._keeping, "")
        except BaseException:
            self.close()
            raise
        self.tree = Tree(self.picture.manifest, self._keeping.read)

    def keep(self, label: bytes | None, restoring: tuple[bytes, str, str] | None = None) -> Checkpoint:
        """Make it a checkpoint. ``restoring``: see ``Index.add``."""
        key = self._keeping.put(encode_manifest(self.picture.manifest))
        pack, places = self._keeping.finish()
        checkpoint = self._at.index.add(label, key, self.picture.manifest, pack, places, restoring)
        epoch = self._at.index.epoch()
        # a restore is going to move what was just found away again: not worth writing the cache for
        if (self.picture.changed and restoring is None) or self._cache.epoch != epoch:
            known.save(self._project.cache, known.Cache(self.picture.folders, epoch, checkpoint.id))
        return checkpoint

    def close(self) -> None:
        self._keeping.close()


def name_only(project: Project, at: Opened, anchor: Anchor, own: Own, staging: str) -> Tree:
    """The tree as it is, without keeping anything. Raises as ``Taking``."""
    naming = Naming(at.index.has, at.reader.read)
    picture, _ = _look(project, at, anchor, own, naming, staging)
    return Tree(picture.manifest, naming.read)


def _look(
    project: Project, at: Opened, anchor: Anchor, own: Own, sink: Sink, staging: str
) -> tuple[Picture, known.Cache]:
    cache = known.load(project.cache)
    walk = Walk(anchor, sink, cache, own, staging)
    if cache.epoch == at.index.epoch() and at.index.knows(cache.newest):
        walk.trust_cache()
    return walk.run(), cache
