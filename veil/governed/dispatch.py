"""The part of a governed command that goes through the pipeline: what was judged is what is started."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from veil.executors.base import Executor, Running
from veil.governed.errors import Denied
from veil.governed.executables import Executables, Held
from veil.governed.scripts import Script, changed
from veil.host.orders import Controls
from veil.kit import Kit
from veil.layers.base import Entered
from veil.model.outcome import Findings
from veil.model.plan import Decision, Launch, Place, Plan, Work
from veil.policy.programs import Program
from veil.runner import Asked


@dataclass
class Watched:
    """What is learnt while it is started. Attributes: dispatched: something was asked of the operating system.
    held: it was started by descriptor. confirmed: what /proc shows as running is the judged file; ``None``: not known.
    changed: the program was another one when it ended."""

    dispatched: bool = False
    held: bool = False
    confirmed: bool | None = None
    changed: bool = False


#: Of fields that are about this machine and this moment, and no part of a recording.
_HERE = {"recorded": False}


@dataclass(frozen=True)
class Bind:
    """Wish: start exactly this program. Attributes: words: the argv that is really run; its first word is a path.
    decision: of the policy, for the record."""

    words: tuple[str, ...] = field(metadata=_HERE)
    decision: Decision = field(metadata=_HERE, default=Decision())


@dataclass(frozen=True)
class Recheck:
    """Wish: look again at everything, just before it starts.

    Attributes:
        program: as it was judged. names: words of other programs that were judged, with what they named.
        again: looks at cwd and paths; says what is wrong. folder: descriptor of the working directory.
        scripts: what interpreters are given by name.
    """

    program: Program = field(metadata=_HERE)
    executables: Executables = field(metadata=_HERE)
    again: Callable[[], str | None] = field(metadata=_HERE)
    cwd: str = field(metadata=_HERE)
    folder: int = field(metadata=_HERE)
    names: tuple[Program, ...] = field(metadata=_HERE, default=())
    scripts: tuple[Script, ...] = field(metadata=_HERE, default=())
    watched: Watched = field(metadata=_HERE, default_factory=Watched)
    cpu: float | None = field(metadata=_HERE, default=None)
    memory: int | None = field(metadata=_HERE, default=None)


class BindLayer:
    """Grants ``Bind``: puts the judged path in front, before a sandbox or a trace wraps the words."""

    name = "governed"
    place = Place.GUARD
    needed = True
    supersedes: tuple[type, ...] = ()

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        """Never: every machine can do this."""
        return None

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        """Yields the launch with the words that were judged."""
        assert isinstance(wish, Bind)
        yield dataclasses.replace(launch, argv=wish.words)
        return Findings()


class RecheckLayer:
    """Grants ``Recheck``: the last thing that happens before the start."""

    name = "governed_recheck"
    place = Place.TRACE
    needed = True
    supersedes: tuple[type, ...] = ()

    def unavailable(self, wish: object, plan: Plan) -> str | None:
        """Never: every machine can do this."""
        return None

    def enter(self, wish: object, launch: Launch, plan: Plan) -> Entered:
        """Yields a launch that is bound to the judged file, as far as this machine can; raises ``Denied``."""
        assert isinstance(wish, Recheck)
        bare = launch.argv[0] == wish.program.path and not launch.outside
        with contextlib.ExitStack() as opened:
            before = self._look(wish)
            held = self._hold(wish, opened) if bare and not wish.program.interpreter else None
            if held is not None:
                launch = dataclasses.replace(launch, held=held.fd, pass_fds=(*launch.pass_fds, held.fd))
                wish.watched.held = True
            if bare and os.path.isdir(own := f"/proc/self/fd/{wish.folder}"):
                # the very folder that was looked at, whatever has its name by now
                launch = dataclasses.replace(launch, cwd=own, pass_fds=(*launch.pass_fds, wish.folder))
            why = wish.again()
            if why is not None:
                raise Denied(why, code="path_changed")
            wish.watched.dispatched = True
            yield launch
            wish.watched.changed = (held is None and self._moved(wish, before)) or self._rewritten(wish) is not None
        return Findings()

    @staticmethod
    def _hold(wish: Recheck, opened: contextlib.ExitStack) -> Held | None:
        try:
            held = wish.executables.hold(wish.program)
        except OSError as error:
            raise Denied(f"the program has changed since it was judged ({error})", code="executable_changed") from error
        opened.callback(held.close)
        return held if os.path.exists(f"/proc/self/fd/{held.fd}") else None

    @staticmethod
    def _look(wish: Recheck) -> tuple[object, ...]:
        for program in (wish.program, *wish.names):
            now = wish.executables.find(program.word, wish.cwd)
            if now != program:
                why = f"{program.word!r} is another program than the one that was judged"
                raise Denied(why, code="executable_changed")
        rewritten = RecheckLayer._rewritten(wish)
        if rewritten is not None:
            why = f"the script {rewritten} is another one than when it was judged"
            raise Denied(why, code="executable_changed")
        assert wish.program.path is not None
        return wish.executables.state(wish.program.path)

    @staticmethod
    def _rewritten(wish: Recheck) -> str | None:
        return next((one.path for one in wish.scripts if changed(one, wish.executables)), None)

    @staticmethod
    def _moved(wish: Recheck, before: tuple[object, ...]) -> bool:
        try:
            return wish.executables.state(wish.program.path or "") != before
        except OSError:
            return True


class Confirming:
    """An executor that looks at what really runs, and sets the limits of the process."""

    name = "governed"

    def __init__(self, inner: Executor, wish: Recheck, expected: frozenset[tuple[int, int]]) -> None:
        self._inner = inner
        self._wish = wish
        self._expected = expected

    def begin(self, work: Work, controls: Controls) -> Running:
        """Start it; from then on its effects are unknown until it has ended well."""
        running = self._inner.begin(work, controls)
        watched = self._wish.watched
        if running.replayed:
            watched.dispatched = False
            return running
        if running.pid is not None:
            with contextlib.suppress(OSError):  # no /proc here, or it has ended already
                seen = os.stat(f"/proc/{running.pid}/exe")
                # something else may run there by now, since a program may start another in its own place
                watched.confirmed = True if (seen.st_dev, seen.st_ino) in self._expected else None
            self._limit(running.pid)
        return running

    def _limit(self, pid: int) -> None:
        if not hasattr(resource, "prlimit"):
            return
        limits = []
        if self._wish.cpu is not None:
            seconds = max(1, int(self._wish.cpu + 0.999))
            # a second more for SIGKILL: the signal before it tells why
            limits.append((resource.RLIMIT_CPU, (seconds, seconds + 1)))
        if self._wish.memory is not None:
            limits.append((resource.RLIMIT_DATA, (self._wish.memory, self._wish.memory)))
        for which, pair in limits:
            with contextlib.suppress(OSError, ValueError):  # ended already, or it has a lower one
                resource.prlimit(pid, which, pair)


def governed(asked: Asked, bind: Bind, recheck: Recheck, expected: frozenset[tuple[int, int]]) -> Asked:
    """The same call, bound to what was judged."""
    kit: Kit = asked.kit
    outer, inner = BindLayer(), RecheckLayer()
    layers: list[Any] = [*kit.layers, outer, inner]
    layers.sort(key=lambda layer: layer.place)
    changed = dataclasses.replace(
        kit,
        executor=Confirming(kit.executor, recheck, expected),
        layers=tuple(layers),
        wishes={**kit.wishes, Bind: outer, Recheck: inner},
    )
    request = dataclasses.replace(asked.request, wishes=(*asked.request.wishes, bind, recheck))
    return dataclasses.replace(asked, kit=changed, request=request)
