"""Processes outside: one that the scene started for this, and the one that veil runs in."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import time

from attempts import LANDLOCK, Family, Through
from calls import WORK, called, known, libc, number, read, syscall, tell, through

FAMILY = Family(__name__)
attempt, shell = FAMILY.attempt, FAMILY.shell

SEEN = Through(LANDLOCK, "they are in sight", gap="processes outside can be seen", tells=("commandline",))
LIMITS = Through(LANDLOCK, "Landlock has no right for it", gap="their limits")
ORDER = Through(
    LANDLOCK, "a user may; the kernel holds a root without capabilities", gap="their limits", users=("user",)
)

YAMA = {"user": "machines may keep users from each other's and their own processes (Yama)"}


def victim() -> int:
    return number("VICTIM")


@attempt("ended (SIGKILL)", since=6)
def kill() -> None:
    os.kill(victim(), signal.SIGKILL)


@attempt("stopped (SIGSTOP)", since=6)
def stop() -> None:
    os.kill(victim(), signal.SIGSTOP)


@attempt("asked for (signal 0)", since=6)
def ask() -> None:
    os.kill(victim(), 0)
    through("it is there")


@attempt("its whole group signalled", since=6)
def group() -> None:
    os.killpg(os.getpgid(victim()), signal.SIGUSR1)


@attempt("signalled by pidfd", since=6)
def by_pidfd() -> None:
    handle = os.pidfd_open(victim())
    syscall("pidfd_send_signal", handle, signal.SIGUSR1, None, 0)


@attempt("veil itself signalled", since=6)
def veil_itself() -> None:
    os.kill(number("DRIVER"), signal.SIGUSR2)


@attempt("signals by a descriptor (F_SETOWN)", since=6)
def by_descriptor() -> None:
    import fcntl

    there, here = os.pipe()
    fcntl.fcntl(there, fcntl.F_SETOWN, victim())
    fcntl.fcntl(there, 10, signal.SIGUSR1)  # F_SETSIG
    fcntl.fcntl(there, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(here, b"x")


@attempt("traced (ptrace attach)", bare=YAMA)
def attach() -> None:
    called("ptrace", 16, victim(), None, None)
    os.waitpid(victim(), 0x40000000)
    called("ptrace", 17, victim(), None, None)
    through("attached")


@attempt("traced (ptrace seize)", bare=YAMA)
def seize() -> None:
    called("ptrace", 0x4206, victim(), None, None)
    through("seized")


class _Part(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _parts(buffer: object) -> tuple[object, object]:
    here = _Part(ctypes.cast(buffer, ctypes.c_void_p), 64)  # type: ignore[arg-type]
    there = _Part(number("MEMORY"), 64)
    return ctypes.byref(here), ctypes.byref(there)


@attempt("its memory read", bare=YAMA)
def read_memory() -> None:
    buffer = ctypes.create_string_buffer(64)
    here, there = _parts(buffer)
    if libc.process_vm_readv(victim(), here, 1, there, 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "process_vm_readv")
    tell(buffer.raw)


@attempt("its memory written", bare=YAMA)
def write_memory() -> None:
    buffer = ctypes.create_string_buffer(b"overwritten by an attempt", 64)
    here, there = _parts(buffer)
    if libc.process_vm_writev(victim(), here, 1, there, 1, 0) < 0:
        raise OSError(ctypes.get_errno(), "process_vm_writev")


@attempt("its memory read by /proc/PID/mem", bare=YAMA)
def memory_file() -> None:
    handle = os.open(f"/proc/{victim()}/mem", os.O_RDONLY)
    tell(os.pread(handle, 64, number("MEMORY")))


@attempt("its memory written by /proc/PID/mem", bare=YAMA)
def memory_file_written() -> None:
    handle = os.open(f"/proc/{victim()}/mem", os.O_RDWR)
    os.pwrite(handle, b"overwritten by an attempt", number("MEMORY"))


@attempt("veil's memory opened", bare=YAMA)
def memory_of_veil() -> None:
    os.close(os.open(f"/proc/{number('DRIVER')}/mem", os.O_RDONLY))
    through("opened")


@attempt("its map of memory")
def maps() -> None:
    with open(f"/proc/{victim()}/maps") as file:
        if file.read(1):
            through("read")


@attempt("its environment")
def environment() -> None:
    read(f"/proc/{victim()}/environ")


@attempt("its root folder")
def root() -> None:
    read(f"/proc/{victim()}/root{known('HOME')}/.netrc")


@attempt("its working folder")
def folder() -> None:
    read(f"/proc/{victim()}/cwd/credentials")


@attempt("its open files")
def files() -> None:
    handle = number("VICTIM_FILE")
    opened = os.open(f"/proc/{victim()}/fd/{handle}", os.O_RDONLY)
    tell(os.pread(opened, 100, 0))


@attempt("its open files, by copying a descriptor (pidfd_getfd)", bare=YAMA)
def copied() -> None:
    handle = syscall("pidfd_getfd", os.pidfd_open(victim()), number("VICTIM_FILE"), 0)
    tell(os.pread(handle, 100, 0))


@attempt("its open files compared (kcmp)")
def compared() -> None:
    syscall("kcmp", os.getpid(), victim(), 0, 1, 1)
    through("compared")


@attempt("its command line", through=SEEN)
def command_line() -> None:
    read(f"/proc/{victim()}/cmdline")


@attempt("the list of processes", through=SEEN)
def listed() -> None:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            read(f"/proc/{name}/cmdline")
        except OSError:
            continue


@attempt("every environment in sight")
def environments() -> None:
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            read(f"/proc/{name}/environ")
        except OSError:
            continue


@attempt("its priority", through=ORDER)
def renice() -> None:
    os.setpriority(os.PRIO_PROCESS, victim(), 15)


@attempt("its limits", through=LIMITS)
def limits() -> None:
    resource.prlimit(victim(), resource.RLIMIT_NOFILE, (77, 77))


@attempt("its processors", through=ORDER)
def processors() -> None:
    before = os.sched_getaffinity(victim())
    os.sched_setaffinity(victim(), {min(before)})
    if len(before) == 1:
        through("set to what it was")


@attempt("its way of being scheduled", through=ORDER)
def scheduling() -> None:
    os.sched_setscheduler(victim(), os.SCHED_BATCH, os.sched_param(0))


@attempt("its priority at the disk", through=ORDER)
def disk_priority() -> None:
    syscall("ioprio_set", 1, victim(), 3 << 13)


@attempt("whom the kernel ends first (oom_score_adj)")
def first_to_go() -> None:
    with open(f"/proc/{victim()}/oom_score_adj", "w") as file:
        file.write("500")


GONE = Through(LANDLOCK, "who has got away is not in a namespace that ends", gap="gets away from its parents")

shell("a program left in the background", "nohup sleep $ESCAPE_STAY >/dev/null 2>&1 &", harmless=False)
shell(
    "a program left in a session of its own",
    "setsid -f env -i sh -c ': > ready; exec sleep '$ESCAPE_STAY </dev/null >/dev/null 2>&1; "
    "until [ -e ready ]; do sleep 0.01; done",
    through=GONE,
    harmless=False,
)


@attempt("a daemon: forked twice, nothing open, no environment", through=GONE, harmless=False)
def daemon() -> None:
    if os.fork():
        while not os.path.exists(f"{WORK}/ready"):
            time.sleep(0.01)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.closerange(3, 256)
    os.chdir("/")
    stay = os.environ["ESCAPE_STAY"]
    os.execve("/bin/sh", ["sh", "-c", f": > {WORK}/ready; exec sleep {stay}"], {"PATH": "/bin:/usr/bin"})
