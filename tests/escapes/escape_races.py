"""Something changed between looking and acting, again and again for a moment. The host sees what came of it."""

from __future__ import annotations

import os
import signal
import time

from attempts import LANDLOCK, Family, Through
from calls import OUTSIDE, WORK, Cannot, syscall, write

FAMILY = Family(__name__)
attempt, shell = FAMILY.attempt, FAMILY.shell

AT_FDCWD, EXCHANGE = -100, 2
MOMENT = 0.25  # seconds


def swapping(first: str, second: str) -> int:
    """A process that exchanges the two until it is ended."""
    syscall("renameat2", AT_FDCWD, first.encode(), AT_FDCWD, second.encode(), EXCHANGE)
    pid = os.fork()
    if pid == 0:
        end = time.monotonic() + 5
        while time.monotonic() < end:
            syscall("renameat2", AT_FDCWD, first.encode(), AT_FDCWD, second.encode(), EXCHANGE)
        os._exit(0)
    return pid


def again(what: object, *arguments: object) -> None:
    """Until the moment is over; a try that fails is none."""
    assert callable(what)
    end = time.monotonic() + MOMENT
    while time.monotonic() < end:
        try:
            what(*arguments)
        except OSError:
            continue


def _against(first: str, second: str, what: object, *arguments: object) -> None:
    pid = swapping(first, second)
    again(what, *arguments)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


@attempt("a folder against a link, while something is written in it")
def folder() -> None:
    os.mkdir("d")
    os.symlink("../outside", "l")
    _against("d", "l", write, "d/new")


@attempt("a folder against a link, while something is renamed into it")
def renaming() -> None:
    os.mkdir("d")
    os.symlink("../outside", "l")

    def put() -> None:
        write("mine")
        os.rename("mine", "d/new")

    _against("d", "l", put)


@attempt("a file against a link, while it is written")
def file() -> None:
    write("f")
    os.symlink("../outside/target", "l")
    _against("f", "l", write, "f", os.O_WRONLY | os.O_TRUNC)


@attempt(
    "a file against a link, while its mode is changed",
    through=Through(LANDLOCK, "so is the mode by itself", gap="mode, owner, times"),
)
def mode() -> None:
    write("f")
    os.symlink("../outside/target", "l")
    _against("f", "l", os.chmod, "f", 0o777)


@attempt("the folder that one is in, moved up while .. is followed")
def upwards() -> None:
    os.makedirs("a/b/c")
    os.mkdir("x")
    folder = os.open("a/b/c", os.O_RDONLY)
    again(os.replace, "a/b/c", "x/c")
    os.fchdir(folder)
    for depth in range(1, 5):
        try:
            write("../" * depth + "outside/new")
        except OSError:
            continue


@attempt("the folder that one is in, removed, then ..")
def removed() -> None:
    os.makedirs("a/b")
    os.chdir("a/b")
    os.rmdir(f"{WORK}/a/b")
    write("../../outside/new")


FAMILY.attempts[-1].bare = dict.fromkeys(("root", "user"), "nothing is below a folder that is gone")


@attempt("a folder against a link, while veil clears the temporary folder", harmless=False)
def clearing() -> None:
    temp = os.environ["TMPDIR"]
    if temp == os.environ.get("ESCAPE_TMPDIR"):
        raise Cannot("no temporary folder of its own")
    os.makedirs(f"{temp}/d/sub")
    os.symlink(OUTSIDE, f"{temp}/l")
    pid = os.fork()
    if pid:
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    end = time.monotonic() + 0.5
    while time.monotonic() < end:
        try:
            syscall("renameat2", AT_FDCWD, f"{temp}/d".encode(), AT_FDCWD, f"{temp}/l".encode(), EXCHANGE)
        except OSError:
            break
    os._exit(0)
