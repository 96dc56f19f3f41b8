"""The text of a failure: its first line alone tells what went wrong, the rest is what one would look up next."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pytest_veil.expecting import effects, endings
from pytest_veil.expecting.failures import Failure
from pytest_veil.expecting.fitting import Part, fit, front
from pytest_veil.expecting.plain import clipped, count, pasteable, plain, short_command
from pytest_veil.expecting.seams import scrubbed
from veil import Judgement, Result

#: Characters of an expected or found value, and of a line.
VALUE, LINE = 300, 1_000
#: Lines of a diff: where a text goes wrong first is what counts.
DETAIL_LINES = 24
# what is cut first comes first
_STREAMS, _FILES, _DETAIL, _CHECKS, _COMMAND = range(5)


def written(failures: Sequence[Failure], most: int) -> str:
    """The message, at most ``most`` lines.

    Several failures of one run share the description of it.
    """
    runs: dict[int, list[Failure]] = {}
    for failure in failures:
        runs.setdefault(id(failure.result), []).append(failure)
    parts = [Part([_headline(failures, len(runs))])]
    for of_run in runs.values():
        parts += [*_checks(of_run), *described(of_run[0].result, tells=bool(parts))]
    return scrubbed("\n".join(fit(parts, most)))


def _headline(failures: Sequence[Failure], runs: int) -> str:
    first = failures[0]
    words = f"{clipped(first.story, 400)} ({short_command(first.result)})"
    if len(failures) == 1:
        return words
    of = f" of {runs} runs" if runs > 1 else ""
    return f"{len(failures)} checks{of} failed: {words}"


def _checks(failures: Sequence[Failure]) -> list[Part]:
    parts = []
    for failure in failures:
        judgement = failure.judgement
        lines = [f"  check: {failure.call}" + (f" at {plain(failure.where)}" if failure.where else "")]
        if len(failures) > 1:
            lines.append(f"    {clipped(failure.story, LINE)}")
        lines += [f"    {name}: {value}" for name, value in _values(judgement, failure.negated)]
        parts.append(Part([], lines, _CHECKS))
        if failure.detail:
            lines = front([f"    {line}" for line in failure.detail], DETAIL_LINES)
            parts.append(Part([], lines, _DETAIL, from_end=True))
    return parts


def _values(judgement: Judgement, negated: bool) -> list[tuple[str, str]]:
    expected = ("not " if negated else "") + _value(judgement.expected)
    rows = [("expected", expected)]
    if judgement.got is not None:
        rows.append(("got", _value(judgement.got)))
    elif judgement.status == "inconclusive":
        rows.append(("got", "not known"))
    return rows


def _value(value: Any) -> str:
    if isinstance(value, str):
        return clipped(plain(repr(value[: VALUE + 1])), VALUE)
    try:
        return clipped(plain(json.dumps(value, ensure_ascii=False)), VALUE)
    except (TypeError, ValueError):
        return clipped(plain(repr(value)), VALUE)


def described(result: Result, tells: bool = True) -> list[Part]:
    """The run: command, end, streams, files, record."""
    # the condensed view, also of a run that asked for its streams uncondensed
    data = Result(replace(result.record, full=False)).to_dict() if result.record.full else result.to_dict()
    command = [f"  $ {line}" if at == 0 else line for at, line in enumerate(pasteable(result))]
    parts = [Part([], command, _COMMAND), Part([f"  ended: {_ended(result)}"])]
    parts += [_stream(result, name, data) for name in ("stdout", "stderr")]
    parts.append(_files(result, data))
    where = "" if result.stored == "disk" else f" ({result.stored})"
    parts.append(Part([f"  record: {result.id}{where}; cwd: {plain(result.cwd)}; took {result.ms} ms"]))
    return parts


def _ended(result: Result) -> str:
    words = clipped(plain(endings.how(result)), LINE)
    if result.attempts > 1:
        words += f", attempt {result.attempts}"
    if result.left_running:
        words += f", {count(result.left_running, 'process')}{'es' if result.left_running > 1 else ''} left running"
    return words


def _stream(result: Result, name: str, data: dict[str, Any]) -> Part:
    total = getattr(result, f"{name}_total_bytes")
    if not total:
        return Part([f"  {name}: empty"])
    size = count(getattr(result, f"{name}_lines"), "line")
    if getattr(result, f"{name}_truncated"):
        size += f", {data[f'{name}_dropped_bytes']:,} of {total:,} bytes not kept"
    text = str(data.get(name, ""))
    lines = [f"    | {line}" if line else "    |" for line in text.rstrip("\n").split("\n")]
    return Part([f"  {name} ({size}):"], lines, _STREAMS)


def _files(result: Result, data: dict[str, Any]) -> Part:
    source = result.effects_source
    if result.record.observation.findings.changes is None:
        reason = result.effects_unavailable or "nobody looked (effects are off for this run)"
        return Part([f"  files changed: not known: {clipped(plain(reason), LINE)}"])
    shared = plain(effects.sharing(result))
    rows = data.get("files_changed", [])
    if not rows:
        return Part([f"  files changed: none{shared}"])
    total = data.get("files_changed_total", len(rows))
    lines = [f"    {clipped(plain(_row(each)), LINE)}" for each in rows]
    return Part([f"  files changed ({total}, by {source}{shared}):"], lines, _FILES)


def _row(row: dict[str, Any]) -> str:
    names = f"{row['old']} -> {row['path']}" if "old" in row else str(row["path"])
    kind = f" ({row['count']} files)" if "count" in row else "" if row["kind"] == "file" else f" ({row['kind']})"
    return f"{row['change']} {names}{kind}"
