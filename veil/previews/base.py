"""The words of kept previews: what would change, path by path, and how that is written down."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from veil.host.differing import State
from veil.host.metadata import Attributes

_TOKEN = re.compile(r"[0-9a-f]{24}")
#: Version of the file in which a preview is written down.
VERSION = 1


@dataclass(frozen=True)
class Row:
    """One path that would change.

    Attributes:
        path: below the folder; empty for the folder itself.
        before: as it stood in the tree. after: as it would stand. ``None``: nothing is there.
        same: its content stays. attributes: extended attributes that it would have.
        content: number of the kept content, for a regular file; names of one file have the same.
        digest: of the bytes that stood there, in hexadecimal; ``None``: they were not read.
        moved: somebody else was at it while the preview ran.
    """

    path: str
    before: State | None
    after: State | None
    same: bool = False
    attributes: Attributes = ()
    content: int | None = None
    digest: str | None = None
    moved: bool = False

    def to_data(self) -> list[Any]:
        """JSON-ready."""
        return [
            self.path,
            None if self.before is None else list(self.before),
            None if self.after is None else list(self.after),
            self.same,
            [list(pair) for pair in self.attributes],
            self.content,
            self.digest,
            self.moved,
        ]


def row_of(data: list[Any]) -> Row:
    """What ``to_data`` made. Raises ``TypeError`` or ``ValueError`` on foreign data."""
    path, before, after, same, attributes, content, digest, moved = data
    return Row(
        path,
        None if before is None else State(*before),
        None if after is None else State(*after),
        same,
        tuple((name, value) for name, value in attributes),
        content,
        digest,
        moved,
    )


@dataclass(frozen=True)
class Kept:
    """One kept preview. Attributes: folder: the real one, links resolved. made_ns: since the epoch. rows: by path."""

    folder: str
    made_ns: int
    rows: tuple[Row, ...]


def is_token(text: object) -> bool:
    """Whether ``text`` has the form of a kept preview's name."""
    return isinstance(text, str) and _TOKEN.fullmatch(text) is not None
