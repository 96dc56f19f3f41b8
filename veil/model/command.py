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
    merge_stderr: bool = False
    redact: bool = False
    secrets: tuple[str, ...] = field(default=(), repr=False)
    contain: bool = False
    background: bool = False
    left_running: LeftRunning = "kill"
    tag: str | None = None
    umask: int | None = None
    fixed_addresses: bool = False
