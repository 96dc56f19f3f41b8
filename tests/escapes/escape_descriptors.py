"""Descriptors that a command was not meant to have, and what the ones that it has lead to."""

from __future__ import annotations

import os
import socket
import stat

from attempts import Family
from calls import OUTSIDE, WORK, known, number, read, through, write

FAMILY = Family(__name__)
attempt, shell = FAMILY.attempt, FAMILY.shell

BOTH = ("root", "user")
CLOSED = dict.fromkeys(BOTH, "veil hands on no descriptor, confined or not")


@attempt("a file that the caller has open, written", bare=CLOSED)
def inherited() -> None:
    os.write(number("FILE"), b"by an inherited descriptor")


@attempt("a listening socket of the caller", bare=CLOSED)
def inherited_socket() -> None:
    found = socket.socket(fileno=number("LISTENING"))
    through(found.getsockname())


@attempt("any descriptor beyond the three", bare=CLOSED)
def others() -> None:
    for name in os.listdir("/proc/self/fd"):
        try:
            place = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the listing's own
            continue
        if int(name) > 2:
            through(f"{name}: {place}")


@attempt("a folder behind any descriptor", bare=CLOSED)
def folders() -> None:
    for handle in range(256):
        try:
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                os.close(os.open(f"../../../../../..{OUTSIDE}/new", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
        except OSError:
            continue


def _of(pid: str) -> None:
    for name in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{name}"
        place = os.readlink(path)
        if place.startswith("/") and not place.startswith(("/dev/", WORK, "/proc/")):
            through(f"{name}: {place}")
            read(path)


@attempt("descriptors of the first process", bare={"user": "the first process is root's"})
def first_process() -> None:
    _of("1")


FAMILY.attempts[-1].bare["root"] = "it depends on what that is"


@attempt("descriptors of the parent")
def parent() -> None:
    name = f"/proc/{os.getppid()}/fd/{known('FILE')}"
    with open(name, "rb+") as file:
        file.write(b"by the parent's descriptor")


@attempt("/dev/null behind standard input, opened to be something else", bare=CLOSED)
def standard_input() -> None:
    folder = os.open("/proc/self/fd/0/..", os.O_RDONLY)
    os.close(os.open(f"..{OUTSIDE}/new", os.O_CREAT | os.O_WRONLY, dir_fd=folder))


@attempt("a folder that is only named (O_PATH), written in")
def only_named() -> None:
    handle = os.open(OUTSIDE, os.O_PATH)
    write(f"/proc/self/fd/{handle}/new")


@attempt("a folder changed into, written in")
def changed_into() -> None:
    os.chdir(OUTSIDE)
    write("new")


@attempt("a program outside run by its descriptor, that writes beside itself")
def executed() -> None:
    handle = os.open("/bin/sh", os.O_RDONLY)
    pid = os.fork()
    if pid == 0:
        os.execve(handle, ["sh", "-c", f"echo x > {OUTSIDE}/new"], os.environ)
    os.waitpid(pid, 0)
