"""Starting one command and ending all of it. Two kinds of child with one shape: plain, and owned by a supervisor."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable
from typing import ClassVar, Protocol

from veil.host import orphans, prctl, processes, restricted
from veil.host.exits import ExitWatch
from veil.model.outcome import Usage
from veil.model.plan import Enclosure, Launch

#: How long an enclosure may take to fall apart when the command has ended, before something was left in it (seconds).
EMPTYING = 0.05
#: How long a watcher of a run may take to end when nobody is left to watch (seconds).
WATCHER_ENDS = 0.5
#: How long SIGKILL may take to show (uninterruptible sleep) before the survivors are named (seconds).
KILL_WAIT = 5.0


class CannotStart(Exception):
    """The operating system refused to start the program. ``exit`` is 126 or 127 as a shell would say."""

    def __init__(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        # the name tells a program that is not there from a folder that went away meanwhile
        super().__init__(f"{reason}: {os.fsdecode(error.filename)}" if error.filename else reason)
        self.exit = 127 if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 126


class Child(Protocol):
    """One started command with everything that came of it."""

    pid: int

    def fileno(self) -> int:
        """Readable once the command itself has ended."""

    def has_ended(self) -> bool:
        """Whether the command itself has ended. It stays unreaped, so that its group number cannot be recycled."""

    def reap(self) -> tuple[int, Usage | None]:
        """Return code as subprocess counts it (negative: signal) and resource use. Once, after it has ended."""

    def others(self, *, thorough: bool) -> int:
        """How many processes of the run are still alive beside the command itself."""

    def enclosed(self, enclosure: Enclosure) -> None:
        """All of the command is known to live in there, and what was started is only what holds it."""

    def send(self, signum: int) -> None:
        """Signal every process of the run, but nobody that only holds it."""

    def kill(self) -> int:
        """SIGKILL until nobody is left; returns how many could not be ended."""

    def leave(self) -> None:
        """What is left is to live on (``left_running="keep"``)."""

    def close(self) -> None:
        """Let go of descriptors."""


class PlainChild:
    """A child of this process: process group, process tree and run tag are what is known of its kin."""

    #: Set once by a process that veil owns (the command line): orphans of the run then come to it.
    adopting = False
    #: Leaders of this process that have not been closed: while there are several, nobody knows whose an orphan is.
    _open: ClassVar[set[int]] = set()
    #: Nothing has been started, or all of it is over: there is nobody to end.
    _closed = True

    def __init__(self, launch: Launch, stdin: int, stdout: int, stderr: int) -> None:
        self._tag = launch.tag
        self._watchers = launch.watchers
        self._before = processes.now()
        # all of it is there before anything starts: an interrupt may come between any two of the lines below
        self._watch: ExitWatch | None = None
        # looked up late: a start time costs a read of /proc that a plain run never needs
        self._root: processes.Process | None = None
        self._enclosure: Enclosure | None = None
        try:
            self._popen = restricted.start(
                launch.restrict, lambda: orphans.start(lambda: self._spawn(launch, stdin, stdout, stderr))
            )
            self.pid = self._popen.pid
            self._closed = False
        except OSError as error:
            raise CannotStart(error) from error
        except BaseException:
            # an interrupt may come when the program has started and nobody has been told its pid yet
            end_carriers(self._tag)
            raise
        self._open.add(self.pid)
        self._watch = ExitWatch(self.pid)

    @staticmethod
    def _spawn(launch: Launch, stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        with prctl.fixed_addresses(launch.fixed_addresses):
            return subprocess.Popen(
                launch.argv,
                executable=None if launch.held is None else f"/proc/self/fd/{launch.held}",
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=launch.cwd,
                env=launch.env,
                start_new_session=True,
                pass_fds=launch.pass_fds,
                umask=-1 if launch.umask is None else launch.umask,
            )

    def fileno(self) -> int:
        return -1 if self._watch is None else self._watch.fileno()

    def has_ended(self) -> bool:
        if hasattr(os, "waitid"):
            try:
                return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            except ChildProcessError:
                return True
        now = processes.look(self.pid)  # macOS before Python 3.13
        return now is None or now.zombie

    def reap(self) -> tuple[int, Usage | None]:
        try:
            _, status, used = os.wait4(self.pid, 0)
        except ChildProcessError:
            from veil.model.errors import VeilError

            self._popen.returncode = 0  # nothing is left to wait for
            raise VeilError(
                "another part of this program waited for the command's process, so its exit code is lost; "
                "run it with contain=True",
                code="child_stolen",
                pid=self.pid,
            ) from None
        code = os.waitstatus_to_exitcode(status)
        self._popen.returncode = code
        # a child starts out with this process's memory: below its peak the command's own cannot be told
        known = used.ru_maxrss > resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        scale = 1024 if processes.LINUX else 1
        return code, Usage(used.ru_utime, used.ru_stime, used.ru_maxrss * scale if known else 0)

    def _members(self) -> list[processes.Process]:
        if self._root is None:
            # once reaped, whoever has this pid is a stranger: no start time may match this one
            now = processes.look(self.pid) if self._popen.returncode is None else None
            self._root = now or processes.Process(self.pid, os.getpid(), self.pid, self.pid, self._before, True)
        below = os.getpid() if self.adopting and self._open == {self.pid} else 0
        seen = processes.members(self._root, self._tag, below=below, came=orphans.is_one)
        found = [process for process in seen if process.pid != self.pid]
        return [p for p in found if not processes.bears(p.pid, self._watchers)] if self._watchers else found

    def enclosed(self, enclosure: Enclosure) -> None:
        self._enclosure = enclosure

    def others(self, *, thorough: bool) -> int:
        if self._enclosure is not None:
            if self._enclosure.empty(EMPTYING):
                return 0
            return sum(process.pid not in self._enclosure.pids for process in self._members())
        if not thorough and self._alone():
            return 0
        return settled(lambda: len(self._members()), self._watchers)

    def _alone(self) -> bool:
        """Whether a cheap look already tells that nobody of the run is left; ``False`` leaves it open."""
        if self.adopting:
            return orphans.none()
        return not self._group_lives() and not self._strays()

    def _strays(self) -> bool:
        # whoever left the group with a session of its own still carries the tag
        return bool(self._tag) and processes.born_later(self.pid, self._tag)

    def _group_lives(self) -> bool:
        # only right once reaped: until then the dead leader itself answers
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass  # somebody of another user is in the group
        return True

    def send(self, signum: int) -> None:
        kin = self._members()
        if self._enclosure is not None:
            for process in kin:
                if process.pid not in self._enclosure.pids:
                    processes.send(process, signum)
            return
        if self._popen.returncode is None:
            # unreaped, so the number is still ours; the group gets it in one stroke
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signum)
        for process in kin:
            if process.group != self.pid or self._popen.returncode is not None:
                processes.send(process, signum)

    def kill(self) -> int:
        deadline = time.monotonic() + KILL_WAIT
        blind = 20
        while True:
            before = processes.newest()
            kin = self._members()
            leader = self._popen.returncode is None and not self.has_ended()
            if leader:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)
            elif not kin:
                blind -= 1
                if not blind or before == processes.newest():
                    break
                continue  # somebody was born during the look: it may be one who forks and ends faster than that
            for process in kin:
                processes.send(process, signal.SIGKILL)
            if time.monotonic() > deadline:
                return len(kin) + leader
            time.sleep(0.002)
        if self.adopting:
            orphans.collect()
        return 0

    def leave(self) -> None:
        """Nothing to do: a plain child's kin do not depend on this process."""

    def close(self) -> None:
        self._closed = True
        self._open.discard(self.pid)
        orphans.let_go(self.pid)
        if self._watch is not None:
            self._watch.close()

    def __del__(self) -> None:
        # dropped by an interrupt between its start and the loop that would have seen it through
        if not self._closed:
            self.kill()
            with contextlib.suppress(Exception):  # nobody waits for the exit code any more
                self.reap()
            self.close()


def _after_fork() -> None:
    # orphans come to the process that asked for them, not to its forks
    PlainChild.adopting = False
    PlainChild._open.clear()


os.register_at_fork(after_in_child=_after_fork)


def settled(count: Callable[[], int], watchers: str) -> int:
    """``count()``, asked again while it may count a watcher on its way out: such a one is still there and can no longer
    be told from others. While one lives that can, there is somebody whom it watches."""
    deadline = time.monotonic() + WATCHER_ENDS
    while (many := count()) and watchers and not processes.bearers(watchers) and time.monotonic() < deadline:
        time.sleep(0.002)
    return many


def end_carriers(tag: str) -> None:
    """SIGKILL whoever carries the tag until nobody does, and collect those that are children of this process."""
    deadline = time.monotonic() + KILL_WAIT
    blind = 20
    while tag and time.monotonic() < deadline:
        before = processes.newest()
        alive = processes.carriers(tag)
        if not alive:
            blind -= 1
            if not blind or before == processes.newest():
                return
            continue  # somebody was born during the look: the parent may have ended before its turn came
        for process in alive:
            processes.send(process, signal.SIGKILL)
            if process.parent == os.getpid():
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process.pid, 0)
        time.sleep(0.002)
