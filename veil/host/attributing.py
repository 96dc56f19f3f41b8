"""Which of the changes in a tree a traced command made itself."""

from __future__ import annotations

import os
from collections.abc import Sequence

from veil.host.tree import Signature, signature
from veil.model.outcome import Change
from veil.model.plan import Touched


def attributed(cwd: str, changes: Sequence[Change], touched: Touched) -> tuple[list[Change], list[Change]]:
    """The changes that the command was seen to make, and those that it was not.

    Args:
        cwd: absolute, links resolved; the paths of ``changes`` are relative to it.
    """
    seen = _Seen(touched)
    mine: list[Change] = []
    others: list[Change] = []
    for change in changes:
        paths = [os.path.normpath(os.path.join(cwd, p)) for p in (change.path, change.old) if p is not None]
        (mine if any(seen.changed(path) for path in paths) else others).append(change)
    return mine, others


class _Seen:
    """The touched paths, looked at more closely only as far as a change asks for it: first as they were written, then
    with the links on the way resolved, then by other names of the same file."""

    def __init__(self, touched: Touched) -> None:
        self._raw = touched.paths
        self._paths = {os.path.normpath(os.fsdecode(path)) for path in touched.paths}
        self._trees = {os.path.normpath(os.fsdecode(path)) for path in touched.trees}
        self._raw_trees = touched.trees
        self._resolved = False
        self._inodes: set[tuple[int, int]] | None = None

    def changed(self, path: str) -> bool:
        if self._holds(path):
            return True
        if not self._resolved:
            self._resolve()
            if self._holds(path):
                return True
        return self._same_file(path)

    def _holds(self, path: str) -> bool:
        if path in self._paths:
            return True
        at = path
        while self._trees and at not in ("/", ""):
            if at in self._trees:
                return True
            at = os.path.dirname(at)
        return False

    def _resolve(self) -> None:
        self._resolved = True
        folders: dict[str, str] = {}
        for raw, known in ((self._raw, self._paths), (self._raw_trees, self._trees)):
            for path in map(os.fsdecode, raw):
                folder, name = os.path.split(path.rstrip("/"))
                if name in ("", ".", ".."):
                    known.add(os.path.realpath(path))
                    continue
                if folder not in folders:
                    folders[folder] = os.path.realpath(folder)
                known.add(os.path.join(folders[folder], name))
                known.add(os.path.realpath(path))  # written to through a link

    def _same_file(self, path: str) -> bool:
        """A hard link: what is written by one name changes under every name."""
        here = _look(path)
        if here is None or here[5] < 2:
            return False
        if self._inodes is None:
            found = (_look(known) for known in self._paths)
            self._inodes = {(each[4], each[1]) for each in found if each is not None and each[5] > 1}
        return (here[4], here[1]) in self._inodes


def _look(path: str) -> Signature | None:
    try:
        return signature(path)
    except OSError:
        return None
