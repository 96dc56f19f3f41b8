"""What processes of one user share by the kernel's leave: the terminal, keys, shared memory, queues, core files."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource

from attempts import LANDLOCK, Family, Through
from calls import called, known, libc, number, syscall, tell, through

FAMILY = Family(__name__)
attempt, shell = FAMILY.attempt, FAMILY.shell

SHARED = Through(LANDLOCK, "it is the machine's", gap="System V", tells=("shared", "message"))
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
CREATE, NOWAIT = 0o1000, 0o4000


@attempt("write on the terminal of the user")
def terminal() -> None:
    handle = os.open(known("TERMINAL"), os.O_WRONLY | os.O_NOCTTY)
    os.write(handle, b"written by an attempt")


@attempt("read what is typed at the terminal of the user")
def typed() -> None:
    os.close(os.open(known("TERMINAL"), os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK))
    through("opened")


@attempt("type at the terminal of the caller (/dev/tty)", bare=dict.fromkeys(("root", "user"), "a run has no terminal"))
def controlling() -> None:
    fcntl.ioctl(os.open("/dev/tty", os.O_RDWR), TIOCSTI, b"x")
    through("typed")


@attempt(
    "type at a terminal of one's own (TIOCSTI)", bare=dict.fromkeys(("root", "user"), "newer machines have none of it")
)
def own_terminal() -> None:
    _, slave = os.openpty()
    name = os.ttyname(slave)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setsid()
            fcntl.ioctl(os.open(name, os.O_RDWR), TIOCSTI, b"x")
            code = 0
        except OSError as error:
            print(error, flush=True)
        finally:
            os._exit(code)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
        through("typed")


@attempt("a selection pasted at a console (TIOCLINUX)")
def console() -> None:
    _, slave = os.openpty()
    try:
        fcntl.ioctl(slave, TIOCLINUX, b"\x03")
    except OSError as error:
        if error.errno == errno.EPERM:
            raise
        through(error)


@attempt("a key added")
def add_key() -> None:
    syscall("add_key", b"user", b"attempt", b"value", 5, -2)
    through("a key")


@attempt("keys of the user read")
def read_key() -> None:
    syscall("keyctl", 1, None)  # a session of one's own, which makes the reader a possessor
    syscall("keyctl", 8, -4, -3)
    found = syscall("keyctl", 10, -4, b"user", known("KEY").encode(), 0)
    buffer = ctypes.create_string_buffer(200)
    syscall("keyctl", 11, found, buffer, 200)
    tell(buffer.value)


@attempt("a key asked for (request_key)")
def request_key() -> None:
    try:
        syscall("request_key", b"user", b"no such key", None, 0)
    except OSError as error:
        if error.errno not in (errno.ENOKEY, errno.ENOENT):
            raise
        through("asked")


@attempt("shared memory read (System V)", through=SHARED)
def memory() -> None:
    found = called("shmget", number("SHM"), 0, 0)
    libc.shmat.restype = ctypes.c_void_p
    tell(ctypes.string_at(libc.shmat(found, None, 0o10000), 100))


@attempt("shared memory written (System V)", through=SHARED)
def memory_written() -> None:
    found = called("shmget", number("SHM"), 0, 0)
    libc.shmat.restype = ctypes.c_void_p
    ctypes.memmove(libc.shmat(found, None, 0) + 200, b"written", 7)


@attempt("a message read (System V)", through=SHARED)
def message() -> None:
    queue = called("msgget", number("QUEUE"), 0)
    buffer = ctypes.create_string_buffer(200)
    called("msgrcv", queue, buffer, 150, 0, NOWAIT)
    tell(buffer.raw)


@attempt("a semaphore set (System V)", through=SHARED)
def semaphore() -> None:
    found = called("semget", number("SEMAPHORE"), 1, 0)
    called("semctl", found, 0, 16, 7)


@attempt("a message queue read (POSIX)")
def posix_queue() -> None:
    queue = called("mq_open", known("POSIX_QUEUE").encode(), os.O_RDONLY | os.O_NONBLOCK)
    buffer = ctypes.create_string_buffer(1024)
    called("mq_receive", queue, buffer, 1024, None)
    tell(buffer.value)


@attempt("core files")
def core() -> None:
    if resource.getrlimit(resource.RLIMIT_CORE)[1] != 0:
        through(resource.getrlimit(resource.RLIMIT_CORE))
