"""From a finished run to a step and back. What is volatile goes into ``Facts``, the optional sidecar."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from veil.cassettes.archive import Section
from veil.cassettes.roots import Roots
from veil.cassettes.steps import Ending, KeptStream, Step, TreeChange
from veil.cassettes.strict import Reader, write
from veil.model.command import Request
from veil.model.errors import BadInput
from veil.model.outcome import Change, Findings, Observation, Outcome, Stream
from veil.model.record import Record
from veil.model.verdict import Judgement

FACTS_SUFFIX = ".veil.facts.json"
#: Version of the sidecar's shape.
FACTS_FORMAT = 1


def step_of(
    record: Record,
    request: Request,
    roots: Roots,
    *,
    changes: Sequence[TreeChange] | None = None,
    quiet: Sequence[TreeChange] = (),
    read: Mapping[str, str] | None = None,
    wholes: Mapping[str, str] | None = None,
    env: Sequence[tuple[str, str | None]] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Step:
    """The step that stands for a run.

    Args:
        record: the finished run. request: what was asked.
        roots: folders to hide behind tokens in texts, streams and file contents (not in binary content).
        changes: what the run told to have changed, with contents; None when nobody looked. Its ids must be those of
            the hidden content. quiet: what changed besides.
        read: further touched paths, with their ids.
        wholes: digest of a whole stream (``stdout``, ``stderr``) where only part of it was kept.
        env: the environment additions to record; None for those of the request.
        notes: findings that are the same every time (the record's own notes are volatile and stay out but for those of
            a shell session, which are the state that the next step begins in, and that it was confined).
    """
    seen = record.observation
    command = request.command
    wholes = wholes or {}
    chosen = command.env if env is None else env
    return Step(
        argv=tuple(roots.hide_text(word) for word in record.argv),
        cwd=roots.hide_text(record.cwd),
        text=None if record.text is None else roots.hide_text(record.text),
        env=tuple(sorted((name, None if v is None else roots.hide_text(v)) for name, v in chosen)),
        stdin=command.stdin if command.stdin is None else roots.hide(command.stdin),
        timeout=request.limits.timeout,
        stream_bytes=request.limits.stream_bytes,
        wishes=tuple((name, each_text(options, roots.hide_text)) for name, options in map(wish_data, request.wishes)),
        expect=tuple((name, each_text(_json_ready(value), roots.hide_text)) for name, value in request.expect),
        judged=tuple(judged_of(judgement, roots) for judgement in record.verdict.judgements),
        merged=request.merge_stderr,
        background=record.background,
        status=record.status,
        ending=_ending(seen.outcome, roots, wholes),
        earlier=tuple(_ending(outcome, roots, {}) for outcome in seen.earlier),
        changes=None if changes is None else tuple(sorted(changes, key=lambda change: change.path)),
        quiet=tuple(sorted(quiet, key=lambda change: change.path)),
        source=seen.findings.source,
        read=dict(read or {}),
        files=dict(seen.findings.files),
        notes={**_of_session(seen.findings.notes, roots), **_of_safety(seen.findings.notes), **(notes or {})},
    )


#: What a session's next command depends on.
_SESSION_NOTES = ("session", "cwd", "session_state", "session_changed", "session_cwd_gone")


def _of_session(notes: Mapping[str, Any], roots: Roots) -> dict[str, Any]:
    if "session" not in notes:
        return {}
    return {name: each_text(notes[name], roots.hide_text) for name in _SESSION_NOTES if name in notes}


def _of_safety(notes: Mapping[str, Any]) -> dict[str, Any]:
    """That it was confined or previewed, and which limit ended it. By what it was done is a matter of the machine."""
    return {name: notes[name] for name in ("sandboxed", "limit", "previewed") if name in notes}


def observation_of(step: Step, roots: Roots, facts: StepFacts | None = None) -> Observation:
    """What a live run would have seen. Seconds are 0.0 without ``facts``."""
    seconds = facts.seconds if facts is not None else ()
    endings = (*step.earlier, step.ending)
    outcomes = [
        _shown(ending, roots).outcome(seconds[n] if n < len(seconds) else 0.0) for n, ending in enumerate(endings)
    ]
    changes = None
    if step.changes is not None:
        changes = tuple(Change(change.path, change.change, change.kind, change.old) for change in step.changes)
    notes = each_text(dict(step.notes), roots.show_text) if step.notes else {}
    findings = Findings(changes, step.source, dict(step.files), notes)
    return Observation(outcomes[-1], tuple(outcomes[:-1]), findings)


#: Checks that judge how long something took: what they got is another value each time.
_TIMES = frozenset({"max_ms", "not_.max_ms"})


def judged_of(judgement: Judgement, roots: Roots) -> Judgement:
    """A judgement as it may stand in a recording: nothing hidden shows, and nothing volatile."""
    if judgement.check in _TIMES:
        judgement = dataclasses.replace(judgement, got=None, message="")
    return dataclasses.replace(
        judgement,
        expected=each_text(judgement.expected, roots.hide_text),
        got=each_text(judgement.got, roots.hide_text),
        message=roots.hide_text(judgement.message),
    )


def each_text(value: Any, change: Callable[[str], str]) -> Any:
    """JSON-ready data with every text in it changed, keys too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, (list, tuple)):
        return [each_text(part, change) for part in value]
    if isinstance(value, dict):
        return {change(key) if isinstance(key, str) else key: each_text(part, change) for key, part in value.items()}
    return value


