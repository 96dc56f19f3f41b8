"""A record as columns of one row and back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from veil.model.record import Record, from_data, to_data

#: Streams up to this many bytes in all stand in the record's own row: one page to write instead of two.
_PACKED = 2048

_encode = json.JSONEncoder(separators=(",", ":")).encode


def row_of(record: Record) -> tuple[tuple[bool, int, str, bytes | None], list[tuple[str, bytes]]]:
    """The columns ``running, size, data, packed`` and the streams that need rows of their own."""
    data, streams = to_data(record)
    # the id is the row's number, which is not known yet
    for name in ("id", "stored", "why_memory"):
        data.pop(name, None)
    size = sum(map(len, streams.values()))
    packed: bytes | None = None
    large: list[tuple[str, bytes]] = []
    if size > _PACKED:
        large = list(streams.items())
    elif streams:
        data["packed"] = [(name, len(blob)) for name, blob in streams.items()]
        packed = b"".join(streams.values())
    text = _encode(data)
    return (record.status == "running", len(text) + size, text, packed), large


def record_of(n: int, text: str, packed: bytes | None, large: Iterable[tuple[str, bytes]]) -> Record:
    """The record from its columns. Raises ``KeyError``, ``TypeError`` or ``ValueError`` on foreign data."""
    data: dict[str, Any] = json.loads(text)
    streams: dict[str, bytes] = {}
    start = 0
    for name, length in data.pop("packed", ()):
        streams[name] = (packed or b"")[start : start + length]
        start += length
    streams.update(large)
    return from_data({**data, "id": f"cmd{n}", "stored": "disk"}, streams)
