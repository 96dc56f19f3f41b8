"""A cassette to and from its file: what people read stands in sections of its own, the rest in one JSON object a step.

Sections of step N, in this order: ``N/command`` (the shell text), ``N/step``, ``N/stdin``, ``N/stdout``, ``N/stderr``,
``N/attempt1/stdout`` ..., ``N/files/PATH``. A truncated stream stands as ``.../head`` and ``.../tail``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from veil.cassettes.archive import Section, pack, unpack
from veil.cassettes.errors import CassetteDamaged
from veil.cassettes.reading import Shelf, octal, read_step
from veil.cassettes.steps import (
    ABSENT,
    Cassette,
    Ending,
    Header,
    KeptStream,
    Step,
    TreeChange,
    Workspace,
    digest,
    state_id,
)
from veil.cassettes.strict import Reader, write
from veil.model.outcome import Fact
from veil.model.verdict import Judgement


def encode(cassette: Cassette) -> bytes:
    """The file. The same cassette always gives the same bytes."""
    return pack(_sections(cassette))


def decode(data: bytes, name: str) -> Cassette:
    """The cassette in a file; ``name`` is the file's name for error texts.

    Raises:
        CassetteDamaged: empty, foreign, torn, or edited so that a digest or a total is no longer true.
        CassetteVersion: written in a format that this version cannot read.
    """
    shelf = Shelf(unpack(data, name), name)
    top = shelf.reader("header")
    if top is None:
        raise CassetteDamaged(name, 2, "the header section is missing")
    count = top.take("steps", int)
    header = _header(top, shelf)
    steps = []
    for number in range(1, count + 1):
        reader = shelf.reader(f"{number}/step")
        if reader is None:
            raise CassetteDamaged(name, shelf.last_line, f"step {number} of {count} is missing")
        steps.append(read_step(reader, shelf, f"{number}/"))
    shelf.done()
    return Cassette(header, tuple(steps))


def _sections(cassette: Cassette) -> Iterator[Section]:
    header, workspace = cassette.header, cassette.header.workspace
    data: dict[str, Any] = {
        "profile": header.profile,
        "profile_version": header.profile_version,
        "steps": len(cassette.steps),
    }
    if workspace.kind != "given":
        data["workspace"] = _without_nothing(
            kind=workspace.kind,
            where=workspace.where,
            revision=workspace.revision,
            modes={path: f"{mode:03o}" for path, (_, mode) in workspace.files.items()},
        )
    yield Section("header", write(data))
    for path in sorted(workspace.files):
        yield Section(f"workspace/{path}", workspace.files[path][0])
    for number, step in enumerate(cassette.steps, 1):
        yield from _step_sections(step, f"{number}/")


def _header(top: Reader, shelf: Shelf) -> Header:
    profile, version = top.take("profile", str), top.take("profile_version", int)
    found = top.object("workspace")
    top.done()
    if found is None:
        return Header(profile, version)
    kind: Any = found.choice("kind", ("inline", "folder", "git"))
    modes = found.pairs("modes", str)
    files = {path: (shelf.need(f"workspace/{path}", found), octal(mode, found)) for path, mode in sorted(modes.items())}
    workspace = Workspace(kind, found.optional("where", str), found.optional("revision", str), files)
    found.done()
    return Header(profile, version, workspace)


def _step_sections(step: Step, prefix: str) -> Iterator[Section]:
    if step.text is not None:
        yield Section(prefix + "command", step.text.encode("utf-8", "surrogateescape"))
    yield Section(prefix + "step", write(_step_data(step)))
    if step.stdin is not None:
        yield Section(prefix + "stdin", step.stdin)
    yield from _ending_sections(step.ending, prefix)
    for number, ending in enumerate(step.earlier, 1):
        yield from _ending_sections(ending, f"{prefix}attempt{number}/")
    for change in step.delta:
        if change.content is not None:
            yield Section(f"{prefix}files/{change.path}", change.content)


def _ending_sections(ending: Ending, prefix: str) -> Iterator[Section]:
    for name, kept in (("stdout", ending.stdout), ("stderr", ending.stderr)):
        if kept.stream().truncated:
            yield Section(f"{prefix}{name}/head", kept.head)
            yield Section(f"{prefix}{name}/tail", kept.tail)
        elif kept.head or kept.tail:
            yield Section(prefix + name, kept.head + kept.tail)


def _without_nothing(**members: Any) -> dict[str, Any]:
    """The members that say something: not None, not False, no empty list or object, no zero (but an exit of zero)."""
    return {n: v for n, v in members.items() if v or v == "" or (n == "exit" and v is not None)}


def _step_data(step: Step) -> dict[str, Any]:
    data = _without_nothing(
        shell=list(step.shell),
        argv=None if step.shell else list(step.argv),
        env=dict(step.env),
        stdin=None if step.stdin is None else digest(step.stdin),
        stream_bytes=step.stream_bytes,
        wishes=[[name, dict(options)] for name, options in step.wishes],
        expect=[[name, value] for name, value in step.expect],
        judged=[_judgement_data(judgement) for judgement in step.judged],
        merged=step.merged,
        background=step.background,
        status=None if step.status == "exited" else step.status,
        earlier=[_ending_data(ending) for ending in step.earlier],
        source=step.source,
        read=dict(step.read),
        files={path: _fact_data(fact) for path, fact in step.files.items()},
        notes=dict(step.notes),
    )
    data.update(_ending_data(step.ending), cwd=step.cwd)
    if step.timeout is not None:
        data["timeout"] = step.timeout
    if step.changes is not None:
        data["changes"] = [_change_data(change) for change in step.changes]
    if step.quiet:
        data["quiet"] = [_change_data(change) for change in step.quiet]
    if step.before:
        data["tree"] = {"before": state_id(step.before), "after": state_id(step.after)}
    return data


def _ending_data(ending: Ending) -> dict[str, Any]:
    return _without_nothing(
        ended=ending.ended,
        exit=ending.exit,
        signal=ending.signal,
        spawn_error=ending.spawn_error,
        cancelled=ending.cancelled,
        left_running=ending.left_running,
        survivors=None if ending.survivors == "none" else ending.survivors,
        stdout=_stream_data(ending.stdout),
        stderr=_stream_data(ending.stderr),
    )


def _stream_data(kept: KeptStream) -> str | dict[str, Any] | None:
    """An empty stream says nothing; a whole one its digest; a truncated one its true totals too."""
    if not kept.total_bytes:
        return None
    if not kept.stream().truncated:
        return digest(kept.head + kept.tail)
    dropped = kept.stream().dropped
    return {"blake2b": kept.whole, "bytes": kept.total_bytes, "dropped": dropped, "lines": kept.total_lines}


def _judgement_data(judgement: Judgement) -> dict[str, Any]:
    data = {"check": judgement.check, "status": judgement.status}
    values = {"expected": judgement.expected, "got": judgement.got, "message": judgement.message or None}
    return data | {name: value for name, value in values.items() if value is not None}


def _fact_data(fact: Fact) -> dict[str, Any]:
    return _without_nothing(kind=fact.kind, size=fact.size, mode=f"{fact.mode:03o}" if fact.mode else None)


def _change_data(change: TreeChange) -> dict[str, Any]:
    return _without_nothing(
        path=change.path,
        change=change.change,
        kind=None if change.kind == "file" else change.kind,
        old=change.old,
        mode=f"{change.mode:03o}" if change.mode else None,
        before=None if change.before == ABSENT else change.before,
        after=None if change.after == ABSENT else change.after,
        content=change.content is not None,
        omitted=change.omitted,
        target=change.target,
    )
