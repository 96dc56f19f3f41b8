"""From sections back to a step. Whatever the file says twice (digests, totals) must agree with itself."""

from __future__ import annotations

import re
from typing import Any

from veil.cassettes.archive import Section
from veil.cassettes.errors import CassetteDamaged
from veil.cassettes.steps import (
    ABSENT,
    Ending,
    KeptStream,
    Step,
    TreeChange,
    digest,
    entry_id,
    lines_of,
    state_id,
)
from veil.cassettes.strict import Reader
from veil.model.outcome import Fact
from veil.model.verdict import Judgement

_ENDED = ("exited", "signaled", "timed_out", "spawn_failed")
_HAPPENED = ("created", "modified", "deleted", "renamed", "mode")
_KINDS = ("file", "dir", "symlink", "fifo", "socket", "device")


class Shelf:
    """The sections of a file, each to be taken once."""

    def __init__(self, sections: tuple[Section, ...], file: str) -> None:
        self._sections = {section.name: section for section in sections}
        self.file = file
        self.last_line = sections[-1].line if sections else 2

    def reader(self, name: str) -> Reader | None:
        section = self._sections.pop(name, None)
        return None if section is None else Reader.of(section, self.file)

    def take(self, name: str) -> bytes | None:
        section = self._sections.pop(name, None)
        return None if section is None else section.data

    def need(self, name: str, asking: Reader) -> bytes:
        """The bytes of a section that ``asking`` speaks of."""
        data = self.take(name)
        if data is None:
            raise asking.fail(f"section {name!r} is missing")
        return data

    def done(self) -> None:
        for section in self._sections.values():
            raise CassetteDamaged(self.file, section.line, f"section {section.name!r} belongs to no step")


def read_step(reader: Reader, shelf: Shelf, prefix: str) -> Step:
    """The step of which ``reader`` holds the JSON and ``shelf`` the sections."""
    argv, text = _command(reader, shelf, prefix)
    stdin_digest = reader.maybe("stdin", str, "")
    stdin = shelf.need(prefix + "stdin", reader) if stdin_digest else None
    if stdin is not None and digest(stdin) != stdin_digest:
        raise reader.fail("the stdin section is not what its digest says")
    changes = None
    if (rows := reader.any("changes")) is not None:
        holder = Reader({"changes": rows}, reader.file, reader.line, reader.where)
        changes = tuple(_change(row, shelf, prefix) for row in holder.rows("changes"))
    quiet = tuple(_change(row, shelf, prefix) for row in reader.rows("quiet"))
    timeout = reader.any("timeout")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
        raise reader.fail("'timeout' must be a number of seconds")
    earlier = tuple(_ending(row, shelf, f"{prefix}attempt{n}/") for n, row in enumerate(reader.rows("earlier"), 1))
    states = ("", "")
    if (tree := reader.object("tree")) is not None:
        states = (tree.take("before", str), tree.take("after", str))
        tree.done()
    step = Step(
        argv=argv,
        text=text,
        cwd=reader.take("cwd", str),
        env=_env(reader),
        stdin=stdin,
        timeout=timeout,
        stream_bytes=reader.maybe("stream_bytes", int, 0),
        wishes=tuple((name, dict(options)) for name, options in _named(reader, "wishes", dict)),
        expect=_named(reader, "expect", object),
        judged=tuple(_judgement(row) for row in reader.rows("judged")),
        merged=reader.maybe("merged", bool, False),
        background=reader.maybe("background", bool, False),
        status=reader.maybe("status", str, "exited"),
        earlier=earlier,
        changes=changes,
        quiet=quiet,
        source=reader.optional("source", str),
        read=reader.pairs("read", str),
        files={path: _fact(path, row, reader) for path, row in reader.pairs("files", dict).items()},
        notes=reader.maybe("notes", dict, {}),
        ending=_ending(reader, shelf, prefix),
    )
    reader.done()
    if (state_id(step.before), state_id(step.after)) != states:
        raise reader.fail("'tree' does not agree with the changes")
    return step


def _command(reader: Reader, shelf: Shelf, prefix: str) -> tuple[tuple[str, ...], str | None]:
    script = shelf.take(prefix + "command")
    text = None if script is None else script.decode("utf-8", "surrogateescape")
    shell, argv = reader.texts("shell"), reader.texts("argv")
    if shell and not argv and text is not None:
        return (*shell, text), text
    if argv and not shell:
        return argv, text
    raise reader.fail("expected either 'argv', or 'shell' with a command section")


def _env(reader: Reader) -> tuple[tuple[str, str | None], ...]:
    members = reader.maybe("env", dict, {})
    for name, value in members.items():
        if value is not None and not isinstance(value, str):
            raise reader.fail(f"'env.{name}' must be a string or null")
    return tuple(sorted(members.items()))