def wish_data(wish: object) -> tuple[str, dict[str, Any]]:
    """A wish as its type's name and its options. Raises ``BadInput`` when it is no data class of JSON-ready values."""
    if not dataclasses.is_dataclass(wish) or isinstance(wish, type):
        raise BadInput("wishes", wish, "data classes")
    recorded = [f.name for f in dataclasses.fields(wish) if f.metadata.get("recorded", True)]
    options = {name: _json_ready(getattr(wish, name)) for name in recorded}
    return type(wish).__name__, options


def _json_ready(value: Any) -> Any:
    """``value`` as it comes back from JSON, so that a step equals its decoded self."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        raise BadInput("value", value, "JSON-ready data") from None


def _ending(outcome: Outcome, roots: Roots, wholes: Mapping[str, str]) -> Ending:
    return Ending(
        ended=outcome.ended,
        exit=outcome.exit,
        signal=outcome.signal,
        spawn_error=None if outcome.spawn_error is None else roots.hide_text(outcome.spawn_error),
        cancelled=outcome.cancelled,
        left_running=outcome.left_running,
        survivors=outcome.survivors,
        stdout=KeptStream.of(_hidden(outcome.stdout, roots), wholes.get("stdout")),
        stderr=KeptStream.of(_hidden(outcome.stderr, roots), wholes.get("stderr")),
    )


def _hidden(stream: Stream, roots: Roots) -> Stream:
    """The stream with tokens. The total follows the kept halves, so that the number of dropped bytes stays exact."""
    head, tail = roots.hide(stream.head), roots.hide(stream.tail)
    total = stream.total_bytes + len(head) + len(tail) - len(stream.head) - len(stream.tail)
    return Stream(head, tail, total, stream.total_lines)


def _shown(ending: Ending, roots: Roots) -> Ending:
    texts = (ending.stdout.head, ending.stdout.tail, ending.stderr.head, ending.stderr.tail)
    if ending.spawn_error is None and not any(b"<" in text for text in texts):
        return ending  # no token in it

    def shown(kept: KeptStream) -> KeptStream:
        head, tail = roots.show(kept.head), roots.show(kept.tail)
        total = kept.total_bytes + len(head) + len(tail) - len(kept.head) - len(kept.tail)
        return dataclasses.replace(kept, head=head, tail=tail, total_bytes=total)

    why = None if ending.spawn_error is None else roots.show_text(ending.spawn_error)
    return dataclasses.replace(ending, spawn_error=why, stdout=shown(ending.stdout), stderr=shown(ending.stderr))


@dataclass(frozen=True)
class StepFacts:
    """Attributes: started: seconds since the epoch. seconds: wall time per attempt, the last attempt last."""

    started: float
    seconds: tuple[float, ...]


@dataclass(frozen=True)
class Facts:
    """The sidecar ``NAME.veil.facts.json``: what differs between two recordings of the same behaviour.

    Attributes: machine: fingerprint (kernel, libc, shell, git, python, locale ...), name to text. steps: a row a step.
    """

    machine: Mapping[str, str] = field(default_factory=dict)
    steps: tuple[StepFacts, ...] = ()


def encode_facts(facts: Facts) -> bytes:
    """The sidecar as pretty JSON."""
    rows = [{"started": row.started, "seconds": list(row.seconds)} for row in facts.steps]
    return write({"format": FACTS_FORMAT, "machine": dict(facts.machine), "steps": rows})


def decode_facts(data: bytes, name: str) -> Facts:
    """The sidecar read back. Raises ``CassetteDamaged`` naming file and line."""
    reader = Reader.of(Section("facts", data, 0), name)
    if (found := reader.take("format", int)) != FACTS_FORMAT:
        raise reader.fail(f"format {found}; this version reads {FACTS_FORMAT}")
    steps = []
    for row in reader.rows("steps"):
        seconds = row.take("seconds", list)
        if not all(isinstance(number, float) for number in seconds):
            raise row.fail("'seconds' must hold numbers with a decimal point")
        steps.append(StepFacts(row.take("started", float), tuple(seconds)))
        row.done()
    facts = Facts(reader.pairs("machine", str), tuple(steps))
    reader.done()
    return facts
