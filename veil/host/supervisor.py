"""The small program that owns one command: run as ``python -I -S -B supervisor.py FD``, never imported by veil.

It adopts every orphan of the command (subreaper), so that ending it leaves nothing, whatever the command did; and when
its owner ends in any way, its control socket closes and everything below it is killed. Standard library only.

Protocol on the socket, one JSON object a line. In: the launch, then ``{"send": n, "spare": [pids]}``,
``{"kill": true, "spare": [pids]}``, ``{"count": true, "spare": [pids]}``, ``{"leave": true}``. Out: ``{"pid": n}`` or
``{"errno": n, "text": s, "file": s}``; ``{"status": n, "usage": [...]}`` once the command has ended;
``{"others": n}`` in answer to count and kill. A closed socket means kill, and so does the end of the owner.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import select
import signal
import socket
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would cost a third of the start
    from typing import Any

LINUX = sys.platform.startswith("linux")
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
#: Ignored here, because only the owner decides; its death is seen on the socket. Those ignored before stay so below.
DEAF_ONLY_HERE = [
    number
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    if signal.getsignal(number) != signal.SIG_IGN
]


def stat_of(pid: int) -> tuple[int, int, int, bool] | None:
    """(parent, group, start time, zombie?) of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123
            line = file.read()
    except OSError:
        return None
    fields = line[line.rindex(b")") + 2 :].split()
    return int(fields[1]), int(fields[2]), int(fields[19]), fields[0] in (b"Z", b"X")


