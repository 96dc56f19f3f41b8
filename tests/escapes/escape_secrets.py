"""Credentials, by every route there is to a file, and what veil keeps of other runs."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import shutil
import struct

from attempts import LANDLOCK, Family, Through
from calls import HOME, STATE, WORK, Cannot, nested, read, ring_operation, syscall, tell, through

FAMILY = Family(__name__)
attempt, shell = FAMILY.attempt, FAMILY.shell

CREDENTIALS, NETRC, KEY = f"{HOME}/.aws/credentials", f"{HOME}/.netrc", f"{HOME}/.ssh/id_rsa"
NAMES = Through(
    LANDLOCK, "it cannot be opened, but looked at", gap="names, sizes and times", tells=("name", "attribute")
)
AT_FDCWD = -100

shell("a key of SSH, printed", 'cat "$ESCAPE_HOME/.ssh/id_rsa"')
shell("passwords for hosts, printed", 'cat "$ESCAPE_HOME/.netrc"')
shell("credentials of a cloud, printed", 'cat "$ESCAPE_HOME/.aws/credentials"')
shell("passwords of git, printed", 'cat "$ESCAPE_HOME/.git-credentials"')
shell("by ~", "cat ~/.netrc ~/.aws/credentials")
shell(
    "asked of git", "printf 'protocol=https\\nhost=example.com\\n\\n' | git -c credential.helper=store credential fill"
)
shell("copied", 'cp -r "$ESCAPE_HOME/.ssh" "$ESCAPE_HOME/.netrc" .')
shell("packed", 'tar -cf - -C "$ESCAPE_HOME" .ssh .aws .netrc')
shell("moved", 'mv "$ESCAPE_HOME/.aws" moved; mv "$ESCAPE_HOME/.netrc" .')
shell("searched", 'grep -arhs "" "$ESCAPE_HOME"')
shell("run as a script", 'sh "$ESCAPE_HOME/.netrc"; . "$ESCAPE_HOME/.aws/credentials"')
shell("compared by git", 'git diff --no-index /dev/null "$ESCAPE_HOME/.netrc"')
shell("by a longer spelling", 'cat "/$ESCAPE_HOME/./.ssh//../.ssh/id_rsa" "$ESCAPE_HOME/../home/.netrc"')
shell("by /proc/self/root", 'cat "/proc/self/root$ESCAPE_HOME/.netrc"')
shell(
    "by /proc/1/root",
    'cat "/proc/1/root$ESCAPE_HOME/.netrc"',
    bare=dict.fromkeys(("root", "user"), "machines differ in who may look at the first process"),
)
shell("by the link that it was given as", 'cat "$ESCAPE_HOME/.pgpass" "$ESCAPE_BASE/dots/pgpass"')
shell("the environment", "env")
shell("names in a folder", 'ls -a "$ESCAPE_HOME/.gnupg"', through=NAMES)
shell("veil's records, searched", 'grep -arhs "" "$ESCAPE_STATE"')
shell("veil's records, by name", 'cat "$ESCAPE_RECORD"')
shell("an empty mask filled", 'echo x > "$ESCAPE_HOME/.ssh/config" && echo THROUGH')
shell("a file that is masked, written", 'echo x > "$ESCAPE_HOME/.netrc"')
shell(
    "the folder above renamed, then another in its place", 'mv "$ESCAPE_HOME" "$ESCAPE_HOME.old"; mkdir "$ESCAPE_HOME"'
)


@attempt("a hard link to it")
def hard_link() -> None:
    os.link(NETRC, f"{WORK}/netrc")
    read(f"{WORK}/netrc")


@attempt("a symbolic link to it")
def symbolic_link() -> None:
    os.symlink(NETRC, f"{WORK}/netrc")
    read(f"{WORK}/netrc")


@attempt("a linked folder above it")
def linked_folder() -> None:
    os.symlink(HOME, f"{WORK}/home")
    read(f"{WORK}/home/.ssh/id_rsa")


@attempt("only named (O_PATH), then opened")
def only_named() -> None:
    read(f"/proc/self/fd/{os.open(NETRC, os.O_PATH)}")


@attempt("relative to a folder that was opened")
def relative() -> None:
    folder = os.open(HOME, os.O_PATH)
    tell(os.read(os.open(".aws/credentials", os.O_RDONLY, dir_fd=folder), 100))


@attempt("from within its folder")
def within() -> None:
    os.chdir(f"{HOME}/.aws")
    read("credentials")


@attempt("its size", through=NAMES)
def size() -> None:
    found = os.stat(CREDENTIALS)
    through(f"{found.st_size} bytes")


@attempt("its attributes", through=NAMES)
def attributes() -> None:
    try:
        tell(os.getxattr(NETRC, "user.note"))
    except OSError as error:
        if error.errno == errno.ENODATA:
            raise Cannot("a file system without attributes") from error
        raise


@attempt("by a file handle (open_by_handle_at)", bare={"user": "needs a capability"})
def by_handle() -> None:
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
    mounted = ctypes.c_int()
    syscall("name_to_handle_at", AT_FDCWD, NETRC.encode(), handle, ctypes.byref(mounted), 0)
    found = syscall("open_by_handle_at", os.open(WORK, os.O_RDONLY), handle, os.O_RDONLY)
    tell(os.read(found, 100))


@attempt("by io_uring, with the network on", network=True)
def by_ring() -> None:
    path = ctypes.create_string_buffer(NETRC.encode())
    found = ring_operation(18, AT_FDCWD, 0, ctypes.addressof(path), 0, os.O_RDONLY)
    tell(os.read(found, 100))


@attempt("mapped into memory")
def mapped() -> None:
    with open(KEY, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as memory:
        tell(memory[:])


@attempt("copied by the kernel (sendfile)")
def by_kernel() -> None:
    target = os.open(f"{WORK}/copy", os.O_WRONLY | os.O_CREAT, 0o600)
    os.sendfile(target, os.open(CREDENTIALS, os.O_RDONLY), 0, 100)


@attempt("as root of a user namespace of one's own")
def as_other_root() -> None:
    nested()
    for path in (KEY, CREDENTIALS, NETRC):
        try:
            read(path)
        except OSError:
            continue


@attempt("its folder copied while names are walked")
def walked() -> None:
    shutil.copytree(f"{HOME}/.ssh", f"{WORK}/copy")


@attempt("named by what is loaded (LD_PRELOAD)")
def preloaded() -> None:
    os.system(f"LD_PRELOAD={NETRC} true; LD_LIBRARY_PATH={HOME}/.aws true; ENV={NETRC} sh -ic :")


@attempt("the environment of the processes above")
def environment_above() -> None:
    pid = os.getpid()
    while pid > 0:
        try:
            read(f"/proc/{pid}/environ")
        except OSError as error:
            print(error)
        with open(f"/proc/{pid}/stat") as file:
            pid = int(file.read().rpartition(")")[2].split()[1])


@attempt("names of veil's records")
def record_names() -> None:
    if found := os.listdir(STATE):
        through(found)


FAMILY.attempts[-1].through = Through(LANDLOCK, "it cannot be opened, but looked at", gap="names, sizes and times")
