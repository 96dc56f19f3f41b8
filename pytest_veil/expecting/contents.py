"""Checks on text: both streams of a run, and the content of a file, which is judged as if it were a stream."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from pytest_veil.expecting.differences import alike, diff
from pytest_veil.expecting.failures import Finding
from veil import BadInput, Judgement, Result

StreamName = Literal["stdout", "stderr"]

_LINE = re.compile(r"[^\n]*\n|[^\n]+")


def judged(result: Result, check: str, expected: Any) -> Finding:
    """One check of the dict form. Raises ``BadInput``."""
    return Finding(result.judge({check: expected}).judgements[0])


def as_stdout(result: Result, data: bytes) -> Result:
    """The same run as if it had written these bytes to stdout."""
    seen = result.record.observation
    lines = data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))
    stream = replace(seen.outcome.stdout, head=data, tail=b"", total_bytes=len(data), total_lines=lines)
    return Result(replace(result.record, observation=replace(seen, outcome=replace(seen.outcome, stdout=stream))))


def bytes_of(argument: str, value: str | bytes) -> bytes:
    """The bytes of an expected text (UTF-8; surrogate escapes stand for other bytes). Raises ``BadInput``."""
    if isinstance(value, bytes):
        return value
    try:
        return value.encode("utf-8", "surrogateescape")
    except (AttributeError, UnicodeEncodeError):
        raise BadInput(argument, value, "text or bytes") from None


def equals(result: Result, name: StreamName, wanted: str | bytes, shown: str | None = None) -> Finding:
    """The stream is exactly this. On a truncated one only a difference can be told for sure.

    ``shown``: what to call it in messages.
    """
    stream = getattr(result.record.observation.outcome, name)
    shown = shown or name
    check = f"{name}_equals"
    data = bytes_of(f"{shown}.equals", wanted)
    expected = data.decode("utf-8", "backslashreplace")[:200]
    if not stream.truncated and stream.data == data:
        return Finding(Judgement(check, "passed", expected, None, f"{shown} is {_size(data)} as expected"))
    if stream.truncated and _may_be(stream, data):
        why = f"{shown} was truncated: {stream.dropped} of {stream.total_bytes} bytes were not kept"
        return Finding(Judgement(check, "inconclusive", expected, None, why))
    if stream.binary or b"\0" in data:
        at = _common(data, stream.data)
        words = f"{shown} differs from byte {at} on: expected {_size(data)}, got {_size(stream.data)}"
        return Finding(Judgement(check, "failed", expected, None, words))
    old, new = data.decode("utf-8", "surrogateescape"), stream.data.decode("utf-8", "surrogateescape")
    return Finding(
        Judgement(check, "failed", expected, None, _difference(shown, old, new)), tuple(diff(old, new, shown))
    )


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    """How long both are the same from their start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _size(data: bytes) -> str:
    return "1 byte" if len(data) == 1 else f"{len(data)} bytes"


def _may_be(stream: Any, data: bytes) -> bool:
    """Whether the kept ends of a truncated stream fit."""
    return len(data) == stream.total_bytes and data.startswith(stream.head) and data.endswith(stream.tail)


def _difference(shown: str, old: str, new: str) -> str:
    """The first difference, in words."""
    if not new:
        return f"{shown} is empty, expected {old[:80]!r}"
    if not old:
        return f"{shown} is not empty: {new[:80]!r}"
    left, right = _LINE.findall(old), _LINE.findall(new)
    for at, (wanted, came) in enumerate(zip(left, right, strict=False), 1):
        if wanted != came:
            same = _common(wanted, came)
            start = max(0, same - 20) if same > 60 else 0  # of a long line the place where it goes wrong
            where = f"line {at}" + (f", from character {same + 1} on" if start else "")
            wanted, came = wanted[start : start + 80], came[start : start + 80]
            show = ascii if alike(wanted, came) else repr
            return f"{shown} differs at {where}: expected {show(wanted)}, got {show(came)}"
    if len(right) > len(left):
        return f"{shown} goes on after what was expected: line {len(left) + 1} is {right[len(left)][:80]!r}"
    return f"{shown} ends too early: line {len(right) + 1} should be {left[len(right)][:80]!r}"
