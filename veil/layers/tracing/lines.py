"""The lines of ``strace -f -o`` as whole calls: pieces joined, halves of interrupted calls put together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

#: A line longer than this is no line of strace's (a path has 4,096 bytes, each four characters at most).
MAX_LINE = 1 << 20

_LINE = re.compile(rb"(\d+) +(.*)", re.DOTALL)
_RESUMED = re.compile(rb"<\.\.\. (\w+) resumed>(.*)", re.DOTALL)
_ENDED = re.compile(rb"\+\+\+ (exited with \d+|killed by \w+(?: \(core dumped\))?) \+\+\+")
_SUPERSEDED = re.compile(rb"\+\+\+ superseded by execve in pid (\d+) \+\+\+")
_NAME = re.compile(rb"(\w+)\(", re.DOTALL)
_UNFINISHED = re.compile(rb" ?<(unfinished|detached|pid changed to \d+) \.\.\.>\Z")


class Call(NamedTuple):
    """One system call.

    Attributes:
        pid: who made it. name: of the call.
        text: everything behind the opening bracket, the result included.
        begun: it has not returned (yet): ``text`` ends within the arguments.
    """

    pid: int
    name: bytes
    text: bytes
    begun: bool = False


class End(NamedTuple):
    """A process or thread is no more."""

    pid: int


class Became(NamedTuple):
    """The thread ``old`` of the process ``pid`` executed a program, and goes on under the number of its process."""

    pid: int
    old: int


Item = Call | End | Became


class Lines:
    """Takes pieces of the log as they come."""

    def __init__(self) -> None:
        self._rest = b""
        self._half: dict[int, Call] = {}
        #: Something that is no line of strace's came by.
        self.strange = False

    def feed(self, data: bytes, usual: Callable[[bytes], bool] = lambda line: False) -> Iterator[Item]:
        """Every item that is whole now. A call that is interrupted comes twice: once as ``begun``.

        Args:
            usual: asked of each line first; ``True``: it has been dealt with.
        """
        *whole, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            self._rest, self.strange = b"", True
        for line in whole:
            if not usual(line):
                yield from self._item(line)

    def finish(self) -> Iterator[Call]:
        """Calls that never returned, and a last line without its end."""
        if self._rest:
            self.strange = True  # cut off in the middle of a line
        for half in self._half.values():
            yield half._replace(begun=False)
        self._half.clear()

    def _item(self, line: bytes) -> Iterator[Item]:
        found = _LINE.fullmatch(line)
        if found is None:
            self.strange = self.strange or bool(line)
            return
        pid, text = int(found[1]), found[2]
        first = text[:1]
        if first == b"+":
            yield from self._ending(pid, text)
        elif first == b"<":
            yield from self._resumed(pid, text)
        elif first not in (b"-", b"?", b"["):  # signals, calls without a name, words about the process
            name = _NAME.match(text)
            if name is None:
                self.strange = True
                return
            rest = text[name.end() :]
            cut = _UNFINISHED.search(rest)
            if cut is None:
                yield Call(pid, name[1], rest)
            else:
                self._half[pid] = Call(pid, name[1], rest[: cut.start()], begun=True)
                yield self._half[pid]

    def _ending(self, pid: int, text: bytes) -> Iterator[Item]:
        other = _SUPERSEDED.match(text)
        if other is not None:
            old = int(other[1])
            half = self._half.pop(old, None)
            self._half.pop(pid, None)
            yield Became(pid, old)
            if half is not None:  # nothing is superseded by an execve that fails; the result told later means nothing
                yield half._replace(pid=pid, text=half.text + b") = 0", begun=False)
        elif _ENDED.match(text):
            half = self._half.pop(pid, None)
            if half is not None:
                yield half._replace(begun=False)
            yield End(pid)

    def _resumed(self, pid: int, text: bytes) -> Iterator[Item]:
        found = _RESUMED.fullmatch(text)
        half = self._half.pop(pid, None)
        if found is None or half is None or half.name != found[1]:
            return  # the first half was never traced
        rest = found[2]
        cut = _UNFINISHED.search(rest)
        if cut is not None:
            self._half[pid] = half._replace(text=half.text + rest[: cut.start()])
            return
        yield Call(pid, half.name, half.text + rest)
