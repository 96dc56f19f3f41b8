"""What the caller wants: the command and everything asked around it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from typing import Any, Literal

#: Seconds a command may take unless told otherwise (tools reference, ``timeout_ms``).
DEFAULT_TIMEOUT = 120.0
#: Bytes kept of each stream unless told otherwise (CONTRACT, "A result").
DEFAULT_STREAM_BYTES = 5_000_000

LeftRunning = Literal["kill", "keep"]


@dataclass(frozen=True)
class Command:
    """One command: always an argv; a shell text remembers the text that it came from.

    Attributes:
        argv: the argument vector (``str`` with surrogateescape for bytes that are not UTF-8).
        cwd: absolute path of the working directory.
        text: the shell text when the caller gave one (then ``argv`` is ``(shell, "-c", text)``), else ``None``.
        env: additions to the environment as sorted pairs; a value of ``None`` removes the name.
        stdin: bytes for standard input; ``None`` connects it to ``/dev/null``.
    """

    argv: tuple[str, ...]
    cwd: str
    text: str | None = None
    env: tuple[tuple[str, str | None], ...] = ()
    stdin: bytes | None = None

    @property
    def display(self) -> str:
        """One line or text that can be pasted into a shell: the text itself, or the argv quoted by ``shlex``."""
        return self.text if self.text is not None else shlex.join(self.argv)


@dataclass(frozen=True)
class Limits:
    """Attributes: timeout: seconds, ``None`` for no limit. stream_bytes: bytes kept of each stream."""

    timeout: float | None = DEFAULT_TIMEOUT
    stream_bytes: int = DEFAULT_STREAM_BYTES


@dataclass(frozen=True)
class Retry:
    """Attributes: times: further attempts after the first. exits: exit codes that are retried (empty: every
    failure but a timeout). backoff: seconds before the second attempt, doubled before each later one."""

    times: int = 0
    exits: tuple[int, ...] = ()
    backoff: float = 0.0


@dataclass(frozen=True)
class Effects:
    """Wish: tell which files changed. ``ignored=True`` also reports what git ignores (``effects="all"``)."""

    ignored: bool = False


@dataclass(frozen=True)
class ScrubEnv:
    """Wish: take credential-shaped variables out of the child's environment."""


@dataclass(frozen=True)
class Sandbox:
    """Wish: confine the command. A machine that cannot grant all of it refuses the run.

    Attributes:
        network: ``True`` leaves the network as it is, ``False`` takes all of it away.
        writable: further folders that may be written to; cwd and a private temp folder always may.
        protect_secrets: the usual credential folders and files cannot be read.
        deny_read: further paths that cannot be read.
        unix_sockets: with ``network=False``: sockets by path that may still be reached (``()``: none).
        backend: name of the backend that has to do it; ``None`` takes the strongest that works here.
        protect_git: hooks and config of a repository in cwd cannot be written to.
        max_processes: processes alive at once. max_memory, max_file_size, max_disk: bytes. max_cpu: seconds.
    """

    network: bool = True
    writable: tuple[str, ...] = ()
    protect_secrets: bool = False
    deny_read: tuple[str, ...] = ()
    unix_sockets: tuple[str, ...] = ()
    backend: str | None = None
    protect_git: bool = False
    max_processes: int | None = None
    max_memory: int | None = None
    max_file_size: int | None = None
    max_disk: int | None = None
    max_cpu: float | None = None


@dataclass(frozen=True)
class Trace:
    """Wish: tell from system calls what was read, written, executed and connected to."""


@dataclass(frozen=True)
class Preview:
    """Wish: run in a disposable view of cwd and tell what would have changed; the tree itself stays as it is."""


@dataclass(frozen=True)
class Carry:
    """Wish: begin in the state that the commands before left, and keep the state that this one leaves.

    Attributes:
        session: its name. state: mark of the state it begins in, the same wherever the same was done before.
        carried: the state itself, and the place for the one after it (``veil.layers.session``). Never recorded.
    """

    session: str
    state: str = ""
    carried: Any = field(default=None, repr=False, compare=False, metadata={"recorded": False})


@dataclass(frozen=True)
class Look:
    """Wish: look at these paths when the command has ended, so that checks can judge without the world.

    Attributes: paths: as the caller wrote them, relative to the run's cwd or absolute.
    """

    paths: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """The caller's whole will. Built in one place (``veil.asking``) for every door.

    Attributes:
        expect: pairs of check name and its parsed expected value, in the order given.
        insist: look for changes even when the pre-check says that the command can make none.
        merge_stderr: one stream in true order (both land in stdout).
        redact: known secret values are replaced before anything is kept; ``secrets`` are further values.
        contain: a supervisor process owns the tree; nothing of it survives, whatever it did.
        left_running: what happens to processes still there when the command itself has ended.
        tag: mark of the run in its environment; ``None`` makes a fresh one.
        umask: for the child; ``None`` inherits. fixed_addresses: no address randomisation (Linux).
    """

    command: Command
    limits: Limits = field(default_factory=Limits)
    wishes: tuple[object, ...] = ()
    expect: tuple[tuple[str, Any], ...] = ()
    retry: Retry = field(default_factory=Retry)
    full: bool = False
    no_store: bool = False
    insist: bool = False
    merge_stderr: bool = False
    redact: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)
    contain: bool = False
    background: bool = False
    left_running: LeftRunning = "kill"
    tag: str | None = None
    umask: int | None = None
    fixed_addresses: bool = False
