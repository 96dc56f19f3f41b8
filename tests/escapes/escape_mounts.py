"""Mounts taken off, made writable or made anew, and the namespaces of others.

Without a sandbox only what happens in namespaces of one's own is tried.
"""

from __future__ import annotations

import os
import stat
import struct

from attempts import Family
from calls import (
    BASE,
    DETACH,
    HOME,
    MS_BIND,
    MS_MOVE,
    MS_REC,
    MS_REMOUNT,
    NEWNS,
    NEWUSER,
    OUTSIDE,
    WORK,
    called,
    known,
    mount,
    nested,
    read,
    syscall,
    through,
    write,
)

FAMILY = Family(__name__)
attempt = FAMILY.attempt

FIRST = dict.fromkeys(("root", "user"), "machines differ in who may look at the first process")
NEEDS_ROOT = {"user": "needs root"}
AT_FDCWD, AT_EMPTY_PATH, AT_RECURSIVE, CLONE = -100, 0x1000, 0x8000, 1
#: Nothing is masked outside a sandbox, so these get at the secret without having done anything; that is fine.
CREDENTIALS = f"{HOME}/.aws/credentials"


def looked() -> None:
    """At every secret of the home folder that can be read by now."""
    for name in (".ssh/id_rsa", ".aws/credentials", ".netrc", ".git-credentials"):
        try:
            read(f"{HOME}/{name}")
        except OSError:
            continue


def spot(name: str = "m") -> str:
    os.makedirs(f"{WORK}/{name}", exist_ok=True)
    return f"{WORK}/{name}"


@attempt("everything mounted writable again", harmless=False)
def remount() -> None:
    mount(None, "/", None, MS_REMOUNT | MS_BIND)
    write(f"{OUTSIDE}/new")


@attempt("a folder mounted below cwd", harmless=False)
def bind() -> None:
    mount(OUTSIDE, spot(), None, MS_BIND)
    write(f"{WORK}/m/new")


@attempt("masks unmounted", harmless=False)
def unmask() -> None:
    refused = None
    for path in (f"{HOME}/.ssh", f"{HOME}/.aws", f"{HOME}/.netrc", f"{HOME}/.git-credentials", STATE_FOLDER):
        try:
            called("umount2", path.encode(), DETACH)
        except OSError as error:
            refused = error
        else:
            through(f"{path} is unmounted")
    looked()
    if refused is not None:
        raise refused


STATE_FOLDER = os.environ.get("ESCAPE_STATE", "")


@attempt("/proc unmounted", harmless=False)
def unmount_proc() -> None:
    called("umount2", b"/proc", DETACH)
    through("/proc is unmounted")


@attempt("everything mounted writable again, in namespaces of one's own")
def nested_remount() -> None:
    nested()
    mount(None, "/", None, MS_REMOUNT | MS_BIND)
    write(f"{OUTSIDE}/new")


@attempt("everything made writable by mount_setattr, in namespaces of one's own")
def nested_setattr() -> None:
    nested()
    clear = struct.pack("=QQQQ", 0, 1, 0, 0)
    syscall("mount_setattr", AT_FDCWD, b"/", 0, clear, len(clear))
    write(f"{OUTSIDE}/new")


@attempt("masks unmounted, in namespaces of one's own")
def nested_unmask() -> None:
    nested()
    for path in (f"{HOME}/.ssh", f"{HOME}/.aws", f"{HOME}/.netrc", f"{HOME}/.git-credentials"):
        try:
            called("umount2", path.encode(), DETACH)
        except OSError:
            continue
    looked()


@attempt("a folder mounted below cwd, in namespaces of one's own")
def nested_bind() -> None:
    nested()
    mount(OUTSIDE, spot(), None, MS_BIND | MS_REC)
    write(f"{WORK}/m/new")


@attempt("home mounted elsewhere, without what lies on it")
def nested_bind_home() -> None:
    nested()
    mount(HOME, spot(), None, MS_BIND)
    read(f"{WORK}/m/.aws/credentials")


@attempt("/ mounted elsewhere, without what lies on it")
def nested_bind_root() -> None:
    nested()
    mount("/", spot(), None, MS_BIND)
    read(f"{WORK}/m{CREDENTIALS}")


FAMILY.attempts[-1].bare = dict.fromkeys(("root", "user"), "what lies on mounts of others is locked")


@attempt("a tree copied without what lies on it (open_tree)")
def nested_open_tree() -> None:
    nested()
    tree = syscall("open_tree", AT_FDCWD, HOME.encode(), CLONE)
    handle = os.open(".aws/credentials", os.O_RDONLY, dir_fd=tree)
    os.write(1, os.read(handle, 100))


