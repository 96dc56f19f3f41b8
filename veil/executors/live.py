"""Runs for real."""

from __future__ import annotations

import contextlib
import os
import select
import tempfile
from collections.abc import Callable, Generator
from dataclasses import replace

from veil.host import children, pump
from veil.host.capture import Ring
from veil.host.orders import Controls
from veil.model.command import Retry
from veil.model.outcome import Findings, Observation, Outcome, Piece
from veil.model.plan import Launch, Work, Wrap

#: A single argument may not be longer than this on Linux (MAX_ARG_STRLEN with its NUL); longer scripts become files.
_MAX_ARGUMENT = 128 * 1024 - 1

_Entered = Generator[Launch, Outcome, Findings]


class Live:
    """The executor that starts processes."""

    name = "live"

    def begin(self, work: Work, controls: Controls) -> LiveRun:
        return LiveRun(work, controls)


class LiveRun:
    """One live run: outer layers once, inner layers and a process for each attempt."""

    replayed = False

    def __init__(self, work: Work, controls: Controls) -> None:
        self._work = work
        self._controls = controls
        self._outer: list[_Entered] = []
        self._inner: list[_Entered] = []
        self._script: str | None = None
        self._found = Findings()
        self._pump: pump.Pump
        self._failed: Outcome | None = None
        self._settle: Callable[[Outcome], Outcome] | None = None
        self.pid: int | None = None
        try:
            self._launch = self._enter(work.outer, self._outer, work.launch)
            self._start()
        except BaseException:
            self._abandon()
            raise

    @staticmethod
    def _enter(wraps: tuple[Wrap, ...], entered: list[_Entered], launch: Launch) -> Launch:
        for wrap in wraps:
            layer = wrap(launch)
            launch = next(layer)
            entered.append(layer)
        return launch

    def _leave(self, entered: list[_Entered], outcome: Outcome) -> None:
        while entered:
            layer = entered.pop()
            try:
                layer.send(outcome)
            except StopIteration as stop:
                self._found = self._found.merged(stop.value)
            else:
                raise RuntimeError(f"a layer yielded a second launch: {layer!r}")

    def _abandon(self) -> None:
        while self._inner or self._outer:
            (self._inner or self._outer).pop().close()
        self._drop_script()

    def _start(self) -> None:
        launch = self._enter(self._work.inner, self._inner, self._as_file(self._launch))
        if launch.outside:
            launch = replace(launch, argv=(*launch.outside, *launch.argv), outside=())
        self._settle = None
        self._pump = pump.Pump(launch, self._controls)
        orders = self._controls.orders
        if orders is not None and orders.cancelled:
            # it waited for its turn in the tree meanwhile: what nobody wants any more must not begin
            self._failed = Outcome("spawn_failed", 126, spawn_error="cancelled before it started", cancelled=True)
            return
        self._settle = launch.settle
        try:
            self._pump.begin()
        except children.CannotStart as error:
            self._failed = pump.could_not_start(error)
            return
        self._failed = None
        self.pid = self._pump.pid

    def _as_file(self, launch: Launch) -> Launch:
        """A shell text too long for one argument goes through a file (CONTRACT, "A result")."""
        text = self._work.plan.request.command.text
        if text is None or len(text) * 4 < _MAX_ARGUMENT or len(os.fsencode(text)) < _MAX_ARGUMENT:
            return launch
        if self._script is None:
            handle, self._script = tempfile.mkstemp(prefix="veil-script-")
            with os.fdopen(handle, "wb") as file:
                file.write(os.fsencode(text))
        argv = launch.argv
        at = argv.index(text)
        argv = (*argv[: at - 1], self._script, *argv[at + 1 :])
        return replace(launch, argv=argv, readable=(*launch.readable, self._script))

    def _drop_script(self) -> None:
        if self._script is not None:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._script)
            self._script = None

    def wait(self) -> Observation:
        earlier: list[Outcome] = []
        try:
            while True:
                outcome = self._failed if self._failed is not None else self._pump.finish()
                if self._settle is not None:
                    outcome = self._settle(outcome)
                self._leave(self._inner, outcome)
                if not self._again(self._work.plan.request.retry, outcome, len(earlier)):
                    break
                earlier.append(outcome)
                self._start()
            self._leave(self._outer, outcome)
        except BaseException:
            self._abandon()
            raise
        self._drop_script()
        return Observation(outcome, tuple(earlier), self._found)

    def _again(self, retry: Retry, outcome: Outcome, done: int) -> bool:
        if done >= retry.times or outcome.ok or outcome.cancelled:
            return False
        if outcome.survivors != "none":
            return False  # something of this attempt may still be at work
        if retry.exits:
            wanted = outcome.exit in retry.exits
        else:
            # a timeout is tried again only when 124 was asked for; a program that is not there will not come
            wanted = outcome.ended in ("exited", "signaled")
        return wanted and self._rest(retry.backoff * 2**done)

    def _rest(self, seconds: float) -> bool:
        """Wait before the next attempt; ``False`` when it was cancelled meanwhile."""
        orders = self._controls.orders
        if seconds > 0:
            poll = select.poll()
            if orders is not None:
                poll.register(orders.open(), select.POLLIN)
            poll.poll(seconds * 1000)
        return orders is None or not (orders.cancelled or orders.take())

    def read(self, stream: str, cursor: int) -> Piece:
        return self._ring(stream).read(cursor)

    def totals(self, stream: str) -> tuple[int, int]:
        ring = self._ring(stream)
        return ring.total_bytes, ring.total_lines

    def _ring(self, stream: str) -> Ring:
        return self._pump.stdout if stream == "stdout" else self._pump.stderr
