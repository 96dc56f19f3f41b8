"""Holding a command to what it may use: the kernel's own limits where they mean the same, a watch where they do not.

The kernel limits a process, not a command: ``RLIMIT_CPU`` begins anew with each, ``RLIMIT_AS`` counts what is never
touched, ``RLIMIT_NPROC`` does not hold root. So processor time, memory, disk and (for root) processes of everything
inside are added up several times a second, and the whole is ended when it is too much. That is not exact: a command may
be over for the length of one interval, and what it wrote or started by then stays written until it is ended.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import threading
import time
from collections.abc import Iterable

from veil.host.confine.base import Allowance
from veil.host.confine.status import Inside
from veil.host.descent import below
from veil.host.mounts import point_of
from veil.model.outcome import Outcome

#: Between two looks (seconds); between two looks at folders whose file system keeps no account.
INTERVAL, FOLDER_INTERVAL = 0.02, 0.25
#: File systems on which the kernel does not count what a process writes.
_UNCOUNTED = ("tmpfs", "ramfs", "ramdisk")
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
#: What programs say when they could not fork, and when a file had become too long.
_NO_FORK = (b"Resource temporarily unavailable", b"Cannot fork", b"fork: retry", b"BlockingIOError")
_TOO_LONG = (b"File too large", b"File size limit exceeded", b"Filesize limit exceeded")
#: 128 and the number of the signal, as a shell says it.
_SIGXCPU, _SIGXFSZ = 152, 153


def unavailable(allowance: Allowance) -> str | None:
    """Why the watch cannot be kept on this machine, or ``None``."""
    if not _watched(allowance):
        return None
    me = f"/proc/self/task/{threading.get_native_id()}"
    if not os.path.exists(f"{me}/children"):
        return "this kernel does not list the children of a process (CONFIG_PROC_CHILDREN), so nothing can be added up"
    if allowance.disk is not None and not os.path.exists("/proc/self/io"):
        return "this kernel does not count what a process writes (CONFIG_TASK_IO_ACCOUNTING), so max_disk cannot hold"
    return None


def _watched(allowance: Allowance) -> bool:
    return any(most is not None for most in (allowance.processes, allowance.memory, allowance.disk, allowance.cpu))


def gaps(allowance: Allowance) -> tuple[str, ...]:
    """What is not exact about these limits."""
    soft = [name for name in ("memory", "disk", "cpu") if getattr(allowance, name) is not None]
    if allowance.processes is not None and os.geteuid() == 0:
        soft.insert(0, "processes")
    if not soft:
        return ()
    names = ", ".join(f"max_{name}" for name in soft)
    return (f"{names}: looked at every {INTERVAL * 1000:.0f} ms, so more may be used for that long",)


def kernel_limits(allowance: Allowance, around: int) -> dict[int, int]:
    """What the kernel is to hold each process to. ``around``: processes inside that are not the command's."""
    limits = {resource.RLIMIT_CORE: 0}
    if allowance.file_size is not None:
        limits[resource.RLIMIT_FSIZE] = allowance.file_size
    if allowance.processes is not None:
        limits[resource.RLIMIT_NPROC] = allowance.processes + around
    if allowance.cpu is not None:
        limits[resource.RLIMIT_CPU] = math.ceil(allowance.cpu) + 1  # the watch comes first; this holds without it
    return limits