@attempt("a tree copied, made writable, written in")
def nested_tree_writable() -> None:
    nested()
    tree = syscall("open_tree", AT_FDCWD, OUTSIDE.encode(), CLONE | AT_RECURSIVE)
    clear = struct.pack("=QQQQ", 0, 1, 0, 0)
    syscall("mount_setattr", tree, b"", AT_EMPTY_PATH | AT_RECURSIVE, clear, len(clear))
    os.close(os.open("new", os.O_CREAT | os.O_WRONLY, dir_fd=tree))


@attempt("an overlay with home as its lower layer")
def nested_overlay() -> None:
    nested()
    mount("tmpfs", spot("t"), "tmpfs", 0)
    for name in ("u", "w", "m"):
        os.mkdir(f"{WORK}/t/{name}")
    layers = f"lowerdir={HOME},upperdir={WORK}/t/u,workdir={WORK}/t/w,userxattr"
    mount("overlay", f"{WORK}/t/m", "overlay", 0, layers)
    read(f"{WORK}/t/m/.aws/credentials")


@attempt("a mask moved away (mount --move)")
def nested_move() -> None:
    nested()
    mount(BASE, BASE, None, MS_BIND | MS_REC)
    for path in (f"{HOME}/.ssh", f"{HOME}/.aws"):
        try:
            mount(path, spot(), None, MS_MOVE)
        except OSError:
            continue
    looked()


@attempt("another root (pivot_root), the old one looked into")
def nested_pivot() -> None:
    nested()
    mount("tmpfs", spot(), "tmpfs", 0)
    os.mkdir(f"{WORK}/m/old")
    os.chdir(f"{WORK}/m")
    syscall("pivot_root", b".", b"old")
    called("umount2", f"/old{HOME}/.aws".encode(), DETACH)
    read(f"/old{CREDENTIALS}")


# its mounts are not masks without a sandbox: there is nothing to take off
FAMILY.attempts[-1].bare = dict.fromkeys(("root", "user"), "there is no mask to take off")


@attempt("two users deep")
def twice() -> None:
    nested()
    called("unshare", NEWUSER | NEWNS)
    mount(None, "/", None, MS_REMOUNT | MS_BIND)
    write(f"{OUTSIDE}/new")


FAMILY.attempts[-1].bare = dict.fromkeys(("root", "user"), "mounts of the user before are locked")


@attempt("chroot into a folder, then out with ..")
def chroot_and_back() -> None:
    nested()
    folder = os.open("/", os.O_RDONLY)
    os.chroot(spot())
    os.fchdir(folder)
    os.chroot(".")
    write(f"{OUTSIDE}/new")


@attempt("chroot", bare=NEEDS_ROOT)
def chroot() -> None:
    os.chroot(spot())
    through("another root")


@attempt("pivot_root", harmless=False)
def pivot() -> None:
    syscall("pivot_root", b"/", WORK.encode())
    through("another root")


@attempt("a new file system (fsopen, fsmount)", bare=NEEDS_ROOT)
def new_interface() -> None:
    context = syscall("fsopen", b"tmpfs", 0)
    syscall("fsconfig", context, 6, None, None, 0)
    syscall("fsmount", context, 0, 0)
    through("a file system is mounted")


@attempt("the disk that holds everything, mounted", harmless=False)
def disk() -> None:
    nested()
    number = os.stat(BASE).st_dev
    os.mknod(f"{WORK}/disk", stat.S_IFBLK | 0o600, number)
    mount(f"{WORK}/disk", spot(), "ext4", 1)
    through("the disk is mounted")


def _join(path: str, kind: int) -> None:
    called("setns", os.open(path, os.O_RDONLY), kind)


@attempt("the mounts of the first process joined (setns)", bare=FIRST)
def join_first() -> None:
    _join("/proc/1/ns/mnt", NEWNS)
    through("joined")


@attempt("the mounts of a process outside joined", bare=NEEDS_ROOT)
def join_victim() -> None:
    _join(f"/proc/{known('VICTIM')}/ns/mnt", NEWNS)
    through("joined")


@attempt("all namespaces of a process outside joined (pidfd)", bare=NEEDS_ROOT)
def join_by_pidfd() -> None:
    handle = os.pidfd_open(int(known("VICTIM")))
    called("setns", handle, 0x7E020000 & ~NEWUSER)
    through("joined")


@attempt("the user of the first process joined")
def join_user() -> None:
    _join("/proc/1/ns/user", NEWUSER)
    through("joined")


FAMILY.attempts[-1].bare = dict.fromkeys(("root", "user"), "nobody joins the user namespace that he is in")


@attempt("the network of a process outside joined", bare=NEEDS_ROOT)
def join_network() -> None:
    _join(f"/proc/{known('VICTIM')}/ns/net", 0x40000000)
    through("joined")


@attempt("a program's root from its /proc, after a new pid namespace")
def nested_proc() -> None:
    nested(NEWNS | 0x20000000)
    if os.fork() == 0:
        try:
            mount("proc", "/proc", "proc", 0)
            read(f"/proc/self/root{CREDENTIALS}")
        except OSError as error:
            print(error)
        finally:
            os._exit(0)
    os.wait()