def kin() -> dict[int, int]:
    """Every living process below this one, as {pid: start time}."""
    parents: dict[int, tuple[int, int, int, bool]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (seen := stat_of(int(name))) is not None:
            parents[int(name)] = seen
    mine, grown = os.getpid(), True
    found: dict[int, tuple[int, bool]] = {}
    while grown:
        grown = False
        for pid, (parent, _, started, zombie) in parents.items():
            if pid not in found and (parent == mine or parent in found):
                found[pid] = (started, zombie)
                grown = True
    return {pid: started for pid, (started, zombie) in found.items() if not zombie}


def send(pid: int, started: int, signum: int) -> None:
    """Signal exactly this process: pidfd first, identity after."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return
    try:
        seen = stat_of(pid)
        if seen is not None and seen[2] == started:
            signal.pidfd_send_signal(handle, signum)
    except OSError:
        pass  # gone, or a program of another user: it stays counted
    finally:
        os.close(handle)


class Supervisor:
    """One command and all that comes of it."""

    def __init__(self, control: socket.socket, owner: int) -> None:
        self.control = control
        self.owner = owner
        self.buffer = b""
        self.pid = 0
        self.done = False  # the command itself has been reaped

    def answer(self, **data: object) -> None:
        with contextlib.suppress(OSError):  # a dead owner is seen by the read side
            self.control.sendall(json.dumps(data).encode() + b"\n")

    def line(self) -> dict[str, Any] | None:
        """The next order, or None once the owner is gone."""
        while b"\n" not in self.buffer:
            try:
                data = self.control.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                return None
            self.buffer += data
        first, self.buffer = self.buffer.split(b"\n", 1)
        order: dict[str, Any] = json.loads(first)
        return order

    def start(self, order: dict[str, Any]) -> None:
        argv = [os.fsencode(word) for word in order["argv"]]
        env = {os.fsencode(k): os.fsencode(v) for k, v in order["env"].items()}
        read, write = os.pipe()
        mine = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:  # as many processes as this user may have
            self.answer(errno=error.errno, text=error.strerror, file=None)
            os._exit(0)
        if pid == 0:
            folder: str | None = None
            try:
                os.setsid()
                if order["umask"] is not None:
                    os.umask(order["umask"])
                if LINUX:
                    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
                    if os.getppid() != mine:
                        os._exit(125)
                folder = order["cwd"]
                os.chdir(os.fsencode(order["cwd"]))
                folder = None
                for fd in order["pass_fds"]:
                    os.set_inheritable(fd, True)
                for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, *DEAF_ONLY_HERE):
                    signal.signal(number, signal.SIG_DFL)
                os.execvpe(os.fsencode(order["program"]), argv, env)
            except OSError as error:
                told = {"errno": error.errno or errno.EIO, "text": error.strerror, "file": folder or order["argv"][0]}
                os.write(write, json.dumps(told).encode())
            os._exit(125)
        os.close(write)
        # the supervisor must not keep the command's pipes open, or their readers would never see the end
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.close(null)
        for fd in order["pass_fds"]:
            os.close(fd)
        with open(read, "rb") as file:  # noqa: PTH123
            failed = file.read()
        if failed:
            os.waitpid(pid, 0)
            self.answer(**json.loads(failed))
            os._exit(0)
        self.pid = pid
        self.answer(pid=pid)

    def reap(self) -> bool:
        """Collect whatever ended, except that the command itself is reported. ``True``: there is nobody below."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid == self.pid and not self.done:
                self.done = True
                scale = 1024 if LINUX else 1
                self.answer(status=status, usage=[used.ru_utime, used.ru_stime, used.ru_maxrss * scale])

    def kill(self, spare: list[int] | tuple[int, ...] = ()) -> int:
        """SIGKILL until nobody is left below; returns how many could not be ended. Those of ``spare`` end by themselves
        when the others have; they are given a second for it."""
        deadline = time.monotonic() + 5.0
        patience = deadline - 4.0
        while True:
            # every orphan comes to a subreaper: having no child is surer than any look at /proc
            childless = self.reap()
            alive = kin() if LINUX else {}
            if not LINUX and self.pid:
                with contextlib.suppress(OSError):
                    os.killpg(self.pid, signal.SIGKILL)
            if childless or not LINUX or time.monotonic() > deadline:
                return len(alive)
            # stopped first, so that a program that keeps forking stands still
            spared = spare if time.monotonic() < patience else ()
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for pid, started in alive.items():
                    if pid not in spared:
                        send(pid, started, number)
            time.sleep(0.001)

    def obey(self, order: dict[str, Any]) -> None:
        if "send" in order:
            for pid, started in kin().items() if LINUX else ():
                if pid not in order["spare"]:
                    send(pid, started, order["send"])
            if not LINUX and self.pid and not self.done:
                with contextlib.suppress(OSError):
                    os.killpg(self.pid, order["send"])
        elif "kill" in order:
            self.answer(others=self.kill(order["spare"]))
        elif "count" in order:
            self.reap()
            self.answer(
                others=len(kin().keys() - {*order["spare"], *(() if self.done else (self.pid,))}) if LINUX else 0
            )
        elif "leave" in order:
            os._exit(0)

    def run(self) -> None:
        order = self.line()
        if order is None:
            return
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        os.set_blocking(wake_read, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.start(order)
        poll = select.poll()
        poll.register(self.control, select.POLLIN)
        poll.register(wake_read, select.POLLIN)
        owner = -1
        if hasattr(os, "pidfd_open"):
            # the socket alone would not tell while a fork of the owner holds a copy of it
            with contextlib.suppress(OSError):  # a kernel without it, or gone this moment: then the socket closes
                owner = os.pidfd_open(self.owner)
                poll.register(owner, select.POLLIN)
        self.reap()
        while True:
            for fd, _ in poll.poll():
                if fd == wake_read:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake_read, 4096)
                    self.reap()
                    continue
                if fd == owner:
                    self.kill()
                    return
                while True:
                    order = self.line()
                    if order is None:
                        self.kill()
                        return
                    self.obey(order)
                    if b"\n" not in self.buffer:
                        break


def main() -> None:
    for number in DEAF_ONLY_HERE:
        signal.signal(number, signal.SIG_IGN)
    if LINUX:
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    Supervisor(control, int(sys.argv[2])).run()


if __name__ == "__main__":
    main()