class Watch:
    """Adds up what everything inside uses, on a thread of its own, and ends it when that is too much."""

    def __init__(self, allowance: Allowance, folders: Iterable[str], around: int) -> None:
        """``folders``: where the command may write."""
        self._allowance = allowance
        self._around = around
        self._exceeded: str | None = None
        self._crowded = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._uncounted = [] if allowance.disk is None else [f for f in folders if _file_system(f) in _UNCOUNTED]
        self._before = {folder: _size(folder) for folder in self._uncounted}
        self._grown = 0
        self._walk_at = 0.0

    def begin(self, inside: Inside) -> None:
        if _watched(self._allowance):
            self._thread = threading.Thread(target=self._keep, args=(inside,), name="veil-allowance", daemon=True)
            self._thread.start()

    def _keep(self, inside: Inside) -> None:
        while not self._stop.is_set() and not inside.gone():
            self._exceeded = self._look(inside.first)
            if self._exceeded is not None:
                inside.end()
                return
            self._stop.wait(INTERVAL)

    def _look(self, first: int) -> str | None:
        """The option that is exceeded at this moment."""
        allowance = self._allowance
        pids = [first, *below(first)]
        if allowance.processes is not None:
            many = sum(1 for pid in pids if not _zombie(pid)) - self._around
            self._crowded = self._crowded or many >= allowance.processes
            if many > allowance.processes:
                return "max_processes"
        if allowance.cpu is not None and sum(_seconds(pid) for pid in pids) > allowance.cpu:
            return "max_cpu"
        # the first process is no part of the command
        if allowance.memory is not None and _memory(first, pids[1:], allowance.memory) > allowance.memory:
            return "max_memory"
        if allowance.disk is not None and self._written(pids) > allowance.disk:
            return "max_disk"
        return None

    def _written(self, pids: list[int]) -> int:
        now = time.monotonic()
        if self._uncounted and now >= self._walk_at:
            self._grown = sum(max(0, _size(folder) - self._before[folder]) for folder in self._uncounted)
            self._walk_at = time.monotonic() + FOLDER_INTERVAL
        return self._grown + sum(_disk(pid) for pid in pids)

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def limit(self, outcome: Outcome) -> str | None:
        """The option whose limit ended the command; it is known for those that are watched, and else told from how it
        ended and what it said."""
        if self._exceeded is not None or outcome.ok:
            return self._exceeded
        said = outcome.stderr.data + outcome.stdout.data
        allowance = self._allowance
        if allowance.cpu is not None and outcome.exit == _SIGXCPU:
            return "max_cpu"
        if allowance.file_size is not None and (outcome.exit == _SIGXFSZ or any(words in said for words in _TOO_LONG)):
            return "max_file_size"
        if allowance.processes is not None and (self._crowded or any(words in said for words in _NO_FORK)):
            return "max_processes"
        return None


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:  # gone, or not ours to look at
        return b""


def _fields(pid: int) -> list[bytes]:
    line = _read(f"/proc/{pid}/stat")
    return line[line.rindex(b")") + 2 :].split() if line else []


def _zombie(pid: int) -> bool:
    fields = _fields(pid)
    return not fields or fields[0] in (b"Z", b"X")


def _seconds(pid: int) -> float:
    """Processor time of a process and of the children that it has waited for."""
    return sum(int(field) for field in _fields(pid)[11:15]) / _TICKS


def _memory(first: int, pids: list[int], most: int) -> int:
    """Bytes that the processes hold, shared pages once, and what lies in the namespace's own /dev/shm."""
    shared = 0
    with contextlib.suppress(OSError):
        there = os.statvfs(f"/proc/{first}/root/dev/shm")
        shared = (there.f_blocks - there.f_bfree) * there.f_frsize
    resident = sum(int(words[1]) * _PAGE for pid in pids if (words := _read(f"/proc/{pid}/statm").split()))
    if resident + shared <= most:
        return resident + shared
    # pages that several hold were counted for each: only now is it worth asking for the exact share
    return shared + sum(_share(pid) for pid in pids)


def _share(pid: int) -> int:
    for line in _read(f"/proc/{pid}/smaps_rollup").split(b"\n"):
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * 1024
    return 0


def _disk(pid: int) -> int:
    """Bytes that a process and the children that it has waited for caused to be written to disk."""
    for line in _read(f"/proc/{pid}/io").split(b"\n"):
        if line.startswith(b"write_bytes:"):
            return int(line.split()[1])
    return 0


def _size(folder: str) -> int:
    """Bytes of blocks below a folder."""
    total, todo = 0, [folder]
    while todo:
        with contextlib.suppress(OSError), os.scandir(todo.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
    return total


def _file_system(folder: str) -> str:
    """Kind of the file system that a real path lies on."""
    best, kind = b"", b""
    path = os.fsencode(folder)
    for row in _read("/proc/self/mountinfo").split(b"\n")[:-1]:
        point = point_of(row)
        if len(point) >= len(best) and (path == point or path.startswith(point.rstrip(b"/") + b"/")):
            best, kind = point, row.partition(b" - ")[2].split(b" ", 1)[0]
    return os.fsdecode(kind)
