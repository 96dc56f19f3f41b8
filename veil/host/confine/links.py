"""Files that a command may write to and that have a second name, perhaps outside: a mount or a rule cannot tell."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable

#: Entries that are looked at; a larger tree is not searched to its end for a warning.
MOST = 500
_NAMED = 3


class Search:
    """Looks once, folder by folder from the top, until it has seen ``most`` entries."""

    def __init__(self, roots: Iterable[str], most: int = MOST) -> None:
        self._roots = tuple(roots)
        self._most = most
        self._found: list[str] = []
        self._many = 0
        self._cut = False

    def look(self) -> None:
        seen, todo = 0, list(self._roots)
        for folder in todo:  # grows while it is gone through: what is near the top comes first
            with contextlib.suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    seen += 1
                    if seen > self._most:
                        self._cut = True
                        return
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    elif not entry.is_symlink():
                        self._judge(entry)

    def _judge(self, entry: os.DirEntry[str]) -> None:
        status = entry.stat(follow_symlinks=False)
        if status.st_nlink > 1 and stat.S_ISREG(status.st_mode):
            self._many += 1
            if self._many <= _NAMED:
                self._found.append(os.path.relpath(entry.path, self._roots[0]))

    def gaps(self) -> tuple[str, ...]:
        """What to tell of it."""
        told = []
        if self._many:
            names = ", ".join(self._found) + (", ..." if self._many > len(self._found) else "")
            told.append(
                f"{self._many} writable files have a second hard link, which may lie outside and would change with "
                f"them: {names}"
            )
        if self._cut:
            told.append(f"files with a second hard link were looked for among the first {self._most} only")
        return tuple(told)
