"""The JSON view of a look at a background run's output."""

from __future__ import annotations

from typing import Any, Protocol

from veil.model.outcome import Stream
from veil.present.condense import condense
from veil.present.paging import page
from veil.present.text import safe_text


class Polled(Protocol):
    """What is needed of the logs to show them."""

    @property
    def id(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def running_ms(self) -> int: ...
    @property
    def stdout_bytes(self) -> bytes: ...
    @property
    def stderr_bytes(self) -> bytes: ...
    @property
    def stdout_cursor(self) -> int: ...
    @property
    def stderr_cursor(self) -> int: ...
    @property
    def stdout_lines(self) -> int: ...
    @property
    def stderr_lines(self) -> int: ...
    @property
    def gap(self) -> bool: ...
    @property
    def exit(self) -> int | None: ...
    @property
    def signal(self) -> str | None: ...
    @property
    def owner_lost(self) -> str | None: ...


def poll_reply(polled: Polled, *, full: bool = False) -> dict[str, Any]:
    """``full``: the new output as it is, at most 64 KB of each stream, the cursor behind what is shown; else condensed.

    The cursors count bytes either way, so nothing is lost.
    """
    data: dict[str, Any] = {"id": polled.id, "status": polled.status, "running_ms": polled.running_ms}
    if polled.exit is not None:
        data["exit"] = polled.exit
    if polled.signal is not None:
        data["signal"] = polled.signal
    if polled.owner_lost is not None:
        data["owner_lost"] = polled.owner_lost
    if polled.gap:
        data["gap"] = True
    for name in ("stdout", "stderr"):
        new: bytes = getattr(polled, f"{name}_bytes")
        cursor: int = getattr(polled, f"{name}_cursor")
        if full:
            piece = page(new)
            cursor -= len(new) - len(piece.data)
            new = piece.data
        data[f"{name}_cursor"] = cursor
        if getattr(polled, f"{name}_lines"):
            data[f"{name}_lines"] = getattr(polled, f"{name}_lines")
        stream = Stream(new, b"", len(new), new.count(b"\n") + (not new.endswith(b"\n") and bool(new)))
        if stream.binary:
            data[f"{name}_binary"] = True
        failed = polled.exit not in (None, 0)
        text = safe_text(stream) if full and not stream.binary else _condensed(stream, failed, name, polled.id)
        if text:
            data[name] = text
    return data


def _condensed(stream: Stream, failed: bool, name: str, id: str) -> str:
    return condense(stream, failed=failed, name=name, id=id).text if stream.total_bytes else ""
