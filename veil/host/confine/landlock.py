"""Landlock with a filter of system calls and without capabilities: no program, no namespace, no root needed.

The rules are given to a throw-away thread (``veil.host.restricted``), whose child keeps them while this process stays
free. They only ever allow, and they allow whole folders with all that is below. Two things follow:

* What may be *read* is told by naming the neighbours: everything beside a masked folder on its way up to ``/`` is
  allowed, the folder is not. What is made later right beside such a neighbour cannot be read by the command.
* Nothing can be taken out of a folder that may be written to. Bounds that need this are refused; mounts can do it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import select
import time
from collections.abc import Callable, Iterator
from typing import Any

from veil.host import prctl
from veil.host.confine import cores, seccomp, trial
from veil.host.confine.base import Allowance, Bounds, Wrapped
from veil.host.confine.bounds import within
from veil.host.confine.ruleset import READ, READ_DIR, READ_FILE, Ruleset, version, write_rights
from veil.host.confine.status import broken
from veil.host.processes import LINUX

#: Below this, truncate(2) of any file is open: nothing that could be called write protection.
OLDEST = 3
#: Devices that everybody writes to. No terminals: through /dev/pts a command would reach those of its user as well.
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
#: Locks, queues and shared memory of multiprocessing are files here.
_SHARED_MEMORY = "/dev/shm"

#: What no version of the interface (as of ABI 8) restricts.
_ALWAYS_OPEN = (
    "mode, owner, times, attributes and flags of files outside can be changed as far as their permissions allow",
    "processes outside can be seen, with their command lines; their limits, priorities and processors can be changed "
    "by their user",
    "a process that gets away from its parents is not ended together with the command",
    "/dev/shm, System V shared memory and message queues are shared with the machine",
    "/tmp is the machine's: readable, not writable",
)
#: Open below a version of the interface.
_OPEN_BELOW = (
    (5, "device files that can be opened take every ioctl"),
    (6, "signals reach processes outside"),
)


def too_old(abi: int) -> str | None:
    """Why a kernel with this version of the interface (0: none) cannot confine what is written, or ``None``."""
    if abi == 0:
        return "this kernel has no Landlock, or it is switched off (Linux 6.2 or newer, with landlock in lsm=)"
    if abi < OLDEST:
        return f"Landlock ABI {abi} cannot keep files from being truncated; ABI {OLDEST} can (Linux 6.2 or newer)"
    return None


def gaps_of(abi: int, bounds: Bounds) -> tuple[str, ...]:
    """What stays open with these bounds under a kernel with this version of the interface."""
    found = [*_ALWAYS_OPEN, *(text for since, text in _OPEN_BELOW if abi < since)]
    if bounds.sockets:
        found.append("every unix socket can be reached, not only the granted ones")
        if abi < 6:
            found.append("abstract unix sockets can be reached")
    if not bounds.network:
        found.append("there is no loopback network either")
    if _hidden(bounds):
        found.append("what is protected from reading cannot be opened, but its names, sizes and times can be seen")
    return tuple(found)


class Landlock:
    """The backend ``landlock``. See the module."""

    name = "landlock"

    def unavailable(self) -> str | None:
        """Why it does not work here: found by confining a shell that then tries to write outside. Asked once."""
        return _unavailable()

    def lacks(self, bounds: Bounds) -> str | None:
        """What of these bounds Landlock cannot express."""
        writable = _writable(bounds)
        below = tuple(root.rstrip("/") + "/" for root in writable)
        for path in (*_hidden(bounds), *bounds.readonly, *bounds.pinned):
            if path in writable or path.startswith(below):
                above = next(root for root in writable if within(path, root))
                return f"Landlock cannot take {path!r} out of {above!r}, which may be written to"
        if bounds.allowance != Allowance():
            return "Landlock sets no limits on what a command uses"
        return None

    def gaps(self, bounds: Bounds) -> tuple[str, ...]:
        """What stays open with these bounds under this kernel."""
        return gaps_of(version(), bounds)

    @contextlib.contextmanager
    def confine(self, argv: tuple[str, ...], bounds: Bounds) -> Iterator[Wrapped]:
        """The command as it is, with rules for the thread that starts it.

        Raises:
            VeilError: ``sandbox_broken``: the kernel does not take the rules (``restrict`` raises the same).
        """
        program = seccomp.filter_program(
            network=bounds.network, sockets=bool(bounds.sockets), unix_needs_grant=True
        )  # with the network on as well: a daemon behind a socket (D-Bus, Docker) would write in the command's stead
        try:
            rules = _RULES.of(bounds)
        except OSError as error:
            raise broken(str(error.strerror)) from error

        def restrict() -> Callable[[Any], None]:
            cores.give_up()
            try:
                prctl.drop_capabilities()
                prctl.no_new_privileges()
                rules.restrict_thread()
                prctl.filter_calls(program)
            except BaseException as error:
                cores.take_back(None)
                if isinstance(error, OSError):
                    raise broken(str(error.strerror)) from error
                raise
            return lambda process: cores.take_back(None if process is None else process.pid)

        yield Wrapped(argv, restrict=restrict)


def _hidden(bounds: Bounds) -> tuple[str, ...]:
    return (*bounds.masked_folders, *bounds.masked_files, *bounds.own)


def _writable(bounds: Bounds) -> tuple[str, ...]:
    return (bounds.cwd, bounds.temp, *bounds.writable, _SHARED_MEMORY)


@functools.lru_cache(maxsize=16)
def _above(hidden: tuple[str, ...]) -> frozenset[str]:
    """Folders whose contents have to be named one by one for these to be left out."""
    found = {"/", "/dev"}
    for path in hidden:
        while path not in ("/", ""):
            path = os.path.dirname(path)
            found.add(path)
    return frozenset(found)


class _Rules:
    """The rules for bounds, and those of the last runs: looking at every neighbour costs as much as starting a program.

    Rules hold files, not names. They are right as long as the same folders stand at the same paths, nothing was
    mounted, and nothing came or went beside what is hidden, which the times of the folders above tell, once they are
    not of this very moment.
    """

    _KEPT = 8

    def __init__(self, settled: float = 3.0) -> None:
        """``settled``: seconds after which a change would show; some file systems keep times in steps of two."""
        self._settled = int(settled * 1e9)
        self._kept: dict[Bounds, tuple[object, Ruleset]] = {}
        self._mounts = -1

    def of(self, bounds: Bounds) -> Ruleset:
        """Raises ``OSError``."""
        if self._mounted():
            self._kept.clear()
        stamp, youngest = _stamp(bounds)
        known = self._kept.get(bounds)
        if known is not None and known[0] == stamp:
            return known[1]
        before = time.time_ns()
        rules = _made(bounds)
        if before - youngest > self._settled:
            if len(self._kept) >= self._KEPT:
                self._kept.clear()
            self._kept[bounds] = (stamp, rules)
        return rules

    def _mounted(self) -> bool:
        """Whether anything was mounted or unmounted since this was last asked; the kernel tells once."""
        if self._mounts < 0:
            self._mounts = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        poll = select.poll()
        poll.register(self._mounts, select.POLLPRI)
        return bool(poll.poll(0))


_RULES = _Rules()


def _stamp(bounds: Bounds) -> tuple[object, int]:
    """What stands at the paths that rules are made for, and when something last came or went beside them (ns)."""
    seen: list[tuple[int, ...] | None] = []
    youngest = 0
    for path in (*_writable(bounds), *bounds.readable):
        try:
            found = os.stat(path)
            seen.append((found.st_dev, found.st_ino))
        except OSError:
            seen.append(None)
    hidden = _hidden(bounds)
    for path in _above(hidden) if hidden else ():
        try:
            found = os.stat(path)
        except OSError:
            seen.append(None)
            continue
        seen.append((found.st_dev, found.st_ino, found.st_mtime_ns, found.st_ctime_ns))
        youngest = max(youngest, found.st_mtime_ns, found.st_ctime_ns)
    return tuple(seen), youngest


def _made(bounds: Bounds) -> Ruleset:
    abi = version()
    write, hidden = write_rights(abi), _hidden(bounds)
    rules = Ruleset(write | (READ if hidden else 0), network=bounds.network, abi=abi)
    for path in (*_writable(bounds), *_DEVICES):
        rules.allow(path, write | READ)
    for path in bounds.readable:
        rules.allow(path, READ_FILE)
    if hidden:
        # hierarchical, so names can be listed everywhere; without it no folder above a masked one could be
        rules.allow("/", READ_DIR)
        for path in _neighbours(hidden):
            rules.allow(path, READ)
    return rules


def _neighbours(hidden: tuple[str, ...]) -> Iterator[str]:
    """Everything that is neither masked nor above something masked, named as high up as it goes."""
    masked = set(hidden)
    above = _above(hidden)
    # in /dev only what everybody uses (_DEVICES): raw disks hold every file, and terminals what is typed
    for folder in above - masked - {"/dev"}:
        try:
            entries = os.scandir(folder)
        except OSError:  # what cannot be listed is not read by name of its neighbours either: less, never more
            continue
        with entries:
            for entry in entries:
                if entry.path in masked or entry.path in above or entry.is_symlink():
                    continue  # a rule on a link would be one on what it leads to
                yield entry.path


@functools.cache
def _unavailable() -> str | None:
    if not LINUX:
        return "Landlock is part of Linux"
    return too_old(version()) or seccomp.unavailable() or trial.tried(Landlock().confine, network=False)
