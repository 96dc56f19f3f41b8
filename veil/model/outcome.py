"""What happened: streams, the end of the process, what the layers learned."""

from __future__ import annotations

import signal as signals
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

Ended = Literal["exited", "signaled", "timed_out", "spawn_failed"]
Kind = Literal["file", "dir", "symlink", "fifo", "socket", "device"]
Happened = Literal["created", "modified", "deleted", "renamed", "mode"]


@dataclass(frozen=True)
class Stream:
    """One captured stream: the first and the newest bytes, with true totals.

    Attributes:
        head: the first bytes (all of the stream unless truncated).
        tail: the newest bytes after a gap; empty unless truncated.
        total_bytes: bytes the command really wrote.
        total_lines: lines it really wrote (a last line without newline counts).
    """

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0
    total_lines: int = 0

    @property
    def dropped(self) -> int:
        """Exact number of bytes dropped between head and tail."""
        return self.total_bytes - len(self.head) - len(self.tail)

    @property
    def truncated(self) -> bool:
        """True only when bytes were dropped."""
        return self.dropped > 0

    @property
    def data(self) -> bytes:
        """All bytes that were kept. When truncated, the gap is after ``len(head)`` bytes."""
        return self.head + self.tail if self.tail else self.head

    @cached_property
    def binary(self) -> bool:
        """True when the kept bytes are not text: a NUL byte, or more than a tenth is not UTF-8."""
        if b"\0" in self.head or b"\0" in self.tail:
            return True
        try:
            for part in self.edges:
                part.decode("utf-8")
        except UnicodeDecodeError:
            return self.lossy_characters * 10 > len(self.head) + len(self.tail)
        return False

    @cached_property
    def lossy_characters(self) -> int:
        """How many U+FFFD the text shows that the bytes did not spell (0 for valid UTF-8)."""
        return self.text.count("\ufffd") - sum(part.count(b"\xef\xbf\xbd") for part in self.edges)

    @property
    def text(self) -> str:
        """All that was kept, as UTF-8 text; undecodable bytes become U+FFFD. Never raises.

        Parts of a character at the edges of a gap are left out: the cut must not make a false character.
        """
        head, tail = self.edges
        return head.decode("utf-8", "replace") + tail.decode("utf-8", "replace")

    @property
    def edges(self) -> tuple[bytes, bytes]:
        """Both halves without what the cut left of a character."""
        if not self.truncated:
            return self.head, self.tail
        start = 0
        while start < min(3, len(self.tail)) and self.tail[start] & 0xC0 == 0x80:
            start += 1
        return whole_characters(self.head), self.tail[start:]


def whole_characters(data: bytes) -> bytes:
    """``data`` without an unfinished UTF-8 character at its end (bytes that are no UTF-8 at all stay)."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        need = 2 if byte >> 5 == 0b110 else 3 if byte >> 4 == 0b1110 else 4 if byte >> 3 == 0b11110 else 1
        return data[:-back] if need > back else data
    return data


class Piece(NamedTuple):
    """What a cursor read gives.

    Attributes:
        data: bytes from the cursor on (what is still kept of them).
        cursor: where to read on (bytes since the start of the stream).
        gap: bytes between the cursor asked for and ``data`` were dropped.
    """

    data: bytes
    cursor: int
    gap: bool


def read_from(stream: Stream, cursor: int) -> Piece:
    """Bytes of an ended stream from ``cursor`` on; a piece ends at the gap of a truncated one."""
    head, tail, total = stream.head, stream.tail, stream.total_bytes
    start = total - len(tail)
    if cursor >= total:
        return Piece(b"", total, False)
    if cursor < len(head):
        data = head[cursor:]
        return Piece(data, cursor + len(data), False)
    gap = cursor < start
    return Piece(tail[max(cursor, start) - start :], total, gap)


@dataclass(frozen=True)
class Usage:
    """Resource use of the command's own process and the children it waited for.

    Attributes:
        max_rss_bytes: peak memory of the largest process; 0 when it is not known (a small program's peak hides below
            that of the process which started it).
    """

    user_seconds: float = 0.0
    system_seconds: float = 0.0
    max_rss_bytes: int = 0


@dataclass(frozen=True)
class Outcome:
    """How one attempt ended.

    Attributes:
        ended: ``exited``, ``signaled``, ``timed_out`` or ``spawn_failed``.
        exit: always an int: the code; 128+n after signal n; 124 at a timeout; 126/127 when it could not start.
        signal: name such as ``SIGSEGV`` when it is known.
        seconds: wall time.
        left_running: processes of the tree that were still there when the command had ended.
        survivors: ``none`` (looked and ended), ``kept`` (left on purpose), ``unknown`` (this platform cannot tell).
        spawn_error: why it could not start.
        cancelled: the caller cancelled it.
    """

    ended: Ended
    exit: int
    seconds: float = 0.0
    stdout: Stream = field(default_factory=Stream)
    stderr: Stream = field(default_factory=Stream)
    signal: str | None = None
    left_running: int = 0
    survivors: Literal["none", "kept", "unknown"] = "none"
    spawn_error: str | None = None
    usage: Usage | None = None
    cancelled: bool = False

    @property
    def ok(self) -> bool:
        """Exited with 0."""
        return self.ended == "exited" and self.exit == 0

    @property
    def timed_out(self) -> bool:
        return self.ended == "timed_out"


def signal_name(number: int) -> str:
    """``SIGSEGV`` for 11; ``SIG<n>`` for a number this platform has no name for."""
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"SIG{number}"


@dataclass(frozen=True)
class Change:
    """One path that changed. ``path`` is relative to the run's cwd, POSIX separators, surrogateescape.

    ``old`` is the former path of a rename.
    """

    path: str
    change: Happened
    kind: Kind = "file"
    old: str | None = None


@dataclass(frozen=True)
class Fact:
    """What a path was when the run had ended. ``kind`` is ``None`` when nothing is there (lstat: a dangling symlink is
    there). ``mode`` is the permission bits, ``size`` bytes."""

    kind: Kind | None
    size: int = 0
    mode: int = 0


@dataclass(frozen=True)
class Findings:
    """What one layer learned, or all of them merged.

    Attributes:
        changes: files changed; ``None`` when nobody looked or it could not be known.
        source: how the changes are known (``git``, ``scan``, later ``trace``, ``overlay``); ``None`` when not known.
        files: facts per path as the caller wrote it (wish ``Look``).
        notes: JSON-ready extra fields for the result (``shared``, ``head``, ``secrets_env_scrubbed``,
            ``effects_unavailable`` ...); a key present says something.
    """

    changes: tuple[Change, ...] | None = None
    source: str | None = None
    files: Mapping[str, Fact] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def why_unknown(self) -> str | None:
        """Why it is not known what changed, when somebody was to look."""
        if self.notes.get("effects") == "read-only":
            return "nobody looked, since the pre-check calls the command read-only (effects=True looks)"
        return self.notes.get("effects_unavailable")

    def merged(self, other: Findings) -> Findings:
        """Both together; ``other`` wins where both speak."""
        return Findings(
            self.changes if other.changes is None else other.changes,
            self.source if other.source is None else other.source,
            {**self.files, **other.files},
            {**self.notes, **other.notes},
        )


@dataclass(frozen=True)
class Observation:
    """Everything seen of one run: the last attempt's outcome, the earlier attempts, the merged findings."""

    outcome: Outcome
    earlier: tuple[Outcome, ...] = ()
    findings: Findings = field(default_factory=Findings)

    @property
    def attempts(self) -> int:
        return len(self.earlier) + 1
