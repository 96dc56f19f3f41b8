"""The words of a recording: a cassette is a header and steps; a step is one run without anything that is volatile."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from veil.cassettes.archive import FORMAT
from veil.model.outcome import Ended, Fact, Happened, Kind, Outcome, Stream
from veil.model.verdict import Judgement

#: What stands for "nothing is there" among the ids of entries.
ABSENT = "absent"


def digest(data: bytes) -> str:
    """BLAKE2b with 16 bytes, as hex: the one hash of a cassette."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def lines_of(data: bytes) -> int:
    """Lines in ``data``; a last line without newline counts."""
    return data.count(b"\n") + (bool(data) and not data.endswith(b"\n"))


def entry_id(kind: Kind | None, mode: int = 0, data: bytes = b"") -> str:
    """What a path was, in one word: ``absent``, ``dir:755``, ``file:644:<digest>``, ``symlink:<digest of the target>``.

    ``data`` is the content of a file or the target of a symbolic link. ``kind`` None means that nothing is there.
    """
    if kind is None:
        return ABSENT
    if kind == "symlink":
        return f"symlink:{digest(data)}"
    permissions = f"{kind}:{mode:03o}"
    return f"{permissions}:{digest(data)}" if kind == "file" else permissions


def state_id(entries: Mapping[str, str]) -> str:
    """One digest for many paths: ``entries`` maps a path to its ``entry_id``. No paths give the empty text."""
    if not entries:
        return ""
    rows = [f"{path}\0{entry}\0".encode("utf-8", "surrogateescape") for path, entry in entries.items()]
    return digest(b"".join(sorted(rows)))


@dataclass(frozen=True)
class KeptStream:
    """A stream as recorded: the bytes kept, the true totals and the digest of the whole.

    Attributes:
        head, tail, total_bytes, total_lines: as in ``veil.model.outcome.Stream``.
        whole: digest of all bytes; None when part was dropped and nobody hashed it on the way.
    """

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0
    total_lines: int = 0
    whole: str | None = None

    def __post_init__(self) -> None:
        if self.whole is None and not self.stream().truncated:
            object.__setattr__(self, "whole", digest(self.head + self.tail))

    @classmethod
    def of(cls, stream: Stream, whole: str | None = None) -> KeptStream:
        """``stream`` with its digest; ``whole`` is needed only for a truncated one."""
        if stream.truncated:
            return cls(stream.head, stream.tail, stream.total_bytes, stream.total_lines, whole)
        return cls(stream.data, b"", len(stream.data), lines_of(stream.data))

    def stream(self) -> Stream:
        """The stream as the model knows it."""
        return Stream(self.head, self.tail, self.total_bytes, self.total_lines)


@dataclass(frozen=True)
class Ending:
    """How one attempt ended and what it wrote: an ``Outcome`` without time and resource use."""

    ended: Ended = "exited"
    exit: int = 0
    signal: str | None = None
    spawn_error: str | None = None
    cancelled: bool = False
    left_running: int = 0
    survivors: Literal["none", "kept", "unknown"] = "none"
    stdout: KeptStream = field(default_factory=KeptStream)
    stderr: KeptStream = field(default_factory=KeptStream)

    def outcome(self, seconds: float = 0.0) -> Outcome:
        """The outcome as the model knows it; ``seconds`` comes from the sidecar when there is one."""
        return Outcome(
            ended=self.ended,
            exit=self.exit,
            seconds=seconds,
            stdout=self.stdout.stream(),
            stderr=self.stderr.stream(),
            signal=self.signal,
            left_running=self.left_running,
            survivors=self.survivors,
            spawn_error=self.spawn_error,
            cancelled=self.cancelled,
        )


@dataclass(frozen=True)
class TreeChange:
    """One path that a step changed, with all that is needed to do it again.

    Attributes:
        path: relative to the step's cwd, POSIX separators, surrogateescape. old: former path of a rename.
        mode: permission bits afterwards (0 when deleted or a symbolic link).
        before: ``entry_id`` of what was there (for a rename: at ``old``). after: of what is there now.
        content: content of the file afterwards. None when nothing new is to be written, or when it was left out.
        omitted: bytes of content that were left out (too large to keep); such a step cannot be applied.
        target: where a symbolic link points to.
    """

    path: str
    change: Happened
    kind: Kind = "file"
    old: str | None = None
    mode: int = 0
    before: str = ABSENT
    after: str = ABSENT
    content: bytes | None = None
    omitted: int = 0
    target: str | None = None


