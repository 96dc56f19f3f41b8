"""Follows the processes of a command through their calls: who is where, and what they do to files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from veil.layers.tracing import values
from veil.layers.tracing.account import Account
from veil.layers.tracing.handling import HANDLERS, Folder, Process, opened
from veil.layers.tracing.lines import Became, Call, End, Item, Lines
from veil.model.plan import Touched

_FORKS = frozenset({b"fork", b"vfork", b"clone", b"clone3"})
#: A line of an ``openat`` with nothing unusual in it, which most lines are.
_USUAL = re.compile(
    rb'(\d+) +openat\((AT_FDCWD|\d+)<(/[^<>\\]*)>, "([^"\\]+)", ([A-Z_|]+)(?:, 0[0-7]*)?\) *= '
    rb"(?:-1 E\w+ .*|\d+<(/[^<>\\]*)>)",
    re.DOTALL,
)
#: Calls kept of a process whose parent is not known yet; more make it one of unknown origin.
_MOST_HELD = 512
#: Lines remembered: each start of a program opens the same files, and a line that was read need not be again.
_MOST_KNOWN = 20_000
_NOBODY = Process(Folder(None), own=False)


class Follower:
    """Turns the log into an account.

    Args:
        argv: of the command itself. wrapped: other programs stand before it (a sandbox): what they do until the command
            begins, and what those of them do that live on beside it, is left out.
        cwd: where the first program starts.
        marks: where it is put down which paths the command may have changed.

    Attributes:
        started: the first program was executed. first_error: name of the errno when that failed.
        begun: what the command itself does counts from here on.
    """

    def __init__(
        self,
        account: Account,
        argv: Sequence[str],
        cwd: str,
        *,
        wrapped: bool,
        marks: Touched,
    ) -> None:
        self.account = account
        self.started = False
        self.first_error: str | None = None
        self._argv = [os.fsencode(word) for word in argv]
        self._wrapped, self.begun = wrapped, not wrapped
        self.marks = marks
        self._lines = Lines()
        self._cwd = os.fsencode(cwd)
        self._processes: dict[int, Process] = {}
        self._alive: set[int] = set()
        self._held: dict[int, list[Call]] = {}
        self._forking: dict[int, bytes] = {}
        self._guessed: set[int] = set()
        self._seen_one = False
        #: Lines without their process that were dealt with, and the working directory that they name.
        self._known: dict[bytes, bytes] = {}
        #: Whose line was the last one of that kind, until another kind comes.
        self._last: tuple[bytes, Process] = b"", _NOBODY

    # -- the log

    def feed(self, data: bytes) -> None:
        """The next piece of it."""
        for item in self._lines.feed(data, self._usual):
            self._take(item)

    def finish(self) -> bool:
        """It has ended. Returns whether it is known to be whole: nobody was lost sight of."""
        for call in self._lines.finish():
            self._take(call)
        for pid in list(self._held):
            self._adopt(pid, None)
        whole = self.started and not self._alive and not self._lines.strange
        if self.started and not whole:
            self.account.truncated = True
            self.marks.complete = False
        return whole

    def gap(self, why: str) -> None:
        """Something the log cannot tell all of."""
        self.account.gap(why)
        self.marks.complete = False

    def _usual(self, line: bytes) -> bool:
        """Deal with a line of the most frequent kind; ``False``: it is not of it."""
        number, _, tail = line.partition(b" ")
        known = self._known.get(tail)
        if known is None:
            return self._opening(line, tail)
        if number != self._last[0]:
            process = self._processes.get(int(number))
            if process is None:
                return False
            self._alive.add(int(number))
            self._last = number, process
        if known:
            self._last[1].folder.path = known
        return True

    def _opening(self, line: bytes, tail: bytes) -> bool:
        found = _USUAL.fullmatch(line)
        process = None if found is None else self._processes.get(int(found[1]))
        if found is None or process is None:
            return False
        number, at, folder, name, flags, real = found.groups()
        self._alive.add(int(number))
        if at == b"AT_FDCWD":
            process.folder.path = folder
        if process.own:
            if real is not None:
                path = name if name.startswith(b"/") else folder.rstrip(b"/") + b"/" + name
                opened(self, path, flags, values.Result(0, None, values.Descriptor(None, real)))
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[tail] = folder if at == b"AT_FDCWD" else b""
        return True

    def _take(self, item: Item) -> None:
        self._last = b"", _NOBODY
        if isinstance(item, End):
            self._alive.discard(item.pid)
            self._forking.pop(item.pid, None)
            if item.pid not in self._held:
                self._processes.pop(item.pid, None)
        elif isinstance(item, Became):
            self._alive.discard(item.old)
            former = self._processes.pop(item.old, None)
            if former is not None:
                self._processes[item.pid] = former
        elif item.pid in self._processes or self._place(item):
            self._alive.add(item.pid)
            self._call(self._processes[item.pid], item)

    # -- who is whose child

    def _place(self, call: Call) -> bool:
        """Find out where a process belongs that is seen for the first time. ``False``: later."""
        if not self._seen_one:
            self._seen_one = True
            self._processes[call.pid] = Process(Folder(self._cwd), own=not self._wrapped)
            return True
        self._alive.add(call.pid)
        held = self._held.setdefault(call.pid, [])
        if len(self._forking) == 1 and not held:
            # who starts somebody is seen to begin with it before that one is seen at all
            parent, how = next(iter(self._forking.items()))
            self._guessed.add(call.pid)
            self._adopt(call.pid, self._processes.get(parent), how)
            return True
        held.append(call)
        if len(held) > _MOST_HELD:
            self._adopt(call.pid, None)
        return False

    def _adopt(self, pid: int, parent: Process | None, how: bytes = b"") -> None:
        held = self._held.pop(pid, ())
        child = self._processes[pid] = self._child(parent, how)
        for call in held:
            self._call(child, call)
        if held and pid not in self._alive:
            self._processes.pop(pid, None)

    def _child(self, parent: Process | None, how: bytes) -> Process:
        if parent is None:  # what was put around the command was there before it began
            return Process(Folder(None), self.begun)
        return Process(parent.folder if b"CLONE_FS" in how else Folder(parent.folder.path), parent.own)

    def _forked(self, parent: Process, call: Call) -> None:
        self._forking.pop(call.pid, None)
        returned = values.result(values.split(call.text)[1])
        if not returned.ok or not returned.value:
            return
        pid = returned.other_number or returned.value
        if pid in self._guessed:
            self._guessed.discard(pid)
        elif pid in self._held:
            self._adopt(pid, parent, call.text)
        else:
            self._processes[pid] = self._child(parent, call.text)

    # -- what they do

    def _call(self, process: Process, call: Call) -> None:
        if call.name in _FORKS:
            if call.begun:
                self._forking[call.pid] = call.text
            else:
                self._forked(process, call)
        elif call.begun:
            return
        else:
            arguments, behind = values.split(call.text)
            returned = values.result(behind)
            if call.name in (b"execve", b"execveat"):
                self._executed(process, call.name, arguments, returned)
            elif call.name in (b"chdir", b"fchdir"):
                self._moved(process, arguments, returned)
            elif process.own:
                handler = HANDLERS.get(call.name)
                if handler is not None:
                    handler(self, process, arguments, returned)

    def _executed(self, process: Process, name: bytes, arguments: list[bytes], returned: values.Result) -> None:
        first = not self.started and self.first_error is None
        if not returned.ok:
            if first and returned.error is not None:
                self.first_error = returned.error.decode()
            return
        at = 0 if name == b"execve" else 1
        words, more = values.strings(arguments[at + 1]) if len(arguments) > at + 1 else ([], True)
        self.started = True
        if not self.begun and not first and self._is_command(words, more):
            self.begun = process.own = True
        if process.own:
            path = self.path(process, arguments[0], arguments[1]) if at else self.path(process, None, arguments[0])
            text = [os.fsdecode(_shown(word)) for word in words] + (["..."] if more else [])
            self.account.add("executed", self.account.path(path or b"?"), *text)

    def _is_command(self, words: list[values.Text], more: bool) -> bool:
        if len(words) > len(self._argv) or (len(words) < len(self._argv) and not more):
            return False
        return bool(words) and all(
            wanted.startswith(word.value) if word.cut else wanted == word.value
            for word, wanted in zip(words, self._argv, strict=False)
        )

    def _moved(self, process: Process, arguments: list[bytes], returned: values.Result) -> None:
        if not returned.ok or not arguments:
            return
        held = values.descriptor(arguments[0])
        process.folder.path = held.path if held is not None else self.path(process, None, arguments[0])

    def path(self, process: Process, folder: bytes | None, argument: bytes) -> bytes | None:
        """The absolute path that a pair of folder descriptor and name means; ``None`` when it cannot be told.

        Links in it are not resolved, and ``..`` stays as it is.
        """
        base = process.folder.path
        if folder is not None:
            held = values.descriptor(folder)
            if held is not None and held.number is None and held.path is not None:
                base = process.folder.path = held.path
            elif held is not None and held.number is not None:
                base = held.path
        name = values.string(argument)
        if name is None:  # a null pointer: the descriptor itself
            return base if argument == b"NULL" and base is not None and base.startswith(b"/") else None
        if name.cut:
            return None
        if name.value.startswith(b"/"):
            return name.value
        if base is None or not base.startswith(b"/"):
            return None
        return base.rstrip(b"/") + b"/" + name.value if name.value else base


def _shown(word: values.Text) -> bytes:
    """An argument as it is kept. One that is cut loses its last word as well: half a secret would not be known for one
    by what replaces secrets."""
    if not word.cut:
        return word.value
    kept = word.value.rstrip().rpartition(b" ")[0]
    return kept + b" ..." if kept else b"..."
