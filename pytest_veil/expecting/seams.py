"""What a session may exchange: who looks at files, who hears of checks, what a failure's message may show.

Module state and not a context variable: a thread that a test starts must see what the session chose, and a new thread
begins with an empty context.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from veil import BadInput

if TYPE_CHECKING:
    from veil import Judgement, Result

Kind = Literal["file", "dir", "symlink", "fifo", "socket", "device"]

#: Lines of a failure's message unless told otherwise, and the fewest that still say something.
FAILURE_LINES, LEAST_LINES = 60, 5
#: Bytes of a file that are read for a check on its content.
MOST_CONTENT = 50_000_000


@dataclass(frozen=True)
class FileFact:
    """What a path was when somebody looked.

    Attributes:
        kind: of the path itself, symlinks not followed; ``None``: nothing is there.
        leads_to: the kind after following symlinks; ``None`` when nothing is there (a dangling symlink).
        mode: permission bits of what it leads to (of the symlink itself when that is dangling).
        size: bytes of what it leads to.
        target: text of a symlink.
        content: bytes of a regular file, when they were asked for.
        unreadable: why there is no content although it was asked for.
    """

    kind: Kind | None
    leads_to: Kind | None = None
    mode: int = 0
    size: int = 0
    target: str | None = None
    content: bytes | None = None
    unreadable: str | None = None


class Looker(Protocol):
    """Looks at one path for a check."""

    def __call__(self, result: Result, path: str, /, *, content: bool) -> FileFact:
        """The fact. ``path`` as the caller wrote it, relative to ``result.cwd`` or absolute.

        ``content``: the check needs the bytes too. Never raises for what can be wrong with a file.
        """


class Listener(Protocol):
    """Hears of each check that was made, whether it held or not."""

    def __call__(self, result: Result, call: str, judgement: Judgement, held: bool, /) -> None:
        """``call``: the check as it is written, ``not_.`` included; the judgement is that of the check without it."""


@dataclass(frozen=True)
class _Chosen:
    looker: Looker
    failure_lines: int = FAILURE_LINES
    heard: Listener | None = None
    scrub: Callable[[str], str] | None = None


def look_on_disk(result: Result, path: str, *, content: bool) -> FileFact:
    """What is there now. Never opens anything but a regular file, so a fifo cannot hold it up."""
    place = os.path.join(result.cwd, path)
    try:
        itself = os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return FileFact(None)
    except OSError as trouble:
        return FileFact(None, unreadable=trouble.strerror or type(trouble).__name__)
    kind = _kind(itself.st_mode)
    target = os.readlink(place) if kind == "symlink" else None
    try:
        reached = os.stat(place)
    except OSError:
        return FileFact(kind, None, stat.S_IMODE(itself.st_mode), itself.st_size, target, None, "it leads nowhere")
    data, why = _content(place, reached) if content else (None, None)
    leads_to = _kind(reached.st_mode)
    return FileFact(kind, leads_to, stat.S_IMODE(reached.st_mode), reached.st_size, target, data, why)


_KINDS: dict[int, Kind] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "dir",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
}


def _kind(mode: int) -> Kind:
    return _KINDS.get(stat.S_IFMT(mode), "device")


def _content(place: str, reached: os.stat_result) -> tuple[bytes | None, str | None]:
    if not stat.S_ISREG(reached.st_mode):
        return None, f"it is a {_kind(reached.st_mode)}"
    if reached.st_size > MOST_CONTENT:
        return None, f"it has {reached.st_size} bytes, and at most {MOST_CONTENT} are read"
    try:
        # not blocking: it may have become a fifo since it was looked at
        descriptor = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            return file.read(MOST_CONTENT), None
    except OSError as trouble:
        return None, trouble.strerror or type(trouble).__name__


_chosen = _Chosen(look_on_disk)


def look(result: Result, path: str, *, content: bool) -> FileFact:
    """The fact that the session's looker gives."""
    return _chosen.looker(result, path, content=content)


def failure_lines() -> int:
    """The most lines a failure's message may have."""
    return _chosen.failure_lines


def heard(result: Result, call: str, judgement: Judgement, held: bool) -> None:
    """Tell the session's listener of a check."""
    if _chosen.heard is not None:
        _chosen.heard(result, call, judgement, held)


def scrubbed(text: str) -> str:
    """A text for a reader without what the session keeps secret."""
    return text if _chosen.scrub is None else _chosen.scrub(text)


@contextmanager
def using(
    *,
    looker: Looker | None = None,
    failure_lines: int | None = None,
    heard: Listener | None = None,
    scrub: Callable[[str], str] | None = None,
) -> Iterator[None]:
    """Exchange any of these within the block, in every thread of the process.

    Args:
        looker: looks at files for ``expect(result).file(path)``.
        failure_lines: the most lines of a message.
        heard: is told of every check.
        scrub: takes secrets out of every message; it may not add lines.

    Raises ``BadInput`` for fewer than 5 lines.
    """
    global _chosen
    if failure_lines is not None and (isinstance(failure_lines, bool) or failure_lines < LEAST_LINES):
        raise BadInput("failure_lines", failure_lines, f"a whole number from {LEAST_LINES} up")
    before = _chosen
    _chosen = _Chosen(
        looker or before.looker, failure_lines or before.failure_lines, heard or before.heard, scrub or before.scrub
    )
    try:
        yield
    finally:
        _chosen = before
