"""What there is, remembered while the times of folders tell that nothing came or went.

A folder's ctime moves also when it is itself renamed, so an answer that names it never outlives its place.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Hashable, Iterator
from typing import TypeVar

T = TypeVar("T")

#: Seconds after which a change would show in a folder's times; some file systems keep them in steps of two.
SETTLED = 3.0
_MOST = 64
#: Path -> (device, inode, mtime_ns, ctime_ns) and the names.
_kept: dict[str, tuple[tuple[int, int, int, int], frozenset[str]]] = {}


def names_in(folder: str) -> frozenset[str] | None:
    """Its names; none when it is no folder; ``None`` when it may be entered without being listed."""
    try:
        found = os.stat(folder)
        stamp = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns)
        known = _kept.get(folder)
        if known is not None and known[0] == stamp:
            return known[1]
        before = time.time_ns()
        names = frozenset(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    except OSError:
        return None
    if before - max(stamp[2:]) > SETTLED * 1e9:
        if len(_kept) >= _MOST:
            _kept.clear()
        _kept[folder] = (stamp, names)
    return names


#: A path, whether a link at its end was followed, and what stood there (``None``: nothing).
_Note = tuple[str, bool, "tuple[int, ...] | None"]


class Notes:
    """What an answer was told from. It may be given again as long as all of that is as it was."""

    def __init__(self) -> None:
        self._notes: list[_Note] = []
        self._youngest = 0
        self._sure = True
        self._placed: set[str] = set()

    def folder(self, path: str) -> None:
        """The names in this folder count, and where it is."""
        seen = _seen(path, True)
        self._notes.append((path, True, seen))
        if seen is not None:
            self._youngest = max(self._youngest, *seen[-2:])

    def name(self, path: str) -> None:
        """What stands at this path counts, as far as its kind goes."""
        self._notes.append((path, False, _seen(path, False)))

    def place(self, folder: str, real: str) -> None:
        """``real`` counts: where the folder is without links."""
        if real != folder:
            self._sure = False
        while folder not in self._placed and len(folder) > 1:
            self._placed.add(folder)
            self.name(folder)  # as long as it is a folder, it is no link
            folder = os.path.dirname(folder)

    def link(self) -> None:
        """A link counts: where it leads to can change anywhere, so the answer is good once."""
        self._sure = False

    def settled(self, before: int) -> bool:
        return self._sure and before - self._youngest > SETTLED * 1e9

    def hold(self) -> bool:
        return all(_seen(path, follow) == seen for path, follow, seen in self._notes)


def _seen(path: str, folder: bool) -> tuple[int, ...] | None:
    try:
        found = os.stat(path) if folder else os.lstat(path)
    except OSError:
        return None
    if folder:
        return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
    return found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode)


_answers: dict[Hashable, tuple[Notes, object]] = {}


def remembered(question: Hashable, look: Callable[[Notes], Iterator[T]]) -> tuple[T, ...]:
    """What ``look`` yields, or what it yielded when this was asked before and all that it took note of still holds."""
    known = _answers.get(question)
    if known is not None and known[0].hold():
        return known[1]  # type: ignore[return-value]
    before, notes = time.time_ns(), Notes()
    answer = tuple(look(notes))
    if notes.settled(before):
        if len(_answers) >= _MOST:
            _answers.clear()
        _answers[question] = (notes, answer)
    return answer
