"""Output kept in bounded memory: the first fifth and the newest rest, with true totals."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from veil.model.outcome import Piece, Stream

#: How far the kept tail may overshoot before it is cut back, so that trimming is rare (bytes).
_SLACK = 1 << 20


class Filter(Protocol):
    """Rewrites a stream on its way in (redaction). May hold bytes back until ``finish``."""

    def feed(self, data: bytes) -> bytes: ...

    def finish(self) -> bytes: ...


class Ring:
    """Keeps at most ``limit`` bytes of a stream of any length.

    Thread-safe: one thread adds, others read by cursor.
    """

    def __init__(self, limit: int, filter: Filter | None = None) -> None:
        self._head_limit = limit // 5
        self._tail_limit = limit - self._head_limit
        self._head = bytearray()
        self._tail = bytearray()
        #: The two parts of an ended stream as they were handed out: shared, so that there is one copy of them.
        self._handed: tuple[bytes, bytes] | None = None
        self._newlines = 0
        self._total = 0
        self._last = b""
        self._filter = filter
        self._lock = threading.Lock()
        self.ended = False

    def add(self, data: bytes) -> bytes:
        """Take bytes in; returns what was really added (less or other than ``data`` when a filter rewrites)."""
        if self._filter is not None:
            data = self._filter.feed(data)
        if data:
            with self._lock:
                self._add(data)
        return data

    def _add(self, data: bytes) -> None:
        self._total += len(data)
        self._newlines += data.count(b"\n")
        self._last = data[-1:]
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            if len(data) <= room:
                return
            data = data[room:]
        if len(data) >= self._tail_limit:
            self._tail[:] = data[len(data) - self._tail_limit :]
            return
        self._tail += data
        if len(self._tail) > self._tail_limit + _SLACK:
            del self._tail[: len(self._tail) - self._tail_limit]

    def finish(self) -> bytes:
        """No more bytes come. Returns what a filter had held back. Idempotent."""
        held = b""
        if not self.ended and self._filter is not None:
            held = self._filter.finish()
            if held:
                with self._lock:
                    self._add(held)
        self.ended = True
        return held

    @property
    def total_bytes(self) -> int:
        return self._total

    @property
    def total_lines(self) -> int:
        """Lines so far; a last one without a newline counts."""
        return self._newlines + (1 if self._total and self._last != b"\n" else 0)

    def stream(self) -> Stream:
        """The stream as it stands."""
        with self._lock:
            head, tail = self._handed or self._cut()
            total, lines = self._total, self.total_lines
        if total == len(head) + len(tail):
            return Stream(head + tail if tail else head, b"", total, lines)
        return Stream(head, tail, total, lines)

    def _cut(self) -> tuple[bytes, bytes]:
        over = len(self._tail) - self._tail_limit
        if over > 0:
            del self._tail[:over]
        if not self.ended:
            return bytes(self._head), bytes(self._tail)
        self._handed = bytes(self._head), bytes(self._tail)
        self._head, self._tail = bytearray(), bytearray()
        return self._handed

    def read(self, cursor: int) -> Piece:
        """Bytes from ``cursor`` on.

        While the stream lives, an unfinished UTF-8 character at the end waits for its rest. A piece ends at the border
        between head and tail when bytes were dropped there.
        """
        with self._lock:
            head, tail = self._handed or (self._head, self._tail)
            total = self._total
            start = total - len(tail)
            if cursor >= total:
                return Piece(b"", total, False)
            if cursor < len(head):
                data = bytes(head[cursor:])
                if start == len(head):
                    data += bytes(tail)
                gap = False
            else:
                gap = cursor < start
                cursor = max(cursor, start)
                data = bytes(tail[cursor - start :])
        if not self.ended and cursor + len(data) == total:
            data = whole_characters(data)
        return Piece(data, cursor + len(data), gap)


def whole_characters(data: bytes) -> bytes:
    """``data`` without an unfinished UTF-8 character at its end (bytes that are no UTF-8 at all stay)."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        need = 2 if byte >> 5 == 0b110 else 3 if byte >> 4 == 0b1110 else 4 if byte >> 3 == 0b11110 else 1
        return data[:-back] if need > back else data
    return data


class Sink:
    """Where one pipe goes: its ring, and a listener that sees what is kept as it comes."""

    __slots__ = ("_listener", "_name", "ring")

    def __init__(self, name: str, ring: Ring, listener: Callable[[str, bytes], None] | None) -> None:
        self._name, self.ring, self._listener = name, ring, listener

    def write(self, data: bytes) -> None:
        kept = self.ring.add(data)
        if kept and self._listener is not None:
            self._listener(self._name, kept)

    def close(self) -> None:
        held = self.ring.finish()
        if held and self._listener is not None:
            self._listener(self._name, held)
