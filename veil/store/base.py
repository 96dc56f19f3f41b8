"""What a record store is."""

from __future__ import annotations

from typing import Protocol

from veil.model.record import Record


class Store(Protocol):
    """Keeps records. Ids are unique across every process that uses the same store."""

    def add(self, record: Record) -> Record:
        """Keep it and return it with its id (and ``stored``/``why_memory``) set. Never raises because the disk refuses:
        then it is kept in memory under a ``memN`` id and says why."""

    def reserve(self, record: Record) -> Record:
        """Keep a run that has just begun (``status="running"``) and return it with its id."""

    def update(self, record: Record) -> Record:
        """Replace the record of the same id (the end of a reserved run)."""

    def get(self, id: str | None = None) -> Record:
        """The record of this exact id; ``None`` means the newest. Raises ``NotFound`` naming ids that exist,
        ``BadInput`` for text that is no id."""

    def ids(self, limit: int = 20) -> list[str]:
        """Newest first."""

    def close(self) -> None:
        """Let go of files. Idempotent."""
