"""The filter of system calls: its text judged by an interpreter of its own, and the kernel's answers under it."""

from __future__ import annotations

import errno
import os
import platform
import pty
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confinements import ROOT, USER, as_user, python_for
from hypothesis import given
from hypothesis import strategies as st

from veil.host import prctl, restricted
from veil.host.confine import seccomp

ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS
X86_64, I386, AARCH64, ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028
NATIVE = {"x86_64": (X86_64, I386), "aarch64": (AARCH64, ARM)}
#: (socket, socketpair, ioctl) by convention, from the kernel's headers.
CALLS = {X86_64: (41, 53, 16), I386: (359, 360, 54), AARCH64: (198, 199, 29), ARM: (281, 288, 54)}
GRANTS = st.fixed_dictionaries({name: st.booleans() for name in ("network", "sockets", "loopback", "unix_needs_grant")})


def answer(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """What the filter says: classic BPF over ``struct seccomp_data``, as the kernel runs it."""
    data = struct.pack("=IIQ6Q", number, audit, 0, *(arguments + (0,) * 6)[:6])
    code = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    while True:
        kind, yes, no, operand = code[at]
        at += 1
        if kind == 0x20:
            value = struct.unpack_from("=I", data, operand)[0]
        elif kind == 0x54:
            value &= operand
        elif kind == 0x15:
            at += yes if value == operand else no
        elif kind == 0x35:
            at += yes if value >= operand else no
        else:
            assert kind == 0x06
            return int(operand)


def may(family: int, grants: dict[str, bool]) -> bool:
    """The truth table of the docstring."""
    if family == 1:
        return grants["sockets"] or (grants["network"] and not grants["unix_needs_grant"])
    return grants["network"] or (grants["loopback"] and family in (2, 10))


words = st.integers(0, 2**64 - 1) | st.sampled_from([1, 2, 10, 16, 40, 2**32 + 1, 2**32 + 2])


@given(GRANTS, st.sampled_from(list(CALLS)), words, words)
def test_a_socket_is_made_exactly_when_its_family_is_granted(
    grants: dict[str, bool], audit: int, family: int, kind: int
) -> None:
    machine = "x86_64" if audit in NATIVE["x86_64"] else "aarch64"
    program = seccomp.filter_program(**grants, machine=machine)
    # the kernel takes these arguments as ints: what stands in the upper half is nothing to it, nor to the filter
    low = family % 2**32
    assert answer(program, audit, CALLS[audit][0], family, kind) == (ALLOW if may(low, grants) else EPERM)


@given(GRANTS, st.sampled_from(list(CALLS)), words, words)
def test_pairs_are_made_unless_they_could_reach_others(
    grants: dict[str, bool], audit: int, family: int, kind: int
) -> None:
    machine = "x86_64" if audit in NATIVE["x86_64"] else "aarch64"
    program = seccomp.filter_program(**grants, machine=machine)
    said = answer(program, audit, CALLS[audit][1], family, kind)
    if may(1, grants) and (family % 2**32 == 1 or grants["network"]):
        assert said == ALLOW
    else:
        assert said == (ALLOW if family % 2**32 == 1 and kind % 16 in (1, 5) else EPERM)


@given(GRANTS, st.sampled_from(sorted(NATIVE)), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_no_other_way_of_calling_the_kernel_is_open(
    grants: dict[str, bool], machine: str, audit: int, number: int
) -> None:
    program = seccomp.filter_program(**grants, machine=machine)
    if audit not in NATIVE[machine]:
        assert answer(program, audit, number) == KILL
    assert answer(program, X86_64, number | 0x40000000) == (EPERM if machine == "x86_64" else KILL)


@given(GRANTS, st.sampled_from(list(CALLS)), words)
def test_nobody_types_into_the_terminal(grants: dict[str, bool], audit: int, order: int) -> None:
    machine = "x86_64" if audit in NATIVE["x86_64"] else "aarch64"
    program = seccomp.filter_program(**grants, machine=machine)
    injects = order % 2**32 in (0x5412, 0x541C)
    assert answer(program, audit, CALLS[audit][2], 0, order) == (EPERM if injects else ALLOW)
    for typing in (0x5412, 0x541C, 2**32 + 0x5412):  # the upper half once was a way around such a filter
        assert answer(program, audit, CALLS[audit][2], 0, typing) == EPERM


@given(GRANTS, st.sampled_from(list(CALLS)))
def test_rings_make_sockets_by_themselves(grants: dict[str, bool], audit: int) -> None:
    machine = "x86_64" if audit in NATIVE["x86_64"] else "aarch64"
    program = seccomp.filter_program(**grants, machine=machine)
    every = all(may(family, grants) for family in (1, 2, 16))
    assert {answer(program, audit, number) for number in (425, 426, 427)} == {ALLOW if every else ENOSYS}


def numbers_in(header: str) -> dict[str, int]:
    done = subprocess.run(
        ["gcc", "-E", "-dM", "-"], input=f"#include <{header}>\n", capture_output=True, text=True, check=True
    )
    defines = [line.split() for line in done.stdout.splitlines() if line.startswith("#define __NR_")]
    return {words[1].removeprefix("__NR_"): int(words[2]) for words in defines if words[2].isdigit()}


@pytest.mark.linux
@pytest.mark.needs("gcc")
def test_the_numbers_are_those_of_the_kernel() -> None:
    headers = {"x86_64": {X86_64: "asm/unistd_64.h", I386: "asm/unistd_32.h"}, "aarch64": {AARCH64: "asm/unistd.h"}}
    program = seccomp.filter_program(network=False, sockets=False)
    for audit, header in headers[platform.machine()].items():
        known = numbers_in(header)
        for name in ("add_key", "request_key", "keyctl", "io_uring_setup", "io_uring_enter", "io_uring_register"):
            assert answer(program, audit, known[name]) == ENOSYS, name
        forbidden = (
            "userfaultfd bpf perf_event_open kexec_load init_module finit_module delete_module open_by_handle_at"
        )
        for name in (*forbidden.split(), *(["kexec_file_load"] if "kexec_file_load" in known else [])):
            assert answer(program, audit, known[name]) == EPERM, name
        assert (known["socket"], known["socketpair"], known["ioctl"]) == CALLS[audit]
        if "socketcall" in known:
            assert answer(program, audit, known["socketcall"], 1) == ENOSYS
        ordinary = "read write openat connect sendto shutdown getsockopt mmap clone futex execve setsid"
        assert {answer(program, audit, known[name]) for name in ordinary.split()} == {ALLOW}


# -- the kernel's own answers


def under(program: bytes, argv: list[str], user: int, **options: object) -> subprocess.Popen[str]:
    def restrict() -> None:
        prctl.no_new_privileges()
        prctl.filter_calls(program)

    options |= as_user(user)
    start: Callable[[], subprocess.Popen[str]] = lambda: subprocess.Popen(argv, text=True, **options)  # type: ignore[call-overload]  # noqa: E731
    return restricted.start(restrict, start)


ATTEMPTS = """
import ctypes, errno, socket
libc = ctypes.CDLL(None, use_errno=True)
for family in ("AF_UNIX", "AF_INET", "AF_INET6", "AF_NETLINK", "AF_VSOCK", "AF_PACKET"):
    for kind in ("SOCK_STREAM", "SOCK_DGRAM", "SOCK_RAW"):
        try: socket.socket(getattr(socket, family), getattr(socket, kind)).close()
        except OSError as error: print(family, kind, errno.errorcode[error.errno])
        else: print(family, kind, "made")
one, two = socket.socketpair()
one.sendall(b"x"); two.recv(1); one.shutdown(socket.SHUT_WR); two.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
for name, number, *arguments in (("keyctl", 250, 0, -3, 1), ("io_uring_setup", 425, 1, 0), ("x32", 0x40000029, 2, 1)):
    print(name, errno.errorcode.get(ctypes.get_errno()) if libc.syscall(number, *arguments) < 0 else "done")
"""


@pytest.mark.linux
@pytest.mark.parametrize("user", [ROOT, USER])
def test_no_socket_of_any_family(user: int) -> None:
    if os.getuid() not in (0, user):
        user = os.getuid()
    program = seccomp.filter_program(network=False, sockets=False)
    argv = [python_for(user), "-I", "-S", "-c", ATTEMPTS]
    child = under(program, argv, user, stdout=subprocess.PIPE, cwd="/")
    told = child.communicate(timeout=60)[0].splitlines()
    assert child.returncode == 0
    assert len(told) == 21
    assert {line.split()[-1] for line in told if line.startswith("AF_")} == {"EPERM"}
    if platform.machine() == "x86_64":
        assert told[-3:] == ["keyctl ENOSYS", "io_uring_setup ENOSYS", "x32 EPERM"]


INT80 = r"""
#include <stdio.h>
static long old(long nr, long a, long b, long c) {
    long r;
    __asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
    return r;
}
int main(void) {
    printf("%ld %ld %ld %ld %ld %ld\n", old(359, 2, 1, 0), old(102, 1, 0, 0), old(288, 0, -3, 1), old(425, 1, 0, 0),
           old(54, 0, 0x5412, 0), old(20, 0, 0, 0) > 0 ? 1L : 0L);
    return 0;
}
"""


@pytest.mark.linux
@pytest.mark.needs("gcc")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86_64: the older way of calling is that machine's")
def test_the_older_way_of_calling_is_no_hole(tmp_path: Path) -> None:
    (tmp_path / "old.c").write_text(INT80)
    subprocess.run(["gcc", "-o", tmp_path / "old", tmp_path / "old.c"], check=True)
    program = seccomp.filter_program(network=False, sockets=False)
    child = under(program, [str(tmp_path / "old")], os.getuid(), stdout=subprocess.PIPE)
    eperm, enosys = -errno.EPERM, -errno.ENOSYS
    assert child.communicate(timeout=60)[0].split() == [str(n) for n in (eperm, enosys, enosys, enosys, eperm, 1)]


TYPING = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
try: fcntl.ioctl(0, termios.TIOCSTI, b"x")
except OSError as error: print("errno", error.errno)
else: print("typed")
print(os.get_terminal_size(0).columns >= 0)
"""


@pytest.mark.linux
def test_the_terminal_keeps_its_other_orders() -> None:
    master, slave = pty.openpty()
    try:
        program = seccomp.filter_program(network=True, sockets=True)
        argv = [sys.executable, "-I", "-S", "-c", TYPING]
        child = under(program, argv, os.getuid(), stdin=slave, stdout=subprocess.PIPE)
        assert child.communicate(timeout=60)[0].split() == ["errno", str(errno.EPERM), "True"]
    finally:
        os.close(master)
        os.close(slave)


@pytest.mark.linux
def test_this_process_stays_free() -> None:
    child = under(seccomp.filter_program(network=False, sockets=False), ["true"], os.getuid())
    assert child.wait(60) == 0
    status = Path("/proc/self/status").read_text()
    assert "Seccomp:\t0" in status
    assert "NoNewPrivs:\t0" in status


def test_an_unknown_machine_has_no_filter() -> None:
    with pytest.raises(KeyError):
        seccomp.filter_program(network=False, sockets=False, machine="riscv64")
