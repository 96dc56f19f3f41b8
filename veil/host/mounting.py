"""The small program that puts a view over a folder: run as ``python -I -S -B mounting.py ...``, never imported by veil.

    mounting.py run  KIND FOLDER ROOM HIDDEN... -- COMMAND...
    mounting.py look KIND FOLDER ROOM HIDDEN...

In a user and mount namespace of its own it mounts over FOLDER either an overlay whose writes go to ``ROOM/upper`` (KIND
``overlay``) or the copy in ``ROOM/tree`` (KIND ``bind``); nobody outside sees it. ``run`` then becomes the command,
``look`` answers what stands at the paths it reads: NUL-separated in, one line each out (mode, size and 0, or ``- - n``
with the number of an error). ``ROOM/covered`` is there once the view stands; what went wrong before is in
``ROOM/broken``, and the exit is 125. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_SLAVE = 2, 4, 4096, 16384, 1 << 19
#: Flags of the file system under the folder that its view has as well: read-only, nosuid, nodev, noexec.
SAME_FLAGS = 1 | 2 | 4 | 8
PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 24, 47, 4
CAP_SYS_ADMIN = 21
#: The module ``signal`` takes longer to import than all that is done here; these two are so on every common machine.
SIGPIPE, SIGXFSZ = 13, 25
CAPABILITY_VERSION_3 = 0x20080522

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mount.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_ulong, ctypes.c_char_p)
LIBC.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
LIBC.signal.restype = ctypes.c_void_p
LIBC.prctl.argtypes = (ctypes.c_int, *[ctypes.c_ulong] * 4)


def done(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def identity(path: str) -> str:
    """Every id that this namespace knows, mapped to itself."""
    with open(path) as file:  # noqa: PTH123
        rows = [line.split() for line in file]
    return "".join(f"{first} {first} {count}\n" for first, _, count in rows)


def enter() -> None:
    """A user and a mount namespace in which everybody is who they were."""
    uid, gid = os.geteuid(), os.getegid()
    if uid != 0:
        done(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS), "no user namespace")
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{uid} {uid} 1\n")
        write("/proc/self/gid_map", f"{gid} {gid} 1\n")
        return
    # root works with the files of others as well, and only somebody outside may map more than one id
    me, maps = os.getpid(), [(name, identity(f"/proc/self/{name}")) for name in ("uid_map", "gid_map")]
    wait, go = os.pipe()
    outside = os.fork()
    if outside == 0:
        code = 1
        try:
            os.close(go)
            if os.read(wait, 1):
                for name, text in maps:
                    write(f"/proc/{me}/{name}", text)
                code = 0
        except OSError:
            code = 2
        finally:
            os._exit(code)
    os.close(wait)
    try:
        done(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS), "no user namespace")
        os.write(go, b"!")
    finally:
        os.close(go)
        _, status = os.waitpid(outside, 0)
    if status != 0:
        raise PermissionError(1, "ids could not be mapped in the user namespace")


def mount(source: str, target: bytes, kind: str, flags: int, options: str) -> None:
    result = LIBC.mount(source.encode(), target, kind.encode() or None, flags, options.encode() or None)
    done(result, f"mount of {kind or 'the copy'}")


def settle(room: bytes) -> None:
    """An earlier mount of the layer was volatile and left a mark that forbids another; but no machine has crashed."""
    marks = room + b"/work/work/incompat"
    if os.path.lexists(marks):
        os.unlink(marks + b"/volatile/dirty")
        os.rmdir(marks + b"/volatile")
        os.rmdir(marks)


def cover(kind: str, folder: bytes, room: bytes, hidden: list[bytes]) -> None:
    """Mount the view; afterwards the working directory is in it."""
    done(LIBC.mount(None, b"/", None, MS_REC | MS_SLAVE, None), "no mount namespace")
    flags = os.statvfs(folder).f_flag & SAME_FLAGS
    # by descriptors: a path could hold whatever means something in the options, and be too long for them
    names = [folder, room + b"/upper", room + b"/work"] if kind == "overlay" else [room + b"/tree"]
    at = [f"/proc/self/fd/{os.open(name, os.O_PATH | os.O_DIRECTORY)}" for name in names]
    if kind == "overlay":
        settle(room)
        # volatile: what is thrown away need not reach the disk
        options = f"lowerdir={at[0]},upperdir={at[1]},workdir={at[2]},userxattr,index=off,volatile"
        mount("overlay", folder, "overlay", flags, options)
    else:
        mount(at[0], folder, "", MS_BIND, "")
    for own in hidden:
        mount("tmpfs", own, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700,size=64m")
    before = os.stat(".")
    os.chdir(folder)
    if (before.st_dev, before.st_ino) == (os.stat(".").st_dev, os.stat(".").st_ino):
        raise OSError(5, "the view does not cover the folder")


def lower() -> None:
    """Nothing that follows may mount or unmount: what the view covers has to stay covered."""
    if os.geteuid() != 0:
        kept = (0, 0)
    else:
        # root keeps what it needs to treat everybody's files as its own
        header, data = struct.pack("Ii", CAPABILITY_VERSION_3, 0), ctypes.create_string_buffer(24)
        done(LIBC.capget(header, data), "capabilities")
        words = struct.unpack("6I", data.raw)
        kept = (words[1] & ~(1 << CAP_SYS_ADMIN), words[4])
    done(LIBC.prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0), "capabilities")
    LIBC.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    header = struct.pack("Ii", CAPABILITY_VERSION_3, 0)
    inheritable = (0, 0)
    done(
        LIBC.capset(header, struct.pack("6I", kept[0], kept[0], inheritable[0], kept[1], kept[1], inheritable[1])),
        "capabilities",
    )


def answer() -> None:
    """What stands at each path that comes in, links not followed."""
    rows = []
    for path in sys.stdin.buffer.read().split(b"\0")[:-1]:
        try:
            found = os.lstat(path)
            rows.append(f"{found.st_mode} {found.st_size} 0")
        except OSError as error:
            rows.append(f"- - {error.errno}")
    sys.stdout.write("".join(row + "\n" for row in rows))


def own_environment() -> dict[bytes, bytes]:
    """The environment as it was handed over: a start of Python may have added to it."""
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123
        pairs = [pair.partition(b"=") for pair in file.read().split(b"\0")]
    return {name: value for name, equals, value in pairs if equals}


def become(words: list[bytes], room: bytes) -> int:
    """The command takes over; only returns when it could not be started (the error is in ``ROOM/unstarted``)."""
    for number in (SIGPIPE, SIGXFSZ):
        LIBC.signal(number, None)  # to the default: Python ignores these
    try:
        os.execvpe(words[0], words, own_environment())
    except OSError as error:
        with open(room + b"/unstarted", "w") as file:  # noqa: PTH123
            file.write(str(error.errno))
        return 127 if isinstance(error, (FileNotFoundError, NotADirectoryError)) else 126


def main() -> int:
    own, command = sys.argv[1:], []
    if "--" in own:
        at = own.index("--")
        own, command = own[:at], own[at + 1 :]
    verb, kind, *paths = own
    folder, room, *hidden = [os.fsencode(path) for path in paths]
    for told in (b"/covered", b"/broken", b"/unstarted"):  # by an earlier attempt
        if os.path.lexists(room + told):
            os.unlink(room + told)
    try:
        enter()
        cover(kind, folder, room, hidden)
        lower()
        os.close(os.open(room + b"/covered", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        reason = error.strerror or str(error)
        try:
            with open(room + b"/broken", "wb") as file:  # noqa: PTH123
                file.write(reason.encode("utf-8", "replace"))
        except OSError:
            return 125  # what keeps it from mounting may keep it from telling; that the view does not stand is seen
        return 125
    if verb == "look":
        answer()
        return 0
    return become([os.fsencode(word) for word in command], room)


if __name__ == "__main__":
    sys.exit(main())
