"""Records that live in this process only."""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref
from collections.abc import Iterator
from typing import NamedTuple

from veil.model.errors import NotFound
from veil.model.record import Record
from veil.model.variation import varied
from veil.store import ids
from veil.store.limits import MAX_BYTES, MAX_RECORDS, TTL_SECONDS, Bounds, Seat, superfluous

#: One row of numbers for the whole process, so that two memory stores in it never give out the same name.
_numbers = itertools.count(1)
#: What a record costs beside its streams; only roughly, memory is not measured to the byte.
_BASE_SIZE = 1000


_alive: weakref.WeakSet[MemoryStore] = weakref.WeakSet()


def _after_fork() -> None:
    # another thread may have held a lock when the process forked, and that thread does not exist in the child
    for store in _alive:
        store._lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)


class _Kept(NamedTuple):
    record: Record
    born: float
    seat: Seat


class MemoryStore:
    """Keeps records in memory, within the same limits as the store on disk. Safe for threads.

    Args:
        max_records, max_bytes, ttl_seconds: see ``veil.store.limits.Bounds``.
        why: why there is no store on disk, when nobody asked for that; it becomes ``why_memory`` of every record.
    """

    def __init__(
        self,
        *,
        max_records: int = MAX_RECORDS,
        max_bytes: int = MAX_BYTES,
        ttl_seconds: float = TTL_SECONDS,
        why: str | None = None,
    ) -> None:
        self._bounds = Bounds(max_records, max_bytes, ttl_seconds)
        self._why = why
        self._kept: dict[str, _Kept] = {}
        self._bytes = 0
        self._seats = itertools.count(1)
        self._lock = threading.RLock()
        _alive.add(self)

    def add(self, record: Record) -> Record:
        """Keep it under the next ``memN``; a ``why_memory`` that it brings along is kept."""
        named = varied(
            record,
            id=f"mem{next(_numbers)}",
            stored="memory-only",
            why_memory=record.why_memory or self._why,
        )
        return self._keep(named)

    def reserve(self, record: Record) -> Record:
        return self.add(record)

    def update(self, record: Record) -> Record:
        """Replace the record of this id, or keep it when its predecessor has gone. The id stays as it is."""
        ids.parse(record.id)
        return self._keep(varied(record, stored="memory-only", why_memory=record.why_memory or self._why))

    def get(self, id: str | None = None) -> Record:
        """See ``veil.store.base.Store.get``. A ``memN`` of another process is not found, and the message says why."""
        if id is not None:
            ids.parse(id)
        found = self.find(id)
        if found is None:
            raise NotFound(unknown(id), self.ids())
        return found

    def ids(self, limit: int = 20) -> list[str]:
        return [name for _, name in itertools.islice(self.births(), max(0, limit))]

    def find(self, id: str | None) -> Record | None:
        """The record, the newest for ``None``, or nothing."""
        with self._lock:
            self._settle()
            name = next((name for _, name in self.births()), "") if id is None else id
            kept = self._kept.get(name)
            if kept is None or kept.seat.touched < time.time() - self._bounds.ttl:
                return None
            return kept.record

    def births(self) -> Iterator[tuple[float, str]]:
        """Time of birth and id of every record, newest first."""
        with self._lock:
            self._settle()
            horizon = time.time() - self._bounds.ttl
            newest_first = [(kept.born, name) for name, kept in self._kept.items() if kept.seat.touched >= horizon]
        return reversed(newest_first)

    def gc(self) -> dict[str, int]:
        """Bring the store down to its limits. Counts: ``records_removed``, ``records_left``, ``bytes_freed``."""
        with self._lock:
            count, size = len(self._kept), self._bytes
            self._trim(max((kept.seat.number for kept in self._kept.values()), default=0))
            return {
                "records_removed": count - len(self._kept),
                "records_left": len(self._kept),
                "bytes_freed": size - self._bytes,
            }

    def close(self) -> None:
        """Nothing to let go of; the records stay readable as long as the process lives."""

    def _keep(self, record: Record) -> Record:
        seen = record.observation
        streams = [s for o in (seen.outcome, *seen.earlier) for s in (o.stdout, o.stderr)]
        size = _BASE_SIZE + len(record.command) + sum(len(s.head) + len(s.tail) for s in streams)
        now = time.time()
        with self._lock:
            number = next(self._seats)
            before = self._kept.get(record.id)
            born = now if before is None else before.born
            self._kept[record.id] = _Kept(record, born, Seat(number, number, now, record.status == "running", size))
            self._bytes += size - (0 if before is None else before.seat.size)
            bounds = self._bounds
            # not each time: looking at every record would cost a full store more than the run; see _settle
            if self._bytes > bounds.bytes or (number % bounds.stride == 0 and self._due(now)):
                self._trim(number)
        return record

    def _due(self, now: float) -> bool:
        """Whether there is something to clear away: too many, or the oldest too old."""
        oldest = next(iter(self._kept.values())).seat.touched
        return len(self._kept) > self._bounds.records or oldest < now - self._bounds.ttl

    def _settle(self) -> None:
        """Whoever reads sees the limit kept exactly."""
        if len(self._kept) > self._bounds.records:
            self._trim(max(kept.seat.number for kept in self._kept.values()))

    def _trim(self, newest: int) -> None:
        doomed = set(superfluous([kept.seat for kept in self._kept.values()], self._bounds, time.time(), newest))
        if doomed:
            self._kept = {name: kept for name, kept in self._kept.items() if kept.seat.number not in doomed}
            self._bytes = sum(kept.seat.size for kept in self._kept.values())


def unknown(id: str | None) -> str:
    """How ``NotFound`` calls what is not there."""
    if id is None:
        return "a newest record"
    if id.startswith("mem"):
        return f"{id} (a record in memory, readable only in the process that ran the command and only while it is kept)"
    return id
