"""Which file a word names, and whether it is still that file when it is started."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from veil.model.errors import BadInput
from veil.policy.programs import Program

#: Device, inode, size, times of modification and change: while these stay, the content does.
_Stamp = tuple[int, int, int, int, int]
_FIRST_LINE = 256


def stamp_of(seen: os.stat_result) -> _Stamp:
    """What tells one state of a file from another without reading it. A change of the content moves the last one,
    and that nobody can set back without the clock."""
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def safe_path(path: str | Sequence[str] | None, workspace: str) -> tuple[str, ...]:
    """The folders in which programs are looked for.

    Args:
        path: as the host wrote it, checked to the last element; ``None`` takes those of the process's own PATH that
            will do.

    Raises:
        BadInput: an element is empty, relative, no folder, or lies in the workspace.
    """
    given = os.environ.get("PATH", os.defpath) if path is None else path
    folders = given.split(os.pathsep) if isinstance(given, str) else [os.fspath(folder) for folder in given]
    safe: list[str] = []
    for folder in folders:
        why = _unsafe(folder, workspace)
        if why is None:
            safe.append(folder)
        elif path is not None:
            raise BadInput("path", folder, f"absolute folders outside the workspace ({why})")
    if not safe:
        raise BadInput("path", given, "at least one absolute folder outside the workspace")
    return tuple(dict.fromkeys(safe))


def _unsafe(folder: str, workspace: str) -> str | None:
    if not folder or not os.path.isabs(folder):
        return "empty or relative: it would mean wherever the command is"
    if os.pathsep in folder or "\0" in folder:
        return "no name of a folder"
    if not os.path.isdir(folder):
        return "not there"
    real = os.path.realpath(folder)
    if real == workspace or real.startswith(workspace.rstrip("/") + "/"):
        return "in the workspace, where commands can put programs"
    if os.stat(real).st_mode & stat.S_IWOTH:
        return "everybody may write there"
    return None


@dataclass(frozen=True)
class Held:
    """An open program. Attributes: fd: to start it by. stamp: its state when it was opened."""

    fd: int
    stamp: _Stamp

    def close(self) -> None:
        """Let go of it."""
        os.close(self.fd)


class Executables:
    """Finds programs in a safe PATH and tells who they are. Safe to use from several threads.

    Args:
        path: absolute folders. workspace: real path of it.
    """

    def __init__(self, path: Sequence[str], workspace: str) -> None:
        self.path = tuple(path)
        self._real_path = frozenset(os.path.realpath(folder) for folder in path)
        self._workspace = workspace
        self._known: dict[_Stamp, tuple[str, tuple[str, ...]]] = {}
        self._programs: dict[tuple[str, str, _Stamp, _Stamp], Program] = {}
        self._named: dict[str, Program] = {}
        self._folders: tuple[int, ...] = ()
        self._lock = threading.Lock()

    def named(self) -> Callable[[str], Program]:
        """A lookup for the programs that rules name: what it found before is good while no folder of PATH changes.

        A program that is written to in its place keeps its inode, and by that it is still known.
        """
        folders = tuple(os.stat(folder).st_mtime_ns for folder in self.path)
        if folders != self._folders:
            self._folders, self._named = folders, {}
        found = self._named

        def lookup(word: str) -> Program:
            program = found.get(word)
            if program is None:
                program = found[word] = self.find(word, "/")
            return program

        return lookup

    def lookup(self, cwd: str) -> Callable[[str], Program]:
        """Finds programs for one judgement in ``cwd``: each word is looked up once."""
        found: dict[str, Program] = {}

        def lookup(word: str) -> Program:
            program = found.get(word)
            if program is None:
                program = found[word] = self.find(word, cwd)
            return program

        return lookup

    def find(self, word: str, cwd: str) -> Program:
        """The program that a word names when a command runs in ``cwd``. Never raises for one that is not there."""
        if "/" not in word:
            for folder in self.path:
                path = folder + "/" + word
                with contextlib.suppress(OSError, ValueError):
                    seen = os.stat(path)
                    if stat.S_ISREG(seen.st_mode) and os.access(path, os.X_OK):
                        return self._program(word, path, seen)
            return Program(word, why_not=f"{word!r} was not found in the safe PATH")
        path = os.path.normpath(os.path.join(cwd, word)) if ".." not in word else os.path.join(cwd, word)
        try:
            seen = os.stat(path)
            if not stat.S_ISREG(seen.st_mode) or not os.access(path, os.X_OK):
                return Program(word, why_not=f"{word!r} is no program that may be started")
        except (OSError, ValueError):
            return Program(word, why_not=f"{word!r} is not there")
        return self._program(word, path, seen)

    def _program(self, word: str, path: str, seen: os.stat_result) -> Program:
        try:
            key = (word, path, stamp_of(seen), stamp_of(os.lstat(path)))
        except OSError:
            return Program(word, why_not=f"{word!r} is not there any more")
        known = self._programs.get(key)
        if known is None:
            known = self._looked_at(word, path, seen)
            if known.why_not is None:
                with self._lock:
                    if len(self._programs) > 4096:
                        self._programs.clear()
                    self._programs[key] = known
        return known

    def _looked_at(self, word: str, path: str, seen: os.stat_result) -> Program:
        real = os.path.realpath(path)
        local = self._inside(real) or self._inside(os.path.realpath(os.path.dirname(path)))
        # what stands behind a folder of the safe PATH is the host's choice, wherever its links lead
        from_path = os.path.realpath(os.path.dirname(path)) in self._real_path
        if not local and not from_path:
            return Program(word, path, real, why_not=f"{path} lies neither in the safe PATH nor in the workspace")
        try:
            digest, interpreter = self._content(path, seen)
        except OSError as error:
            why = f"{path} cannot be read ({error.strerror}), so it cannot be told from another program"
            return Program(word, path, real, why_not=why)
        return Program(word, path, real, digest, (seen.st_dev, seen.st_ino), local, interpreter)

    def _inside(self, real: str) -> bool:
        return real == self._workspace or real.startswith(self._workspace.rstrip("/") + "/")

    def _content(self, path: str, seen: os.stat_result) -> tuple[str, tuple[str, ...]]:
        stamp = stamp_of(seen)
        with self._lock:
            found = self._known.get(stamp)
        if found is None:
            # should a fifo be there by now, nobody waits for a writer
            with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
                # of the open file: between the look and the opening it may have become another one
                stamp = stamp_of(os.fstat(file.fileno()))
                first = file.read(_FIRST_LINE)
                hashed = hashlib.sha256(first)
                while chunk := file.read(1 << 20):
                    hashed.update(chunk)
                unchanged = stamp_of(os.fstat(file.fileno())) == stamp
            found = ("sha256:" + hashed.hexdigest(), _interpreter(first))
            if unchanged:
                with self._lock:
                    if len(self._known) > 4096:
                        self._known.clear()
                    self._known[stamp] = found
        return found

    def hold(self, program: Program) -> Held:
        """Open a program that has been judged. Raises ``OSError`` when it is not there, or is another one by now."""
        assert program.path is not None
        fd = os.open(program.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            seen = os.fstat(fd)
            if (seen.st_dev, seen.st_ino) != program.inode or self._content(f"/dev/fd/{fd}", seen)[0] != program.digest:
                raise OSError(f"{program.path} is another program than the one that was judged")
        except BaseException:
            os.close(fd)
            raise
        return Held(fd, stamp_of(seen))

    def content(self, path: str, seen: os.stat_result) -> str:
        """The hash of a file. Raises ``OSError``."""
        return self._content(path, seen)[0]

    @staticmethod
    def state(path: str) -> tuple[object, ...]:
        """What tells whether a name, and the file behind it, stayed the same. Raises ``OSError``."""
        return os.path.realpath(path), stamp_of(os.lstat(path)), stamp_of(os.stat(path))


def _interpreter(first: bytes) -> tuple[str, ...]:
    """The words of a ``#!`` line as the kernel takes them: a program, and the rest as one argument."""
    if not first.startswith(b"#!"):
        return ()
    return tuple(os.fsdecode(word) for word in first[2:].split(b"\n", 1)[0].strip().split(None, 1))
