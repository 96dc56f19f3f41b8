"""One command from its start to its end: feeding, reading, the time limit, and leaving nobody behind.

A single poll loop on one thread. Both pipes, stdin, the end of the command (pidfd) and orders from other threads are
all descriptors in it, so nothing is polled in intervals except where the platform has no descriptor for an exit.
"""

from __future__ import annotations

import contextlib
import select
import signal
import time
from typing import Literal

from veil.host import children, processes, starting
from veil.host.capture import Ring
from veil.host.orders import ENDING, Controls
from veil.host.wires import Wires
from veil.model.outcome import Ended, Outcome, Usage, signal_name
from veil.model.plan import Launch

#: Between SIGTERM and SIGKILL at a timeout, cancel or kill (seconds; tools reference, background processes).
TERM_GRACE = 2.0
#: The same for processes left behind by a command that has ended (seconds; CONTRACT, "Ending things").
LEFT_GRACE = 0.1
#: How long the output of a command that has ended may trickle on before its pipe counts as held (seconds).
DRAIN = 0.1
#: How often kin are looked for while they are given time to end (seconds).
_LOOK = 0.02
#: How long a tracer is given to let go of a process that has ended, before the next look (seconds).
_LET_GO = 0.0005
#: How often an exit is looked for where no descriptor tells it (seconds).
_BLIND = 0.02
#: Runs longer than this can afford a thorough look for what they left behind (seconds).
_CHEAP = 2.0
_PIPE_BYTES, _PIPE_USUAL = 1 << 20, 1 << 16