@dataclass(frozen=True)
class Step:
    """One recorded run.

    Attributes:
        argv, text: as in ``Command``. cwd: with a root token in front (``<root>/sub``).
        env: the chosen additions, sorted; None removes. stdin: bytes given, None for the null device.
        timeout: seconds. stream_bytes: bytes kept per stream. wishes: pairs of wish name and its JSON-ready options.
        expect: pairs of check name and expected value. judged: what the checks said.
        merged: both streams in stdout, in true order. background: started, not waited for. status: as in ``Record``.
        ending: the last attempt. earlier: those before it.
        changes: what ``files_changed`` told; None when nobody looked. source: how it is known.
        quiet: paths that changed as well but were not told (ignored by git, or effects were off); done again on replay.
        read: further paths that the step is known to have touched but left as they were, with their ``entry_id``.
        files: facts looked at for checks.
        notes: JSON-ready further findings that are the same every time.
    """

    argv: tuple[str, ...]
    cwd: str = "<root>"
    text: str | None = None
    env: tuple[tuple[str, str | None], ...] = ()
    stdin: bytes | None = None
    timeout: float | None = None
    stream_bytes: int = 0
    wishes: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    expect: tuple[tuple[str, Any], ...] = ()
    judged: tuple[Judgement, ...] = ()
    merged: bool = False
    background: bool = False
    status: str = "exited"
    ending: Ending = field(default_factory=Ending)
    earlier: tuple[Ending, ...] = ()
    changes: tuple[TreeChange, ...] | None = None
    quiet: tuple[TreeChange, ...] = ()
    source: str | None = None
    read: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, Fact] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def delta(self) -> tuple[TreeChange, ...]:
        """Everything that the step changed on disk, told or not."""
        return (*(self.changes or ()), *self.quiet)

    @property
    def shell(self) -> tuple[str, ...]:
        """The argv in front of the shell text; empty when the argv is not of that form."""
        form = self.text is not None and len(self.argv) > 1 and self.argv[-1] == self.text
        return self.argv[:-1] if form else ()

    @property
    def before(self) -> dict[str, str]:
        """``entry_id`` per touched path before the step: what must be there for the recording to be true."""
        found = dict(self.read)
        for change in self.delta:
            if change.old is not None:
                found[change.old] = change.before
                found.setdefault(change.path, ABSENT)
            else:
                found[change.path] = change.before
        return found

    @property
    def after(self) -> dict[str, str]:
        """``entry_id`` per touched path after the step."""
        found = dict(self.read)
        for change in self.delta:
            if change.old is not None:
                found.setdefault(change.old, ABSENT)
        found.update((change.path, change.after) for change in self.delta)
        return found

    @property
    def touched(self) -> tuple[str, ...]:
        """The paths whose state is part of the step's identity, sorted."""
        return tuple(sorted(self.before))


@dataclass(frozen=True)
class Workspace:
    """Where a cassette that stands alone starts from.

    Attributes:
        kind: ``given`` (the test brings its own), ``inline`` (``files``), ``folder`` or ``git``.
        where: folder or repository, relative to the cassette. revision: for ``git``, a full commit id.
        files: path to content and permission bits.
    """

    kind: Literal["given", "inline", "folder", "git"] = "given"
    where: str | None = None
    revision: str | None = None
    files: Mapping[str, tuple[bytes, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Header:
    """What holds for all steps.

    Attributes:
        profile, profile_version: the determinism profile of the children.
        workspace: where it starts. format: version of the file.
    """

    profile: str = "inherit"
    profile_version: int = 1
    workspace: Workspace = field(default_factory=Workspace)
    format: int = FORMAT


@dataclass(frozen=True)
class Cassette:
    """A header and the steps in the order in which they were asked for."""

    header: Header = field(default_factory=Header)
    steps: tuple[Step, ...] = ()
