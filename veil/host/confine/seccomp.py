"""The filter of system calls that goes with every sandbox: sockets, the terminal, keys, and what reaches the kernel.

Mounts and Landlock speak of files. What is no file needs this: making sockets of a family that is not granted, typing
into the terminal that the caller sits at, the keys that a user keeps in the kernel, and calls that have nothing to look
for in a build or a test. A filter sees numbers only, never memory, so nothing can be exchanged behind its back. Only
what *makes* a socket is looked at, never ``connect`` or ``sendto``: a pair that was given or made needs those as well.
"""

from __future__ import annotations

import errno
import functools
import platform
import struct
from dataclasses import dataclass
from typing import Union

#: From linux/bpf_common.h, linux/seccomp.h and linux/audit.h.
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data; the low half of an argument
#: Calls of the x32 convention carry this bit.
_X32 = 0x40000000

_AF_UNIX, _AF_INET, _AF_INET6 = 1, 2, 10
_SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPE = 1, 5, 0xF
#: Put characters into a terminal's input as if they had been typed; paste a selection of the console.
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

#: Answered as by a kernel without them: programs that try these have another way when they are not there.
_ABSENT = ("add_key", "request_key", "keyctl")
_RINGS = ("io_uring_setup", "io_uring_enter", "io_uring_register")
#: Answered as to somebody who may not.
_FORBIDDEN: tuple[str, ...] = ("userfaultfd", "bpf", "perf_event_open", "kexec_load", "kexec_file_load")
_FORBIDDEN += ("init_module", "finit_module", "delete_module", "open_by_handle_at")

_NAMES = ("socket", "socketpair", "socketcall", "ioctl", *_ABSENT, *_FORBIDDEN)


def _table(numbers: str) -> dict[str, int]:
    return {name: int(word) for name, word in zip(_NAMES, numbers.split(), strict=True) if word != "-"} | {
        name: 425 + place for place, name in enumerate(_RINGS)
    }


@dataclass(frozen=True)
class _Convention:
    """One way of calling the kernel: its name in the audit interface, and the numbers of the calls."""

    audit: int
    numbers: dict[str, int]
    has_x32: bool = False


#: Each machine with the conventions that its programs may use. 32-bit programs run under the same rules by their own
#: numbers; whatever uses yet another convention is killed.
#:                    socket, socketpair, socketcall, ioctl; absent (3); forbidden (9), in the order of the names
_MACHINES = {
    "x86_64": (
        _Convention(0xC000003E, _table("41 53 - 16   248 249 250   323 321 298 246 320 175 313 176 304"), has_x32=True),
        _Convention(0x40000003, _table("359 360 102 54   286 287 288   374 357 336 283 - 128 350 129 342")),
    ),
    "aarch64": (
        _Convention(0xC00000B7, _table("198 199 - 29   217 218 219   282 280 241 104 294 105 273 106 265")),
        _Convention(0x40000028, _table("281 288 - 54   309 310 311   388 386 364 347 401 128 379 129 371")),
    ),
}

#: Numbers that are compared one after the other.
_FEW = 3
#: One instruction (code, to jump when true, when false, operand), a jump being a label or a count; or a label.
_Item = Union[str, "tuple[int, str | int, str | int, int]"]


def unavailable() -> str | None:
    """Why there is no filter for this machine, or ``None``."""
    machine = platform.machine()
    return (
        None if machine in _MACHINES else f"no seccomp filter for {machine} (there is one for {', '.join(_MACHINES)})"
    )


@functools.cache
def filter_program(
    *,
    network: bool,
    sockets: bool,
    loopback: bool = False,
    unix_needs_grant: bool = False,
    machine: str | None = None,
) -> bytes:
    """The filter as an array of ``struct sock_filter``, as ``seccomp(2)`` and ``bwrap --seccomp`` take it.

    ====================  ==================================================================================
    network               ``True``: sockets of every family. ``False``: of none but what the next two grant
    sockets               ``True``: unix sockets are granted (a filter cannot tell one path from another)
    loopback              ``True``: IP sockets, for a command that has a network namespace of its own
    unix_needs_grant      ``True``: with the network on, too, unix sockets only when ``sockets`` grants them
    ====================  ==================================================================================

    Pairs of connected unix sockets can always be made. Where unix sockets are denied, a pair for datagrams is
    denied too: either end of it could send to any socket in the file system. io_uring makes sockets on its own account
    and is gone wherever a family is denied. Denied sockets say ``EPERM``.

    Args:
        machine: as ``platform.machine()`` says it; this one when not given.

    Raises:
        KeyError: there is no filter for the machine (see ``unavailable``).
    """
    unix = sockets or (network and not unix_needs_grant)
    rules = _Sockets(unix=unix, internet=network or loopback, others=network)
    conventions = _MACHINES[machine or platform.machine()]
    items: list[_Item] = [(_LOAD, 0, 0, _ARCHITECTURE)]
    items += [(_EQUAL, f"calls {c.audit}", 0, c.audit) for c in conventions]
    items.append((_RETURN, 0, 0, _KILL))
    for convention in conventions:
        items += _calls(convention, rules)
    return _assembled(items)


