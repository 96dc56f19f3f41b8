"""A command owned by a supervisor process of its own: nothing of it survives, whatever it did."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from veil.host import orphans, prctl, processes, restricted
from veil.host.children import EMPTYING, KILL_WAIT, CannotStart, end_carriers, settled
from veil.model.errors import VeilError
from veil.model.outcome import Usage
from veil.model.plan import Enclosure, Launch

_PROGRAM = str(Path(__file__).with_name("supervisor.py"))


class SupervisedChild:
    """See ``veil.host.supervisor`` for what the other side does. One thread at a time."""

    def __init__(self, launch: Launch, stdin: int, stdout: int, stderr: int) -> None:
        self._control, theirs = socket.socketpair()
        self._tag = launch.tag
        self._watchers = launch.watchers
        self._buffer = b""
        self._ending: tuple[int, Usage | None] | None = None
        self._enclosure: Enclosure | None = None
        try:
            # the supervisor lives under the same restrictions as its command: else it would have to be told them, and
            # what is restricted in one domain may still be signalled and looked at from within the same one
            self._supervisor = restricted.start(
                launch.restrict,
                lambda: orphans.start(lambda: self._spawn(launch, theirs.fileno(), stdin, stdout, stderr)),
            )
        except BaseException:
            self._control.close()
            raise
        finally:
            theirs.close()
        order = {
            "argv": list(launch.argv),
            "env": dict(launch.env),
            "cwd": launch.cwd,
            "pass_fds": list(launch.pass_fds),
            "umask": launch.umask,
            "program": launch.argv[0] if launch.held is None else f"/proc/self/fd/{launch.held}",
        }
        try:
            self._order(order)
            answer = self._answer("pid", "errno")
        except BaseException:
            self.close()
            raise
        if "errno" in answer:
            self.close()
            raise CannotStart(OSError(answer["errno"], answer["text"], answer["file"]))
        self.pid: int = answer["pid"]

    @staticmethod
    def _spawn(launch: Launch, control: int, stdin: int, stdout: int, stderr: int) -> subprocess.Popen[bytes]:
        with prctl.fixed_addresses(launch.fixed_addresses):
            return subprocess.Popen(
                # -I -S -B: nothing of the user's is imported, nothing is written; a command line that no pattern of
                # the command's own text can match
                [sys.executable, "-I", "-S", "-B", _PROGRAM, str(control), str(os.getpid())],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
                pass_fds=(control, *launch.pass_fds),
                cwd="/",
                env={},
            )

    def fileno(self) -> int:
        return self._control.fileno()

    def _order(self, order: dict[str, Any]) -> None:
        try:
            self._control.sendall(json.dumps(order).encode() + b"\n")
        except OSError as error:
            raise self._lost() from error

    def _lost(self) -> VeilError:
        return VeilError(
            "the supervisor process of this run is gone (killed from outside?), so how the command ended is not known",
            code="supervisor_lost",
            pid=self._supervisor.pid,
        )

    def _buffered(self, *keys: str) -> dict[str, Any] | None:
        """An answer that has already come and holds one of ``keys``; the end of the command is noted on the way."""
        while b"\n" in self._buffer:
            line, self._buffer = self._buffer.split(b"\n", 1)
            data: dict[str, Any] = json.loads(line)
            if "status" in data:
                self._ending = (os.waitstatus_to_exitcode(data["status"]), Usage(*data["usage"]))
            if any(key in data for key in keys):
                return data
        return None

    def _answer(self, *keys: str) -> dict[str, Any]:
        """The next answer that holds one of ``keys``."""
        while True:
            if (data := self._buffered(*keys)) is not None:
                return data
            try:
                more = self._control.recv(1 << 16)
            except OSError as error:
                raise self._lost() from error
            if not more:
                raise self._lost()
            self._buffer += more

    def has_ended(self) -> bool:
        if self._ending is None and self._buffered("status") is None and self._ending is None:
            poll = select.poll()
            poll.register(self._control, select.POLLIN)
            if poll.poll(0):
                self._end_of_command()
        return self._ending is not None

    def _end_of_command(self) -> None:
        try:
            self._answer("status")
        except VeilError:
            # the command ended its own supervisor, whose death takes the command along (and had it ended before, that
            # would have been told before)
            self._ending = (-signal.SIGKILL, None)

    def reap(self) -> tuple[int, Usage | None]:
        if self._ending is None:
            self._end_of_command()
        assert self._ending is not None
        return self._ending

    def enclosed(self, enclosure: Enclosure) -> None:
        self._enclosure = enclosure

    def _watching(self) -> list[int]:
        return [process.pid for process in processes.bearers(self._watchers)] if self._watchers else []

    def _spare(self) -> list[int]:
        watchers = self._watching()
        return watchers if self._enclosure is None else [self.pid, *self._enclosure.pids, *watchers]

    def others(self, *, thorough: bool) -> int:
        if self._enclosure is not None and self._enclosure.empty(EMPTYING):
            return 0
        try:
            return settled(self._count, self._watchers)
        except VeilError:
            return len(processes.carriers(self._tag)) if self._tag else 0

    def _count(self) -> int:
        self._order({"count": True, "spare": self._spare()})
        return int(self._answer("others")["others"])

    def send(self, signum: int) -> None:
        try:
            self._order({"send": signum, "spare": self._spare()})
        except VeilError:
            for process in processes.carriers(self._tag) if self._tag else ():
                if process.pid not in self._spare():
                    processes.send(process, signum)

    def kill(self) -> int:
        try:
            self._order({"kill": True, "spare": self._watching()})
            return int(self._answer("others")["others"])
        except VeilError:
            # the command may have ended its own supervisor: the tag is what is left to go by
            end_carriers(self._tag)
            return len(processes.carriers(self._tag)) if self._tag else 0

    def leave(self) -> None:
        """Let the supervisor go and what is left below it live on."""
        with contextlib.suppress(VeilError):
            self._order({"leave": True})

    def close(self) -> None:
        """The closed socket ends the supervisor, and with it whatever is left."""
        deadline = time.monotonic() + KILL_WAIT
        while self._watchers and processes.bearers(self._watchers) and time.monotonic() < deadline:
            time.sleep(0.002)  # they still have to say what they saw last
        # closing alone would not be seen while a fork of this process holds a copy of it
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        self._control.close()
        try:
            self._supervisor.wait(KILL_WAIT + 1)
        except subprocess.TimeoutExpired:
            # it hangs in a kill of something uninterruptible; it will end by itself when that does
            self._supervisor.returncode = 0
        orphans.let_go(self._supervisor.pid)
