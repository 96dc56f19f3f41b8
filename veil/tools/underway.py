"""What was kept of a run, while it goes on in this very process: the store has its output only once it has ended."""

from __future__ import annotations

from dataclasses import replace

import veil
from veil.background import Logs
from veil.model.outcome import Stream


def with_output_so_far(found: veil.Detail) -> veil.Detail:
    """The same with what a background run of this process has written until now; any other as it is."""
    record = found.record
    if record.status != "running":
        return found
    try:
        handle = veil.handle_of(found.id)
    except veil.NotFound:  # another process owns it, and what that one tells is in the record already
        return found
    first = handle.logs()
    # the first bytes come by themselves when others behind them were dropped, and the newest then at the next look
    later = handle.logs(stdout_cursor=first.stdout_cursor, stderr_cursor=first.stderr_cursor)
    outcome = replace(
        record.observation.outcome, stdout=_stream("stdout", first, later), stderr=_stream("stderr", first, later)
    )
    return replace(found, record=replace(record, observation=replace(record.observation, outcome=outcome)))


def _stream(name: str, first: Logs, later: Logs) -> Stream:
    head: bytes = getattr(first, f"{name}_bytes")
    tail: bytes = getattr(later, f"{name}_bytes")
    total: int = getattr(later, f"{name}_cursor")
    if len(head) + len(tail) == total:  # nothing was dropped
        head, tail = head + tail, b""
    return Stream(head, tail, total, getattr(later, f"{name}_lines"))
