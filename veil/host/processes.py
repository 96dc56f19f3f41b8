"""Who is alive: looking at processes and signalling them without ever hitting a recycled pid.

Linux reads /proc itself (a scan at a timeout has to be quick and needs the environment of each process); other systems
ask psutil.
"""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

LINUX = sys.platform.startswith("linux")

#: Name of the environment variable that marks every process of a run.
TAG_VARIABLE = "VEIL_RUN"


class Process(NamedTuple):
    """One process as seen in one look. ``started`` is only good for comparing with itself (clock ticks or seconds)."""

    pid: int
    parent: int
    group: int
    session: int
    started: float
    zombie: bool


def _parse_stat(pid: int, line: bytes) -> Process:
    # the program name may hold spaces and brackets: fields are counted after the last ")"
    fields = line[line.rindex(b")") + 2 :].split()
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), float(fields[19]), fields[0] in (b"Z", b"X"))


def _read(path: str) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.read(fd, 1 << 20)
    except OSError:  # gone between open and read, or not ours
        return b""
    finally:
        os.close(fd)


def look(pid: int) -> Process | None:
    """One process, or ``None`` when there is none of this pid."""
    if LINUX:
        line = _read(f"/proc/{pid}/stat")
        return _parse_stat(pid, line) if line else None
    import psutil

    try:
        process = psutil.Process(pid)
        with process.oneshot():
            zombie = process.status() == psutil.STATUS_ZOMBIE
            return Process(pid, process.ppid(), os.getpgid(pid), os.getsid(pid), process.create_time(), zombie)
    except (psutil.Error, OSError):
        return None


def everyone() -> dict[int, Process]:
    """Every process that can be seen, by pid."""
    if LINUX:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    else:
        import psutil

        pids = psutil.pids()
    return {pid: process for pid in pids if (process := look(pid)) is not None}


def tagged(pid: int, tag: str) -> bool:
    """Whether the process carries the tag of a run in its environment (``False`` when that cannot be read)."""
    if LINUX:
        environment = _read(f"/proc/{pid}/environ") or _environment_after_exec(pid)
        at = environment.find(TAG_VARIABLE.encode() + b"=")
        return at >= 0 and tag.encode() in environment[at:].split(b"\0", 1)[0]
    import psutil

    try:
        return tag in psutil.Process(pid).environ().get(TAG_VARIABLE, "")
    except (psutil.Error, OSError):
        return False


def bears(pid: int, variable: str) -> bool:
    """Whether the environment of the process holds this variable with this value (``NAME=value``)."""
    return LINUX and variable.encode() in _read(f"/proc/{pid}/environ").split(b"\0")


def bearers(variable: str) -> list[Process]:
    """Living processes of which ``bears`` is true."""
    return [process for process in everyone().values() if not process.zombie and bears(process.pid, variable)]


def program(pid: int) -> str:
    """The name of the program of a process, its first 15 characters, also of one that has ended (Linux)."""
    return os.fsdecode(_read(f"/proc/{pid}/comm").rstrip(b"\n"))


def _environment_after_exec(pid: int) -> bytes:
    """The environment of a process that shows none. In the middle of an exec there is neither environment nor command
    line for a moment; afterwards, and for one without any variable, there is a command line."""
    kernel = 2
    for _ in range(20):
        settled = _read(f"/proc/{pid}/cmdline") != b""
        environment = _read(f"/proc/{pid}/environ")
        process = look(pid)
        if environment or settled or process is None or process.zombie or kernel in (pid, process.parent):
            return environment
        time.sleep(0.0005)
    return b""


def carriers(tag: str) -> list[Process]:
    """Living processes that carry the tag of a run, whoever their parent is."""
    return [process for process in everyone().values() if not process.zombie and tagged(process.pid, tag)]


def newest() -> int:
    """The pid that was given out last in this process's namespace; 0 where that cannot be asked for.

    Read before and after a look at everyone, it tells whether that look can have missed somebody.
    """
    told = _read("/proc/loadavg").split() if LINUX else []
    return int(told[-1]) if told else 0


def born_later(pid: int, tag: str) -> bool:
    """Whether an orphan that is younger than ``pid`` carries the tag: a cheap look before a thorough one.

    Only where the newest pid can be asked for (Linux); ``False`` elsewhere.
    """
    last = newest()
    for _ in range(3):
        if last == pid or not last:
            return False  # nobody has been born since
        if last < pid:
            return True  # the numbers began anew
        if any(_orphan(number) and tagged(number, tag) for number in _between(pid, last)):
            return True
        before, last = last, newest()
        if before == last:
            return False
    return True


