"""What an attempt has at hand inside: the places it knows of, and system calls by their names.

An attempt that changes something on the host, or brings a secret out, says nothing: whoever looks from outside sees it.
What cannot be seen from outside it tells with ``through``. An ``OSError`` that it does not catch is a refusal, and
``Cannot`` (as well as an error that stands for a kernel without such a thing) says that this machine cannot even try.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

BASE, WORK, OUTSIDE, HOME, STATE = (
    os.environ.get(f"ESCAPE_{n}", "") for n in ("BASE", "WORK", "OUTSIDE", "HOME", "STATE")
)
TARGET = f"{OUTSIDE}/target"

libc = ctypes.CDLL(None, use_errno=True)

#: Calls that the C library or Python has no function for: (x86_64, aarch64); one number where all have the same.
_NUMBERS: dict[str, tuple[int, int] | int] = {
    "renameat2": (316, 276),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "pivot_root": (155, 41),
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "mount_setattr": 442,
    "fchmodat2": 452,
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "pidfd_getfd": 438,
    "pidfd_send_signal": 424,
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "io_uring_setup": 425,
    "io_uring_enter": 426,
}
_NO_SUCH_THING = {
    errno.ENOSYS,
    errno.EAFNOSUPPORT,
    errno.EPROTONOSUPPORT,
    errno.ESOCKTNOSUPPORT,
    errno.EOPNOTSUPP,
    errno.ENODEV,
}


class Cannot(Exception):
    """This machine has no such thing, confined or not."""


def through(what: object) -> None:
    print(f"THROUGH {what}", flush=True)


def known(name: str) -> str:
    """A fact about the scene."""
    value = os.environ.get(f"ESCAPE_{name}", "")
    if not value:
        raise Cannot(f"the scene has no {name} here")
    return value


def number(name: str) -> int:
    return int(known(name))


def called(function: str, *arguments: object) -> int:
    """A function of the C library, numbers as ``long``. Raises ``OSError``."""
    result: int = getattr(libc, function)(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{function}: {os.strerror(code)}")
    return result


def syscall(name: str, *arguments: object) -> int:
    found = _NUMBERS[name]
    if not isinstance(found, int):
        if os.uname().machine not in ("x86_64", "aarch64"):
            raise Cannot(f"no number of {name} for {os.uname().machine}")
        found = found[os.uname().machine == "aarch64"]
    return called("syscall", found, *arguments)


def write(path: str, flags: int = os.O_WRONLY | os.O_CREAT) -> None:
    """Write something there."""
    handle = os.open(path, flags, 0o644)
    os.write(handle, b"written by an attempt\n")
    os.close(handle)


def read(path: str) -> None:
    """Read it, and say what it holds."""
    handle = os.open(path, os.O_RDONLY)
    tell(os.read(handle, 65536))
    os.close(handle)


def tell(data: bytes) -> None:
    sys.stdout.flush()
    os.write(1, data.replace(b"\0", b"\n") + b"\n")


NEWUSER, NEWNS, NEWPID, NEWNET, NEWIPC = 0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 1, 32, 4096, 8192, 16384, 1 << 18
DETACH = 2


def nested(more: int = NEWNS) -> None:
    """New namespaces of one's own, with every capability in them."""
    uid, gid = os.getuid(), os.getgid()
    called("unshare", NEWUSER | more)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    if more & NEWNS:
        called("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    words = [None if text is None else text.encode() for text in (source, target, kind, data)]
    called("mount", words[0], words[1], words[2], flags, words[3])


def waited(pid: int) -> int:
    """How a child ended, as ``os.waitstatus_to_exitcode`` says it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def ring_operation(opcode: int, fd: int, off: int, address: int, length: int, flags: int, index: int = 0) -> int:
    """One operation through io_uring; what it returned. The arguments are fields of ``struct io_uring_sqe``."""
    import mmap

    params = ctypes.create_string_buffer(120)
    ring = syscall("io_uring_setup", 4, params)
    sq = struct.unpack_from("10I", params, 40)  # head, tail, ring mask, entries, flags, dropped, array, ...
    cq = struct.unpack_from("10I", params, 80)  # head, tail, ring mask, entries, overflow, cqes, ...
    share = mmap.MAP_SHARED | mmap.MAP_POPULATE if hasattr(mmap, "MAP_POPULATE") else mmap.MAP_SHARED
    queue = mmap.mmap(ring, sq[6] + 64, share, offset=0)
    done = mmap.mmap(ring, cq[5] + 256, share, offset=0x8000000)
    entries = mmap.mmap(ring, 4 * 64, share, offset=0x10000000)
    entries[:64] = struct.pack("=BBHiQQIIQHHi16x", opcode, 0, 0, fd, off, address, length, flags, 1, 0, 0, index)
    struct.pack_into("=I", queue, sq[6], 0)
    struct.pack_into("=I", queue, sq[1], 1)
    syscall("io_uring_enter", ring, 1, 1, 1, None, 0)
    _, result, _ = struct.unpack_from("=QiI", done, cq[5])
    os.close(ring)
    if result < 0:
        raise OSError(-result, f"io_uring: {os.strerror(-result)}")
    return int(result)


def carry_out(module: str, function: str) -> None:
    """Try, and say how it went as far as it can be told from within."""
    try:
        getattr(__import__(module), function)()
    except Cannot as error:
        print(f"CANNOT {error}")
    except OSError as error:
        print("CANNOT" if error.errno in _NO_SUCH_THING else "TRIED", error)
    else:
        print("TRIED")
