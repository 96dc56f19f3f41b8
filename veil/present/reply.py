"""A record as the JSON view: a field is present only when it says something (the quiet contract)."""

from __future__ import annotations

import base64
from typing import Any

from veil.model.outcome import Outcome, Stream
from veil.model.record import Record
from veil.present import confined, habits, trace
from veil.present.changes import fitting
from veil.present.condense import View, condense
from veil.present.text import safe_text

#: Notes of the layers that the view does not show of itself: they stay in the record (``detail(selector="meta")``).
_QUIET_NOTES = frozenset({"ignored_unseen", "ignored_changed", "preview_kept", "session_changed", "trace"})


def view_of(record: Record, name: str) -> View:
    """The condensed view of one stream."""
    outcome = record.observation.outcome
    return condense(getattr(outcome, name), failed=not outcome.ok, name=name, id=record.id)


def reply(record: Record, *, full: bool = False) -> dict[str, Any]:
    """The JSON view of one run. ``full``: uncondensed streams (the record may say so itself)."""
    seen = record.observation
    outcome = seen.outcome
    data: dict[str, Any] = {"id": record.id}
    if record.status != "running":
        data.update(exit=outcome.exit, ok=outcome.ok, ms=round(outcome.seconds * 1000))
    if record.background:
        data["background"] = True
        data["status"] = record.status
    if seen.attempts > 1:
        data["attempts"] = seen.attempts
    data.update(_ending(outcome))
    for name in ("stdout", "stderr"):
        data.update(_stream_facts(name, getattr(outcome, name)))
    data.update(_changes(record))
    if record.stored != "disk":
        data["stored"] = record.stored
        if record.why_memory is not None:
            data["why_memory"] = record.why_memory
    data.update(_verdict(record))
    advice = advice_for(record)
    if advice is not None:
        data["advice"] = advice
    data.update(_streams(record, full or record.full))
    return data


def _ending(outcome: Outcome) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if outcome.ended != "exited":
        data["ended"] = outcome.ended
    if outcome.signal is not None:
        data["signal"] = outcome.signal
    if outcome.timed_out:
        data["timed_out"] = True
    if outcome.cancelled:
        data["cancelled"] = True
    if outcome.spawn_error is not None:
        data["spawn_error"] = outcome.spawn_error
    if outcome.left_running:
        data["left_running"] = outcome.left_running
    if outcome.survivors != "none":
        data["survivors"] = outcome.survivors
    return data


def _stream_facts(name: str, stream: Stream) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if stream.total_lines:
        data[f"{name}_lines"] = stream.total_lines
    if stream.truncated:
        data[f"{name}_truncated"] = True
        data[f"{name}_total_bytes"] = stream.total_bytes
        data[f"{name}_dropped_bytes"] = stream.dropped
    if stream.binary:
        data[f"{name}_binary"] = True
    elif stream.lossy_characters:
        data[f"{name}_lossy"] = True
    return data


def _changes(record: Record) -> dict[str, Any]:
    findings = record.observation.findings
    data: dict[str, Any] = {}
    if findings.changes:
        rows = data["files_changed"] = fitting(findings.changes)
        if len(rows) < len(findings.changes):
            data["files_changed_total"] = len(findings.changes)
        data["effects_source"] = findings.source
    elif findings.changes is None and "effects_unavailable" not in findings.notes and not record.background:
        data["effects"] = "off"  # else no word would mean that nothing changed
    data.update((key, value) for key, value in findings.notes.items() if key not in _QUIET_NOTES)
    data.update(trace.fields(findings.notes))
    if "trace" in data.get("skipped", {}):  # said by ``trace_unavailable``
        data["skipped"] = {name: reason for name, reason in data["skipped"].items() if name != "trace"}
        if not data["skipped"]:
            del data["skipped"]
    return data


def _verdict(record: Record) -> dict[str, Any]:
    verdict = record.verdict
    if not verdict.judgements:
        return {}
    data: dict[str, Any] = {"assert_ok": verdict.ok}
    if verdict.failed:
        data["assertions_failed"] = [judgement.to_dict() for judgement in verdict.failed]
    if verdict.inconclusive:
        data["assertions_inconclusive"] = [judgement.to_dict() for judgement in verdict.inconclusive]
    return data


def _streams(record: Record, full: bool) -> dict[str, Any]:
    outcome = record.observation.outcome
    data: dict[str, Any] = {}
    hints = []
    for name in ("stdout", "stderr"):
        stream: Stream = getattr(outcome, name)
        if stream.binary:
            if full:
                data[f"{name}_base64"] = base64.b64encode(stream.data).decode("ascii")
            else:
                data[name] = view_of(record, name).text
            continue
        if full:
            text, hint = safe_text(stream), None
        else:
            view = view_of(record, name)
            text, hint = view.text, view.hint
        if text:
            data[name] = text
        if hint is not None:
            hints.append(hint)
    if hints:
        data["hint"] = hints[0] if len(hints) == 1 else "; ".join(hints)
    return data


def advice_for(record: Record) -> str | None:
    """At most one thing worth doing next."""
    outcome = record.observation.outcome
    if (warned := confined.urgent(record)) is not None:
        return warned
    if (waiting := habits.interactive(record)) is not None:
        return waiting
    if outcome.timed_out:
        return "it was ended at its time limit; give it a longer timeout, or start it in the background"
    if (granting := confined.advice(record)) is not None:
        return granting
    if outcome.left_running and outcome.survivors == "none":
        many = outcome.left_running
        what = "1 process" if many == 1 else f"{many} processes"
        were = "was" if many == 1 else "were"
        return f"{what} left behind by the command {were} ended with it; start servers in the background instead"
    if outcome.survivors == "unknown":
        return "processes of this run may still be alive; look before you run it again"
    if (hidden := habits.masked(record)) is not None:
        return hidden
    if outcome.exit == 141 and outcome.ended == "exited":
        return "exit 141 is SIGPIPE: a reader such as head closed its pipe early, which is not a failure by itself"
    if outcome.ok and "preview_kept" in record.observation.findings.notes:
        return f"nothing was changed, it was a preview; veil apply {record.id} makes it real"
    return None
