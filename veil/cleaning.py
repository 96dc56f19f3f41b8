"""Secrets out of everything in a record that is not a stream (those are filtered on the way in)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from veil.kit import Redaction
from veil.model.outcome import Change, Findings, Observation, Outcome
from veil.model.record import Record
from veil.model.verdict import Judgement, Verdict


def cleaned(record: Record, redaction: Redaction) -> Record:
    """The record as it may be kept: command, argv, cwd, paths, notes, judgements and errors without secrets."""
    clean = redaction.text
    return replace(
        record,
        command=clean(record.command),
        argv=tuple(clean(word) for word in record.argv),
        text=None if record.text is None else clean(record.text),
        cwd=clean(record.cwd),
        observation=_observation(record.observation, redaction),
        verdict=Verdict(tuple(_judgement(judgement, redaction) for judgement in record.verdict.judgements)),
    )


def _observation(seen: Observation, redaction: Redaction) -> Observation:
    return Observation(
        _outcome(seen.outcome, redaction),
        tuple(_outcome(outcome, redaction) for outcome in seen.earlier),
        _findings(seen.findings, redaction),
    )


def _outcome(outcome: Outcome, redaction: Redaction) -> Outcome:
    if outcome.spawn_error is None:
        return outcome
    return replace(outcome, spawn_error=redaction.text(outcome.spawn_error))


def _findings(found: Findings, redaction: Redaction) -> Findings:
    clean = redaction.text
    changes = None
    if found.changes is not None:
        changes = tuple(
            Change(clean(change.path), change.change, change.kind, None if change.old is None else clean(change.old))
            for change in found.changes
        )
    return Findings(
        changes, found.source, {clean(path): fact for path, fact in found.files.items()}, _data(found.notes, redaction)
    )


def _judgement(judgement: Judgement, redaction: Redaction) -> Judgement:
    return replace(
        judgement,
        expected=_data(judgement.expected, redaction),
        got=_data(judgement.got, redaction),
        message=redaction.text(judgement.message),
    )


def _data(data: Any, redaction: Redaction) -> Any:
    if isinstance(data, str):
        return redaction.text(data)
    if isinstance(data, (list, tuple)):
        return [_data(item, redaction) for item in data]
    if isinstance(data, Mapping):
        return {redaction.text(str(key)): _data(value, redaction) for key, value in data.items()}
    return data
