"""What a moved signature means: created, modified, only the mode, or nothing but a touch."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass

from veil.host import git
from veil.host.git_index import Entry
from veil.host.pictures import Picture, Tree
from veil.host.tree import Signature, digest
from veil.model.outcome import Happened

#: Touched files hashed at most to tell a touch from a change, and bytes of them in all; beyond, touched is modified.
MAX_HASHED_FILES = 2_000
MAX_HASHED_BYTES = 256_000_000


@dataclass
class Candidate:
    """A path whose signature moved. ``before``/``after`` are ``None`` when nothing was there.

    ``clean``: what git's index said of it when git knew it to be clean before the run. ``tracked``: it was in the
    index. ``from_index``: ``before`` was made up from the index (git then only keeps one permission bit).
    """

    path: str
    before: Signature | None
    after: Signature | None
    clean: Entry | None = None
    tracked: bool = False
    from_index: bool = False
    verdict: Happened | None = None
    old: str | None = None


def judge(tree: Tree, before: Picture, found: list[Candidate]) -> None:
    """Give each candidate its verdict; ``None`` means that it did not change after all."""
    doubtful: list[Candidate] = []
    for each in found:
        old, new = each.before, each.after
        if old is None or new is None:
            if old is not new:
                each.verdict = "created" if old is None else "deleted"
        elif stat.S_IFMT(old[0]) != stat.S_IFMT(new[0]):
            each.verdict = "modified"
        elif stat.S_ISDIR(new[0]):
            each.verdict = "mode"
        elif each.clean is not None:
            each.verdict = "modified"
            if old[1] == new[1]:
                doubtful.append(each)
        elif old == new:
            known = before.scan.digests.get(each.path)
            if known is not None and digest(os.path.join(tree.root, each.path)) != known:
                each.verdict = "modified"
        else:
            each.verdict = _by_signature(old, new)
    if doubtful:
        _tell_touches(tree, doubtful)


def _by_signature(old: Signature, new: Signature) -> Happened | None:
    if old[1:3] != new[1:3] or old[4] != new[4]:
        return "modified"
    if old[0] != new[0]:
        return "mode"
    # Only the ctime moved. With another number of links that was a link made or taken; otherwise it can be a rewrite
    # that put the mtime back, and that must not be missed.
    return "modified" if old[5] == new[5] else None


def _tell_touches(tree: Tree, doubtful: list[Candidate]) -> None:
    """Files that git knew to be clean: with the same bytes as before nothing (or only the mode) changed."""
    left: list[Candidate] = []
    files, size = MAX_HASHED_FILES, MAX_HASHED_BYTES
    for each in doubtful:
        assert each.after is not None
        files, size = files - 1, size - each.after[1]
        if files < 0 or size < 0:
            break
        if _content_is(tree, each):
            each.verdict = _mode_verdict(each)
        elif stat.S_ISREG(each.after[0]):
            left.append(each)
    if not left or tree.repository is None:
        return
    try:  # other bytes of the same size: perhaps only other line ends than git keeps
        told = git.blobs(tree.repository, [each.path for each in left])
    except git.GitFailed:
        return
    for each in left:
        if each.clean is not None and told.get(each.path) == each.clean.oid:
            each.verdict = _mode_verdict(each)


def _content_is(tree: Tree, each: Candidate) -> bool:
    assert each.after is not None
    assert each.clean is not None
    path = os.path.join(tree.root, each.path)
    algorithm = "sha1" if len(each.clean.oid) == 20 else "sha256"
    if stat.S_ISLNK(each.after[0]):
        try:
            target = os.fsencode(os.readlink(path))
        except OSError:
            return False
        text = hashlib.new(algorithm, b"blob %d\0" % len(target) + target, usedforsecurity=False)
        return text.digest() == each.clean.oid
    return digest(path, b"blob %d\0" % each.after[1], algorithm) == each.clean.oid


def _mode_verdict(each: Candidate) -> Happened | None:
    assert each.before is not None
    assert each.after is not None
    if stat.S_ISLNK(each.after[0]):
        return None
    mask = stat.S_IXUSR if each.from_index else 0o7777
    return "mode" if (each.before[0] ^ each.after[0]) & mask else None
