"""What is about to be done: can be shown without running anything."""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from veil.model.command import LeftRunning, Limits, Request
from veil.model.outcome import Findings, Outcome


class Place(enum.IntEnum):
    """The order in which layers are entered; they are left in reverse."""

    PLACE = 1  #: where the run happens (preview clone, workspace)
    GUARD = 2  #: environment, secrets
    WATCH = 3  #: what changed, facts
    CONFINE = 4  #: sandbox
    TRACE = 5  #: syscall trace


@dataclass(frozen=True)
class Decision:
    """Allow, ask or deny, with the rules that led there.

    Attributes:
        answer: what a policy says; a run whose answer is ``ask`` was approved.
        rules: ids of the rules that led to it. errors: what failed on the way.
        policy: hash of it; ``None``: nothing judged this run.
        request: id under which the audit has it.
    """

    answer: Literal["allow", "ask", "deny"] = "allow"
    rules: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    policy: str | None = None
    request: str | None = None


@dataclass(frozen=True)
class Plan:
    """The request with the layers that grant it.

    Attributes:
        layers: names of the layers in the order they are entered.
        looks: paths that the checks will ask about.
        skipped: pairs of layer and reason for observers that cannot be granted here.
    """

    request: Request
    layers: tuple[str, ...] = ()
    looks: tuple[str, ...] = ()
    decision: Decision = Decision()
    skipped: tuple[tuple[str, str], ...] = ()


class Enclosure(Protocol):
    """What holds every process of a command (a pid namespace with the programs that made it).

    Attributes:
        pids: the programs around the command, beside the one that was started. They and the started one get no signal
            but the last, and are nothing that the command left behind.
    """

    pids: frozenset[int]

    def empty(self, seconds: float) -> bool:
        """Whether nobody is left inside, waiting at most so long for the end of it."""


@dataclass
class Touched:
    """Which paths a tracer saw a command change, or try to: filled by the layer that traces, read when it has ended.

    Attributes:
        by: the name of what traced; ``None``: nobody did.
        paths: absolute, as bytes of the file system; links on the way may not be resolved.
        trees: those of which everything below them moved along.
        complete: ``False`` once a change may have gone unseen.
    """

    by: str | None = None
    paths: set[bytes] = field(default_factory=set)
    trees: set[bytes] = field(default_factory=set)
    complete: bool = True


#: See ``Launch.restrict``.
Restrict = Callable[[], "Callable[[Any], None] | None"]


@dataclass(frozen=True)
class Launch:
    """What the operating system is really asked to start. Layers wrap it; ``argv`` is never joined into a text.

    Attributes:
        env: the whole environment of the child.
        tag: value that marks every process of the run in its environment (see ``veil.host.tree_of_processes``).
        pass_fds: descriptors a confining layer must hand down.
        outside: words put in front of everything when it starts, whatever other layers wrap ``argv`` in later (the
            mounts of a preview have to be there before a sandbox closes the door).
        readable: files that a confining layer must let the command read, wherever they lie.
        unwanted: whether the run was cancelled before it began; a layer that waits asks it now and then.
        umask: for the child; ``None`` inherits. fixed_addresses: no address randomisation (Linux).
        held: descriptor (also in ``pass_fds``) of the program that ``argv[0]`` names; it is started instead of what
            has that name by then. Only for a launch that nothing wraps any more.
        restrict: run on a thread of its own that then starts the process: what it gives up, its children do not have
            and the rest of this process keeps. What it answers, if anything, is called with the process once there is
            one (an object with a ``pid``), or with ``None`` when there is none after all.
        started: called once the process has started, before anything is waited for. What it raises ends the run. It
            may tell of an enclosure that everything of the command lives in.
        watchers: a variable with its value (``NAME=value``) that only the environment of those processes holds which
            watch the command: they are nothing that it left behind, and end by themselves when it has.
        touched: where a tracer puts down what it sees changed, for whoever tells the changes.
        settle: what the end of the words that wrap the command says of the command itself; asked once, before any
            layer hears of the outcome.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    stdin: bytes | None = None
    limits: Limits = field(default_factory=Limits)
    merge_stderr: bool = False
    contain: bool = False
    left_running: LeftRunning = "kill"
    tag: str = ""
    pass_fds: tuple[int, ...] = ()
    outside: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    unwanted: Callable[[], bool] | None = None
    umask: int | None = None
    fixed_addresses: bool = False
    held: int | None = None
    restrict: Restrict | None = None
    started: Callable[[], Enclosure | None] | None = None
    settle: Callable[[Outcome], Outcome] | None = None
    watchers: str = ""
    touched: Touched | None = None


#: One layer applied to its wish: wraps a launch, is sent the outcome, returns findings.
Wrap = Callable[[Launch], Generator[Launch, Outcome, Findings]]


@dataclass(frozen=True)
class Work:
    """What an executor is given.

    Attributes:
        outer: entered once around all attempts (``PLACE``, ``GUARD``, ``WATCH``), outermost first.
        inner: entered anew for each attempt (``CONFINE``, ``TRACE``).
    """

    plan: Plan
    launch: Launch
    outer: tuple[Wrap, ...] = ()
    inner: tuple[Wrap, ...] = ()
