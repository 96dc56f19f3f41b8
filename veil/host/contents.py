"""What stands below a folder, by content. Hashes are remembered for as long as the stat signature stays the same."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable

from veil.host import tree
from veil.model.outcome import Kind

#: A file larger than this is not read as a whole (bytes).
MAX_WHOLE = 16 << 20

#: How often something that changes while it is read is read once more.
_LOOKS = 3

#: Makes the id of an entry from its kind, its permission bits and its content (a link's target).
Identify = Callable[[Kind | None, int, bytes], str]


class Contents:
    """One folder. Not for several threads at once.

    Args:
        root: absolute path.
        identify: makes ids; called for small files, links and everything without content.
        skip: paths below the root that are never looked at.
    """

    def __init__(self, root: str, identify: Identify, skip: frozenset[str] = frozenset()) -> None:
        self.root = root
        self._identify = identify
        self._skip = skip
        self._known: dict[str, tuple[tree.Signature, str]] = {}
        self._coarse = tree.coarse_clock()

    def picture(self) -> dict[str, str]:
        """Id by path below the root, of everything but what is called ``.git``. Raises ``tree.TreeUnknown``."""
        found = tree.scan(self.root, skip=self._skip)
        self._known = {path: known for path, known in self._known.items() if path in found.entries}
        return {path: self._id(path, signature) for path, signature in found.entries.items()}

    def id_of(self, path: str) -> str:
        """Id of one path as it is now. What lies behind a link is no part of the folder, here as in ``picture``."""
        signature = None if self._through_link(path) else tree.signature(os.path.join(self.root, path))
        return self._identify(None, 0, b"") if signature is None else self._id(path, signature)

    def _through_link(self, path: str) -> bool:
        parts = path.split("/")[:-1]
        return any(os.path.islink(os.path.join(self.root, *parts[: count + 1])) for count in range(len(parts)))

    def know(self, path: str, id: str) -> None:
        """The caller has just put there what has this id: it need not be read to be known."""
        signature = tree.signature(os.path.join(self.root, path))
        if signature is not None and not self._coarse:
            self._known[path] = (signature, id)

    def mode_of(self, path: str) -> int:
        """Permission bits; 0 when nothing is there."""
        signature = tree.signature(os.path.join(self.root, path))
        return 0 if signature is None else stat.S_IMODE(signature[0])

    def kind_of(self, path: str) -> Kind | None:
        """What it is; ``None`` when nothing is there."""
        signature = tree.signature(os.path.join(self.root, path))
        return None if signature is None else tree.kind_of(signature[0])

    def _read(self, path: str) -> bytes | None:
        """The bytes of a regular file or the target of a link; ``None`` when it is too large, or neither."""
        full = os.path.join(self.root, path)
        try:
            found = os.lstat(full)
            if stat.S_ISLNK(found.st_mode):
                return os.fsencode(os.readlink(full))
            if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_WHOLE:
                return None
            # what took its place meanwhile is neither waited for (a fifo) nor followed (a link)
            handle = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                with open(handle, "rb", closefd=False) as file:
                    content = file.read(MAX_WHOLE + 1)
            finally:
                os.close(handle)
        except OSError:  # also of a folder that took its place
            return None
        return content if len(content) <= MAX_WHOLE else None

    def content(self, path: str, id: str) -> tuple[bytes | None, str]:
        """The bytes of a regular file or the target of a link (``None``: too large, or neither), and the id of that.

        That is ``id``, unless it has changed since it had that one. As in ``id_of`` there is nothing behind a link.
        """
        full = os.path.join(self.root, path)
        for _ in range(_LOOKS):
            before, content, signature = tree.signature(full), self._read(path), tree.signature(full)
            if before == signature:  # else it may be of another kind now than what was read
                break
        if self._through_link(path):  # also when a folder became one just now: what was read is none of ours
            return None, self._identify(None, 0, b"")
        if signature is not None and self._known.get(path) == (signature, id):
            return content, id
        kind = None if signature is None else tree.kind_of(signature[0])
        if content is None or signature is None or kind not in ("file", "symlink"):
            return None, self.id_of(path)
        return content, self._identify(kind, stat.S_IMODE(signature[0]), content)

    def size_of(self, path: str) -> int:
        """Bytes of a file; 0 when nothing is there."""
        signature = tree.signature(os.path.join(self.root, path))
        return 0 if signature is None else signature[1]

    def _id(self, path: str, signature: tree.Signature) -> str:
        known = self._known.get(path)
        if known is not None and known[0] == signature:
            return known[1]
        kind, mode = tree.kind_of(signature[0]), stat.S_IMODE(signature[0])
        content = self._read(path) if kind in ("file", "symlink") else b""
        if content is not None:
            found = self._identify(kind, mode, content)
        else:
            whole = tree.digest(os.path.join(self.root, path))
            # large or unreadable: its bytes as they are, or at least its size
            found = f"{kind}:{mode:03o}:{whole.hex() if whole is not None else f'unreadable-{signature[1]}'}"
        if not self._coarse or signature[3] < time.time_ns() - 2 * tree.TICK_NS:
            self._known[path] = (signature, found)
        return found
