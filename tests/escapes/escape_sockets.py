"""Sockets of every kind. The scene listens, and sees who came."""

from __future__ import annotations

import array
import ctypes
import mmap
import os
import signal
import socket

from attempts import MOUNTS, Family, Through
from calls import Cannot, called, known, number, ring_operation, through

FAMILY = Family(__name__)
attempt, shell = FAMILY.attempt, FAMILY.shell

NEEDS_ROOT = {"user": "needs root"}
DEPENDS = dict.fromkeys(("root", "user"), "machines differ in what they have of it")
HELLO = b"hello from an attempt"


def say(family: int, kind: int, address: object, protocol: int = 0) -> None:
    with socket.socket(family, kind, protocol) as found:
        found.settimeout(2)
        found.connect(address)  # type: ignore[arg-type]
        found.send(HELLO)


@attempt("TCP")
def tcp() -> None:
    say(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", number("TCP")))


@attempt("TCP over IPv6")
def tcp6() -> None:
    say(socket.AF_INET6, socket.SOCK_STREAM, ("::1", number("TCP6")))


@attempt("TCP to IPv4 by way of IPv6")
def mapped() -> None:
    say(socket.AF_INET6, socket.SOCK_STREAM, ("::ffff:127.0.0.1", number("TCP")))


@attempt("TCP of several paths (MPTCP)", bare=DEPENDS)
def mptcp() -> None:
    say(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", number("TCP")), 262)


@attempt("TCP with data in the first packet")
def fast_open() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as found:
        found.settimeout(2)
        found.sendto(HELLO, socket.MSG_FASTOPEN, ("127.0.0.1", number("TCP")))


shell("TCP by the shell (/dev/tcp)", "echo hello > /dev/tcp/127.0.0.1/$ESCAPE_TCP")


@attempt("UDP")
def udp() -> None:
    say(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", number("UDP")))


@attempt("UDP over IPv6")
def udp6() -> None:
    say(socket.AF_INET6, socket.SOCK_DGRAM, ("::1", number("UDP6")))


shell("UDP by the shell (/dev/udp)", "echo hello > /dev/udp/127.0.0.1/$ESCAPE_UDP")


@attempt("a unix socket by path")
def stream() -> None:
    say(socket.AF_UNIX, socket.SOCK_STREAM, known("UNIX"))


@attempt("a unix socket for datagrams by path")
def datagram() -> None:
    say(socket.AF_UNIX, socket.SOCK_DGRAM, known("UNIX_DATAGRAM"))


@attempt("a unix socket for packets by path")
def packets() -> None:
    say(socket.AF_UNIX, socket.SOCK_SEQPACKET, known("UNIX_PACKET"))


@attempt("a unix socket below /run")
def run_socket() -> None:
    say(socket.AF_UNIX, socket.SOCK_STREAM, known("UNIX_RUN"))


@attempt("an abstract unix socket")
def abstract() -> None:
    say(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{known('ABSTRACT')}")


@attempt("an abstract unix socket for datagrams")
def abstract_datagram() -> None:
    say(socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{known('ABSTRACT')}-datagram")


@attempt("one of a pair for datagrams, sent elsewhere")
def pair_sent() -> None:
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(HELLO, known("UNIX_DATAGRAM"))


@attempt("one of a pair for datagrams, connected elsewhere")
def pair_connected() -> None:
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.connect(known("UNIX_DATAGRAM"))
    one.send(HELLO)


@attempt("one of a pair of streams, connected elsewhere")
def pair_of_streams() -> None:
    one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    one.connect(known("UNIX"))


FAMILY.attempts[-1].bare = dict.fromkeys(("root", "user"), "a stream is connected once")


@attempt("a descriptor handed over by somebody outside (SCM_RIGHTS)")
def handed_over() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as found:
        found.settimeout(2)
        found.connect(known("UNIX_GIVES"))
        _, ancillary, _, _ = found.recvmsg(1, socket.CMSG_LEN(4))
        handles = array.array("i")
        handles.frombytes(ancillary[0][2][:4])
        os.write(handles[0], b"by a descriptor that was handed over")


@attempt("packets of any kind (raw)", bare=NEEDS_ROOT)
def raw() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    through("a raw socket")


@attempt("a socket for pings", bare=DEPENDS)
def ping() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as found:
        found.sendto(b"\x08\0\0\0\0\0\0\0", ("127.0.0.1", 0))
        through("a ping")


@attempt("packets below IP (AF_PACKET)", bare=NEEDS_ROOT)
def packet() -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    through("a socket")


@attempt("the kernel's own protocol (AF_NETLINK)")
def netlink() -> None:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
    through("a socket")


@attempt("the host of a virtual machine (AF_VSOCK)")
def vsock() -> None:
    socket.socket(40, socket.SOCK_STREAM, 0).close()
    through("a socket")


@attempt("the kernel's ciphers (AF_ALG)")
def ciphers() -> None:
    socket.socket(38, socket.SOCK_SEQPACKET, 0).close()
    through("a socket")


@attempt("rings for packets (AF_XDP)", bare=NEEDS_ROOT)
def xdp() -> None:
    socket.socket(44, socket.SOCK_RAW, 0).close()
    through("a socket")


@attempt("every other family")
def families() -> None:
    granted = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)
    for family in (n for n in range(64) if n not in granted):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            try:
                socket.socket(family, kind, 0).close()
            except OSError:
                continue
            return through(f"family {family}")
    return None


@attempt("a socket by the 32-bit way of calling")
def other_convention() -> None:
    """``socket(AF_UNIX, SOCK_STREAM, 0)`` by ``int 0x80``; a machine without it ends the child by a signal."""
    if os.uname().machine != "x86_64":
        raise Cannot("only x86-64 has this")
    # push rbx; mov eax, edi; mov ebx, esi; xchg edx, ecx; int 0x80; pop rbx; ret
    code = bytes.fromhex("53 89f8 89f3 87ca cd80 5b c3")
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    function = ctypes.CFUNCTYPE(ctypes.c_int, *(ctypes.c_int,) * 4)(place)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if function(359, 1, 1, 0) >= 0 else 1)
    code_of_child = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if code_of_child == -signal.SIGSEGV:
        raise Cannot("32-bit programs do not run here")
    if code_of_child == 0:
        through("a socket")


@attempt("a socket by the x32 way of calling")
def x32() -> None:
    if os.uname().machine != "x86_64":
        raise Cannot("only x86-64 has this")
    called("syscall", 0x40000000 | 41, socket.AF_UNIX, socket.SOCK_STREAM, 0)
    through("a socket")


@attempt("a socket by io_uring")
def ring() -> None:
    ring_operation(45, socket.AF_UNIX, socket.SOCK_STREAM, 0, 0, 0)
    through("a socket")


@attempt(
    "with the network on: a unix socket by path",
    network=True,
    through=Through(MOUNTS, "in sight, and the network is granted", gap=None),
)
def stream_with_network() -> None:
    say(socket.AF_UNIX, socket.SOCK_STREAM, known("UNIX"))


@attempt("with the network on: a unix socket below /run", network=True)
def run_socket_with_network() -> None:
    say(socket.AF_UNIX, socket.SOCK_STREAM, known("UNIX_RUN"))


@attempt("with the network on: a unix socket in the machine's /tmp", network=True)
def tmp_socket_with_network() -> None:
    say(socket.AF_UNIX, socket.SOCK_STREAM, known("UNIX_TMP"))


@attempt(
    "with the network on: an abstract unix socket",
    network=True,
    through=Through(MOUNTS, "the network is granted", gap=None),
)
def abstract_with_network() -> None:
    say(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{known('ABSTRACT')}")
