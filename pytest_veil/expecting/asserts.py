"""Plain asserts about a run: ``assert result == other``, and what stood behind ``assert result.ok``."""

from __future__ import annotations

import linecache
import re
from collections.abc import Iterator
from types import FrameType, TracebackType

from pytest_veil.expecting import effects, endings
from pytest_veil.expecting.differences import diff
from pytest_veil.expecting.failures import ExpectationError
from pytest_veil.expecting.fitting import fit, front
from pytest_veil.expecting.message import described
from pytest_veil.expecting.plain import clipped, plain
from pytest_veil.expecting.seams import failure_lines, scrubbed
from veil import Result

#: pytest cuts an explanation after 8 lines unless it is asked for more by -v.
_DIFF_LINES = 4


def explain(op: str, left: object, right: object) -> list[str] | None:
    """Lines for ``pytest_assertrepr_compare``; ``None`` when there is nothing of ours to say."""
    if op != "==":
        return None
    if isinstance(left, Result):
        lines = _two_runs(left, right) if isinstance(right, Result) else _other_type(left, right)
    elif isinstance(right, Result):
        lines = _other_type(right, left)
    else:
        return None
    return [scrubbed(line) for line in lines]


def _other_type(result: Result, other: object) -> list[str]:
    return [
        f"a run is compared with {clipped(plain(repr(other)), 80)}",
        f"a result equals nothing of type {type(other).__name__}: compare one of its fields, or use expect(result)",
        _field(result, other),
    ]


def _field(result: Result, other: object) -> str:
    if isinstance(other, str):
        return f"its stdout is {clipped(plain(repr(result.stdout[:200])), 160)}"
    return f"it ended: {plain(endings.how(result))}; result.ok is {result.ok}, result.exit is {result.exit}"


def _two_runs(left: Result, right: Result) -> list[str]:
    lines = list(_differences(left, right))
    if not lines:
        lines = [
            "they did the same; id, start and duration tell two runs apart: compare .exit, .stdout, .files_changed"
        ]
    return [f"runs {left.id} and {right.id} are not equal", *lines]


def _differences(left: Result, right: Result) -> Iterator[str]:
    for name, one, other in (
        ("command", left.command, right.command),
        ("cwd", left.cwd, right.cwd),
        ("ended", endings.how(left), endings.how(right)),
        ("files changed", _files(left), _files(right)),
    ):
        if one != other:
            yield f"{name}: {clipped(plain(one), 160)} != {clipped(plain(other), 160)}"
    for name in ("stdout", "stderr"):
        one, other = getattr(left, name), getattr(right, name)
        if one != other:
            yield f"{name}:"
            # expected is on the right, as pytest has it
            yield from front([f"  {line}" for line in diff(other, one, "left")[2:]], _DIFF_LINES)


def _files(result: Result) -> str:
    if result.record.observation.findings.changes is None:
        return "not known"
    return ", ".join(effects.row(change) for change in result.files_changed) or "none"


def runs_behind(error: BaseException) -> list[Result]:
    """Results that the line of a plain ``assert`` which failed speaks of, in order of their names in it.

    ``result.ok`` is a bool, so pytest's introspection ends there; a report can show these beside it. Empty for an error
    that tells of its run itself, or that is not from an ``assert`` on a name of the test.
    """
    if not isinstance(error, AssertionError) or isinstance(error, ExpectationError):
        return []
    place = _last(error.__traceback__)
    if place is None:
        return []
    frame, line = place
    text = _source_line(frame, line)
    if not text.lstrip().startswith("assert"):
        return []
    found = {name: value for name, value in frame.f_locals.items() if isinstance(value, Result)}
    return [found[name] for name in dict.fromkeys(_words(text)) if name in found]


def told(result: Result) -> str:
    """The description of a run as in a failed expectation, for a section of a report."""
    return scrubbed("\n".join(fit(described(result), failure_lines())))


def say_once(crash: object) -> None:
    """Shorten ``report.longrepr.reprcrash`` of an ``ExpectationError`` to its first line.

    On CI and with ``-vv`` pytest's summary repeats all of it, and so does the ``message`` of a JUnit file.
    """
    message = getattr(crash, "message", None)
    if isinstance(message, str) and message.startswith(f"{ExpectationError.__module__}.{ExpectationError.__name__}:"):
        setattr(crash, "message", message.partition("\n")[0])  # noqa: B010 - its type is pytest's, not imported here


def _last(traceback: TracebackType | None) -> tuple[FrameType, int] | None:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return None if traceback is None else (traceback.tb_frame, traceback.tb_lineno)


def _source_line(frame: FrameType, line: int) -> str:
    return linecache.getline(frame.f_code.co_filename, line)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d]\w*", text)
