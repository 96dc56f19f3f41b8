"""The audit: one JSON line for each thing that happened, each with the hash of the line before it.

The file is only ever appended to. A line that is edited, removed, swapped or put in between breaks the chain; that
lines are missing at the end shows by the hash of the last one, which ``Audit.head`` tells whoever keeps it elsewhere.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veil.model.errors import Refused

START = "0" * 64
_MODE = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


def _canonical(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode("ascii")


def _hash(line: Mapping[str, Any]) -> str:
    return hashlib.sha256(_canonical(line)).hexdigest()


class Audit:
    """Where the lines go. Safe to use from several threads and processes at once.

    Args:
        path: the file, made when it is not there (readable by its owner alone); ``None`` keeps the lines in memory.

    Raises:
        Refused: code ``audit_unavailable``, when the file cannot be opened or its last line is damaged.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = None if path is None else Path(os.path.abspath(path))
        self._lock = threading.Lock()
        self._memory: list[bytes] = []
        self._head, self._count, self._size = START, 0, 0
        self._process = os.getpid()
        if self.path is not None:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._fd = os.open(self.path, _MODE, 0o600)
            except OSError as error:
                raise self._unavailable(error) from error
            with self._lock:
                self._locked_catch_up()

    def _unavailable(self, why: object) -> Refused:
        return Refused(
            f"the audit {self.path} cannot be kept ({why}), and nothing runs without it; name another file with audit=",
            code="audit_unavailable",
            file=str(self.path),
        )

    @property
    def head(self) -> tuple[int, str]:
        """How many lines there are, and the hash of the last one."""
        with self._lock:
            return self._count, self._head

    def append(self, kind: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Write one line and return it. It is on the disk when this returns.

        Raises:
            Refused: code ``audit_unavailable``.
        """
        with self._lock:
            if self.path is None:
                line = self._line(kind, facts)
                self._memory.append(_canonical(line) + b"\n")
                self._count, self._head = line["n"], line["hash"]
                return line
            try:
                self._reopened()
                fcntl.flock(self._fd, fcntl.LOCK_EX)
                try:
                    self._catch_up()
                    line = self._line(kind, facts)
                    data = _canonical(line) + b"\n"
                    if os.write(self._fd, data) != len(data):
                        raise OSError("the disk is full")
                    os.fsync(self._fd)
                    self._count, self._head, self._size = line["n"], line["hash"], self._size + len(data)
                finally:
                    fcntl.flock(self._fd, fcntl.LOCK_UN)
            except OSError as error:
                raise self._unavailable(error) from error
            return line

    def _line(self, kind: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        line = {**facts, "n": self._count + 1, "kind": kind, "time": round(time.time(), 6), "previous": self._head}
        line["hash"] = _hash(line)
        return line

    def _locked_catch_up(self) -> None:
        fcntl.flock(self._fd, fcntl.LOCK_EX)
        try:
            self._catch_up()
        finally:
            fcntl.flock(self._fd, fcntl.LOCK_UN)

    def _catch_up(self) -> None:
        """Read what other processes have appended; whoever is not at the end of the chain may not go on with it."""
        self._still_there()
        size = os.fstat(self._fd).st_size
        if size == self._size:
            return
        if size < self._size:
            raise self._unavailable("it has become shorter")
        data, reach = b"", 1 << 16
        while b"\n" not in data[:-1] and self._size + len(data) < size:
            start = max(self._size, size - reach)
            data, reach = os.pread(self._fd, size - start, start), reach * 4
        last = data.rstrip(b"\n").rpartition(b"\n")[2]
        try:
            line = json.loads(last)
            good = data.endswith(b"\n") and line.pop("hash") == (found := _hash(line))
        except (ValueError, KeyError, AttributeError, TypeError):
            good = False
        if not good:
            raise self._unavailable("its last line is damaged")
        self._count, self._head, self._size = line["n"], found, size

    def _reopened(self) -> None:
        """A forked process shares the lock of its parent until it has opened the file itself."""
        if self._process != os.getpid():
            assert self.path is not None
            self._fd, self._process = os.open(self.path, _MODE & ~os.O_CREAT), os.getpid()

    def _still_there(self) -> None:
        """The file of this name is the one that is written to."""
        assert self.path is not None
        held, named = os.fstat(self._fd), os.stat(self.path)
        if (held.st_dev, held.st_ino) != (named.st_dev, named.st_ino):
            raise self._unavailable("another file is in its place")

    def lines(self) -> Iterator[dict[str, Any]]:
        """Every line, oldest first, as it was written."""
        if self.path is None:
            yield from (json.loads(line) for line in list(self._memory))
            return
        with self.path.open("rb") as file:
            yield from (json.loads(line) for line in file)

    def close(self) -> None:
        """Let go of the file."""
        if self.path is not None and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@dataclass(frozen=True)
class Verified:
    """What a look at an audit has shown.

    Attributes:
        lines: how many there are. head: hash of the last one.
        problems: one line each, with the number of the line; empty when the chain is whole.
    """

    lines: int
    head: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Nothing was edited, removed or put in between."""
        return not self.problems


def verify(path: str | os.PathLike[str], head: tuple[int, str] | None = None) -> Verified:
    """Look through an audit.

    Args:
        head: what ``Audit.head`` told before: that line has to be there still.
    """
    problems: list[str] = []
    previous, count, seen_head = START, 0, False
    with Path(path).open("rb") as file:
        for count, raw in enumerate(file, 1):
            try:
                line = json.loads(raw)
                said = line.pop("hash")
            except (ValueError, KeyError, AttributeError, TypeError):
                problems.append(f"line {count} is no line of an audit")
                previous = ""
                continue
            # to the byte: what only reads the same was written by somebody else
            if _hash(line) != said or _canonical({**line, "hash": said}) != raw.rstrip(b"\n"):
                problems.append(f"line {count} was edited")
            if line.get("n") != count or line.get("previous") != previous:
                problems.append(f"before line {count} something was removed, added or moved")
            if not raw.endswith(b"\n"):
                problems.append(f"line {count} is cut off")
            previous = said
            seen_head = seen_head or head == (count, said)
    if head is not None and head[0] and not seen_head:
        problems.append(f"line {head[0]}, known from before, is not there any more")
    return Verified(count, previous, tuple(problems))
