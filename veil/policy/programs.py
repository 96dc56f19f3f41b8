"""What is known of the program that a word names. Filled in by whoever may look at files; here it is a fact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from veil.policy.names import names_of

#: Programs that are another one by each name they are called by: the same file says nothing about the tool.
MULTICALL = frozenset({"busybox", "toybox", "coreutils", "uutils", "sbase-box", "ubase-box"})


@dataclass(frozen=True)
class Program:
    """One executable.

    Attributes:
        word: as it stands in the argv.
        path: absolute path under which it was found; ``None`` when it was not found.
        real: ``path`` with every link resolved.
        digest: ``sha256:`` and the hash of its content in hex.
        inode: device and inode.
        local: the file lies in the workspace, where the commands themselves can change it.
        interpreter: the words of its first line (``#!``), for a script.
        why_not: why it may not be used, in a few words; ``None`` when it may.
    """

    word: str
    path: str | None = None
    real: str | None = None
    digest: str | None = None
    inode: tuple[int, int] | None = None
    local: bool = False
    interpreter: tuple[str, ...] = ()
    why_not: str | None = None

    @cached_property
    def names(self) -> frozenset[str]:
        """Every name it goes by, made comparable: as written, as found, as it is when links are followed."""
        return frozenset().union(*(names_of(path) for path in (self.word, self.path, self.real) if path))

    def same_file(self, other: Program) -> bool:
        """Whether this, found in the workspace, is the other one under a new name: by a link, or as a copy.

        What the host has in the safe PATH is what it is called there: one file often has many names, and is another
        tool by each of them (applets, shims).
        """
        if not self.local:
            return False
        if other.real is not None and names_of(other.real) & MULTICALL:
            return False
        if self.inode is not None and self.inode == other.inode:
            return True
        return self.digest is not None and self.digest == other.digest


#: Finds the program that a word names. Never raises for a word that names none.
Lookup = Callable[[str], Program]