def _named(reader: Reader, name: str, kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    """A list of ``[name, value]`` rows."""
    rows = reader.maybe(name, list, [])
    for row in rows:
        if not (isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], kind)):
            raise reader.fail(f"{name!r} must hold rows of a name and a value")
    return tuple((row[0], row[1]) for row in rows)


def _judgement(row: Reader) -> Judgement:
    status: Any = row.choice("status", ("passed", "failed", "inconclusive"))
    found = Judgement(
        row.take("check", str), status, row.any("expected"), row.any("got"), row.maybe("message", str, "")
    )
    row.done()
    return found


def _fact(path: str, members: dict[str, Any], reader: Reader) -> Fact:
    row = Reader(members, reader.file, reader.line, f"{reader.where}.files.{path}")
    kind: Any = None if "kind" not in members else row.choice("kind", _KINDS)
    found = Fact(kind, row.maybe("size", int, 0), octal(row.maybe("mode", str, "0"), row))
    row.done()
    return found


def octal(text: str, reader: Reader) -> int:
    """Permission bits as they stand in a cassette."""
    if not re.fullmatch(r"[0-7]{1,6}", text):
        raise reader.fail(f"mode {text!r} is not octal")
    return int(text, 8)


def _ending(reader: Reader, shelf: Shelf, prefix: str) -> Ending:
    """How an attempt ended. ``reader`` is the whole step for the last attempt, a row of ``earlier`` for the others."""
    ended: Any = reader.choice("ended", _ENDED)
    survivors: Any = "none"
    if (word := reader.optional("survivors", str)) is not None:
        if word not in ("kept", "unknown"):
            raise reader.fail(f"'survivors' is {word!r}; expected kept or unknown")
        survivors = word
    ending = Ending(
        ended=ended,
        exit=reader.take("exit", int),
        signal=reader.optional("signal", str),
        spawn_error=reader.optional("spawn_error", str),
        cancelled=reader.maybe("cancelled", bool, False),
        left_running=reader.maybe("left_running", int, 0),
        survivors=survivors,
        stdout=_stream(reader, "stdout", shelf, prefix),
        stderr=_stream(reader, "stderr", shelf, prefix),
    )
    if prefix.count("/") > 1:
        reader.done()
    return ending


def _stream(reader: Reader, name: str, shelf: Shelf, prefix: str) -> KeptStream:
    said = reader.any(name)
    if said is None:
        return KeptStream()
    if isinstance(said, str):
        data = shelf.need(prefix + name, reader)
        if digest(data) != said:
            raise reader.fail(
                f"the section {prefix + name!r} is not what its digest says: it was edited by hand, or line ends were"
                f" converted; record the step again (digest of what stands there: {digest(data)})"
            )
        return KeptStream(data, b"", len(data), lines_of(data), said)
    if not isinstance(said, dict):
        raise reader.fail(f"{name!r} must be a digest or an object")
    row = Reader(said, reader.file, reader.line, f"{reader.where}.{name}")
    head, tail = shelf.need(f"{prefix}{name}/head", row), shelf.need(f"{prefix}{name}/tail", row)
    total, dropped = row.take("bytes", int), row.take("dropped", int)
    kept = KeptStream(head, tail, total, row.take("lines", int), row.optional("blake2b", str))
    row.done()
    if dropped < 1 or total != len(head) + len(tail) + dropped:
        raise row.fail(f"kept {len(head) + len(tail)} and dropped {dropped} do not add up to {total} bytes")
    return kept


def _change(row: Reader, shelf: Shelf, prefix: str) -> TreeChange:
    path = row.take("path", str)
    happened: Any = row.choice("change", _HAPPENED)
    kind: Any = "file" if (word := row.optional("kind", str)) is None else word
    if kind not in _KINDS:
        raise row.fail(f"'kind' is {kind!r}; expected one of {', '.join(_KINDS)}")
    change = TreeChange(
        path=path,
        change=happened,
        kind=kind,
        old=row.optional("old", str),
        mode=octal(row.maybe("mode", str, "0"), row),
        before=row.maybe("before", str, ABSENT),
        after=row.maybe("after", str, ABSENT),
        content=shelf.need(f"{prefix}files/{path}", row) if row.maybe("content", bool, False) else None,
        omitted=row.maybe("omitted", int, 0),
        target=row.optional("target", str),
    )
    row.done()
    if change.content is not None and change.after != entry_id("file", change.mode, change.content):
        raise row.fail(f"the section {prefix + 'files/' + path!r} is not what the id 'after' says (edited by hand?)")
    return change
