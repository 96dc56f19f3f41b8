"""Digests of whole streams, for those of which only a part is kept."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from veil.host.orders import Listener
from veil.model.outcome import Outcome

#: Bytes that are hidden and hashed at once, and the most that are waited for to come to the end of a line. Where a
#: stream is cut depends on its content alone, never on the pieces in which it was read.
_BLOCK, _LONGEST = 1 << 18, 1 << 20


class Wholes:
    """A listener that hashes both streams of one run, as they would stand in the recording, and passes them on.

    Args:
        hide: takes out what must not stand in a recording, or differs from run to run.
        kept: bytes of a stream up to which nothing is dropped: then nobody needs its digest.
    """

    def __init__(self, hide: Callable[[bytes], bytes], kept: int, then: Listener | None) -> None:
        self._streams = {name: _Whole(hide, kept) for name in ("stdout", "stderr")}
        self._then = then

    def __call__(self, name: str, data: bytes) -> None:
        self._streams[name].add(data)
        if self._then is not None:
            self._then(name, data)

    def of(self, outcome: Outcome) -> dict[str, str]:
        """The digests for one outcome: of streams that are truncated, and were heard from their first byte to their
        last and nothing else (which is not so of a command that was tried again)."""
        streams = {"stdout": outcome.stdout, "stderr": outcome.stderr}
        return {
            name: self._streams[name].digest()
            for name, stream in streams.items()
            if stream.truncated and stream.total_bytes == self._streams[name].total
        }


class _Whole:
    def __init__(self, hide: Callable[[bytes], bytes], kept: int) -> None:
        self._hide, self._kept = hide, kept
        self._state = blake2b(digest_size=16)
        self._waiting = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self._waiting += data
        if self.total > self._kept:
            while len(self._waiting) >= _LONGEST + _BLOCK:
                end = self._waiting.find(b"\n", _BLOCK, _LONGEST) + 1
                self._take(end or _LONGEST)

    def _take(self, end: int) -> None:
        self._state.update(self._hide(bytes(self._waiting[:end])))
        del self._waiting[:end]

    def digest(self) -> str:
        while self._waiting:
            end = self._waiting.find(b"\n", _BLOCK, _LONGEST) + 1
            self._take(end or _LONGEST)
        return self._state.hexdigest()
