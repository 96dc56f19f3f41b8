"""What is stored, replayed and shown, and the one codec to and from plain JSON data."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

from veil.model.outcome import Change, Fact, Findings, Observation, Outcome, Stream, Usage
from veil.model.plan import Decision
from veil.model.verdict import Judgement, Verdict


@dataclass(frozen=True)
class Record:
    """One run, whole.

    Attributes:
        id: ``cmdN`` from the store, ``memN`` for runs that leave nothing on disk.
        started: seconds since the epoch (UTC) when it began.
        command: copy-pasteable text of the command (``Command.display``).
        argv: the argument vector. text: the shell text, when one was given.
        cwd: absolute.
        layers: names of the layers that were around it.
        decision: of the policy that judged it; ``None`` where none did.
        stored: ``disk`` or ``memory-only``; ``why_memory`` says why when it was not asked for.
        status: ``running`` or ``killed`` for background runs, else ``exited``.
    """

    id: str
    started: float
    command: str
    argv: tuple[str, ...]
    cwd: str
    observation: Observation
    text: str | None = None
    verdict: Verdict = field(default_factory=Verdict)
    layers: tuple[str, ...] = ()
    decision: Decision | None = None
    stored: str = "disk"
    why_memory: str | None = None
    background: bool = False
    status: str = "exited"
    full: bool = False


def _outcome_data(outcome: Outcome) -> dict[str, Any]:
    data: dict[str, Any] = {"ended": outcome.ended, "exit": outcome.exit, "seconds": outcome.seconds}
    for name in ("signal", "spawn_error"):
        if getattr(outcome, name) is not None:
            data[name] = getattr(outcome, name)
    if outcome.left_running:
        data["left_running"] = outcome.left_running
    if outcome.survivors != "none":
        data["survivors"] = outcome.survivors
    if outcome.cancelled:
        data["cancelled"] = True
    if outcome.usage is not None:
        data["usage"] = [outcome.usage.user_seconds, outcome.usage.system_seconds, outcome.usage.max_rss_bytes]
    for name in ("stdout", "stderr"):
        stream: Stream = getattr(outcome, name)
        data[name] = [len(stream.head), len(stream.tail), stream.total_bytes, stream.total_lines]
    return data


def _outcome_of(data: dict[str, Any], streams: dict[str, bytes], prefix: str) -> Outcome:
    found: dict[str, Stream] = {}
    for name in ("stdout", "stderr"):
        head, tail, total, lines = data[name]
        blob = streams.get(prefix + name, b"")
        found[name] = Stream(blob[:head], blob[head : head + tail], total, lines)
    usage = Usage(*data["usage"]) if "usage" in data else None
    kept = {k: v for k, v in data.items() if k not in ("stdout", "stderr", "usage")}
    return Outcome(**kept, usage=usage, stdout=found["stdout"], stderr=found["stderr"])


def _decision_data(decision: Decision) -> dict[str, Any]:
    data = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(decision).items()}
    return {name: value for name, value in data.items() if value}


def _decision_of(data: dict[str, Any]) -> Decision:
    kept = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    return Decision(**kept)  # type: ignore[arg-type]  # the codec checks no types


def to_data(record: Record) -> tuple[dict[str, Any], dict[str, bytes]]:
    """A record as JSON-ready data and its streams as bytes by name.

    Streams are named ``stdout``, ``stderr``, and ``0.stdout`` ... for earlier attempts. Names that are not UTF-8 keep
    their surrogate escapes (``json.dumps`` writes them as ``\\udcXX``).
    """
    seen = record.observation
    streams: dict[str, bytes] = {}
    for prefix, outcome in [("", seen.outcome), *((f"{n}.", o) for n, o in enumerate(seen.earlier))]:
        for name in ("stdout", "stderr"):
            blob = getattr(outcome, name).data
            if blob:
                streams[prefix + name] = blob
    findings = seen.findings
    data: dict[str, Any] = {
        "id": record.id,
        "started": record.started,
        "command": record.command,
        "argv": list(record.argv),
        "cwd": record.cwd,
        "status": record.status,
        "stored": record.stored,
        "outcome": _outcome_data(seen.outcome),
    }
    optional: dict[str, Any] = {
        "text": record.text,
        "why_memory": record.why_memory,
        "background": record.background or None,
        "full": record.full or None,
        "layers": list(record.layers) or None,
        "decision": None if record.decision is None else _decision_data(record.decision),
        "earlier": [_outcome_data(o) for o in seen.earlier] or None,
        "changes": None if findings.changes is None else [[c.path, c.change, c.kind, c.old] for c in findings.changes],
        "source": findings.source,
        "files": {os.fspath(p): [f.kind, f.size, f.mode] for p, f in findings.files.items()} or None,
        "notes": dict(findings.notes) or None,
        "verdict": [[j.check, j.status, j.expected, j.got, j.message] for j in record.verdict.judgements] or None,
    }
    data.update((k, v) for k, v in optional.items() if v is not None)
    return data, streams


def from_data(data: dict[str, Any], streams: dict[str, bytes]) -> Record:
    """The record that ``to_data`` took apart. Raises ``KeyError``, ``TypeError`` or ``ValueError`` on foreign data."""
    changes = data.get("changes")
    findings = Findings(
        None if changes is None else tuple(Change(*row) for row in changes),
        data.get("source"),
        {path: Fact(*row) for path, row in data.get("files", {}).items()},
        data.get("notes", {}),
    )
    observation = Observation(
        _outcome_of(data["outcome"], streams, ""),
        tuple(_outcome_of(row, streams, f"{n}.") for n, row in enumerate(data.get("earlier", ()))),
        findings,
    )
    return Record(
        id=data["id"],
        started=data["started"],
        command=data["command"],
        argv=tuple(data["argv"]),
        cwd=data["cwd"],
        observation=observation,
        text=data.get("text"),
        verdict=Verdict(tuple(Judgement(*row) for row in data.get("verdict", ()))),
        layers=tuple(data.get("layers", ())),
        decision=_decision_of(data["decision"]) if "decision" in data else None,
        stored=data["stored"],
        why_memory=data.get("why_memory"),
        background=data.get("background", False),
        status=data["status"],
        full=data.get("full", False),
    )
