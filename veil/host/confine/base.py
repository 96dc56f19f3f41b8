"""What has to be confined, in resolved paths, and what a backend is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from veil.model.outcome import Outcome
from veil.model.plan import Enclosure, Restrict


class CannotConfine(Exception):
    """No backend can do it. ``reasons``: what each that was asked said, by name."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in reasons.items()))
        self.reasons = dict(reasons)


@dataclass(frozen=True)
class Allowance:
    """How much a command may use before it is ended; ``None``: as much as there is.

    Attributes: processes: alive at once. memory, file_size, disk: bytes. cpu: seconds.
    """

    processes: int | None = None
    memory: int | None = None
    file_size: int | None = None
    disk: int | None = None
    cpu: float | None = None


@dataclass(frozen=True)
class Bounds:
    """One run's confinement, every path absolute, real (no link in it) and existing.

    Attributes:
        cwd: where the command runs; writable.
        writable: further folders or files that may be written to.
        temp: the run's own temporary folder on the host; the command sees it as its TMPDIR, and as ``/tmp`` where a
            backend has mounts.
        network: ``False`` takes it away.
        sockets: unix sockets by path that may still be reached.
        masked_folders, masked_files: cannot be read; also where they lie below something writable.
        readonly: cannot be written to although they lie below something writable.
        pinned: folders that can be written to but neither moved nor removed.
        shown: folders that are there to be read although they lie where something else is put.
        readable: files that the command must be able to read, wherever they lie.
        own: folders of veil's own state, neither read nor written by the command.
        allowance: how much it may use. A backend that cannot hold it to that says so in ``lacks``.
    """

    cwd: str
    temp: str
    writable: tuple[str, ...] = ()
    network: bool = True
    sockets: tuple[str, ...] = ()
    masked_folders: tuple[str, ...] = ()
    masked_files: tuple[str, ...] = ()
    readonly: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    own: tuple[str, ...] = ()
    allowance: Allowance = field(default_factory=Allowance)


@dataclass(frozen=True)
class Wrapped:
    """How to start a command inside.

    Attributes:
        argv: the words that confine the command, with the command at their end.
        pass_fds: descriptors these words need.
        restrict: run on the throw-away thread that starts the process; what it restricts, that thread's children
            inherit and the rest of this process does not. What it answers is called with the process (``Restrict``).
            ``None``: nothing to do there.
        temp: the path by which the command sees its temporary folder; ``None``: the one it has on the host.
        started, settle: see ``veil.model.plan.Launch``.
        limit: asked after the end: the option (``max_cpu`` ...) whose limit ended the command, or ``None``.
    """

    argv: tuple[str, ...]
    pass_fds: tuple[int, ...] = ()
    restrict: Restrict | None = None
    temp: str | None = None
    started: Callable[[], Enclosure | None] | None = None
    settle: Callable[[Outcome], Outcome] | None = None
    limit: Callable[[Outcome], str | None] | None = None


class Backend(Protocol):
    """One way to confine. ``name`` is what results call it."""

    name: str

    def unavailable(self) -> str | None:
        """Why it does not work on this machine, found by trying the real thing once (a denied write seen denied)."""

    def lacks(self, bounds: Bounds) -> str | None:
        """Why it cannot grant these very bounds, or ``None``."""

    def gaps(self, bounds: Bounds) -> tuple[str, ...]:
        """What it leaves open of these bounds on this machine, each in a few words."""

    def confine(self, argv: tuple[str, ...], bounds: Bounds) -> AbstractContextManager[Wrapped]:
        """The command inside; what was opened for it is closed when the context ends."""