class Pump:
    """Runs one launch. ``begin`` starts it, ``finish`` sees it through to its outcome; both on one thread."""

    def __init__(self, launch: Launch, controls: Controls) -> None:
        self._launch = launch
        self._controls = controls
        self._wires = Wires(launch, controls)
        self.started = 0.0
        self._ending = False  # a signal that is to end it went out
        self._kill_at: float | None = None
        self._timed_out = False
        self._cancelled = False
        self._survivors = 0
        self._ended_at: float | None = None
        self._child: children.Child | None = None

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def stdout(self) -> Ring:
        return self._wires.stdout

    @property
    def stderr(self) -> Ring:
        return self._wires.stderr

    # -- start

    def begin(self) -> None:
        """Start the command. Raises ``children.CannotStart``."""
        try:
            stdin, stdout, stderr = self._wires.lay()
            self.started = time.monotonic()
            self._child = starting.start(self._launch, stdin, stdout, stderr)
        except BaseException:
            self._wires.give_up()
            raise
        self._wires.connect()
        if self._launch.started is not None:
            try:
                enclosure = self._launch.started()
                if enclosure is not None:
                    self._child.enclosed(enclosure)
            except BaseException:
                self._abort(self._child)
                self._wires.close()
                self._child.close()
                raise

    # -- the loop

    def finish(self) -> Outcome:
        """Pump until the command and its kin have ended; never leaves anybody alive, also when it raises."""
        child = self._child
        assert child is not None
        orders = self._controls.orders
        wake = -1
        try:
            if orders is not None:
                wake = orders.open()
                self._wires.poll.register(wake, select.POLLIN)
            watch = child.fileno()
            if watch >= 0:
                self._wires.poll.register(watch, select.POLLIN)
            self._loop(child, watch, wake)
            return self._conclude(child)
        except BaseException:
            self._abort(child)
            raise
        finally:
            self._wires.close()
            child.close()

    @staticmethod
    def _abort(child: children.Child) -> None:
        """Kill at once. A second Ctrl-C is as good as the first: it does not make this leave anybody alive."""
        while True:
            try:
                child.kill()
                with contextlib.suppress(Exception):  # the first error is the one to hear of
                    child.reap()
                return
            except KeyboardInterrupt:
                continue

    def _loop(self, child: children.Child, watch: int, wake: int) -> None:
        timeout = self._launch.limits.timeout
        limit = None if timeout is None else self.started + timeout
        if child.has_ended():  # the notice may have come with the answer to its start
            self._see_end()
            if watch >= 0:
                self._wires.poll.unregister(watch)
        while True:
            now, noticed = time.monotonic(), False
            for fd, _ in self._wires.poll.poll(self._patience(now, limit, watch)):
                if self._wires.serve(fd):
                    continue
                if fd == wake:
                    self._obey(child)
                elif fd == watch:
                    noticed = True
            now = time.monotonic()
            # asked again while ending: an answer to another order may have carried the notice along
            if self._ended_at is None and (noticed or watch < 0 or self._ending) and child.has_ended():
                self._see_end()
                if watch >= 0:
                    self._wires.poll.unregister(watch)
            elif noticed and self._ended_at is None:
                # a tracer hears of an end first and has not let go of it yet; the notice stays, so do not spin
                time.sleep(_LET_GO)
            if self._ended_at is not None and self._quiet(child, now):
                return
            if limit is not None and now >= limit and self._ended_at is None and not self._ending:
                self._timed_out = True
                self._end(child, signal.SIGTERM, now)
            if self._kill_at is not None and now >= self._kill_at:
                self._kill_at = None
                self._survivors = child.kill()
                if self._survivors and self._ended_at is None and not child.has_ended():
                    self._see_end()  # uninterruptible: it is named a survivor, the call returns

    def _patience(self, now: float, limit: float | None, watch: int) -> float | None:
        """Milliseconds that the poll may sleep; ``None`` for ever."""
        if self._ended_at is not None and not self._ending:
            if not self._wires.open:
                return 0
            until = self._ended_at + DRAIN
        else:
            marks = [m for m in (self._kill_at, None if self._ending else limit) if m is not None]
            if self._ending or watch < 0:
                marks.append(now + (_LOOK if self._ending else _BLIND))
            if not marks:
                return None
            until = min(marks)
        # whole milliseconds, rounded up, and never more than a C int holds
        return min(max(0.0, until - now) * 1000 + 0.999, 3_600_000.0)

    def _see_end(self) -> None:
        self._ended_at = time.monotonic()

    def _quiet(self, child: children.Child, now: float) -> bool:
        """Whether nothing more is to come of a command that has ended itself."""
        assert self._ended_at is not None
        if self._ending and self._kill_at is not None:
            # ended by a signal: its kin have the same grace to go
            if child.others(thorough=True):
                return False
            self._survivors = child.kill()  # looks until it is sure
            return True
        return not self._wires.open or now >= self._ended_at + DRAIN or self._survivors > 0

    # -- ending

    def _obey(self, child: children.Child) -> None:
        orders = self._controls.orders
        assert orders is not None
        now = time.monotonic()
        for signum in orders.take():
            if signum in ENDING:
                self._end(child, signum, now)
            else:
                child.send(signum)
        if orders.cancelled and not self._cancelled:
            self._cancelled = True
            self._end(child, signal.SIGTERM, now)

    def _end(self, child: children.Child, signum: int, now: float) -> None:
        self._ending = True
        if signum == signal.SIGKILL:
            self._kill_at = now
            return
        child.send(signum)
        # a stopped program cannot act on a signal
        child.send(signal.SIGCONT)
        if self._kill_at is None:
            self._kill_at = now + TERM_GRACE

    def _conclude(self, child: children.Child) -> Outcome:
        """The command has ended: deal with what it left, then say how it went."""
        assert self._ended_at is not None
        ended_at = self._ended_at
        held = self._wires.open
        code: int
        usage: Usage | None
        if self._survivors and not child.has_ended():
            code, usage = -signal.SIGKILL, None
        else:
            code, usage = child.reap()
        left = 0
        survivors = self._survivors
        if not self._ending or self._wires.open:
            # a long run may have seen the pids begin anew, and the cheap look counts on their order
            left = child.others(thorough=held or self._ending or ended_at - self.started > _CHEAP)
            if left and self._launch.left_running == "kill":
                survivors += self._clear(child)
            elif left:
                child.leave()
        self._wires.drain()
        ended: Ended = "exited"
        signal_of: str | None = None
        if code < 0:
            ended, code, signal_of = "signaled", 128 - code, signal_name(-code)
        if self._timed_out:
            ended, code, signal_of = "timed_out", 124, None
        return Outcome(
            ended=ended,
            exit=code,
            seconds=ended_at - self.started,
            stdout=self.stdout.stream(),
            stderr=self.stderr.stream(),
            signal=signal_of,
            left_running=left,
            survivors=self._fate(left, survivors),
            usage=usage,
            cancelled=self._cancelled,
        )

    def _fate(self, left: int, survivors: int) -> Literal["none", "kept", "unknown"]:
        if left and self._launch.left_running == "keep":
            return "kept"
        if survivors or (not processes.LINUX and (left or self._ending)):
            return "unknown"
        return "none"

    def _clear(self, child: children.Child) -> int:
        """End what the command left behind: SIGTERM, a short grace, SIGKILL."""
        child.send(signal.SIGTERM)
        deadline = time.monotonic() + LEFT_GRACE
        while time.monotonic() < deadline:
            time.sleep(0.005)
            if child.others(thorough=True) == 0:
                break
        return child.kill()  # also when nobody seems to be left: it looks until it is sure


def run(launch: Launch, controls: Controls) -> Outcome:
    """Start it and see it through. A command that cannot start is an outcome too (``spawn_failed``)."""
    pump = Pump(launch, controls)
    try:
        pump.begin()
    except children.CannotStart as error:
        return could_not_start(error)
    return pump.finish()


def could_not_start(error: children.CannotStart) -> Outcome:
    """The outcome of a command that the operating system refused to start."""
    return Outcome(ended="spawn_failed", exit=error.exit, spawn_error=str(error))
