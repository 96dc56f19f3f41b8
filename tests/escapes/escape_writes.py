"""Writing outside of the working folder. The host sees what came of it."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct

from attempts import BACKENDS, LANDLOCK, MOUNTS, Family, Through
from calls import BASE, HOME, OUTSIDE, STATE, TARGET, WORK, called, known, libc, ring_operation, syscall, write

FAMILY = Family(__name__)
attempt, shell = FAMILY.attempt, FAMILY.shell

AT_FDCWD, AT_SYMLINK_FOLLOW = -100, 0x400

shell("create a file", 'echo x > "$ESCAPE_OUTSIDE/new"')
shell("append to a file", 'echo x >> "$ESCAPE_OUTSIDE/target"')
shell("empty a file by the shell", ': > "$ESCAPE_OUTSIDE/target"')
shell("delete a file", 'rm -f "$ESCAPE_OUTSIDE/target"')
shell("delete a folder", 'rmdir "$ESCAPE_OUTSIDE/empty"')
shell("make a folder", 'mkdir "$ESCAPE_OUTSIDE/new"')
shell("make a link", 'ln -s target "$ESCAPE_OUTSIDE/new"')
shell("a path with ..", "echo x > ../outside/new")
shell("/proc/self/root", 'echo x > "/proc/self/root$ESCAPE_OUTSIDE/new"')
shell("/proc/self/cwd", "echo x > /proc/self/cwd/../outside/new")
shell(
    "/proc/1/root",
    'echo x > "/proc/1/root$ESCAPE_OUTSIDE/new"',
    bare=dict.fromkeys(("root", "user"), "machines differ in who may look at the first process"),
)
shell("write in the middle of a file (dd)", 'echo x | dd of="$ESCAPE_OUTSIDE/target" conv=notrunc status=none')
shell("edit in place (sed -i)", 'sed -i s/content/changed/ "$ESCAPE_OUTSIDE/target"')
shell("copy over a file", 'echo x > mine; cp -f mine "$ESCAPE_OUTSIDE/target"')
shell(
    "unpack an archive with absolute names",
    'echo x > new; tar -cPf a.tar --transform "s,^new$,$ESCAPE_OUTSIDE/new," new; tar -xPf a.tar',
)
shell("delete a whole tree (find)", 'find "$ESCAPE_OUTSIDE" -mindepth 1 -delete')
shell("a new sibling of cwd", "mkdir ../sibling")
shell(
    "write to a named pipe that somebody outside reads",
    'timeout 2 sh -c "echo x > \\"$ESCAPE_OUTSIDE/pipe\\""',
    through=Through(MOUNTS, "a read-only mount does not cover named pipes", gap="named pipes"),
)
shell("the machine's /tmp", 'echo x > "/tmp/$ESCAPE_MARK"; rm -f "$ESCAPE_HOST_TMP/kept"')
shell("/var/tmp", 'echo x > "/var/tmp/$ESCAPE_MARK"')
shell(
    "/dev/shm",
    'echo x > "/dev/shm/$ESCAPE_MARK"',
    through=Through(LANDLOCK, "the machine's own is needed for shared memory", gap="/dev/shm"),
)
shell("add to veil's records", 'echo x > "$ESCAPE_STATE/planted"')
shell("delete veil's records", 'rm -f "$ESCAPE_RECORD"; find "$ESCAPE_STATE" -type f -name "*secret*" -delete')
shell("move cwd away", 'mv "$ESCAPE_WORK" "$ESCAPE_WORK.gone"')
shell("remove cwd", 'rm -rf "$ESCAPE_WORK"; rmdir "$ESCAPE_WORK"')
shell(
    "a hard link in cwd that was there before",
    "echo x >> linked",
    through=Through(BACKENDS, "it is a file in cwd as good as any", gap="hard link"),
)
shell("start-up files of the home folder", 'echo x >> "$ESCAPE_HOME/.profile"')
shell(
    "a link in the place of the temporary folder, for veil to clear",
    'rmdir "$TMPDIR" && ln -s "$ESCAPE_OUTSIDE" "$TMPDIR"',
    harmless=False,
)
shell(
    "links in the temporary folder, for veil to clear",
    'cd "$TMPDIR"; ln -s "$ESCAPE_OUTSIDE" link; mkdir d; ln -s "$ESCAPE_OUTSIDE/sub" d/l; chmod 0 d',
    harmless=False,
)


@attempt("empty a file by truncate(2)")
def truncate() -> None:
    os.truncate(TARGET, 0)


@attempt("take a file in by rename")
def rename_in() -> None:
    os.rename(TARGET, f"{WORK}/taken")


@attempt("put a file out by rename")
def rename_out() -> None:
    write(f"{WORK}/mine")
    os.rename(f"{WORK}/mine", f"{OUTSIDE}/new")


@attempt("rename over a file")
def rename_over() -> None:
    write(f"{WORK}/mine")
    os.rename(f"{WORK}/mine", TARGET)


@attempt("rename outside")
def rename_outside() -> None:
    os.rename(TARGET, f"{OUTSIDE}/new")


@attempt("exchange two files (renameat2)")
def exchange() -> None:
    write(f"{WORK}/mine")
    syscall("renameat2", AT_FDCWD, f"{WORK}/mine".encode(), AT_FDCWD, TARGET.encode(), 2)


@attempt("a new hard link, written through")
def link() -> None:
    os.link(TARGET, f"{WORK}/link")
    write(f"{WORK}/link", os.O_WRONLY | os.O_APPEND)


@attempt("a symbolic link, written through")
def symlink() -> None:
    os.symlink(TARGET, f"{WORK}/link")
    write(f"{WORK}/link", os.O_WRONLY | os.O_TRUNC)


@attempt("a linked folder, written in")
def linked_folder() -> None:
    os.symlink("../outside", f"{WORK}/link")
    write(f"{WORK}/link/new")


def _named(handle: int) -> None:
    path, name = f"/proc/self/fd/{handle}".encode(), f"{OUTSIDE}/new".encode()
    called("linkat", AT_FDCWD, path, AT_FDCWD, name, AT_SYMLINK_FOLLOW)


@attempt("a nameless file outside, then named (O_TMPFILE)")
def nameless_outside() -> None:
    handle = os.open(OUTSIDE, os.O_TMPFILE | os.O_WRONLY, 0o600)
    _named(handle)


@attempt("a nameless file of cwd, named outside")
def nameless_inside() -> None:
    handle = os.open(WORK, os.O_TMPFILE | os.O_WRONLY, 0o600)
    _named(handle)


@attempt("a shared mapping")
def mapping() -> None:
    handle = os.open(TARGET, os.O_RDWR)
    with mmap.mmap(handle, 0) as memory:
        memory[:4] = b"XXXX"


@attempt("a shared mapping of a file opened for reading, made writable")
def mapping_made_writable() -> None:
    handle = os.open(TARGET, os.O_RDONLY)
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(None, ctypes.c_size_t(4096), mmap.PROT_READ, mmap.MAP_SHARED, handle, ctypes.c_long(0))
    if libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(4096), mmap.PROT_READ | mmap.PROT_WRITE) != 0:
        raise OSError(ctypes.get_errno(), "mprotect")
    ctypes.memmove(at, b"XXXX", 4)


# the kernel does not let anybody do this
FAMILY.attempts[-1].bare = dict.fromkeys(("root", "user"), "no kernel allows it")


@attempt("relative to a folder opened before")
def by_folder() -> None:
    folder = os.open(OUTSIDE, os.O_PATH | os.O_DIRECTORY)
    os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=folder))


@attempt("open for writing what was opened for reading (/proc/self/fd)")
def again_by_descriptor() -> None:
    handle = os.open(TARGET, os.O_RDONLY)
    write(f"/proc/self/fd/{handle}", os.O_WRONLY | os.O_TRUNC)


@attempt("by a file handle (open_by_handle_at)", bare={"user": "needs a capability"})
def by_handle() -> None:
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
    mounted = ctypes.c_int()
    syscall("name_to_handle_at", AT_FDCWD, TARGET.encode(), handle, ctypes.byref(mounted), 0)
    folder = os.open(WORK, os.O_RDONLY)
    found = syscall("open_by_handle_at", folder, handle, os.O_WRONLY | os.O_TRUNC)
    os.write(found, b"x")


def _by_ring() -> None:
    openat = 18
    path = ctypes.create_string_buffer(f"{OUTSIDE}/new".encode())
    ring_operation(openat, AT_FDCWD, 0, ctypes.addressof(path), 0o600, os.O_CREAT | os.O_WRONLY)


@attempt("by io_uring")
def by_ring() -> None:
    _by_ring()


@attempt("by io_uring, with the network on", network=True)
def by_ring_with_network() -> None:
    _by_ring()


@attempt(
    "read the machine's /tmp",
    through=Through(LANDLOCK, "it is in sight, to be read", gap="/tmp is the machine's", tells=("tmp",)),
)
def read_tmp() -> None:
    with open(f"{known('HOST_TMP')}/secret", "rb") as file:
        print(file.read().decode())


@attempt(
    "read what others keep in /dev/shm",
    through=Through(LANDLOCK, "it is the machine's own", gap="/dev/shm", tells=("shm",)),
)
def read_shm() -> None:
    with open(f"{known('HOST_SHM')}", "rb") as file:
        print(file.read().decode())


@attempt("replace the parent of cwd")
def parent() -> None:
    os.rename(BASE, f"{BASE}.gone")


@attempt("folders above veil's records")
def above_records() -> None:
    os.rename(STATE, f"{STATE}.gone")


@attempt("the home folder replaced")
def home() -> None:
    os.rename(HOME, f"{HOME}.gone")
