"""The message of a test that did not do what was recorded: what differs first, and what to do about it."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_veil.outcomes import StepRow, Take

if TYPE_CHECKING:
    from pytest_veil.verifying import Verified
    from veil.taping import Step

#: The most lines of a difference that are shown.
SHOWN = 24


def first_line(message: str) -> str:
    """What alone tells what went wrong."""
    return message.split("\n", 1)[0]


def told(take: Take, verified: Verified | None, runs: int) -> str:
    """The whole message; the first line stands for itself."""
    name = shlex.quote(take.nodeid) if take.scope == "function" else "-k ..."
    if verified is None:
        return (
            f"missing-cassette: {take.file} is not there, so there is nothing to compare with\n"
            f"  to record it: pytest {name} --veil-mode=record-missing"
        )
    message = "\n".join(_lines(take, verified, runs, name))
    return message.encode("utf-8", "backslashreplace").decode("utf-8")  # it crosses between processes as UTF-8


def told_step(row: StepRow, total: int) -> str | None:
    """Why one step is not as recorded, in short; None when it is."""
    if _same(row):
        return None
    lines = [_headline(row, total), f"  $ {row.command}"]
    if row.expected or row.got:
        lines += [f"  recorded: {row.expected}", f"  now:      {row.got}"]
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode("utf-8")


def _headline(row: StepRow, total: int) -> str:
    place = f"step {row.number} of {total}" if row.word != "unrecorded" else "a command besides"
    return f"{row.word} at {place}: {row.detail}"


def _lines(take: Take, verified: Verified, runs: int, name: str) -> Iterator[str]:
    row = verified.first
    assert row is not None, "a test that is the same has no message"
    total = sum(other.word != "unrecorded" for other in verified.rows)
    yield _headline(row, total)
    yield f"  $ {row.command}"
    for line in _difference(row, verified.then, verified.now):
        yield f"  {line}"
    later = [other for other in verified.rows if other.number != row.number and not _same(other)]
    if later:
        yield "  then: " + ", ".join(f"step {other.number} {other.word}" for other in later[:8])
    if row.runs is not None and runs > 1 and row.word != "unstable":
        yield f"  as recorded in {row.runs[0]} of {runs} runs"
    if row.proposal:
        yield f"  it would be the same with the normalisers {', '.join(row.proposal)} (--veil-normalise)"
    yield f"  recorded in {take.file}"
    yield from _remedy(row, take, name)


def _same(row: StepRow) -> bool:
    from pytest_veil.outcomes import SAME

    return row.word in SAME


def _remedy(row: StepRow, take: Take, name: str) -> Iterator[str]:
    if row.word == "missing-tool":
        yield "  install what is missing, or record anew where it is not needed"
    elif row.word == "unstable" and not row.proposal:
        yield "  no recording can be right: make the command give the same each time, or hide what varies with a"
        yield "  normaliser of your own (hook pytest_veil_normalisers)" + (", such as" if row.suggestion else "")
        if row.suggestion:
            yield f"    {row.suggestion}"
    elif row.word == "refused":
        yield "  veil would not run it here; the reason stands above"
    else:
        yield f"  if it is right now: pytest {name} --veil-mode=refresh"


def _difference(row: StepRow, then: Step | None, now: Step | None) -> Iterator[str]:
    """The lines of a stream or file that differ; one pair of values where there are no lines."""
    pair = None if then is None or now is None or row.where is None else _texts(row.where, then, now)
    if pair is None:
        if row.expected or row.got:
            yield f"recorded: {row.expected}"
            yield f"now:      {row.got}"
        return
    then_lines, now_lines = (text.splitlines(keepends=True) for text in pair)
    lines = list(difflib.unified_diff(then_lines, now_lines, n=2))
    for line in lines[2 : SHOWN + 2]:
        text, end = (line[:-1], "") if line.endswith("\n") else (line, "  (no newline at the end)")
        yield "".join(c if c.isprintable() or c == "\t" else ascii(c)[1:-1] for c in text) + end
    if len(lines) > SHOWN + 2:
        yield f"({len(lines) - SHOWN - 2} more lines of difference)"


def _texts(where: str, then: Step, now: Step) -> tuple[str, str] | None:
    """What stands at ``where`` in both steps, when that is text and really differs."""
    found = []
    for step in (then, now):
        if where in ("stdout", "stderr"):
            kept = step.ending.stdout if where == "stdout" else step.ending.stderr
            data: bytes | None = kept.head + kept.tail
        else:
            path = where.removeprefix("files/")
            data = next((change.content for change in step.delta if change.path == path), None)
        if data is None or b"\0" in data:
            return None
        found.append(data.decode("utf-8", "backslashreplace"))
    return (found[0], found[1]) if found[0] != found[1] else None
