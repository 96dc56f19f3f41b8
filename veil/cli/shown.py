"""A recording as people read it, and as data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from veil import BadInput
from veil.cli.human import name_of, one_line
from veil.cli.screen import Line
from veil.present.text import safe_text
from veil.taping import Cassette, Step, decode

_LETTER = {"created": "A", "modified": "M", "deleted": "D", "renamed": "R", "mode": "m"}
#: Changed paths that a summary names.
_NAMED = 8


def read(file: str) -> Cassette:
    """The recording in a file. Raises ``CassetteDamaged``, ``CassetteVersion``, ``BadInput`` when it cannot be read."""
    try:
        data = Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise BadInput("file", file, f"a recording that can be read ({error})") from None
    return decode(data, file)


def command_of(step: Step) -> str:
    """Copy-pasteable, with tokens for folders."""
    return shlex.join(step.argv) if step.text is None else step.text


def ending_of(step: Step) -> str:
    """How it ended, in a few words."""
    ending = step.ending
    if step.background:
        how = f"in the background, {step.status}"
    elif ending.ended == "timed_out":
        how = f"timed out, exit {ending.exit}"
    elif ending.ended == "spawn_failed":
        how = f"could not start ({ending.spawn_error}), exit {ending.exit}"
    elif ending.signal is not None:
        how = f"killed by {ending.signal}, exit {ending.exit}"
    else:
        how = f"exit {ending.exit}"
    return how + (f" after {len(step.earlier) + 1} attempts" if step.earlier else "")


def summary(file: str, tape: Cassette) -> Iterator[Line]:
    """The whole recording, a command and a line of facts for each step."""
    header = tape.header
    words = [
        f"{len(tape.steps)} step{'s' * (len(tape.steps) != 1)}",
        f"profile {header.profile} {header.profile_version}",
    ]
    words.append(_workspace(tape))
    yield "head", f"{name_of(file)}: {', '.join(words)}"
    for number, step in enumerate(tape.steps, 1):
        yield "name", f"{number:>3}  {one_line(command_of(step))}"
        failed = any(said.status != "passed" for said in step.judged)
        yield ("bad" if failed else "text"), "     " + "; ".join(_facts(step))


def _workspace(tape: Cassette) -> str:
    workspace = tape.header.workspace
    if workspace.kind == "given":
        return "belongs to a test"
    if workspace.kind == "inline":
        return f"workspace inline ({len(workspace.files)} file{'s' * (len(workspace.files) != 1)})"
    revision = f" at {workspace.revision[:12]}" if workspace.revision else ""
    return f"workspace {workspace.kind} {name_of(workspace.where or '.')}{revision}"


def _facts(step: Step) -> Iterator[str]:
    yield ending_of(step)
    if step.cwd != "<root>":
        yield f"in {one_line(step.cwd)}"
    for name, kept in (("stdout", step.ending.stdout), ("stderr", step.ending.stderr)):
        if kept.total_bytes:
            lines = kept.total_lines
            cut = f" of which {kept.stream().dropped} bytes were not kept" if kept.stream().truncated else ""
            yield f"{name} {lines} line{'s' * (lines != 1)}{cut}"
    if step.delta:
        rows = [f"{_LETTER[change.change]} {name_of(change.path)}" for change in step.delta]
        more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
        yield ", ".join(rows[:_NAMED]) + more
    if step.judged:
        held = sum(said.status == "passed" for said in step.judged)
        yield f"{held} of {len(step.judged)} expectations held"


def one(tape: Cassette, number: int) -> Iterator[Line]:
    """All of one step. Raises ``BadInput`` when there is no such step."""
    step = _numbered(tape, number)
    yield "name", safe_text(command_of(step))
    yield "text", "; ".join(_facts(step))
    for label, value in _asked(step):
        yield "text", f"{label}: {value}"
    for said in step.judged:
        style = "good" if said.status == "passed" else "bad"
        yield style, f"{said.status}: {said.check}: {safe_text(said.message)}"
    for change in step.delta:
        was = f" (was {name_of(change.old)})" if change.old is not None else ""
        link = f" -> {name_of(change.target)}" if change.target is not None else ""
        yield "text", f"{_LETTER[change.change]} {name_of(change.path)}{was}{link}"
    for name, kept in (("stdout", step.ending.stdout), ("stderr", step.ending.stderr)):
        if kept.total_bytes:
            yield "head", f"--- {name}"
            gap = b"\n[%d bytes not kept]\n" % kept.stream().dropped if kept.stream().truncated else b""
            for line in safe_text(kept.head + gap + kept.tail).removesuffix("\n").split("\n"):
                yield "text", line


def _asked(step: Step) -> Iterator[tuple[str, str]]:
    for name, value in step.env:
        yield "env", f"{name} taken away" if value is None else f"{name}={one_line(value, 400)}"
    if step.stdin is not None:
        yield "stdin", f"{len(step.stdin)} bytes"
    if step.timeout is not None:
        yield "timeout", f"{step.timeout:g} s"


def _numbered(tape: Cassette, number: int) -> Step:
    if not 1 <= number <= len(tape.steps):
        raise BadInput("step", number, f"a number from 1 to {len(tape.steps)}")
    return tape.steps[number - 1]


def data(file: str, tape: Cassette, number: int | None) -> dict[str, Any]:
    """JSON-ready: the whole recording in short, or all of one step."""
    if number is not None:
        step = _numbered(tape, number)
        streams = {"stdout": step.ending.stdout, "stderr": step.ending.stderr}
        texts = {name: safe_text(kept.head + kept.tail) for name, kept in streams.items() if kept.total_bytes}
        return {**_row(number, step), **texts, "judged": [said.to_dict() for said in step.judged]}
    header, workspace = tape.header, tape.header.workspace
    place = {"kind": workspace.kind, "where": workspace.where, "revision": workspace.revision}
    return {
        "file": file,
        "profile": header.profile,
        "profile_version": header.profile_version,
        "workspace": {**{key: value for key, value in place.items() if value}, "files": sorted(workspace.files)},
        "steps": [_row(at, step) for at, step in enumerate(tape.steps, 1)],
    }


def _row(number: int, step: Step) -> dict[str, Any]:
    ending = step.ending
    row: dict[str, Any] = {
        "number": number,
        "command": safe_text(command_of(step)),
        "cwd": step.cwd,
        "ended": ending.ended,
        "exit": ending.exit,
        "stdout_bytes": ending.stdout.total_bytes,
        "stderr_bytes": ending.stderr.total_bytes,
        "files_changed": [{"path": change.path, "change": change.change} for change in step.delta],
        "expectations": {"held": sum(said.status == "passed" for said in step.judged), "of": len(step.judged)},
    }
    if ending.signal is not None:
        row["signal"] = ending.signal
    if step.background:
        row.update(background=True, status=step.status)
    return row
