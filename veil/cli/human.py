"""Results as people read them: lines with a style. Plain ASCII around the command's text, so every locale has it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from veil import Logs, Result
from veil.cli.screen import Line
from veil.present.text import safe_text

#: What the view tells in words of its own; whatever else a result says is shown as ``key: value``.
_TOLD = {
    *("id", "exit", "ok", "ms", "background", "status", "attempts", "ended", "signal", "timed_out", "cancelled"),
    *("spawn_error", "left_running", "survivors", "files_changed", "files_changed_total", "effects_source", "stored"),
    *("why_memory", "assert_ok", "assertions_failed", "assertions_inconclusive", "advice", "hint", "stdout", "stderr"),
    *(
        f"{name}_{fact}"
        for name in ("stdout", "stderr")
        for fact in ("lines", "truncated", "total_bytes", "dropped_bytes", "binary", "lossy", "base64")
    ),
}
_LETTER = {"created": "A", "modified": "M", "deleted": "D", "renamed": "R", "mode": "m"}


def duration(ms: float) -> str:
    """``0.42 s``, ``3 min 5 s``."""
    seconds = ms / 1000
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def one_line(text: str, width: int = 100) -> str:
    """A command or a name on one line, harmless, cut to ``width`` characters."""
    words = safe_text(text).replace("\n", "\\n").replace("\t", "\\t")
    return words if len(words) <= width else words[: width - 3] + "..."


def name_of(path: str) -> str:
    """A path as it can be read: one with controls, quotes or bytes that are no text in quotes with escapes."""
    return path if path.isprintable() and not path.startswith(("'", '"')) else repr(path)


def _ending(data: dict[str, Any], interrupted: str | None) -> Line:
    if data.get("status") == "running":
        return "name", "still runs"
    told = f"exit {data['exit']}"
    style = "bad"
    if interrupted is not None:
        words = f"ended by {interrupted}"
    elif data.get("timed_out"):
        words = f"timed out after {duration(data['ms'])}, {told}"
        return style, words
    elif data.get("spawn_error"):
        return style, f"could not start: {one_line(data['spawn_error'])}, {told}"
    elif data.get("signal"):
        words = f"killed by {data['signal']}, {told}"
    else:
        style, words = ("good" if data["ok"] else "bad"), told
    return style, f"{words} in {duration(data['ms'])}"


def report(result: Result, *, full: bool = False, interrupted: str | None = None) -> Iterator[Line]:
    """The whole view of a run."""
    data = result.to_dict(full=full)
    style, words = _ending(data, interrupted)
    extra = [f"[{data['id']}]"]
    if data.get("attempts", 1) > 1:
        extra.append(f"after {data['attempts']} attempts")
    if data.get("stored"):
        extra.append(f"kept in memory only ({data['why_memory']})" if "why_memory" in data else "leaves no record")
    yield style, f"{words} {', '.join(extra)}"
    for name in ("stdout", "stderr"):
        yield from _stream(data, name)
    yield from _changes(data)
    yield from _verdict(result)
    for key, value in data.items():
        if key not in _TOLD:
            yield "warn", f"{key}: {_said(value)}"
    # the hint of the JSON view is for tools; what is hidden says in its place how to see it
    if "advice" in data:
        yield "warn", f"advice: {data['advice']}"


def _said(value: Any) -> str:
    """A note in one line: what moved as ``before -> after``, lists with commas."""
    if isinstance(value, dict) and value.keys() == {"before", "after"}:
        return f"{value['before'] or 'none'} -> {value['after'] or 'none'}"
    if isinstance(value, list):
        value = ", ".join(map(str, value))
    return one_line(value if isinstance(value, str) else json.dumps(value), 400)


def _stream(data: dict[str, Any], name: str) -> Iterator[Line]:
    lines = data.get(f"{name}_lines", 0)
    if not lines:
        return
    facts = [f"{lines} line{'s' if lines != 1 else ''}"]
    if data.get(f"{name}_truncated"):
        facts.append(f"{data[f'{name}_dropped_bytes']} of {data[f'{name}_total_bytes']} bytes not kept")
    if data.get(f"{name}_binary"):
        facts.append("binary")
    yield "head", f"--- {name} ({', '.join(facts)})"
    if f"{name}_base64" in data:
        yield "text", f"(veil detail {data['id']} --selector {name} > FILE gives the bytes)"
    for line in data.get(name, "").removesuffix("\n").split("\n") if data.get(name) else ():
        yield "text", line


def _changes(data: dict[str, Any]) -> Iterator[Line]:
    rows: Sequence[dict[str, Any]] = data.get("files_changed", ())
    if not rows:
        return
    total = data.get("files_changed_total", len(rows))
    yield "head", f"--- {total} changed ({data['effects_source']})"
    yield from map(change, rows)


def change(row: dict[str, Any]) -> Line:
    """One changed file, or a folder of them."""
    words = f"{_LETTER.get(row['change'], '?')} {name_of(row['path'])}"
    if "old" in row:
        words += f" (was {name_of(row['old'])})"
    if row["kind"] not in ("file", "dir"):
        words += f" ({row['kind']})"
    if "count" in row:
        words += f" ({row['count']} {row['change']})"
    return "name", words


def _verdict(result: Result) -> Iterator[Line]:
    judgements = result.verdict.judgements
    if not judgements:
        return
    passed = sum(judgement.status == "passed" for judgement in judgements)
    yield "head", f"--- {passed} of {len(judgements)} expectations hold"
    for judgement in judgements:
        if judgement.status != "passed":
            style = "bad" if judgement.status == "failed" else "warn"
            yield style, f"{judgement.status}: {judgement.check}: {safe_text(judgement.message)}"


def row(result: Result) -> Line:
    """One run on one line: of ``veil runs`` and ``veil ps``."""
    record = result.record
    began = time.strftime("%m-%d %H:%M:%S", time.localtime(record.started))
    if record.status == "running":
        style, how = "name", f"running {duration((time.time() - record.started) * 1000)}"
    else:
        style = "good" if result.ok and result.assert_ok is not False else "bad"
        how = f"{record.status if record.status != 'exited' else result.ended} {result.exit}, {duration(result.ms)}"
    return style, f"{result.id:<8} {began}  {how:<28} {one_line(result.command, 80)}"


def polled(logs: Logs, *, full: bool) -> Iterator[Line]:
    """What ``veil logs`` shows of a background run."""
    data = logs.to_dict(full=full)
    ended = "" if logs.exit is None else f", {logs.signal or f'exit {logs.exit}'}"
    yield ("name" if logs.exit is None else "head"), f"{logs.id} {logs.status}{ended}, {duration(logs.running_ms)}"
    if logs.owner_lost is not None:
        yield "warn", f"owner_lost: {logs.owner_lost}"
    if logs.gap:
        yield "warn", "bytes between the cursor and what follows were dropped at the byte cap"
    for name in ("stdout", "stderr"):
        if name in data:
            yield from _stream({**data, "id": logs.id}, name)
    if logs.exit is None or full:  # of what has ended, only a page may have a next one
        yield "head", f"--- go on with --stdout-cursor {logs.stdout_cursor} --stderr-cursor {logs.stderr_cursor}"
