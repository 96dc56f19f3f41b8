"""One command from its start to its end: feeding, reading, the time limit, and leaving nobody behind.

A single poll loop on one thread. Both pipes, stdin, the end of the command (pidfd) and orders from other threads are
all descriptors in it, so nothing is polled in intervals except where the platform has no descriptor for an exit.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import time
from typing import Literal

from veil.host import children, processes
from veil.host.capture import Ring, Sink
from veil.host.orders import Controls
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
#: How often an exit is looked for where no descriptor tells it (seconds).
_BLIND = 0.02
#: Runs longer than this can afford a thorough look for what they left behind (seconds).
_CHEAP = 2.0
_CHUNK = 1 << 18
_F_SETPIPE_SZ = 1031
_PIPE_BYTES, _PIPE_USUAL = 1 << 20, 1 << 16
#: Signals that are meant to end a program, and are followed by SIGKILL when they do not.
_ENDING = frozenset((signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP))


class Pump:
    """Runs one launch. ``begin`` starts it, ``finish`` sees it through to its outcome; both on one thread."""

    def __init__(self, launch: Launch, controls: Controls) -> None:
        self._launch = launch
        self._controls = controls
        limit = launch.limits.stream_bytes
        make = controls.filters
        self.stdout = Ring(limit, make() if make else None)
        self.stderr = Ring(limit, make() if make else None)
        self.started = 0.0
        self._sinks: dict[int, Sink] = {}
        self._widened: set[int] = set()
        self._stdin = -1
        self._unsent = memoryview(launch.stdin or b"")
        self._poll = select.poll()
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

    # -- start

    def begin(self) -> None:
        """Start the command. Raises ``children.CannotStart``."""
        launch = self._launch
        opened: list[int] = []
        try:
            out_read, out_write = self._pipe(opened)
            err_read, err_write = (out_read, out_write) if launch.merge_stderr else self._pipe(opened)
            stdin = self._open_stdin(opened)
            self.started = time.monotonic()
            self._child = children.start(launch, stdin, out_write, err_write)
        except BaseException:
            for fd in opened:
                os.close(fd)
            self.stdout.finish()
            self.stderr.finish()
            raise
        listener = self._controls.listener
        self._sinks[out_read] = Sink("stdout", self.stdout, listener)
        if err_read != out_read:
            self._sinks[err_read] = Sink("stderr", self.stderr, listener)
        mine = {*self._sinks, self._stdin}
        for fd in opened:
            if fd not in mine:
                os.close(fd)
        for fd in self._sinks:
            os.set_blocking(fd, False)
            self._poll.register(fd, select.POLLIN)
        if self._stdin >= 0:
            os.set_blocking(self._stdin, False)
            self._poll.register(self._stdin, select.POLLOUT)

    @staticmethod
    def _pipe(opened: list[int]) -> tuple[int, int]:
        read, write = os.pipe()
        opened += (read, write)
        return read, write

    def _open_stdin(self, opened: list[int]) -> int:
        if self._launch.stdin is None:
            null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            opened.append(null)
            return null
        read, write = os.pipe()
        opened += (read, write)
        self._stdin = write
        return read

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
                self._poll.register(wake, select.POLLIN)
            watch = child.fileno()
            if watch >= 0:
                self._poll.register(watch, select.POLLIN)
            self._loop(child, watch, wake)
            return self._conclude(child)
        except BaseException:
            self._abort(child)
            raise
        finally:
            for fd in (*self._sinks, self._stdin):
                if fd >= 0:
                    os.close(fd)
            self._sinks.clear()
            self._stdin = -1
            self.stdout.finish()
            self.stderr.finish()
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
                self._poll.unregister(watch)
        while True:
            now, noticed = time.monotonic(), False
            for fd, _ in self._poll.poll(self._patience(now, limit, watch)):
                if fd in self._sinks:
                    self._read(fd)
                elif fd == self._stdin:
                    self._write()
                elif fd == wake:
                    self._obey(child)
                elif fd == watch:
                    noticed = True
            now = time.monotonic()
            # asked again while ending: an answer to another order may have carried the notice along
            if self._ended_at is None and (noticed or watch < 0 or self._ending) and child.has_ended():
                self._see_end()
                if watch >= 0:
                    self._poll.unregister(watch)
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
            if not self._sinks:
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
        return not self._sinks or now >= self._ended_at + DRAIN or self._survivors > 0

    def _read(self, fd: int) -> None:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if data:
            if len(data) >= _PIPE_USUAL and processes.LINUX and fd not in self._widened:
                # only for those who fill one: a wide pipe costs as much as a twentieth of a short run
                self._widened.add(fd)
                with contextlib.suppress(OSError):  # the user's share of pipe memory is used up: it works narrow, too
                    fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)
            self._sinks[fd].write(data)
            return
        self._poll.unregister(fd)
        self._sinks.pop(fd).close()
        os.close(fd)

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._stdin, self._unsent[:65536]) :] if self._unsent else self._unsent
        except BlockingIOError:
            return
        except BrokenPipeError:  # it ended, or closed its input, without reading all: that is its right
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._poll.unregister(self._stdin)
            os.close(self._stdin)
            self._stdin = -1

    # -- ending

    def _obey(self, child: children.Child) -> None:
        orders = self._controls.orders
        assert orders is not None
        now = time.monotonic()
        for signum in orders.take():
            if signum in _ENDING or signum == signal.SIGKILL:
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
        held = bool(self._sinks)
        code: int
        usage: Usage | None
        if self._survivors and not child.has_ended():
            code, usage = -signal.SIGKILL, None
        else:
            code, usage = child.reap()
        left = 0
        survivors = self._survivors
        if not self._ending or self._sinks:
            # a long run may have seen the pids begin anew, and the cheap look counts on their order
            left = child.others(thorough=held or self._ending or ended_at - self.started > _CHEAP)
            if left and self._launch.left_running == "kill":
                survivors += self._clear(child)
            elif left:
                child.leave()
        self._drain()
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

    def _drain(self) -> None:
        """Take what is still in the pipes, without waiting for anybody."""
        for fd, sink in list(self._sinks.items()):
            budget = _PIPE_BYTES * 2  # a survivor may write on for ever
            with contextlib.suppress(BlockingIOError):
                while budget > 0 and (data := os.read(fd, _CHUNK)):
                    sink.write(data)
                    budget -= len(data)
            sink.close()


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