def _between(pid: int, last: int) -> Iterable[int]:
    if last - pid < 50:  # asking for each costs less than listing all
        return range(pid + 1, last + 1)
    return [number for name in os.listdir("/proc") if name.isdigit() and pid < (number := int(name)) <= last]


def _orphan(pid: int) -> bool:
    # asked before the environment is: reading that waits while its owner maps memory, a millisecond on a busy machine
    process = look(pid)
    return process is not None and process.parent in _adopters(os.getpid(), os.getppid())


@functools.lru_cache(maxsize=1)
def _adopters(mine: int, parent: int) -> frozenset[int]:
    """Who may be given the orphans of this process's children: init, or an ancestor (any of them may be a subreaper).

    An ancestor that ends makes the list too long, never too short.
    """
    found = {0, 1, mine}
    while parent not in found:
        found.add(parent)
        process = look(parent)
        parent = 0 if process is None else process.parent
    return frozenset(found)


def now() -> float:
    """A moment to compare with ``Process.started``, just before whoever is started next; -1 where there is none."""
    if not LINUX:
        return -1.0
    # never exactly a tick, so that it is nobody's start
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK")) - 1.5


def send(process: Process, signum: int) -> bool:
    """Signal exactly this process. ``False`` when it is gone or not ours to signal.

    A pidfd is opened first and the identity looked at after: from then on the number cannot mean somebody else.
    """
    if hasattr(os, "pidfd_open"):
        try:
            handle = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return False
        except OSError:
            handle = -1  # a kernel without pidfd
        if handle >= 0:
            try:
                now = look(process.pid)
                if now is None or now.started != process.started:
                    return False
                signal.pidfd_send_signal(handle, signum)
            except (ProcessLookupError, PermissionError):
                return False
            finally:
                os.close(handle)
            return True
    now = look(process.pid)
    if now is None or now.started != process.started:
        return False
    try:
        os.kill(process.pid, signum)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def members(
    root: Process,
    tag: str = "",
    *,
    below: int = 0,
    came: Callable[[Process], bool] = lambda process: True,
    spare: Iterable[int] = (),
) -> list[Process]:
    """Living processes of a run: the group and session of ``root``, its descendants, and whoever carries ``tag``.

    Args:
        root: the command's own process as it was seen at its start.
        tag: run tag; empty looks at no environment.
        below: pid of a process that adopts orphans of this run alone (a subreaper), 0 for none.
        came: which of its children are such orphans.
        spare: pids (with all below them) that are never members.
    """
    seen = everyone()
    mine = os.getpid()
    spared = {mine, *spare}
    children: dict[int, list[int]] = {}
    for process in seen.values():
        children.setdefault(process.parent, []).append(process.pid)
    recycled = root.pid in seen and seen[root.pid].started != root.started
    found = set() if recycled else {root.pid} & seen.keys()
    for process in seen.values():
        if process.started < root.started or process.pid in found:
            continue
        # a group or session number stays reserved while one of its members lives, unless its leader came anew
        if (not recycled and root.pid in (process.group, process.session)) or (tag and tagged(process.pid, tag)):
            found.add(process.pid)
    if below:
        found.update(pid for pid in children.get(below, ()) if came(seen[pid]))
    todo = [pid for pid in found if pid not in spared]
    reached: set[int] = set()
    while todo:
        pid = todo.pop()
        if pid not in reached and pid not in spared:
            reached.add(pid)
            todo.extend(children.get(pid, ()))
    return [seen[pid] for pid in reached if not seen[pid].zombie]


def identity(pid: int) -> str:
    """Opaque text that tells this process from a later one of the same pid; empty when it is gone."""
    process = look(pid)
    if process is None:
        return ""
    return f"{_where()}:{process.started:.6f}"


def is_same(pid: int, identified: str) -> bool | None:
    """Whether the process that ``identity`` described still lives; ``None`` when it cannot be seen from here."""
    boot = identified.rpartition(":")[0]
    if boot.partition("/")[0] == _where().partition("/")[0] and boot != _where():
        return None  # in a namespace of its own: the number means somebody else here
    process = look(pid)
    return process is not None and not process.zombie and identity(pid) == identified


@functools.cache
def _where() -> str:
    """This boot and this namespace of process numbers."""
    if not LINUX:
        return ""
    boot = space = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")
    return f"{boot}/{space}"