@dataclass(frozen=True)
class _Sockets:
    """Of which families sockets may be made."""

    unix: bool
    internet: bool
    others: bool

    @property
    def all(self) -> bool:
        return self.unix and self.internet and self.others


def _calls(convention: _Convention, rules: _Sockets) -> list[_Item]:
    """What is done with the calls of one convention; entered by a jump to ``calls``, left by an answer."""
    numbers, own = convention.numbers, convention.audit
    absent, forbidden, fine = f"absent {own}", f"forbidden {own}", f"fine {own}"
    items: list[_Item] = [f"calls {own}", (_LOAD, 0, 0, _NUMBER)]
    if convention.has_x32:
        items.append((_AT_LEAST, forbidden, 0, _X32))
    # the arguments of socketcall are in memory, where a filter cannot look
    missing = _ABSENT if rules.all else (*_ABSENT, *_RINGS, "socketcall")
    decided = dict.fromkeys(missing, absent) | dict.fromkeys(_FORBIDDEN, forbidden) | {"ioctl": f"ioctl {own}"}
    if not rules.all:
        decided |= {"socket": f"socket {own}", "socketpair": f"pair {own}"}
    items += _searched(sorted((numbers[name], to) for name, to in decided.items() if name in numbers), own)
    items += [f"ioctl {own}", (_LOAD, 0, 0, _SECOND)]
    items += [(_EQUAL, forbidden, 0, _TIOCSTI), (_EQUAL, forbidden, fine, _TIOCLINUX)]
    if not rules.all:
        items += [f"socket {own}", *_one_socket(rules, forbidden, fine)]
        items += [f"pair {own}", *_pair(rules, forbidden, fine)]
    items += [fine, (_RETURN, 0, 0, _ALLOW)]
    items += [forbidden, (_RETURN, 0, 0, _ERRNO | errno.EPERM)]
    return [*items, absent, (_RETURN, 0, 0, _ERRNO | errno.ENOSYS)]


def _searched(cases: list[tuple[int, str]], own: int) -> list[_Item]:
    """Where the number that was loaded leads, by halves: the kernel asks the filter about every call when it is set,
    which is most of what setting it takes."""
    if len(cases) <= _FEW:
        return [*((_EQUAL, to, 0, number) for number, to in cases), (_RETURN, 0, 0, _ALLOW)]
    half = len(cases) // 2
    upper = f"from {cases[half][0]} of {own}"
    lower = [(_AT_LEAST, upper, 0, cases[half][0]), *_searched(cases[:half], own)]
    return [*lower, upper, *_searched(cases[half:], own)]


def _one_socket(rules: _Sockets, forbidden: str, fine: str) -> list[_Item]:
    by_family = {_AF_UNIX: rules.unix, _AF_INET: rules.internet, _AF_INET6: rules.internet}
    items: list[_Item] = [(_LOAD, 0, 0, _FIRST)]
    items += [(_EQUAL, fine if may else forbidden, 0, family) for family, may in by_family.items()]
    return [*items, (_RETURN, 0, 0, _ALLOW if rules.others else _ERRNO | errno.EPERM)]


def _pair(rules: _Sockets, forbidden: str, fine: str) -> list[_Item]:
    if rules.unix:
        return [(_LOAD, 0, 0, _FIRST), (_EQUAL, fine, forbidden, _AF_UNIX)]
    return [
        (_LOAD, 0, 0, _FIRST),
        (_EQUAL, 0, forbidden, _AF_UNIX),
        (_LOAD, 0, 0, _SECOND),
        (_AND, 0, 0, _SOCK_TYPE),
        (_EQUAL, fine, 0, _SOCK_STREAM),
        (_EQUAL, fine, forbidden, _SOCK_SEQPACKET),
    ]


def _assembled(items: list[_Item]) -> bytes:
    """Labels become distances, the rest ``struct sock_filter``. A jump that is too far raises ``struct.error``."""
    places: dict[str, int] = {}
    code: list[tuple[int, str | int, str | int, int]] = []
    for item in items:
        if isinstance(item, str):
            places[item] = len(code)
        else:
            code.append(item)

    def distance(target: str | int, here: int) -> int:
        return target if isinstance(target, int) else places[target] - here - 1

    return b"".join(
        struct.pack("=HBBI", kind, distance(yes, here), distance(no, here), operand)
        for here, (kind, yes, no, operand) in enumerate(code)
    )
